//! A server to ask, which ends with the command.

use crate::failure::Failure;
use crate::process;
use crate::workspace;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running server of SmolLM2 and whisper-tiny.en.
pub struct Server {
    process: Child,
    /// Where it listens, as `http://127.0.0.1:PORT`.
    pub address: String,
}

/// Builds the program.
pub fn build() -> Result<PathBuf, Failure> {
    let mut build = process::cargo();
    build.args(["build", "--quiet", "-p", "akunu-cli"]);
    process::run(build.current_dir(workspace::root()))?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace::root().join("target"), PathBuf::from);
    Ok(target.join("debug/akunu-cli"))
}

impl Server {
    pub fn start(program: &Path, context: u32) -> Result<Server, Failure> {
        let assets = workspace::assets();
        let mut serve = Command::new(program);
        serve.args(["serve", "--port", "0", "--ctx", &context.to_string(), "-m"]);
        serve.arg(assets.join("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"));
        serve.arg("-m").arg(assets.join("whisper-tiny.en"));
        let silent = |_| Failure::Found("the server did not start".into());
        let process = serve.stdout(Stdio::piped()).spawn().map_err(silent)?;
        let mut server = Server {
            process,
            address: String::new(),
        };
        let mut line = String::new();
        if let Some(out) = server.process.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(silent)?;
        }
        let Some((_, address)) = line.trim_end().rsplit_once(" on ") else {
            return Err(Failure::Found("the server did not start".into()));
        };
        server.address = address.to_string();
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
