//! `cargo measure load`: many clients of a server at once, and how long each of them waits.
//!
//! Requests arrive at random moments, as people's do: the time between two is exponentially distributed around
//! 1 / rate. Each is a stream, and each token's time is noted.

mod args;
mod burst;
mod hostile;
mod open_files;
mod random;
mod report;
mod request;
mod soak;
mod versus;

use akunu_repo::Failure;
pub use args::Args;
use random::Random;
use report::Report;
use request::{Request, Times};
use std::thread;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !(args.rate >= 0.0 && args.rate.is_finite()) {
        return Err(Failure::Usage("--rate must be 0 or more".into()));
    }
    if let Some(time) = args.soak {
        return soak::run(args, time);
    }
    if args.hostile {
        return hostile::run(args);
    }
    if let Some(peer) = &args.versus.llama_server {
        return versus::run(args, peer);
    }
    let mut random = Random(args.seed);
    let begin = Instant::now();
    let mut at = Duration::ZERO;
    let mut asking = Vec::new();
    for n in 0..args.requests {
        let request = Request {
            address: args.address.clone(),
            n_words: random.within(args.prompt),
            n_tokens: random.within(args.tokens),
            number: n,
        };
        if args.rate > 0.0 {
            at += Duration::from_secs_f64(-random.share().ln() / args.rate);
        }
        thread::sleep((begin + at).saturating_duration_since(Instant::now()));
        asking.push(thread::spawn(move || request.send()));
    }
    let failed = |_| Err("a client failed".to_string());
    let done = asking
        .into_iter()
        .map(|one| one.join().unwrap_or_else(failed));
    let done: Vec<Result<Times, String>> = done.collect();
    let report = Report::of(&done, begin.elapsed());
    if args.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    match done.into_iter().find_map(Result::err) {
        Some(why) => Err(Failure::Found(format!(
            "not all requests were answered: {why}"
        ))),
        None => Ok(()),
    }
}
