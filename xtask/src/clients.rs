//! `cargo xtask clients`: the official clients of three protocols against our server, and its page in a browser.
//!
//! They are Python packages, installed into an environment of their own under `target/`; the browser is Debian's Chromium,
//! and without it the page is left out. It is no part of `cargo xtask test`: what others publish may change from day to day.

use crate::failure::Failure;
use crate::process;
use crate::python::{environment, pip};
use crate::workspace;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What is installed.
const PACKAGES: [&str; 4] = ["openai", "anthropic", "ollama", "playwright"];
/// What runs the page.
const BROWSER: &str = "/usr/bin/chromium";

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let root = workspace::root();
    let folder = root.join("target/clients");
    let python = environment(&folder)?;
    pip(&python, |pip| {
        pip.args(["install", "--upgrade"]).args(PACKAGES)
    })?;
    let mut build = process::cargo();
    process::run(build.args(["build", "-p", "akunu-cli"]).current_dir(&root))?;
    let (server, address) = start()?;
    let tests = root.join("crates/akunu-server/tests");
    process::run(
        Command::new(&python)
            .arg(tests.join("clients.py"))
            .arg(&address),
    )?;
    if !Path::new(BROWSER).exists() {
        println!(
            "there is no {BROWSER}: the page was not tried; `apt-get install chromium` gives it"
        );
        return Ok(());
    }
    let mut page = Command::new(&python);
    page.arg(tests.join("page.py")).arg(&address);
    process::run(page.arg(folder.join("screenshots")))?;
    drop(server);
    Ok(())
}

/// A server that ends with us.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with the default model; returns where it listens.
fn start() -> Result<(Server, String), Failure> {
    let mut serve = process::cargo();
    serve.args([
        "run",
        "--quiet",
        "-p",
        "akunu-cli",
        "--",
        "serve",
        "--port",
        "0",
    ]);
    let silent = |_| Failure::Found("the server did not start".into());
    let child = serve
        .current_dir(workspace::root())
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Server(child.map_err(silent)?);
    let mut line = String::new();
    if let Some(out) = server.0.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(silent)?;
    }
    match line.trim_end().rsplit_once(" on ") {
        Some((_, address)) => Ok((server, address.to_string())),
        None => Err(Failure::Found("the server did not start".into())),
    }
}
