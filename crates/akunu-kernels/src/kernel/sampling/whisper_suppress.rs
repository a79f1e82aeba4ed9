//! `whisper_suppress_f32`: `logits[id] = -inf` for each id of the list, in place.
//!
//! An id beyond the vocabulary is passed over. One thread a listed token.

use akunu_types::SharedStruct;
use akunu_types::params::TokenSuppressParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("whisper_suppress_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "whisper_suppress",
    bindings: &[
        read_write(0, "logits", Element::F32),
        read(1, "ids", Element::U32),
    ],
    params_index: 2,
    params: TokenSuppressParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    Launch::elementwise(args.params::<TokenSuppressParams>().n_tokens)
}

fn required(args: &Args) -> Vec<usize> {
    let p: TokenSuppressParams = args.params();
    vec![bytes::<f32>(&[p.vocab_size]), bytes::<u32>(&[p.n_tokens])]
}

/// Of the logits only the listed are written.
fn work(args: &Args, once: Work) -> Work {
    let p: TokenSuppressParams = args.params();
    let n_written = p.n_tokens.min(p.vocab_size);
    once.with(0, Traffic::written(bytes::<f32>(&[n_written])))
}

fn twin(t: &mut Twin) {
    let ids = t.read::<u32>(1);
    let logits = t.write::<f32>(0);
    for &id in ids {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// Elements stay or become -inf: exact.
fn cases() -> Vec<Case> {
    let mut rng = Rng::new(8);
    let many: Vec<u32> = (0..300).map(|_| rng.below(600)).collect();
    let lists = [vec![0], vec![7, 7, 499, 500, u32::MAX], many].into_iter();
    lists
        .map(|ids| {
            let params = TokenSuppressParams {
                n_tokens: ids.len() as u32,
                vocab_size: 500,
                ..Default::default()
            };
            Case::new(format!("{} ids", ids.len()), &params, 0.0)
                .bind(&Rng::new(9).floats(500, 5.0))
                .bind(&ids)
        })
        .collect()
}
