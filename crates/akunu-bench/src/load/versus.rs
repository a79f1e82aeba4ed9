//! `cargo measure load --llama-server`: our server and llama.cpp's on the same model, cores and load, in turns.
//!
//! Both are started once, with as many threads, sequences and tokens of context each. A round is a number of requests that a
//! number of clients take from one list, each its next one when it has read its answer; first one server gets them, then the
//! other, and in the next round the other way round. No two requests of a server begin alike, so that none finds its prompt
//! read already. The servers do nothing while they are not asked.

use super::args::{Args, VersusArgs};
use super::burst::{Burst, burst};
use super::random::Random;
use super::report::Report;
use super::request::Request;
use crate::median::median;
use akunu_repo::cli::{Profile, build};
use akunu_repo::server::{Server, free_address};
use akunu_repo::{Failure, assets, process, workspace};
use std::path::Path;
use std::process::{Command, Stdio};

/// Requests of a round for each client.
const EACH: u32 = 3;
/// Tokens of a sequence.
const CONTEXT: u32 = 2048;

/// A server, and what it did in each round.
struct Side {
    name: &'static str,
    server: Server,
    rounds: Vec<Burst>,
}

/// Runs the comparison.
pub fn run(args: &Args, peer: &Path) -> Result<(), Failure> {
    let given = &args.versus;
    let clients = args.clients(&[1, 8, 16]);
    let most = clients.iter().copied().max().unwrap_or(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = given.threads.unwrap_or(cores);
    let size = Size {
        sequences: most,
        threads,
    };
    let mut sides = start(given, peer, size)?;
    println!(
        "{threads} threads, {} rounds of {EACH} requests a client, in turns; prompts of {}-{} words, answers of {}-{} tokens\n",
        given.rounds, args.prompt.0, args.prompt.1, args.tokens.0, args.tokens.1
    );
    println!(
        "clients  server         tokens/s   first token, 50 % and 90 %   gap, 50 % and 99 %   CPU a token"
    );
    let mut random = Random(args.seed);
    let mut number = 0;
    for n_clients in clients {
        for round in 0..given.rounds {
            let mut requests = Vec::new();
            for _ in 0..n_clients * EACH {
                number += 1;
                requests.push(Request {
                    address: String::new(),
                    n_words: random.within(args.prompt),
                    n_tokens: random.within(args.tokens),
                    number,
                });
            }
            if round % 2 == 1 {
                sides.reverse();
            }
            for side in &mut sides {
                side.take(&requests, n_clients)?;
            }
            if round % 2 == 1 {
                sides.reverse();
            }
        }
        let speeds: Vec<f64> = sides.iter_mut().map(|side| side.tell(n_clients)).collect();
        println!("         factor         {:8.2}", speeds[0] / speeds[1]);
    }
    Ok(())
}

/// Both servers, ours first.
fn start(given: &VersusArgs, peer: &Path, size: Size) -> Result<Vec<Side>, Failure> {
    let model = match &given.model {
        Some(model) => model.clone(),
        None => {
            assets::ensure(&["smollm2"])?;
            workspace::assets().join("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        }
    };
    // It is soon known whether it is there; a build takes longer.
    let theirs = size.start_peer(peer, &model)?;
    let ours = match &given.ours {
        Some(program) => program.clone(),
        None => build(Profile::Release, &[])?,
    };
    let ours = size.start_ours(&ours, &model)?;
    let side = |name, server| Side {
        name,
        server,
        rounds: Vec::new(),
    };
    Ok(vec![side("akunu", ours), side("llama-server", theirs)])
}

/// What both servers are given.
#[derive(Clone, Copy)]
struct Size {
    sequences: u32,
    threads: usize,
}

impl Size {
    fn start_ours(self, program: &Path, model: &Path) -> Result<Server, Failure> {
        let mut serve = Command::new(program);
        serve.args(["serve", "--port", "0", "--ctx", &CONTEXT.to_string()]);
        serve.args(["--sequences", &self.sequences.to_string()]);
        serve.args(["--threads", &self.threads.to_string()]);
        serve.arg("-m").arg(model).stderr(Stdio::null());
        Server::start(&mut serve)
    }

    /// llama.cpp shares its context out among the sequences. Its second cache, of whole prompts beside those of the sequences,
    /// would never be of use here, and is off.
    fn start_peer(self, program: &Path, model: &Path) -> Result<Server, Failure> {
        if !process::exists(&program.to_string_lossy()) {
            return Err(Failure::Unavailable {
                why: format!("{} cannot be started", program.display()),
                fix: "install llama.cpp (`brew install llama.cpp`, `apt install llama.cpp` from Debian 14 on), or name the program"
                    .into(),
            });
        }
        let address = free_address()?;
        let port = address.rsplit(':').next().unwrap_or_default();
        let mut serve = Command::new(program);
        serve.args(["--host", "127.0.0.1", "--port", port]);
        serve.args(["--parallel", &self.sequences.to_string()]);
        serve.args(["--ctx-size", &(CONTEXT * self.sequences).to_string()]);
        serve.args(["--threads", &self.threads.to_string()]);
        serve.args(["--threads-batch", &self.threads.to_string()]);
        serve.args(["--cache-ram", "0"]);
        serve.arg("--model").arg(model).stderr(Stdio::null());
        Server::start_at(&mut serve, address)
    }
}

impl Side {
    /// A round.
    fn take(&mut self, requests: &[Request], n_clients: u32) -> Result<(), Failure> {
        let mut requests = requests.to_vec();
        for request in &mut requests {
            request.address.clone_from(&self.server.address);
        }
        let before = self.server.cpu_seconds();
        let mut done = burst(&requests, n_clients);
        if let (Some(before), Some(after)) = (before, self.server.cpu_seconds()) {
            done.cpu_seconds = Some(after - before);
        }
        if let Some(why) = done.answers.iter().find_map(|one| one.as_ref().err()) {
            return Err(Failure::Found(format!("{}: {why}", self.name)));
        }
        self.rounds.push(done);
        Ok(())
    }

    /// Prints the rounds with so many clients and forgets them; returns the tokens a second.
    fn tell(&mut self, n_clients: u32) -> f64 {
        let rounds: Vec<Burst> = self.rounds.drain(..).collect();
        let speed = median(rounds.iter().map(Burst::tokens_per_second).collect()).unwrap_or(0.0);
        let cpu: Option<Vec<f64>> = rounds.iter().map(Burst::cpu_ms_of_a_token).collect();
        let cpu = cpu.and_then(median);
        let cpu = cpu.map_or("-".to_string(), |ms| format!("{ms:.2} ms"));
        let took = rounds.iter().map(|round| round.took).sum();
        let answers: Vec<_> = rounds.into_iter().flat_map(|round| round.answers).collect();
        let Report { first, gap, .. } = Report::of(&answers, took);
        println!(
            "{n_clients:7}  {:<13} {speed:9.1}   {:9.0} ms {:9.0} ms      {:6.1} ms {:6.1} ms   {cpu:>11}",
            self.name, first.p50, first.p90, gap.p50, gap.p99
        );
        speed
    }
}
