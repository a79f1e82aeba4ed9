//! Requests that are meant to harm, each again and again.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What an attacker waits between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a large body.
const BODY: usize = 100_000_000;

/// A kind of attack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Bodies of 100 MB: announced, and in pieces without an announced length.
    Bodies,
    /// A header of 1 MB, or 20,000 headers.
    Headers,
    /// JSON that is cut off, of wrong types, nested a million deep, or no UTF-8.
    Json,
    /// Schemas that are small and describe something huge.
    Schemas,
}

/// How often what was answered.
#[derive(Default)]
pub struct Tally(BTreeMap<String, u64>);

impl Attack {
    pub const ALL: &'static [Attack] = &[
        Attack::Bodies,
        Attack::Headers,
        Attack::Json,
        Attack::Schemas,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Attack::Bodies => "bodies of 100 MB",
            Attack::Headers => "floods of headers",
            Attack::Json => "broken and nested JSON",
            Attack::Schemas => "schemas that explode",
        }
    }

    /// Attacks until it is over.
    pub fn go_on(self, address: &str, is_over: &AtomicBool) -> Tally {
        let mut tally = Tally::default();
        for n in 0.. {
            if is_over.load(Relaxed) {
                break;
            }
            tally.count(&self.once(address, n));
            std::thread::sleep(PAUSE);
        }
        tally
    }

    /// One request; the status of its answer, or that there was none.
    fn once(self, address: &str, n: usize) -> String {
        let attack = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            // The server may answer and close before all was written.
            let _ = self.write(&mut stream, n);
            let mut answer = [0; 12];
            stream.read_exact(&mut answer)?;
            Ok(String::from_utf8_lossy(&answer[9..]).into_owned())
        };
        attack().unwrap_or_else(|_| "closed".into())
    }

    fn write(self, stream: &mut TcpStream, n: usize) -> std::io::Result<()> {
        match self {
            Attack::Bodies => write_body(stream, n.is_multiple_of(2)),
            Attack::Headers => stream.write_all(headers(n.is_multiple_of(2)).as_bytes()),
            Attack::Json => write_json(stream, &broken(n)),
            Attack::Schemas => write_json(stream, &schema_request(n)),
        }
    }
}

const HEAD: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";

fn write_body(stream: &mut TcpStream, is_announced: bool) -> std::io::Result<()> {
    let piece = vec![b' '; 1 << 16];
    if is_announced {
        write!(stream, "{HEAD}Content-Length: {BODY}\r\n\r\n")?;
    } else {
        write!(stream, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
    }
    for _ in 0..BODY / piece.len() {
        if !is_announced {
            write!(stream, "{:x}\r\n", piece.len())?;
        }
        stream.write_all(&piece)?;
        if !is_announced {
            stream.write_all(b"\r\n")?;
        }
    }
    Ok(())
}

fn headers(is_long: bool) -> String {
    let flood = if is_long {
        format!("X-Long: {}\r\n", "a".repeat(1 << 20))
    } else {
        (0..20_000).map(|n| format!("X-{n}: 1\r\n")).collect()
    };
    format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{flood}\r\n")
}

fn write_json(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "{HEAD}Content-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

fn broken(n: usize) -> Vec<u8> {
    match n % 5 {
        0 => br#"{"messages": [{"role": "user", "cont"#.to_vec(),
        1 => b"\xff\xfe{\"messages\": \"\xc3\x28\"}".to_vec(),
        2 => [b"{\"messages\": ".as_slice(), &vec![b'['; 1 << 20]].concat(),
        3 => json!({"messages": 7, "max_tokens": "many", "stop": {"a": [[]]}})
            .to_string()
            .into(),
        _ => json!({"messages": [{"role": ["user"], "content": {"text": -1e300}}]})
            .to_string()
            .into(),
    }
}

fn schema_request(n: usize) -> Vec<u8> {
    let schema = match n % 5 {
        0 => doubling(40),
        1 => json!({"type": "string", "pattern": "^(((a{1,99}){1,99}){1,99}){1,99}$"}),
        2 => json!({"type": "array", "items": {"type": "integer"}, "minItems": 2_000_000_000u32}),
        3 => {
            let any: Vec<Value> = (0..2000)
                .map(|n| json!({"pattern": format!(".*{n}.*x.{{50}}$"), "type": "string"}))
                .collect();
            json!({"anyOf": any})
        }
        _ => wide(1500),
    };
    let request = json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    });
    request.to_string().into()
}

/// An object of two objects of two objects: with each definition twice as many.
fn doubling(depth: usize) -> Value {
    let mut definitions = Map::new();
    for n in 0..depth {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        let both =
            json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["a", "b"]});
        definitions.insert(format!("d{n}"), both);
    }
    definitions.insert(format!("d{depth}"), json!({"type": "null"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

/// An object with so many properties, none of which is required.
fn wide(n: usize) -> Value {
    let properties = (0..n).map(|n| (format!("property{n}"), json!({"type": "string"})));
    json!({"type": "object", "properties": properties.collect::<Map<_, _>>()})
}

impl Tally {
    pub fn count(&mut self, what: &str) {
        *self.0.entry(what.to_string()).or_default() += 1;
    }

    pub fn add(&mut self, other: Tally) {
        for (what, n) in other.0 {
            *self.0.entry(what).or_default() += n;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let all = self.0.iter().map(|(what, n)| format!("{n} {what}"));
        f.write_str(&all.collect::<Vec<_>>().join(", "))
    }
}
