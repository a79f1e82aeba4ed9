//! `cargo xtask load`: many clients of a server at once, and how long each of them waits.
//!
//! Requests arrive at random moments, as people's do: the time between two is exponentially distributed around
//! 1 / rate. Each is a stream, and each token's time is noted.

mod burst;
mod hostile;
mod open_files;
mod report;
mod request;
mod soak;
mod versus;

use crate::failure::Failure;
use report::Report;
use request::{Request, Times};
use std::thread;
use std::time::{Duration, Instant};
use versus::VersusArgs;

/// What to do.
#[derive(clap::Args)]
pub struct Args {
    /// Where the server listens
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    address: String,
    /// Requests in all
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "mode")]
    requests: u32,
    /// Requests that arrive in a second, on average; 0 for all at once
    #[arg(long, value_name = "R", default_value_t = 4.0, conflicts_with = "mode")]
    rate: f64,
    /// Words of a prompt, as a range of which each request takes one number
    #[arg(long, value_name = "FROM-TO", default_value = "20-200", value_parser = range)]
    prompt: (u32, u32),
    /// Tokens of an answer, likewise
    #[arg(long, value_name = "FROM-TO", default_value = "16-128", value_parser = range)]
    tokens: (u32, u32),
    /// The same seed gives the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long, conflicts_with = "mode")]
    json: bool,
    /// Instead, let clients come and go for this long (90s, 10m), and compare each answer with the same one alone
    #[arg(long, value_name = "TIME", value_parser = time, group = "mode")]
    soak: Option<Duration>,
    /// Instead, measure what one client notices while others open thousands of connections and send what is meant to harm
    #[arg(long, group = "mode")]
    hostile: bool,
    /// Connections of --hostile [default: 10000]
    #[arg(long, value_name = "N", requires = "hostile")]
    connections: Option<u32>,
    #[command(flatten)]
    versus: VersusArgs,
    /// Clients at once: of the soak [default: 64], or of the comparison, one number after the other [default: 1,8,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "mode", conflicts_with = "hostile",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,
}

impl Args {
    /// Numbers of clients: those that were asked for, or else these.
    fn clients(&self, default: &[u32]) -> Vec<u32> {
        if self.clients.is_empty() {
            default.to_vec()
        } else {
            self.clients.clone()
        }
    }
}

/// `90s` or `10m`.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let n: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(u64::from(n) * seconds))
    });
    let found = found.filter(|time| !time.is_zero());
    found.ok_or_else(|| "it must be a time such as 90s or 10m".into())
}

/// `20-200`, or one number.
fn range(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if 0 < from && from <= to => Ok((from, to)),
        _ => Err("it must be a number or a range such as 20-200, of 1 or more".into()),
    }
}

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

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn within(&mut self, (from, to): (u32, u32)) -> u32 {
        from + (self.next() % u64::from(to - from + 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "10", "0s", "-1m", "1h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_read_and_kept() {
        assert_eq!(range("7"), Ok((7, 7)));
        assert_eq!(range("2-5"), Ok((2, 5)));
        for wrong in ["", "0", "5-2", "a-b", "1-2-3"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        let mut random = Random(1);
        let drawn: Vec<u32> = (0..200).map(|_| random.within((2, 5))).collect();
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&2), Some(&5))
        );
    }
}
