//! The command line of `cargo measure load`.

use std::path::PathBuf;
use std::time::Duration;

/// What to do.
#[derive(clap::Args)]
pub struct Args {
    /// Where the server listens
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub address: String,
    /// Requests in all
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "mode")]
    pub requests: u32,
    /// Requests that arrive in a second, on average; 0 for all at once
    #[arg(long, value_name = "R", default_value_t = 4.0, conflicts_with = "mode")]
    pub rate: f64,
    /// Words of a prompt, as a range of which each request takes one number
    #[arg(long, value_name = "FROM-TO", default_value = "20-200", value_parser = range)]
    pub prompt: (u32, u32),
    /// Tokens of an answer, likewise
    #[arg(long, value_name = "FROM-TO", default_value = "16-128", value_parser = range)]
    pub tokens: (u32, u32),
    /// The same seed gives the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long, conflicts_with = "mode")]
    pub json: bool,
    /// Instead, let clients come and go for this long (90s, 10m), and compare each answer with the same one alone
    #[arg(long, value_name = "TIME", value_parser = time, group = "mode")]
    pub soak: Option<Duration>,
    /// Instead, measure what one client notices while others open thousands of connections and send what is meant to harm
    #[arg(long, group = "mode")]
    pub hostile: bool,
    /// Connections of --hostile [default: 10000]
    #[arg(long, value_name = "N", requires = "hostile")]
    pub connections: Option<u32>,
    #[command(flatten)]
    pub versus: VersusArgs,
    /// Clients at once: of the soak [default: 64], or of the comparison, one number after the other [default: 1,8,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "mode", conflicts_with = "hostile",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: Vec<u32>,
}

impl Args {
    /// Numbers of clients: those that were asked for, or else these.
    pub fn clients(&self, default: &[u32]) -> Vec<u32> {
        if self.clients.is_empty() {
            default.to_vec()
        } else {
            self.clients.clone()
        }
    }
}

/// What is compared.
#[derive(clap::Args)]
pub struct VersusArgs {
    /// Instead, start our server and llama.cpp's on the same model, and ask them in turns; the program, unless it is on PATH
    #[arg(long, value_name = "PROGRAM", group = "mode", num_args = 0..=1, default_missing_value = "llama-server")]
    pub llama_server: Option<PathBuf>,
    /// The model of both [default: SmolLM2]
    #[arg(short, long, value_name = "FILE", requires = "llama_server")]
    pub model: Option<PathBuf>,
    /// Threads of each [default: as many as there are cores]
    #[arg(short, long, value_name = "N", requires = "llama_server")]
    pub threads: Option<usize>,
    /// Rounds; the medians count
    #[arg(long, value_name = "N", default_value_t = 5, requires = "llama_server",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// An akunu-cli that was built already, instead of building it
    #[arg(long, value_name = "PROGRAM", requires = "llama_server")]
    pub ours: Option<PathBuf>,
}

/// `90s` or `10m`.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let n: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(u64::from(n) * seconds))
    });
    let found = found.filter(|time| !time.is_zero());
    found.ok_or_else(|| "it must be a time such as 90s or 10m".into())
}

/// `20-200`, or one number.
fn range(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if 0 < from && from <= to => Ok((from, to)),
        _ => Err("it must be a number or a range such as 20-200, of 1 or more".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "10", "0s", "-1m", "1h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_read_and_kept() {
        assert_eq!(range("7"), Ok((7, 7)));
        assert_eq!(range("2-5"), Ok((2, 5)));
        for wrong in ["", "0", "5-2", "a-b", "1-2-3"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
