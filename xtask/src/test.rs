//! `cargo xtask test`: everything that must hold before a change is merged, from a bare clone.
//!
//! The steps are a table. A step that fails does not stop the others; the summary at the end names
//! all that failed.

use crate::failure::Failure;
use crate::{assets, check_macos, debian, header, parity, process, shaders, workspace};
use std::process::Command;
use std::time::{Duration, Instant};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Only list the steps
    #[arg(long)]
    list: bool,
    /// Run only the tests of this device: every kernel against its twin, and a small model
    #[arg(long, value_name = "DEVICE", conflicts_with = "only")]
    device: Option<TestDevice>,
}

/// A device that has tests of its own.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TestDevice {
    /// The GPU of this Mac
    Metal,
}

/// One step.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<(), Failure>,
}

const STEPS: &[Step] = &[
    Step {
        name: "install",
        what: "install the tools that are missing",
        run: install,
    },
    Step {
        name: "assets",
        what: "fetch the models that tests run",
        run: fetch_assets,
    },
    Step {
        name: "fmt",
        what: "rustfmt finds nothing to change",
        run: fmt,
    },
    Step {
        name: "clippy",
        what: "clippy has no warning",
        run: clippy,
    },
    Step {
        name: "test",
        what: "every test of the workspace",
        run: cargo_test,
    },
    Step {
        name: "header",
        what: "kernels/ShaderTypes.h is current",
        run: header_is_current,
    },
    Step {
        name: "parity",
        what: "Rust and C++ agree on every layout",
        run: parity::run,
    },
    Step {
        name: "shaders",
        what: "every kernel compiles for the simulator and, with real address spaces, to PTX",
        run: shaders::run_all,
    },
    Step {
        name: "macos",
        what: "the workspace type-checks for macOS",
        run: check_macos::run,
    },
    Step {
        name: "doc",
        what: "rustdoc has no warning",
        run: doc,
    },
];

/// The tests of the Metal device.
const METAL_STEPS: &[Step] = &[
    Step {
        name: "kernels",
        what: "every kernel on this Mac's GPU against its twin",
        run: || cargo(&["test", "--package", "akunu-kernels", "--test", "metal"]),
    },
    Step {
        name: "model",
        what: "a small model on this Mac's GPU gives the tokens of the twins",
        run: || cargo(&["test", "--package", "akunu-engine", "--test", "metal"]),
    },
];

/// The assets that tests open.
const TEST_ASSETS: &[&str] = &[
    "smollm2",
    "gemma3-270m",
    "minilm",
    "llama-cpp-vocabs",
    "tokenizer-llama3_2",
    "tokenizer-qwen2_5",
    "tokenizer-qwen3",
    "tokenizer-gemma2",
    "tokenizer-gemma3",
    "tokenizer-mistral_nemo",
];

/// Tools that other steps call: the command that shows whether one is there, and the Debian package
/// that brings it.
const TOOLS: &[(&[&str], &str)] = &[
    (&["clang++-19", "--version"], "clang-19"),
    (&["g++", "--version"], "g++"),
    (&["python3", "-m", "pip", "--version"], "python3-pip"),
    (&["npm", "--version"], "npm"),
];

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let steps = match args.device {
        None => choose(&args.only)?,
        Some(TestDevice::Metal) if cfg!(target_os = "macos") => METAL_STEPS.iter().collect(),
        Some(TestDevice::Metal) => {
            return Err(Failure::Found(
                "the Metal device is on Macs only; elsewhere its calls are tested by the \
                 simulator, as a part of `cargo xtask test`"
                    .to_owned(),
            ));
        }
    };
    if args.list {
        for step in steps {
            println!("  {:<8} {}", step.name, step.what);
        }
        return Ok(());
    }
    let mut outcomes = Vec::new();
    for step in steps {
        println!("==> {}: {}", step.name, step.what);
        let start = Instant::now();
        let failure = (step.run)().err().map(|failure| failure.to_string());
        let took = start.elapsed();
        match &failure {
            None => println!("<== {}: ok, {}\n", step.name, seconds(took)),
            Some(why) => println!("<== {}: FAILED, {}: {why}\n", step.name, seconds(took)),
        }
        outcomes.push(Outcome {
            name: step.name,
            took,
            failure,
        });
    }
    summarise(&outcomes)
}

fn choose(only: &[String]) -> Result<Vec<&'static Step>, Failure> {
    if only.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &String| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            Failure::Usage(format!(
                "there is no step `{name}`; the steps are {}",
                known.join(", ")
            ))
        })
    };
    only.iter().map(find).collect()
}

/// How a step ended.
struct Outcome {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

fn summarise(outcomes: &[Outcome]) -> Result<(), Failure> {
    println!("summary");
    for Outcome {
        name,
        took,
        failure,
    } in outcomes
    {
        let word = if failure.is_some() { "FAILED" } else { "ok" };
        println!("  {name:<8} {word:<6} {:>8}", seconds(*took));
    }
    let total = outcomes.iter().map(|outcome| outcome.took).sum();
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some());
    let failed: Vec<&str> = failed.map(|outcome| outcome.name).collect();
    println!("  {:<8} {:<6} {:>8}", "all", "", seconds(total));
    if failed.is_empty() {
        return Ok(());
    }
    let (n, names) = (failed.len(), failed.join(", "));
    Err(Failure::Found(format!(
        "{n} of {} steps failed: {names}",
        outcomes.len()
    )))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn install() -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let absent = TOOLS.iter().filter(|(command, _)| {
        process::output(Command::new(command[0]).args(&command[1..])).is_err()
    });
    let missing: Vec<&str> = absent.map(|(_, package)| *package).collect();
    debian::install(&missing)?;
    for component in ["clippy", "rustfmt"] {
        let name = if component == "rustfmt" {
            "fmt"
        } else {
            component
        };
        if process::output(process::cargo().args([name, "--version"])).is_err() {
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

fn fetch_assets() -> Result<(), Failure> {
    assets::ensure(TEST_ASSETS)
}

fn fmt() -> Result<(), Failure> {
    cargo(&["fmt", "--all", "--check"])
}

fn clippy() -> Result<(), Failure> {
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ])
}

fn cargo_test() -> Result<(), Failure> {
    cargo(&["test", "--workspace"])
}

fn header_is_current() -> Result<(), Failure> {
    header::run(&header::Args { check: true })
}

fn doc() -> Result<(), Failure> {
    let mut command = process::cargo();
    command
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Ok(process::run(command.current_dir(workspace::root()))?)
}

fn cargo(arguments: &[&str]) -> Result<(), Failure> {
    Ok(process::run(
        process::cargo()
            .args(arguments)
            .current_dir(workspace::root()),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_step_gets_the_list() {
        let Err(Failure::Usage(refused)) = choose(&["nope".into()]) else {
            panic!("a usage error");
        };
        assert!(
            refused.contains("`nope`") && refused.contains("fmt, clippy, test"),
            "{refused}"
        );
    }

    /// Fails if a failing step is forgotten by the exit code.
    #[test]
    fn one_failure_fails_the_whole() {
        let outcome = |name, failure| Outcome {
            name,
            took: Duration::ZERO,
            failure,
        };
        assert!(summarise(&[outcome("a", None)]).is_ok());
        let failed = summarise(&[outcome("a", Some("why".into())), outcome("b", None)]);
        let failed = failed.expect_err("a failed").to_string();
        assert_eq!(failed, "1 of 2 steps failed: a");
    }
}
