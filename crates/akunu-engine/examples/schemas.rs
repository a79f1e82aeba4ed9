//! JSON schemas of others against our grammars, for `cargo xtask schemas`.
//!
//! ```text
//! schemas suite MODEL FOLDER            every test of JSON-Schema-Test-Suite: schema, instance, valid or not
//! schemas walk MODEL FOLDER OUT         random texts that the grammars of many schemas allow, a line of JSON each
//! ```
//!
//! No model chooses: only the vocabulary of MODEL is used.
#![allow(clippy::print_stdout, reason = "a program whose report is its work")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{Grammar, GrammarWalk, Model};
use akunu_tokenizer::EncodeOptions;
use serde_json::{Value, json};

type Done<T> = Result<T, Box<dyn Error>>;

/// Tokens of a text after which only its end is looked for, and at most.
const SOFT_END: usize = 60;
const HARD_END: usize = 1500;

fn main() -> Done<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["suite", model, folder] => suite(&load(model)?, Path::new(folder)),
        ["walk", model, folder, out] => walk(&load(model)?, Path::new(folder), Path::new(out)),
        _ => Err("schemas suite MODEL FOLDER, or schemas walk MODEL FOLDER OUT".into()),
    }
}

fn load(path: &str) -> Done<Model> {
    let device = CpuDevice::new(CpuOptions::default())?;
    Ok(Model::load(path, Box::new(device))?)
}

/// All JSON files of a folder, sorted.
fn files(folder: &Path) -> Done<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Done<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// What came of tests, by file.
#[derive(Default)]
struct Tally {
    right: [usize; 2],
    refused: usize,
    too_strict: usize,
    too_lax: usize,
}

fn suite(model: &Model, folder: &Path) -> Done<()> {
    let mut by_file: BTreeMap<String, Tally> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(folder)? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let tally = by_file.entry(name.clone()).or_default();
        for group in read(&path)?.as_array().into_iter().flatten() {
            let tests = group["tests"].as_array().map_or(&[][..], Vec::as_slice);
            let grammar = match Grammar::json_schema(model, &group["schema"].to_string()) {
                Ok(grammar) => grammar,
                Err(error) => {
                    tally.refused += tests.len();
                    *reasons.entry(error.to_string()).or_default() += tests.len();
                    continue;
                }
            };
            for test in tests {
                let (found, valid) = (
                    accepts(model, &grammar, &test["data"])?,
                    test["valid"] == true,
                );
                match (found, valid) {
                    (true, true) => tally.right[0] += 1,
                    (false, false) => tally.right[1] += 1,
                    (false, true) => tally.too_strict += 1,
                    (true, false) => tally.too_lax += 1,
                }
                if found != valid {
                    let what = if valid { "too strict" } else { "too lax" };
                    println!(
                        "{what}\t{name}\t{}\t{}\t{}",
                        group["description"], test["description"], test["data"]
                    );
                }
            }
        }
    }
    report(&by_file, &reasons);
    Ok(())
}

fn report(by_file: &BTreeMap<String, Tally>, reasons: &BTreeMap<String, usize>) {
    println!("file\taccepted\trejected\trefused\ttoo strict\ttoo lax");
    let mut all = [0; 5];
    for (name, of) in by_file {
        let row = [
            of.right[0],
            of.right[1],
            of.refused,
            of.too_strict,
            of.too_lax,
        ];
        println!("{name}\t{}", row.map(|n| n.to_string()).join("\t"));
        all.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    println!("all\t{}", all.map(|n| n.to_string()).join("\t"));
    println!("why schemas were refused, and the tests of them:");
    for (why, n) in reasons {
        println!("{n}\t{why}");
    }
}

/// Whether a grammar takes a value, written without spaces.
fn accepts(model: &Model, grammar: &Grammar, value: &Value) -> Done<bool> {
    let options = EncodeOptions::default();
    let tokens = model.tokenizer().encode(&value.to_string(), options);
    let mut walk = grammar.walk();
    Ok(walk.take(&tokens)? == tokens.len() && walk.is_complete()?)
}

/// Numbers that look random, the same in every run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn walk(model: &Model, folder: &Path, out: &Path) -> Done<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(out)?);
    let bytes = Bytes::new(model);
    let (mut masks, mut compiling) = (Vec::new(), Vec::new());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let (mut finished, mut unfinished) = (0, 0);
    for (seed, path) in files(folder)?.into_iter().enumerate() {
        let schema = std::fs::read_to_string(&path)?;
        let begin = Instant::now();
        let grammar = match Grammar::json_schema(model, &schema) {
            Ok(grammar) => grammar,
            Err(error) => {
                *reasons.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        compiling.push(begin.elapsed());
        let mut rng = Rng(seed as u64 * 7919 + 12345);
        match random_text((model, &bytes), grammar.walk(), &mut rng, &mut masks)? {
            Some(text) => {
                finished += 1;
                writeln!(out, "{}", json!({ "schema": path, "text": text }))?;
            }
            None => unfinished += 1,
        }
    }
    out.flush()?;
    println!(
        "{} schemas compiled, {finished} texts complete, {unfinished} cut off",
        compiling.len()
    );
    for (what, times) in [("compiling", &mut compiling), ("a mask", &mut masks)] {
        times.sort_unstable();
        let at = |share: f64| {
            times
                .get(((times.len() as f64 - 1.0) * share) as usize)
                .copied()
        };
        let [half, most, last] = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or(Duration::ZERO));
        println!(
            "{what}: p50 {half:?}, p99 {most:?}, most {last:?}, of {}",
            times.len()
        );
    }
    println!("why schemas were refused:");
    for (why, n) in &reasons {
        println!("{n}\t{why}");
    }
    Ok(())
}

/// The bytes of all tokens, and which of them close something.
struct Bytes {
    of: Vec<Vec<u8>>,
    closing: Vec<bool>,
}

impl Bytes {
    fn new(model: &Model) -> Bytes {
        let ids = 0..model.config().vocab_size;
        let bytes = |id| model.tokenizer().token_bytes(id).unwrap_or_default();
        let of: Vec<Vec<u8>> = ids.map(bytes).collect();
        let closes = |bytes: &Vec<u8>| matches!(bytes.first(), Some(b'"' | b'}' | b']' | b','));
        let closing = of.iter().map(closes).collect();
        Bytes { of, closing }
    }

    /// A random one of these tokens or, late in a text, the shortest that closes something.
    fn choose(&self, allowed: &[u32], is_late: bool, rng: &mut Rng) -> Option<u32> {
        let closing = allowed
            .iter()
            .filter(|id| is_late && self.closing[**id as usize]);
        let shortest = closing.min_by_key(|id| {
            let bytes = &self.of[**id as usize];
            (bytes.contains(&b','), bytes.len(), **id)
        });
        let any = || allowed.get(rng.below(allowed.len()));
        shortest.or_else(any).copied()
    }
}

/// A text of random tokens that a grammar allows, if it comes to an end.
fn random_text(
    (model, bytes): (&Model, &Bytes),
    mut walk: GrammarWalk,
    rng: &mut Rng,
    masks: &mut Vec<Duration>,
) -> Done<Option<String>> {
    let mut text = Vec::new();
    for n in 0..HARD_END {
        let begin = Instant::now();
        let bits = walk.allowed()?;
        masks.push(begin.elapsed());
        let is_allowed = |id: &u32| bits[(id / 32) as usize] >> (id % 32) & 1 == 1;
        let ids = 0..(32 * bits.len()).min(bytes.of.len()) as u32;
        let allowed: Vec<u32> = ids.filter(is_allowed).collect();
        let Some(token) = bytes.choose(&allowed, n > SOFT_END, rng) else {
            return Ok(None);
        };
        let is_end = walk.is_complete()? && model.tokenizer().is_end(token);
        if is_end || walk.take(&[token])? == 0 {
            return Ok(Some(String::from_utf8(text)?));
        }
        text.extend(&bytes.of[token as usize]);
        if n > SOFT_END && walk.is_complete()? {
            return Ok(Some(String::from_utf8(text)?));
        }
    }
    Ok(None)
}
