//! A client of a few lines: it writes HTTP as it is told to, also wrongly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response whose headers have come.
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

/// A connection that gives up before the test harness does.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(300)))
        .unwrap();
    stream
}

/// Writes a request's head and body as they are, and reads the head of the response.
pub fn raw(address: SocketAddr, request: &[u8]) -> Response {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    response(stream)
}

/// Reads the head of a response.
pub fn response(stream: TcpStream) -> Response {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    // A connection that was closed has the status 0.
    let _ = reader.read_line(&mut line);
    let status = line.split(' ').nth(1).unwrap_or("0").parse().unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_string()));
    }
    Response {
        status,
        headers,
        reader,
    }
}

/// A request with a body.
pub fn with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!(
        "Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    raw(address, &[head.as_bytes(), body].concat())
}

pub fn get(address: SocketAddr, path: &str) -> Response {
    with(address, "GET", path, &[], b"")
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> Response {
    let json = ("Content-Type", "application/json");
    with(address, "POST", path, &[json], body.to_string().as_bytes())
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// One line of a body in chunks, without the sizes between them; `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            let line = line.trim_end();
            match line {
                "" => continue,
                "0" => return None,
                size if size.bytes().all(|byte| byte.is_ascii_hexdigit()) => continue,
                line => return Some(line.to_string()),
            }
        }
    }

    /// The next event of a stream; `None` at the end.
    pub fn event(&mut self) -> Option<String> {
        loop {
            let line = self.line()?;
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.to_string());
            }
        }
    }

    /// All events of a stream that are JSON, and whether it ended with `[DONE]`.
    pub fn events(&mut self) -> (Vec<Value>, bool) {
        let mut all = Vec::new();
        while let Some(data) = self.event() {
            if data == "[DONE]" {
                return (all, self.event().is_none());
            }
            all.push(serde_json::from_str(&data).unwrap());
        }
        (all, false)
    }

    /// The whole body, of which the length was told.
    pub fn text(mut self) -> String {
        let length = self.header("content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    pub fn json(self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}
