//! `cargo measure load --soak 10m`: clients that come and go for a long time, and what they leave behind.
//!
//! Each of some requests is answered alone first. Then all clients ask them again and again, at random, all at once. A client reads to
//! the end, or reads slowly, or goes away after some tokens, or before the first. At temperature 0 what it has read by then must be
//! what the request got alone. At the end no sequence and no page of keys and values may be left, and the memory may not have
//! grown since the first quarter of the time, by when everything has been used once.

use super::args::Args;
use super::random::Random;
use super::request::{Piece, Request, Trouble};
use akunu_repo::Failure;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Clients, unless somebody says otherwise.
const N_CLIENTS: u32 = 64;
/// Requests that differ.
const N_REQUESTS: u32 = 48;
/// How long a slow reader waits before each piece.
const SLOWLY: Duration = Duration::from_millis(150);
/// How often the server is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a client waits that was told to come again.
const COME_AGAIN: Duration = Duration::from_millis(200);
/// What the memory may grow by: caches of the allocator, by which two looks at an idle server differ.
const GROWTH: f64 = 1.05;

/// What a client does.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Reads,
    ReadsSlowly,
    /// Goes away after so many pieces.
    Leaves(u32),
}

/// What was seen.
#[derive(Default)]
struct Seen {
    n_read: u64,
    n_read_slowly: u64,
    n_left: u64,
    /// Told by a 429 to come again: clients that went away hold their places until the next step.
    n_refused: u64,
    n_tokens: u64,
    troubles: Vec<String>,
    /// When, and the bytes that the server's process had in memory.
    memory: Vec<(Duration, f64)>,
}

/// Runs the soak.
pub fn run(args: &Args, time: Duration) -> Result<(), Failure> {
    let n_clients = args.clients(&[N_CLIENTS])[0];
    let mut random = Random(args.seed);
    let requests: Vec<Request> = (0..N_REQUESTS)
        .map(|number| Request {
            address: args.address.clone(),
            n_words: random.within(args.prompt),
            n_tokens: random.within(args.tokens),
            number,
        })
        .collect();
    let alone = requests.iter().map(|request| read(request, Manner::Reads));
    let alone: Result<Vec<(String, u64)>, Trouble> = alone.collect();
    let alone = alone.map_err(|error| Failure::Found(format!("alone: {error}")))?;
    println!("{N_REQUESTS} requests answered alone; now {n_clients} clients");
    let seen = Mutex::new(Seen::default());
    let begin = Instant::now();
    thread::scope(|scope| {
        for client in 0..n_clients {
            let mut random = Random(args.seed ^ (u64::from(client + 1) << 32));
            let (requests, alone, seen) = (&requests, &alone, &seen);
            scope.spawn(move || {
                while begin.elapsed() < time {
                    let which = random.within((0, N_REQUESTS - 1)) as usize;
                    let manner = manner(&mut random);
                    let got = read(&requests[which], manner);
                    if got.as_ref().is_err_and(is_refused) {
                        thread::sleep(COME_AGAIN);
                    }
                    note(seen, manner, &alone[which].0, got);
                }
            });
        }
        while begin.elapsed() < time {
            if let Ok(bytes) = metric(&args.address, "process_resident_memory_bytes")
                && let Ok(mut seen) = seen.lock()
            {
                seen.memory.push((begin.elapsed(), bytes));
            }
            thread::sleep(LOOK_EVERY);
        }
    });
    let seen = seen.into_inner().unwrap_or_default();
    println!("{seen}");
    let left = left(&args.address).map_err(|error| Failure::Found(error.to_string()))?;
    println!("left         {left}");
    seen.judge(&left)
}

/// Six of ten read to the end, two slowly, one goes away later and one at once.
fn manner(random: &mut Random) -> Manner {
    match random.within((0, 9)) {
        0..=5 => Manner::Reads,
        6 | 7 => Manner::ReadsSlowly,
        8 => Manner::Leaves(random.within((1, 12))),
        _ => Manner::Leaves(0),
    }
}

/// What a client gets of an answer, and its tokens if it stays to the end.
fn read(request: &Request, manner: Manner) -> Result<(String, u64), Trouble> {
    let mut answer = request.ask()?;
    let mut text = String::new();
    let mut n_pieces = 0;
    loop {
        match manner {
            Manner::Leaves(after) if n_pieces == after => return Ok((text, 0)),
            Manner::ReadsSlowly => thread::sleep(SLOWLY),
            Manner::Leaves(_) | Manner::Reads => {}
        }
        match answer.next()? {
            Piece::Text(piece) => text.push_str(&piece),
            Piece::Ended { n_tokens, .. } => return Ok((text, n_tokens)),
        }
        n_pieces += 1;
    }
}

fn note(seen: &Mutex<Seen>, manner: Manner, alone: &str, got: Result<(String, u64), Trouble>) {
    let Ok(mut seen) = seen.lock() else {
        return;
    };
    match got {
        Ok((text, n_tokens)) => {
            seen.n_tokens += n_tokens;
            let is_same = match manner {
                Manner::Leaves(_) => alone.starts_with(&text),
                Manner::Reads | Manner::ReadsSlowly => alone == text,
            };
            match manner {
                Manner::Reads => seen.n_read += 1,
                Manner::ReadsSlowly => seen.n_read_slowly += 1,
                Manner::Leaves(_) => seen.n_left += 1,
            }
            if !is_same {
                let trouble =
                    format!("an answer differs:\n  alone    {alone:?}\n  together {text:?}");
                seen.troubles.push(trouble);
            }
        }
        Err(error) if is_refused(&error) => seen.n_refused += 1,
        Err(error) => seen.troubles.push(error.to_string()),
    }
}

fn is_refused(error: &Trouble) -> bool {
    error.to_string().contains(" 429 ")
}

/// A value of the server's `/metrics`.
fn metric(address: &str, name: &str) -> Result<f64, Trouble> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '{']))
    };
    let line = text.lines().find(is_it).ok_or("the server does not say")?;
    Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
}

/// What is left when all clients have gone and the server had a moment to see it.
fn left(address: &str) -> Result<String, Trouble> {
    let names = [
        "akunu_requests_running",
        "akunu_requests_waiting",
        "akunu_pages_in_use",
    ];
    let mut values = Vec::new();
    for _ in 0..100 {
        values = names
            .iter()
            .map(|name| metric(address, name))
            .collect::<Result<Vec<f64>, _>>()?;
        if values.iter().all(|value| *value == 0.0) {
            return Ok("nothing".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(format!(
        "{} running, {} waiting, {} pages",
        values[0], values[1], values[2]
    ))
}

impl Seen {
    /// Bytes at the first look after a share of all looks.
    fn memory_after(&self, share: f64) -> Option<f64> {
        let at = (share * self.memory.len().saturating_sub(1) as f64) as usize;
        self.memory.get(at).map(|(_, bytes)| *bytes)
    }

    fn judge(&self, left: &str) -> Result<(), Failure> {
        if let Some(first) = self.troubles.first() {
            let n = self.troubles.len();
            return Err(Failure::Found(format!("{n} times, first: {first}")));
        }
        if left != "nothing" {
            return Err(Failure::Found(format!("there is left: {left}")));
        }
        match (self.memory_after(0.25), self.memory_after(1.0)) {
            (Some(early), Some(late)) if late > early * GROWTH => Err(Failure::Found(format!(
                "the memory grew from {:.0} to {:.0} MB",
                early / 1e6,
                late / 1e6
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "answers      {} read, {} read slowly, {} left by their clients, {} told to come again; {} tokens",
            self.n_read, self.n_read_slowly, self.n_left, self.n_refused, self.n_tokens
        )?;
        writeln!(f, "differ, fail {}", self.troubles.len())?;
        let megabytes = |share| self.memory_after(share).unwrap_or(0.0) / 1e6;
        write!(
            f,
            "memory       {:.0} MB at first, {:.0} after a quarter, {:.0} after a half, {:.0} at the end",
            megabytes(0.0),
            megabytes(0.25),
            megabytes(0.5),
            megabytes(1.0)
        )
    }
}
