//! Attention.

use akunu_kernels::kernel::attention::{self, flash_attention_decode_split, flash_attention_join};
use akunu_kernels::kernel::nvidia::decode_attention;
use akunu_kernels::{Constant, Constants, KernelCall, KernelId, PipelineKey};
use akunu_program::{DeviceError, Slice};
use akunu_types::params::{AttentionParams, DecodeAttentionParams, Row};

use super::bench::{Bench, Part, Timed};

/// As many rows are a prompt, each of which sees the keys up to its own.
const PROMPT_ROWS: u32 = 512;

impl Bench<'_> {
    /// RoPE, the storing of a key and attention of one row.
    pub fn attend_one(&mut self, length: u32) -> Result<Timed, DeviceError> {
        let n_pages = length.div_ceil(64);
        let params = DecodeAttentionParams {
            n_heads: 32,
            n_kv_heads: 8,
            head_dim: 128,
            page_shift: 6,
            table_stride: n_pages,
            n_pages,
            n_sequences: 1,
            // What an H200 gets for 8192 keys.
            n_groups: 33,
            theta: 10000.0,
            freq_scale: 1.0,
            eps: 0.0,
            scale: 0.09,
            n_rows: 1,
            n_simd_groups: 8,
            ..Default::default()
        };
        let table: Vec<u32> = (0..n_pages).collect();
        let [rows_at, table_at, counters] =
            [Part::Rows, Part::Table, Part::Counters].map(|at| self.part(at));
        for (at, bytes) in [
            (rows_at, bytemuck::bytes_of(&Row::at(0, length - 1))),
            (table_at, bytemuck::cast_slice(&table)),
            (counters, &[0; 64]),
        ] {
            self.device.write(at.buffer, at.offset, bytes)?;
        }
        let pool = (n_pages * 64 * 8 * 128 * 2) as usize;
        let calls = (0..self.effort.calls).map(|at| {
            let keys = |which: usize| Slice {
                buffer: self.memory,
                offset: (2 * at + which) * pool % (self.effort.weights / 2),
            };
            let [q, out, parts] = [Part::X, Part::Y, Part::Factors].map(|at| self.part(at));
            let weights = Slice {
                offset: parts.offset + (1 << 20),
                ..parts
            };
            let buffers = decode_attention::Buffers {
                q,
                k: q,
                v: q,
                K: keys(0),
                V: keys(1),
                rows: rows_at,
                table: table_at,
                freqs: q,
                q_norm: q,
                k_norm: q,
                O: out,
                parts,
                weights,
                arrived: counters,
                halves: out,
                factors: out,
                centre: q,
            };
            let key = PipelineKey {
                kernel: KernelId::DecodeAttentionNeox,
                constants: Constants::none().with_u32(Constant::HeadDim, 128),
            };
            KernelCall::new(key, &params, buffers, "attention")
        });
        let calls: Vec<KernelCall> = calls.collect();
        let moved = (2 * length * 8 * 128 * 2) as usize;
        self.time(calls, moved)
    }

    /// Times attention of so many rows in so many parts over so many keys: `(rows, parts, keys)`.
    pub fn attend(
        &mut self,
        kernel: KernelId,
        (n_rows, n_parts, length): (u32, u32, u32),
    ) -> Result<Timed, DeviceError> {
        let n_pages = length.div_ceil(64);
        let params = AttentionParams {
            n_rows,
            n_heads: 32,
            n_kv_heads: 8,
            head_dim: 128,
            page_shift: 6,
            table_stride: n_pages,
            n_pages,
            n_sequences: 1,
            scale: 0.09,
            n_parts,
            ..Default::default()
        };
        let is_prompt = n_rows >= PROMPT_ROWS;
        let rows: Vec<Row> = (0..n_rows)
            .map(|at| Row {
                length: if is_prompt {
                    length - n_rows + at + 1
                } else {
                    length
                },
                ..Row::at(0, 0)
            })
            .collect();
        let table: Vec<u32> = (0..n_pages).collect();
        let (rows_at, table_at) = (self.part(Part::Rows), self.part(Part::Table));
        self.device
            .write(rows_at.buffer, rows_at.offset, bytemuck::cast_slice(&rows))?;
        self.device.write(
            table_at.buffer,
            table_at.offset,
            bytemuck::cast_slice(&table),
        )?;
        let constants = Constants::none().with_u32(Constant::HeadDim, 128);
        let row = kernel.row();
        let pool = (n_pages * 64 * 8 * 128 * 2) as usize;
        let calls = (0..self.effort.calls).map(|at| {
            let keys = |which: usize| Slice {
                buffer: self.memory,
                offset: (2 * at + which) * pool % (self.effort.weights / 2),
            };
            let (q, out) = (self.part(Part::X), self.part(Part::Y));
            let (rows, table, weights) = (rows_at, table_at, self.part(Part::Factors));
            let key = PipelineKey {
                kernel,
                constants: constants.clone(),
            };
            match kernel {
                KernelId::FlashAttentionJoin => {
                    let buffers = flash_attention_join::Buffers {
                        parts: out,
                        weights,
                        O: q,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
                KernelId::FlashAttentionDecodeSplit => {
                    let buffers = flash_attention_decode_split::Buffers {
                        Q: q,
                        K: keys(0),
                        V: keys(1),
                        parts: out,
                        rows,
                        table,
                        weights,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
                _ => {
                    let buffers = attention::Buffers {
                        Q: q,
                        K: keys(0),
                        V: keys(1),
                        O: out,
                        rows,
                        table,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
            }
        });
        let calls: Vec<KernelCall> = calls.collect();
        let moved = if row.bindings.len() > 3 { 2 * pool } else { 0 };
        self.time(calls, moved)
    }
}
