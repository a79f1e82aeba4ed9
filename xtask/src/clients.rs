//! `cargo xtask clients`: what others have written for servers of these protocols, against ours.
//!
//! | part | what |
//! |---|---|
//! | `python` | the official clients of OpenAI, Anthropic and Ollama from PyPI |
//! | `npm` | `openai` and `ai` from npm |
//! | `schemathesis` | requests made from `/openapi.json`, right and wrong ones: none may end in a 5xx |
//! | `page` | the page, in Debian's Chromium |
//! | `llama.cpp` | the tests of llama.cpp's own server, by way of a shim |
//!
//! Packages are installed into environments of their own under `target/`. It is no part of `cargo xtask test`: what others publish
//! may change from day to day.

use crate::assets;
use crate::failure::Failure;
use crate::process;
use crate::python::{environment, pip};
use crate::server::{Profile, Server, build};
use crate::workspace;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed from PyPI.
const PACKAGES: [&str; 4] = ["openai", "anthropic", "ollama", "playwright"];
/// What makes requests from a description.
const SCHEMATHESIS: &str = "schemathesis>=4,<5";
/// What llama.cpp's tests need, and what writes a template into a copy of a model.
const PEER_PACKAGES: [&str; 8] = [
    "aiohttp", "filelock", "gguf", "numpy", "openai", "pytest", "requests", "wget",
];
/// Those of llama.cpp's tests that are about what both servers have.
const PEER_TESTS: [&str; 9] = [
    "basic",
    "chat_completion",
    "completion",
    "tokenize",
    "template",
    "security",
    "tool_call",
    "compat_anthropic",
    "compat_oai_responses",
];
/// What is installed from npm.
const NPM_PACKAGES: [&str; 4] = ["openai", "ai", "@ai-sdk/openai-compatible", "zod"];
/// Tokens of a conversation.
const CONTEXT: u32 = 4096;
/// The same where requests say nothing about the length of their answers.
const SHORT_CONTEXT: u32 = 128;
/// What runs the page.
const BROWSER: &str = "/usr/bin/chromium";

/// Arguments of `cargo xtask clients`.
#[derive(clap::Args)]
pub struct Args {
    /// What to run; nothing for all of it
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
}

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// openai, anthropic and ollama of PyPI
    Python,
    /// openai and ai of npm
    Npm,
    /// requests made from /openapi.json
    Schemathesis,
    /// the page, in Chromium
    Page,
    /// the tests of llama.cpp's own server
    #[value(name = "llama.cpp")]
    LlamaCpp,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let parts: &[Part] = if args.parts.is_empty() {
        Part::value_variants()
    } else {
        &args.parts
    };
    assets::ensure(&["smollm2", "whisper-tiny.en", "jfk"])?;
    let program = build(Profile::Development)?;
    let mut summary = Vec::new();
    for part in parts {
        let outcome = match part.run(&program) {
            Ok(()) => "passed".to_string(),
            Err(failure) => format!("FAILED: {failure}"),
        };
        let name = part.to_possible_value();
        let name = name.map_or(String::new(), |value| value.get_name().to_string());
        summary.push((name, outcome));
    }
    println!();
    for (name, outcome) in &summary {
        println!("{name:<13} {outcome}");
    }
    if summary.iter().any(|(_, outcome)| outcome != "passed") {
        return Err(Failure::Found("not all clients were content".into()));
    }
    Ok(())
}

impl Part {
    fn run(self, program: &Path) -> Result<(), Failure> {
        println!("\n== {self:?}");
        match self {
            Part::Python => with_server(program, CONTEXT, python),
            Part::Npm => with_server(program, CONTEXT, npm),
            Part::Schemathesis => with_server(program, SHORT_CONTEXT, schemathesis),
            Part::Page => with_server(program, CONTEXT, page),
            Part::LlamaCpp => llama_cpp(program),
        }
    }
}

/// Runs something against a server of its own.
fn with_server(
    program: &Path,
    context: u32,
    run: impl FnOnce(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let assets = workspace::assets();
    let mut serve = Command::new(program);
    serve.args(["serve", "--port", "0", "--ctx", &context.to_string(), "-m"]);
    serve.arg(assets.join("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"));
    serve.arg("-m").arg(assets.join("whisper-tiny.en"));
    let server = Server::start(&mut serve)?;
    run(&server.url())
}

/// A folder of this command.
fn folder(name: &str) -> PathBuf {
    workspace::root().join("target/clients").join(name)
}

fn script(name: &str) -> PathBuf {
    workspace::root()
        .join("crates/akunu-server/tests")
        .join(name)
}

fn speech() -> PathBuf {
    workspace::assets().join("jfk/jfk.wav")
}

fn python(address: &str) -> Result<(), Failure> {
    let python = environment(&folder("python"))?;
    pip(&python, |pip| {
        pip.args(["install", "--upgrade"]).args(PACKAGES)
    })?;
    let mut tests = Command::new(&python);
    tests.arg(script("clients.py")).arg(address).arg(speech());
    Ok(process::run(&mut tests)?)
}

fn npm(address: &str) -> Result<(), Failure> {
    let folder = folder("npm");
    let failed = |error| Failure::io(&folder, error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // Node looks for packages beside the script.
    std::fs::copy(script("clients.mjs"), folder.join("clients.mjs")).map_err(failed)?;
    let mut install = Command::new("npm");
    install.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        ".",
    ]);
    process::run(install.args(NPM_PACKAGES).current_dir(&folder))?;
    let mut tests = Command::new("node");
    tests.args(["clients.mjs", address]).arg(speech());
    Ok(process::run(tests.current_dir(&folder))?)
}

/// Checks that no request ends in a 5xx, for requests by the description and against it.
fn schemathesis(address: &str) -> Result<(), Failure> {
    let folder = folder("schemathesis");
    let python = environment(&folder)?;
    pip(&python, |pip| pip.args(["install", SCHEMATHESIS]))?;
    let mut tests = Command::new(folder.join("bin/schemathesis"));
    tests.args(["run", &format!("{address}/openapi.json")]);
    tests.args(["--checks", "not_a_server_error", "--mode", "all"]);
    tests.args([
        "--max-examples",
        "6",
        "--seed",
        "1",
        "--request-timeout",
        "120",
    ]);
    Ok(process::run(tests.current_dir(&folder))?)
}

fn page(address: &str) -> Result<(), Failure> {
    if !Path::new(BROWSER).exists() {
        println!(
            "there is no {BROWSER}: the page was not tried; `apt-get install chromium` gives it"
        );
        return Ok(());
    }
    let python = environment(&folder("python"))?;
    pip(&python, |pip| pip.args(["install", "playwright"]))?;
    let mut page = Command::new(&python);
    page.arg(script("page.py")).arg(address);
    Ok(process::run(page.arg(folder("screenshots")))?)
}

fn llama_cpp(program: &Path) -> Result<(), Failure> {
    assets::ensure(&["llama-cpp-server-tests", "llama-cpp-vocabs"])?;
    let python = environment(&folder("llama.cpp"))?;
    pip(&python, |pip| pip.arg("install").args(PEER_PACKAGES))?;
    let tests = workspace::assets().join("llama-cpp-server-tests");
    let shim = script("llama_cpp_shim.py");
    let paths = [shim.parent().unwrap_or(&shim), &tests];
    let paths = std::env::join_paths(paths).unwrap_or_default();
    let model = workspace::assets().join("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    let mut command = Command::new(&python);
    command.args([
        "-m",
        "pytest",
        "-p",
        "llama_cpp_shim",
        "-p",
        "no:cacheprovider",
    ]);
    command.args([
        "--quiet",
        "--tb=line",
        "--show-capture=no",
        "-m",
        "not slow",
    ]);
    command.args(PEER_TESTS.map(|name| format!("unit/test_{name}.py")));
    command
        .env("PYTHONPATH", paths)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PORT", "18080")
        .env("AKUNU_CLI", program)
        .env("AKUNU_MODEL", model)
        .env(
            "AKUNU_TEMPLATES",
            workspace::assets().join("llama-cpp-vocabs/templates"),
        )
        .env("AKUNU_SHIM_WORK", folder("llama.cpp/models"));
    Ok(process::run(command.current_dir(&tests))?)
}
