//! `tokenize -m FILE`: text from stdin to token ids, or ids back to text.

use super::Run;
use crate::failure::Failure;
use crate::input::{self, read_input};
use crate::models;
use crate::progress;
use akunu_gguf::GgufFile;
use akunu_tokenizer::{EncodeOptions, Tokenizer};
use clap::Parser;
use std::io::Write;
use std::path::Path;

/// Turn text from standard input into tokens, or ids back into text
///
/// The text is taken as it is, including a newline at its end. Without --ids or --decode, each token is a line: its
/// id, a tab, and its text, quoted.
#[derive(Parser)]
#[command(name = "tokenize")]
pub struct Tokenize {
    /// A GGUF file, a model folder, a tokenizer.json, or a name from `pull --list`
    #[arg(short, long, value_name = "MODEL")]
    model: String,
    /// Print only ids, on one line, separated by spaces
    #[arg(long)]
    ids: bool,
    /// Add the tokens that the model expects around a text, such as the one that begins it
    #[arg(long)]
    add_special: bool,
    /// Read control tokens such as <|im_end|> in the text as tokens
    #[arg(long)]
    parse_special: bool,
    /// Read ids separated by white space, and print only their text, control tokens included
    #[arg(long, conflicts_with_all = ["ids", "add_special", "parse_special"])]
    decode: bool,
}

impl Run for Tokenize {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let tokenizer = open(&models::resolve(&self.model)?)?;
        let input = read_input(input::CORPUS)?;
        if self.decode {
            let text = decode(&tokenizer, &parse_ids(&input, tokenizer.vocab_size())?);
            return Ok(out.write_all(text.as_bytes())?);
        }
        let options = EncodeOptions {
            add_special: self.add_special,
            parse_special: self.parse_special,
            ..EncodeOptions::default()
        };
        let encode = || tokenizer.encode(&input, options);
        let ids = progress::wait("splitting the text into tokens", encode);
        if self.ids {
            write_line(&ids, out)
        } else {
            write_table(&tokenizer, &ids, out)
        }
    }
}

fn open(path: &Path) -> Result<Tokenizer, Failure> {
    let is_json = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"));
    if path.is_dir() {
        Ok(Tokenizer::from_file(path.join("tokenizer.json"))?)
    } else if is_json {
        Ok(Tokenizer::from_file(path)?)
    } else {
        Ok(Tokenizer::from_gguf(GgufFile::open(path)?.metadata())?)
    }
}

/// The text of all tokens, also of control tokens, which have none in an answer.
fn decode(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let is_control = |id: &u32| tokenizer.is_control(*id);
    let mut text = String::new();
    for run in ids.chunk_by(|a, b| !is_control(a) && !is_control(b)) {
        let has_text = run.first().is_some_and(|id| !is_control(id));
        if has_text && text.is_empty() {
            // The space that some vocabularies put before a text is left out.
            text.push_str(&tokenizer.decode(run));
        } else {
            let pieces = run.iter().filter_map(|id| tokenizer.token_bytes(*id));
            text.push_str(&String::from_utf8_lossy(
                &pieces.flatten().collect::<Vec<u8>>(),
            ));
        }
    }
    text
}

fn parse_ids(input: &str, vocab_size: usize) -> Result<Vec<u32>, Failure> {
    let parse = |word: &str| {
        let id = word.parse().ok();
        id.filter(|&id: &u32| (id as usize) < vocab_size)
            .ok_or_else(|| Failure::NotAnId {
                word: word.chars().take(40).collect(),
                vocab_size,
            })
    };
    input.split_whitespace().map(parse).collect()
}

fn write_line(ids: &[u32], out: &mut dyn Write) -> Result<(), Failure> {
    for (n, id) in ids.iter().enumerate() {
        let space = if n == 0 { "" } else { " " };
        write!(out, "{space}{id}")?;
    }
    Ok(writeln!(out)?)
}

fn write_table(tokenizer: &Tokenizer, ids: &[u32], out: &mut dyn Write) -> Result<(), Failure> {
    for &id in ids {
        let piece = tokenizer.token_bytes(id).unwrap_or_default();
        // Readable where it is text; a token may also be a part of a character.
        match std::str::from_utf8(&piece) {
            Ok(text) => writeln!(out, "{id}\t{text:?}")?,
            Err(_) => writeln!(out, "{id}\t\"{}\"", piece.escape_ascii())?,
        }
    }
    Ok(())
}
