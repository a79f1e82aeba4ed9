//! What the integration tests share: where assets lie, and GGUF files made by hand.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub use akunu_assets::path as asset;

/// A metadata value of a handmade file.
pub enum Entry<'a> {
    Str(&'a str),
    U32(u32),
    Bool(bool),
    Strings(Vec<&'a str>),
    F32s(Vec<f32>),
    I32s(Vec<i32>),
}

impl Entry<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Entry::Str(text) => {
                out.extend(8u32.to_le_bytes());
                write_str(text, out);
            }
            Entry::U32(number) => {
                out.extend(4u32.to_le_bytes());
                out.extend(number.to_le_bytes());
            }
            Entry::Bool(on) => {
                out.extend(7u32.to_le_bytes());
                out.push(u8::from(*on));
            }
            Entry::Strings(texts) => {
                write_array(8, texts.len(), out);
                texts.iter().for_each(|text| write_str(text, out));
            }
            Entry::F32s(numbers) => {
                write_array(6, numbers.len(), out);
                numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
            }
            Entry::I32s(numbers) => {
                write_array(5, numbers.len(), out);
                numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
            }
        }
    }
}

fn write_str(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn write_array(element: u32, len: usize, out: &mut Vec<u8>) {
    out.extend(9u32.to_le_bytes());
    out.extend(element.to_le_bytes());
    out.extend((len as u64).to_le_bytes());
}

/// The bytes of a GGUF file with this metadata and no tensors.
pub fn gguf(entries: &[(&str, Entry<'_>)]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend((entries.len() as u64).to_le_bytes());
    for (key, value) in entries {
        write_str(key, &mut out);
        value.write(&mut out);
    }
    out
}
