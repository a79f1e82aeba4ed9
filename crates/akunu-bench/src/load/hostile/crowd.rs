//! Connections that are opened and left: silent ones, half a line, headers without an end, a body that does not come.

use super::attack::Tally;
use akunu_repo::Failure;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// How many there are, unless somebody says otherwise.
pub const DEFAULT: u32 = 10_000;

/// What a connection has said when it falls silent.
const SAID: [&str; 4] = [
    "",
    "POST /v1/chat/compl",
    "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"mess",
];

/// The connections.
pub struct Crowd {
    open: Vec<TcpStream>,
}

impl Crowd {
    /// Opens as many, and leaves them half-way.
    pub fn open(address: &str, n: u32) -> Result<Crowd, Failure> {
        let failed = |error| Failure::Found(format!("{address}: {error}"));
        let mut open = Vec::new();
        for said in SAID.iter().cycle().take(n as usize) {
            let mut stream = TcpStream::connect(address).map_err(failed)?;
            // The server may have closed it already to make room.
            let _ = stream.write_all(said.as_bytes());
            open.push(stream);
        }
        Ok(Crowd { open })
    }

    /// Closes them; which of them were still open.
    pub fn leave(self) -> Tally {
        let mut tally = Tally::default();
        for stream in &self.open {
            let name = if is_open(stream) {
                "held open"
            } else {
                "closed to make room"
            };
            tally.count(name);
        }
        tally
    }
}

/// Whether the server has not closed a connection. What it has said before it did is read over.
fn is_open(mut stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return false;
    }
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}
