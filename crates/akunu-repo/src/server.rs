//! A server to ask, which ends with the command.

use crate::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to load its model.
const PATIENCE: Duration = Duration::from_secs(120);
/// Ticks of a second in `/proc`, which every Linux of today has.
const TICKS: f64 = 100.0;

/// A running server.
pub struct Server {
    process: Child,
    /// Where it listens, as `127.0.0.1:PORT`.
    pub address: String,
}

impl Server {
    /// Starts an `akunu-cli serve --port 0` with whatever else it was given, which says where it listens.
    ///
    /// # Errors
    /// If it does not start, or does not say where it listens.
    pub fn start(serve: &mut Command) -> Result<Server, Failure> {
        let mut server = Server::spawn(serve.stdout(Stdio::piped()), String::new())?;
        let mut line = String::new();
        if let Some(out) = server.process.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(|error| not_started(&error))?;
        }
        let Some((_, address)) = line.trim_end().rsplit_once(" on http://") else {
            return Err(not_started(&"it does not say where it listens"));
        };
        server.address = address.to_string();
        Ok(server)
    }

    /// Starts a server that does not say where it listens, at an address that it was told, and waits until it is well.
    ///
    /// # Errors
    /// If it does not start, ends, or does not answer within two minutes.
    pub fn start_at(serve: &mut Command, address: String) -> Result<Server, Failure> {
        let mut server = Server::spawn(serve.stdout(Stdio::null()), address)?;
        let begin = Instant::now();
        while !is_well(&server.address) {
            let ended = server.process.try_wait();
            if let Some(status) = ended.map_err(|error| not_started(&error))? {
                return Err(not_started(&status));
            }
            if begin.elapsed() > PATIENCE {
                return Err(not_started(&"it does not answer"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn spawn(serve: &mut Command, address: String) -> Result<Server, Failure> {
        let process = serve.spawn().map_err(|error| not_started(&error))?;
        Ok(Server { process, address })
    }

    /// Its address as clients take it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Seconds of computing that its process took so far, where the system says it.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let path = format!("/proc/{}/stat", self.process.id());
        cpu_ticks(&std::fs::read_to_string(path).ok()?).map(|ticks| ticks as f64 / TICKS)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An address that nobody listens at.
///
/// # Errors
/// If no port is free.
pub fn free_address() -> Result<String, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let found = found.map_err(|error| Failure::Found(format!("no port is free: {error}")))?;
    Ok(found.to_string())
}

/// Whether `/health` answers 200.
pub fn is_well(address: &str) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let request =
            format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"))
}

fn not_started(why: &dyn std::fmt::Display) -> Failure {
    Failure::Found(format!("the server did not start: {why}"))
}

/// The ticks that a process took for itself and in the system, from Linux's `/proc/PID/stat`. The name of the program, in
/// brackets, may have spaces and brackets of its own.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a program's name moves the fields that follow it.
    #[test]
    fn ticks_stand_behind_the_name() {
        let stat = "17 (a ) b) S 1 17 17 0 -1 4194304 500 0 3 0 250 31 0 0 20 0 4 0 1234 99 88";
        assert_eq!(cpu_ticks(stat), Some(281));
        assert_eq!(cpu_ticks("17 (cut) S 1 17"), None);
    }
}
