//! Whether a JPEG file is complete. Decoders fill a file that ends early with grey, and do not say so.
//!
//! ```text
//! file    = FFD8 segment*            segment = FF marker [length (2 bytes, itself included) ...]
//! markers without a length: D8, D0 to D7, 01;   D9 ends the file
//! DA is followed by coded data, up to the next FF that is not followed by 00, FF or D0 to D7
//! ```

const START: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;

/// Whether the segments reach the end marker.
pub(crate) fn has_end(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((marker, after)) = next_marker(rest) {
        rest = match marker {
            END => return true,
            START | 0x01 | 0xd0..=0xd7 => after,
            _ => {
                let length = match after {
                    [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
                    _ => return false,
                };
                let Some(after) = after.get(length..) else {
                    return false;
                };
                if marker == SCAN {
                    after_scan(after)
                } else {
                    after
                }
            }
        };
    }
    false
}

/// The first marker, and the bytes after it.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let at = bytes
        .windows(2)
        .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xff))?;
    Some((bytes[at + 1], &bytes[at + 2..]))
}

/// From the next marker that ends coded data.
fn after_scan(bytes: &[u8]) -> &[u8] {
    let ends = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xff | 0xd0..=0xd7);
    let at = bytes.windows(2).position(ends);
    at.map_or(&[], |at| &bytes[at..])
}
