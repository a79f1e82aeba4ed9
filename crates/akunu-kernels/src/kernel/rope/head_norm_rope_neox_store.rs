//! `head_norm_rope_neox_store_f16`: for models that normalise each head of q and k (Qwen 3, Gemma 3).
//!
//! As [`super::rope_store`], with `q / rms(q) * q_norm` and `k / rms(k) * k_norm` before they turn.

use akunu_program::Pairing;
use akunu_types::params::RopeStoreParams;

use super::rope_store::{self, n_rows};
use super::{Projection, head_launch};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Element, KernelRow, Launch, read};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("head_norm_rope_neox_store_f16", ""),
    source: "head_norm_rope_neox_store",
    bindings: &[
        rope_store::INTERLEAVED.bindings[0],
        rope_store::INTERLEAVED.bindings[1],
        rope_store::INTERLEAVED.bindings[2],
        rope_store::INTERLEAVED.bindings[3],
        rope_store::INTERLEAVED.bindings[4],
        rope_store::INTERLEAVED.bindings[5],
        rope_store::INTERLEAVED.bindings[6],
        rope_store::INTERLEAVED.bindings[7],
        read(9, "q_norm", Element::F32),
        read(10, "k_norm", Element::F32),
    ],
    constants: &[Constant::FreqTable, Constant::KvQ8],
    launch,
    required,
    twin: |t| {
        let norm = head_norm(t);
        rope_store::twin(t, Pairing::Halves, Some(&norm));
    },
    cases: |_| cases(),
    ..rope_store::INTERLEAVED
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: RopeStoreParams = args.params();
    let n_heads = p.n_heads.max(p.n_kv_heads);
    head_launch(n_heads, p.head_dim, n_rows(args), chip.max_threads)
}

/// The bytes of the kernel without the norm, and the two weights.
fn required(args: &Args) -> Vec<usize> {
    let p: RopeStoreParams = args.params();
    let weight = p.head_dim as usize * size_of::<f32>();
    let mut bytes = rope_store::required_by_all(args);
    bytes.extend([weight, weight]);
    bytes
}

/// The norm of a head, with the weights of q and k.
fn head_norm<'a>(t: &Twin<'a>) -> impl Fn(&[f32], Projection) -> Vec<f32> + use<'a> {
    let p: RopeStoreParams = t.params();
    let (q_norm, k_norm) = (t.read::<f32>(9), t.read::<f32>(10));
    move |head, projection| {
        let weight = match projection {
            Projection::Query => q_norm,
            Projection::Key => k_norm,
        };
        let mut normal = vec![0.0; head.len()];
        rmsnorm(head, weight, p.eps, &mut normal);
        normal
    }
}

fn cases() -> Vec<Case> {
    rope_store::all_settings(|s, format| {
        let mut rng = Rng::new(u64::from(s.head_dim));
        rope_store::case(s, format, &mut rng)
            .bind(&rng.floats(s.head_dim as usize, 1.0))
            .bind(&rng.floats(s.head_dim as usize, 1.0))
    })
}
