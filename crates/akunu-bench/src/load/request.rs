//! One request of the load: a stream, with the moment of each token.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What is asked.
#[derive(Clone)]
pub struct Request {
    pub address: String,
    pub n_words: u32,
    pub n_tokens: u32,
    /// Which one it is: no two prompts begin alike.
    pub number: u32,
}

/// When what came.
pub struct Times {
    /// From the request to its first token.
    pub first: Duration,
    /// Between a token and the next.
    pub gaps: Vec<Duration>,
    /// Tokens of the answer, as the server counts them.
    pub n_tokens: u64,
    /// Tokens of the prompt, likewise.
    pub n_prompt: u64,
}

/// Why there is no answer.
pub type Trouble = Box<dyn std::error::Error>;

/// An answer on its way. Dropping it closes the connection.
pub struct Answer {
    lines: Lines<BufReader<TcpStream>>,
}

/// A piece of an answer.
pub enum Piece {
    Text(String),
    /// All of it came: tokens of the prompt, and of the answer.
    Ended {
        n_prompt: u64,
        n_tokens: u64,
    },
}

impl Request {
    /// Asks, and reads the answer to its end. An error says in words what went wrong.
    pub fn send(&self) -> Result<Times, String> {
        self.time()
            .map_err(|error| format!("request {}: {error}", self.number))
    }

    fn time(&self) -> Result<Times, Trouble> {
        let begin = Instant::now();
        let mut answer = self.ask()?;
        let mut moments = Vec::new();
        loop {
            match answer.next()? {
                Piece::Text(_) => moments.push(Instant::now()),
                Piece::Ended { n_prompt, n_tokens } => {
                    return Ok(Times {
                        first: moments.first().ok_or("no token")?.duration_since(begin),
                        gaps: moments.windows(2).map(|two| two[1] - two[0]).collect(),
                        n_tokens,
                        n_prompt,
                    });
                }
            }
        }
    }

    /// Asks.
    pub fn ask(&self) -> Result<Answer, Trouble> {
        let words: Vec<String> = (0..self.n_words).map(|n| format!("word{n}")).collect();
        let body = json!({
            "messages": [{"role": "user", "content": format!("{}: {}", self.number, words.join(" "))}],
            "max_tokens": self.n_tokens,
            "ignore_eos": true,
            "temperature": 0,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(600)))?;
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().ok_or("no answer")??;
        if !status.contains(" 200 ") {
            return Err(status.into());
        }
        Ok(Answer { lines })
    }
}

impl Answer {
    /// The next piece that says something.
    pub fn next(&mut self) -> Result<Piece, Trouble> {
        loop {
            let line = self
                .lines
                .next()
                .ok_or("the stream ended before its time")??;
            let Some(data) = line.strip_prefix("data: ") else {
                continue;
            };
            let chunk: Value = serde_json::from_str(data)?;
            let text = chunk["choices"][0]["delta"]["content"].as_str();
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                return Ok(Piece::Text(text.to_string()));
            }
            if let Some(usage) = chunk["usage"].as_object() {
                return Ok(Piece::Ended {
                    n_prompt: usage["prompt_tokens"].as_u64().unwrap_or(0),
                    n_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
                });
            }
        }
    }
}
