//! From what a `tokenizer.json` says to what encodes text.

use super::added::Added;
use super::cuts::{Cuts, compile};
use super::encoder::{Around, JsonEncoder, PieceModel};
use super::file::{File, Model, NormalizerEntry, PostProcessorEntry, Template, TemplatePart};
use super::growth::Growth;
use crate::bpe::{Alphabet, Bpe, BpeRules, Unknown};
use crate::merges::{BadMerge, Merges};
use crate::normalizer::{BertNormalizer, Normalizer};
use crate::tokens::Tokens;
use crate::vocabulary::MAX_TOKENS;
use crate::wordpiece::{LONGEST_WORD, WordPiece};
use serde_json::Value;

/// Ids that no token has are holes. A file of a few tokens with a huge id would take memory out of proportion to it.
const MAX_HOLES: usize = 1 << 16;

/// The most ids that a post-processor may put around a text. Those in use put two or three.
const MAX_AROUND: usize = 64;

/// The encoder of a file with these tokens.
pub(super) fn encoder(mut file: File<'_>, tokens: Tokens) -> Result<JsonEncoder, String> {
    let normalizer = match file.normalizer.take() {
        Some(entry) => normalizer(entry, &mut Growth::default())?,
        None => Normalizer::Sequence(Vec::new()),
    };
    let cuts = Cuts::new(file.pre_tokenizer.take())?;
    let around = match file.post_processor.take() {
        Some(entry) => around(entry)?.unwrap_or_default(),
        None => Around::default(),
    };
    Ok(JsonEncoder {
        added: Added::new(&file.added_tokens, &normalizer)?,
        normalizer,
        model: model(file.model, tokens, cuts.is_byte_level)?,
        cuts: cuts.steps,
        around,
    })
}

/// The model's tokens by id, without the added ones.
pub(super) fn tokens(file: &File<'_>) -> Result<Tokens, String> {
    let Model { vocab, .. } = &file.model;
    let added = file.added_tokens.iter().map(|token| token.id);
    let ids = vocab.0.iter().map(|(_, id)| *id).chain(added);
    let (n_entries, max_id) = ids.fold((0, 0), |(n, max), id| (n + 1, max.max(id as usize)));
    if n_entries == 0 || n_entries > MAX_TOKENS {
        return Err(format!(
            "has {n_entries} tokens; a vocabulary has 1 to {MAX_TOKENS}"
        ));
    }
    if max_id >= 2 * n_entries + MAX_HOLES {
        return Err(format!(
            "has {n_entries} tokens and the id {max_id}, which leaves too many ids without a token"
        ));
    }
    let mut texts: Vec<&str> = vec![""; max_id + 1];
    for (text, id) in &vocab.0 {
        let slot = texts
            .get_mut(*id as usize)
            .ok_or("has an id beyond its vocabulary")?;
        if !slot.is_empty() {
            return Err(format!("gives the id {id} to both {slot:?} and {text:?}"));
        }
        *slot = text;
    }
    Tokens::new(texts.iter().map(|text| text.as_bytes())).map_err(|same| {
        let text = texts.get(same.first as usize).copied().unwrap_or_default();
        format!("gives {text:?} the ids {} and {}", same.first, same.second)
    })
}

fn normalizer(entry: NormalizerEntry, growth: &mut Growth) -> Result<Normalizer, String> {
    growth.add(&entry)?;
    Ok(match entry {
        NormalizerEntry::Sequence { normalizers } => {
            let steps = normalizers.into_iter().map(|step| normalizer(step, growth));
            Normalizer::Sequence(steps.collect::<Result<_, String>>()?)
        }
        NormalizerEntry::Nfc => Normalizer::Nfc,
        NormalizerEntry::Nfd => Normalizer::Nfd,
        NormalizerEntry::Nfkc => Normalizer::Nfkc,
        NormalizerEntry::Nfkd => Normalizer::Nfkd,
        NormalizerEntry::Lowercase => Normalizer::Lowercase,
        NormalizerEntry::StripAccents => Normalizer::StripAccents,
        NormalizerEntry::Strip {
            strip_left,
            strip_right,
        } => Normalizer::Strip {
            left: strip_left,
            right: strip_right,
        },
        NormalizerEntry::Prepend { prepend } => Normalizer::Prepend(prepend),
        NormalizerEntry::Replace { pattern, content } => Normalizer::Replace {
            pattern: compile(pattern)?,
            with: content,
        },
        NormalizerEntry::BertNormalizer {
            clean_text,
            handle_chinese_chars,
            strip_accents,
            lowercase,
        } => Normalizer::Bert(BertNormalizer {
            clean_text,
            handle_chinese_chars,
            strip_accents: strip_accents.unwrap_or(lowercase),
            lowercase,
        }),
    })
}

fn model(model: Model<'_>, tokens: Tokens, is_byte_level: bool) -> Result<PieceModel, String> {
    let guess = if model.merges.is_some() {
        "BPE"
    } else {
        "WordPiece"
    };
    match model.kind.as_deref().unwrap_or(guess) {
        "BPE" => bpe(&model, tokens, is_byte_level).map(PieceModel::Bpe),
        "WordPiece" => {
            let unknown = unknown(&model, &tokens)?;
            let unknown = unknown.ok_or("is WordPiece without a `model.unk_token`")?;
            let mark = model.continuing_subword_prefix.as_deref().unwrap_or("##");
            let longest = model.max_input_chars_per_word.unwrap_or(LONGEST_WORD);
            let model = WordPiece::from_json(&tokens, mark, longest, unknown);
            Ok(PieceModel::WordPiece(model))
        }
        other => Err(format!(
            "has the model `{other}`, which is not supported; supported are BPE and WordPiece"
        )),
    }
}

fn bpe(model: &Model<'_>, tokens: Tokens, is_byte_level: bool) -> Result<Bpe, String> {
    let affixes = [
        (
            "continuing_subword_prefix",
            &model.continuing_subword_prefix,
        ),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ];
    for (name, affix) in affixes {
        if affix.as_deref().is_some_and(|affix| !affix.is_empty()) {
            return Err(format!(
                "has a `model.{name}`, which is not supported for BPE"
            ));
        }
    }
    let merges = model.merges.as_deref().unwrap_or_default();
    let merges = Merges::read(merges.iter().map(|merge| merge.pair()), &tokens);
    let merges = merges.map_err(|bad| match bad {
        BadMerge::NoPair { index } => {
            format!("entry {index} of `model.merges` is not two tokens and a space")
        }
        BadMerge::Unknown { index, token } => {
            format!(
                "entry {index} of `model.merges` needs {token:?}, which is not in `model.vocab`"
            )
        }
    })?;
    let unknown = unknown(model, &tokens)?.map(|id| Unknown {
        id,
        fuses: model.fuse_unk,
    });
    let rules = BpeRules {
        alphabet: match (is_byte_level, model.byte_fallback) {
            (true, _) => Alphabet::Bytes,
            (false, true) => Alphabet::CharactersOrBytes,
            (false, false) => Alphabet::Characters,
        },
        ignore_merges: model.ignore_merges,
        unknown,
    };
    Ok(Bpe::new(tokens, merges, rules))
}

fn unknown(model: &Model<'_>, tokens: &Tokens) -> Result<Option<u32>, String> {
    let Some(text) = &model.unk_token else {
        return Ok(None);
    };
    match tokens.id_of(text) {
        Some(id) => Ok(Some(id)),
        None => Err(format!(
            "has the `model.unk_token` {text:?}, which is not in `model.vocab`"
        )),
    }
}

/// What a post-processor puts around the text; `None` for one that adds nothing.
fn around(entry: PostProcessorEntry) -> Result<Option<Around>, String> {
    match entry {
        PostProcessorEntry::Sequence { processors } => {
            let mut found = None;
            for entry in processors {
                let next = around(entry)?;
                if found.is_some() && next.is_some() {
                    return Err("has two post-processors that add tokens".into());
                }
                found = found.or(next);
            }
            Ok(found)
        }
        PostProcessorEntry::ByteLevel {} => Ok(None),
        PostProcessorEntry::BertProcessing { sep, cls }
        | PostProcessorEntry::RobertaProcessing { sep, cls } => Ok(Some(Around {
            before: vec![cls.1],
            after: vec![sep.1],
        })),
        PostProcessorEntry::TemplateProcessing(template) => around_template(&template).map(Some),
    }
}

fn around_template(template: &Template) -> Result<Around, String> {
    let mut before = Vec::new();
    let mut after = None;
    let mut n_ids = 0;
    for part in &template.single {
        match (part, &mut after) {
            (TemplatePart::Sequence {}, None) => after = Some(Vec::new()),
            (TemplatePart::Sequence {}, Some(_)) => {
                return Err("has a post-processor that writes the text twice".into());
            }
            (TemplatePart::SpecialToken { id }, after) => {
                let ids = ids_of(template, id)?;
                n_ids += ids.len();
                if n_ids > MAX_AROUND {
                    return Err(format!(
                        "has a `post_processor.single` with more than {MAX_AROUND} ids around the text"
                    ));
                }
                after.as_mut().unwrap_or(&mut before).extend(ids);
            }
        }
    }
    let after = after.ok_or("has a post-processor that leaves the text out")?;
    Ok(Around { before, after })
}

/// The ids of a special token of a template.
fn ids_of(template: &Template, name: &str) -> Result<Vec<u32>, String> {
    let ids = template
        .special_tokens
        .get(name)
        .and_then(|token| token.get("ids"));
    let ids = ids.and_then(Value::as_array).map(|ids| {
        let ids = ids.iter().map(|id| u32::try_from(id.as_u64()?).ok());
        ids.collect::<Option<Vec<u32>>>()
    });
    ids.flatten()
        .ok_or_else(|| format!("has a post-processor with {name:?}, whose ids it does not name"))
}
