//! `cargo measure load --hostile`: what a client notices while others mean harm.
//!
//! One client asks the same number of requests again and again, one after the other: alone, beside each kind of attack, beside all
//! of them at once, and alone at the end. Each of its requests must be answered in full. The attackers and the server share
//! the machine, so that some of what the client notices is the attackers' own work.

mod attack;
mod crowd;

use super::args::Args;
use super::burst::burst;
use super::open_files;
use super::report::Report;
use super::request::Request;
use akunu_repo::Failure;
use akunu_repo::server::is_well;
use attack::{Attack, Tally};
use crowd::Crowd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

/// Requests of the client beside each attack, and what they are like.
const N_REQUESTS: u32 = 12;
const N_WORDS: u32 = 40;
const N_TOKENS: u32 = 32;

/// What the client is beside.
struct Phase {
    name: String,
    n_connections: u32,
    attacks: &'static [Attack],
}

/// Runs all phases.
pub fn run(args: &Args) -> Result<(), Failure> {
    let n_connections = args.connections.unwrap_or(crowd::DEFAULT);
    let limit = open_files::raise();
    if limit.is_some_and(|limit| limit < u64::from(n_connections) + 100) {
        return Err(Failure::Unavailable {
            why: format!(
                "{n_connections} connections need as many open files, and this process may have {}",
                limit.unwrap_or(0)
            ),
            fix: "raise the hard limit (`ulimit -Hn`), or take fewer --connections".into(),
        });
    }
    println!(
        "beside                       first token, 50 % and most     gap, 50 % and 99 %   others were answered"
    );
    let number = AtomicU32::new(0);
    for phase in phases(n_connections) {
        phase.run(&args.address, &number)?;
    }
    Ok(())
}

fn phases(n_connections: u32) -> Vec<Phase> {
    let phase = |name: &str, n_connections, attacks| Phase {
        name: name.to_string(),
        n_connections,
        attacks,
    };
    let mut phases = vec![
        phase("nobody", 0, &[]),
        phase(&format!("{n_connections} connections"), n_connections, &[]),
    ];
    for attack in Attack::ALL.chunks(1) {
        phases.push(phase(attack[0].name(), 0, attack));
    }
    phases.push(phase("all of these", n_connections, Attack::ALL));
    phases.push(phase("nobody, afterwards", 0, &[]));
    phases
}

impl Phase {
    fn run(&self, address: &str, number: &AtomicU32) -> Result<(), Failure> {
        let crowd = Crowd::open(address, self.n_connections)?;
        let is_over = AtomicBool::new(false);
        let (done, mut tally) = thread::scope(|scope| {
            let attackers = self.attacks.iter();
            let attackers = attackers.map(|attack| scope.spawn(|| attack.go_on(address, &is_over)));
            let attackers: Vec<_> = attackers.collect();
            let requests: Vec<Request> = (0..N_REQUESTS)
                .map(|_| Request {
                    address: address.to_string(),
                    n_words: N_WORDS,
                    n_tokens: N_TOKENS,
                    number: number.fetch_add(1, Relaxed),
                })
                .collect();
            let done = burst(&requests, 1);
            is_over.store(true, Relaxed);
            let mut tally = Tally::default();
            for attacker in attackers {
                tally.add(attacker.join().unwrap_or_default());
            }
            (done, tally)
        });
        tally.add(crowd.leave());
        let Report { first, gap, .. } = Report::of(&done.answers, done.took);
        println!(
            "{:<28} {:7.0} ms {:7.0} ms   {:9.1} ms {:6.1} ms   {tally}",
            self.name, first.p50, first.p99, gap.p50, gap.p99
        );
        if let Some(why) = done.answers.iter().find_map(|one| one.as_ref().err()) {
            return Err(Failure::Found(format!("beside {}: {why}", self.name)));
        }
        if !is_well(address) {
            let name = &self.name;
            return Err(Failure::Found(format!(
                "after {name}: /health does not answer 200"
            )));
        }
        Ok(())
    }
}
