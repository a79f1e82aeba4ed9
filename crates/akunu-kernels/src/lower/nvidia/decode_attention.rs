//! All that is done to the heads of a single row on an NVIDIA GPU, as one kernel: RoPE, the storing of the new key and value, and
//! attention. Also of several rows, in a program that moves each to its next position: no row sees a key that another one stores.
//! Where only products on tensor cores read the result of several rows, it is halves in the scratch memory, as they want them.

use std::mem::offset_of;

use akunu_program::{Count, Op, Pairing, Rows, op};
use akunu_types::params::DecodeAttentionParams;

use super::NvidiaRules;
use super::halves::half_stride;
use crate::constant::{Constant, Constants};
use crate::kernel::attention::selection::with_limits;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::nvidia::{Generation, decode_attention};
use crate::kernel::pages::with_format;
use crate::lower::cache::{centre_or_any, rope_constants, with_centre};
use crate::lower::lowering::{Halved, Lowering};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

/// RoPE with the storing of keys and values, and the attention that reads them.
struct Decoded<'a> {
    store: &'a op::RopeStore,
    attend: &'a op::Attend,
}

impl Decoded<'_> {
    /// The first two operations, if they are that.
    fn of(ops: &[Op]) -> Option<Decoded<'_>> {
        let [Op::RopeStore(store), Op::Attend(attend), ..] = ops else {
            return None;
        };
        let are_theirs =
            (store.q, store.heads, store.cache) == (attend.q, attend.heads, attend.cache);
        (are_theirs && attend.sinks.is_none()).then_some(Decoded { store, attend })
    }

    /// Whether there is a kernel for it.
    fn is_known(&self) -> bool {
        // No model has such norms and neighbours that turn together; the kernels for several rows do not know them.
        let has_pairing = match self.store.norms {
            None => true,
            Some(norms) => !norms.turn_first && self.store.rope.pairing == Pairing::Halves,
        };
        let heads = &self.store.heads;
        has_pairing
            && decode_attention::takes(heads.n_heads, heads.n_kv_heads, heads.head_dim)
            && decode_attention::takes_turn(heads.head_dim, self.store.rope.turned_dim)
    }

    fn params(&self) -> DecodeAttentionParams {
        let pages = &self.store.cache.pages;
        DecodeAttentionParams {
            n_heads: self.store.heads.n_heads,
            n_kv_heads: self.store.heads.n_kv_heads,
            head_dim: self.store.heads.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            n_groups: 1,
            theta: self.store.rope.theta,
            freq_scale: self.store.rope.freq_scale,
            eps: self.store.norms.map_or(0.0, |norms| norms.eps),
            scale: self.attend.scale,
            ..Default::default()
        }
    }

    /// Elements of a row of the result.
    fn width(&self) -> u32 {
        self.store.heads.n_heads * self.store.heads.head_dim
    }

    /// Most keys that the row can see.
    fn max_keys(&self) -> u32 {
        let pages = &self.store.cache.pages;
        let capacity = u32::try_from(pages.capacity()).unwrap_or(u32::MAX);
        pages.window.map_or(capacity, |window| window.min(capacity))
    }

    fn constants(&self) -> Constants {
        let constants = with_format(
            rope_constants(&self.store.rope, self.store.heads.head_dim),
            self.store.cache.format,
        )
        .with_u32(Constant::HeadDim, self.store.heads.head_dim);
        let constants = with_limits(
            constants,
            self.store.cache.pages.window,
            self.attend.softcap,
        );
        let constants = with_centre(constants, self.store.centre);
        match self.store.norms {
            Some(_) => constants.with_bool(Constant::HeadNorm, true),
            None => constants,
        }
    }
}

impl NvidiaRules {
    /// Lowers RoPE, the storing of keys and values and the attention after it as one kernel; how many operations. The turned
    /// queries, which only attention reads, stay in it.
    pub(super) fn decode_attention(&self, l: &mut Lowering, ops: &[Op]) -> Option<usize> {
        let chip = &self.chip;
        if !Generation::of(chip).has_tensor_cores() {
            return None;
        }
        let room = l.program.room;
        let is_decoding = room.rows() == 1 || (room.run == 0 && l.program.advances());
        let decoded = Decoded::of(ops).filter(|decoded| is_decoding && decoded.is_known())?;
        let mut params = decoded.params();
        params.n_rows = room.rows();
        params.n_simd_groups = decode_attention::simd_groups(&params, chip);
        params.n_groups = decode_attention::groups(&params, decoded.max_keys(), chip);
        let halved = self.halved_output(l, &decoded, &ops[2..]);
        if let Some(Halved { order, .. }) = halved {
            params.order = order.code();
            params.half_stride = half_stride(decoded.width(), order);
        }
        let key = PipelineKey {
            kernel: match decoded.store.rope.pairing {
                Pairing::Interleaved => KernelId::DecodeAttention,
                Pairing::Halves => KernelId::DecodeAttentionNeox,
            },
            constants: decoded.constants(),
        };
        let row = key.kernel.row();
        let bytes = row.args(bytemuck::bytes_of(&params), &key.constants);
        let bytes = decode_attention::Buffers::bytes(&bytes);
        let arrived = l.counters(bytes.arrived)?;
        // The product looks for factors and halves where the scratch memory begins.
        let [factors, halves, parts, weights] =
            l.scratch([bytes.factors, bytes.halves, bytes.parts, bytes.weights])?;
        let &op::RopeStore {
            q,
            k,
            v,
            rope,
            norms,
            centre,
            ref cache,
            ..
        } = decoded.store;
        // Without norms what is bound in their place is not touched.
        let [q_norm, k_norm] = norms.map_or([rope.divisors; 2], |norms| [norms.q, norms.k]);
        let buffers = decode_attention::Buffers {
            q,
            k,
            v,
            K: cache.k.into(),
            V: cache.v.into(),
            rows: l.step().rows.into(),
            table: cache.pages.table.into(),
            freqs: rope.divisors,
            q_norm,
            k_norm,
            O: decoded.attend.to,
            parts,
            weights,
            arrived,
            halves,
            factors,
            centre: centre_or_any(centre, &rope),
        };
        l.halved = halved;
        let label = "rope, store and attention";
        let field = RowField::new(offset_of!(DecodeAttentionParams, n_rows), Count::Rows);
        l.push(KernelCall::new(key, &params, buffers, label).with_rows([field]));
        Some(2)
    }

    /// The result as halves in tiles, if all that reads it are the products on tensor cores at the beginning of these operations.
    fn halved_output(&self, l: &Lowering, decoded: &Decoded, ops: &[Op]) -> Option<Halved> {
        let (rows, x) = (Rows::All, decoded.attend.to);
        let order = self.order_of_readers(l, (rows, x), decoded.width(), ops)?;
        (order != Order::Rows).then_some(Halved { rows, x, order })
    }
}
