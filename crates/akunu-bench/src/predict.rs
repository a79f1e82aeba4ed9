//! `cargo measure predict`: tokens a second that Macs should reach, from what the kernels do and what memory delivers.
//!
//! Nobody here has an Apple GPU. What is known is how many bytes a token moves (the plan's cost, times what the simulator
//! counts for each byte that has to move), how many launches it takes and at how many barriers it waits. So
//!
//! ```text
//! seconds = bytes · counted / (share · bandwidth) + launches · launch + barriers · barrier
//! ```
//!
//! where share, launch and barrier are assumptions: options of the command, for whoever has measured them.

mod measured;

use crate::decoder::{Decoder, MODELS};
use akunu_kernels::case::{SIZES, Size};
use akunu_kernels::lower::{self, GpuRules};
use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::{ChipConfig, KernelId, Plan};
use akunu_program::Buffer;
use akunu_repo::{Failure, workspace};
use akunu_sim::Simulator;
use akunu_sim::count::count_case;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The chips that are asked about.
const CHIPS: [&str; 3] = ["Apple M1", "Apple M4 Pro", "Apple M5 Max"];

/// Arguments of `cargo measure predict`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A file of `cargo measure mac-report`: predict for its machine, from its measurements
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Tokens that have been read before
    #[arg(long, default_value_t = 1024)]
    context: u32,
    /// The share of the memory's published speed that kernels reach
    #[arg(long, default_value_t = 0.8)]
    share: f64,
    /// Microseconds of a launch
    #[arg(long, default_value_t = 1.0)]
    launch: f64,
    /// Microseconds of a barrier between launches
    #[arg(long, default_value_t = 2.0)]
    barrier: f64,
}

/// What a token takes on a chip.
struct Token {
    bytes: u64,
    launches: usize,
    barriers: usize,
}

/// Costs of a token: the share of the memory's speed, and microseconds of a launch and of a barrier.
#[derive(Clone, Copy, Debug)]
struct Costs {
    share: f64,
    launch: f64,
    barrier: f64,
}

impl Costs {
    fn seconds(&self, token: &Token, (chip, counted): (&ChipConfig, f64)) -> f64 {
        token.bytes as f64 * counted / (self.share * chip.bytes_per_second as f64)
            + 1e-6 * self.launch * token.launches as f64
            + 1e-6 * self.barrier * token.barriers as f64
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(path) = &args.from {
        return from_report(args, path);
    }
    let counted = counted_excess()?;
    let costs = Costs {
        share: args.share,
        launch: args.launch,
        barrier: args.barrier,
    };
    let mut table = String::from(
        "| model | MB a token | launches | barriers | M1 | M4 Pro | M5 Max |\n|---|---|---|---|---|---|---|\n",
    );
    for model in MODELS {
        let chips = CHIPS.map(ChipConfig::by_name_or_m1);
        let tokens = chips
            .each_ref()
            .map(|chip| token(model, chip, args.context));
        let mut rates = String::new();
        let mut first = None;
        for (chip, token) in chips.iter().zip(tokens) {
            let token = token?;
            let seconds = costs.seconds(&token, (chip, counted));
            let _ = write!(rates, " {:.0} tok/s |", 1.0 / seconds);
            first.get_or_insert(token);
        }
        let Some(token) = first else { continue };
        let _ = writeln!(
            table,
            "| {} | {:.0} | {} | {} |{rates}",
            model.name,
            token.bytes as f64 / 1e6,
            token.launches,
            token.barriers
        );
    }
    print!("{table}");
    let text = PAGE
        .replace("{table}", &table)
        .replace("{context}", &args.context.to_string())
        .replace("{share}", &format!("{:.0}", 100.0 * args.share))
        .replace("{launch}", &args.launch.to_string())
        .replace("{barrier}", &args.barrier.to_string())
        .replace("{counted}", &format!("{counted:.3}"));
    let path = workspace::root().join("docs/predictions.md");
    std::fs::write(&path, text).map_err(|error| Failure::io(&path, error))
}

/// Prints a prediction for the machine of a report from its micro-benchmarks, next to the steps that were measured.
fn from_report(args: &Args, path: &Path) -> Result<(), Failure> {
    let measured = measured::read(path)?;
    let costs = Costs {
        share: measured.share.unwrap_or(args.share),
        launch: measured.launch.unwrap_or(args.launch),
        barrier: measured.barrier.unwrap_or(args.barrier),
    };
    let chip = &measured.chip;
    println!(
        "{}: {:?}, {} cores; {:.0} % of {:.0} GB/s, {:.2} µs a launch, {:.2} µs a barrier",
        chip.name,
        chip.family,
        chip.gpu_cores,
        100.0 * costs.share,
        chip.bytes_per_second as f64 / 1e9,
        costs.launch,
        costs.barrier
    );
    println!("| model | predicted | measured |\n|---|---|---|");
    for model in MODELS {
        let token = token(model, chip, args.context)?;
        let seconds = costs.seconds(&token, (chip, 1.0));
        let of_model = |(name, _): &&(String, f64)| name == model.name;
        let found = measured.models.iter().find(of_model);
        let found = found.map_or("-".to_owned(), |(_, ms)| format!("{:.0} tok/s", 1e3 / ms));
        println!("| {} | {:.0} tok/s | {found} |", model.name, 1.0 / seconds);
    }
    Ok(())
}

/// The most bytes that a kernel of a single row moves for each that it has to.
fn counted_excess() -> Result<f64, Failure> {
    let found = |error: String| Failure::Found(error);
    let root = workspace::root();
    let simulator = Simulator::counting(&root.join("kernels"), &root.join("target/shaders/count"));
    let simulator = simulator.map_err(|error| found(error.to_string()))?;
    let of_one_row = |size: &&Size| {
        matches!(
            size.kernel,
            KernelId::Gemv(_) | KernelId::NormGemv(_) | KernelId::FlashAttentionDecodeSplit
        )
    };
    let mut most = 1f64;
    for size in SIZES.iter().filter(of_one_row) {
        let counted = count_case(&simulator, &size.kernel.row(), &(size.case)(size));
        most = most.max(counted.map_err(|error| found(error.to_string()))?.excess());
    }
    Ok(most)
}

fn token(model: &Decoder, chip: &ChipConfig, context: u32) -> Result<Token, Failure> {
    let (program, rules) = (model.program(context), GpuRules::new(chip));
    let scratch = Buffer {
        id: u32::MAX,
        generation: 0,
        len: lower::scratch_bytes(&program, &rules),
        writable: true,
    };
    let calls = lower::by_rules(&program, &rules, Some(scratch));
    let plan = Plan::make(calls, program.plan_room(), &mut HostPipelines::default());
    let plan = plan.map_err(|error| Failure::Found(format!("{}: {error}", model.name)))?;
    let cost = plan.cost();
    let launches = plan.dispatches().len();
    Ok(Token {
        bytes: cost.bytes_read + cost.bytes_written,
        launches,
        barriers: (0..launches).filter(|&at| plan.barrier_before(at)).count(),
    })
}

const PAGE: &str = "\
# Predictions for Macs

Written by `cargo measure predict`. Nothing here was measured on a Mac.

Greedy decoding of one sequence after {context} tokens:

{table}
A token takes

```text
bytes · {counted} / ({share} % of the memory's speed) + launches · {launch} µs + barriers · {barrier} µs
```

- **bytes, launches, barriers** are those of the plan that the lowering makes for the chip: every weight and every key that
  is seen once, what kernels leave for each other, and the logits.
- **{counted}** is the most that the simulator counts for the kernels of a single row: bytes moved for each that has to
  move ([What kernels do to memory](counters.md)).
- **The memory's speed** is Apple's figure: 68 GB/s for M1, 273 for M4 Pro, 614 for M5 Max. That kernels reach {share} % of it,
  that a launch costs {launch} µs and a barrier {barrier} µs are assumptions (`--share`, `--launch`, `--barrier`); the caches before the
  memory, which hold a part of a small model, are left out.
- Weights: SmolLM2 in Q8_0, the others in Q4_K with the output layer in Q6_K; keys and values in f16.

`akunu-cli bench --device metal` on a Mac says what is true.
";
