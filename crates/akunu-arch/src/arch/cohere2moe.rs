//! Command A with experts: Command R7B whose feed-forward blocks are mixtures, after some without.

use super::cohere2;
use super::prelude::*;

/// Command A+ and its like.
pub const ARCH: Architecture = Architecture {
    name: "cohere2moe",
    model_types: &["cohere2_moe"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// What routers of folders do that say nothing of it.
const IN_FOLDERS: Routing = Routing {
    gating: Gating::SoftmaxOfChosen,
    normalise: true,
};
const IN_GGUF: Routing = Routing {
    gating: Gating::Sigmoid,
    normalise: false,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let pattern = WindowPattern::AllButEvery {
        period: cohere2::PERIOD,
    };
    let parts = Parts::read(file, pattern, None)?;
    let routing = match file.config() {
        Some(_) => IN_FOLDERS,
        None => IN_GGUF,
    };
    let experts = ExpertParts::read(&parts, routing)?;
    let share = share(file)?;
    let turns = turning_prefix(file)?;
    let ffn = |at| {
        experts.ffn(at, |experts| {
            let experts = experts.with_share(share);
            match file.config() {
                Some(_) => of_chosen(experts),
                None => experts,
            }
        })
    };
    cohere2::decoder(&parts, |at| turns && experts.is_dense(at), ffn)
}

/// A softmax is that of the chosen experts alone.
fn of_chosen(mut experts: Experts) -> Experts {
    if experts.router.gating != Gating::Sigmoid {
        experts.router.gating = Gating::SoftmaxOfChosen;
        experts.router.normalise = false;
    }
    experts
}

/// What the results of experts and of those that all tokens share are multiplied by: their mean is taken, or their sum.
fn share(file: &ModelFile) -> Result<f32, ArchError> {
    let key = "shared_expert_combination_strategy";
    let said = match file.config() {
        Some(config) => config.string(key)?,
        None => None,
    };
    match said {
        None | Some("average") => Ok(0.5),
        Some("sum") => Ok(1.0),
        Some(other) => Err(file.unsupported(format!("`{key}` = `{other}`"))),
    }
}

/// Whether layers without experts turn their heads though they have no window.
fn turning_prefix(file: &ModelFile) -> Result<bool, ArchError> {
    let period = match file.config() {
        Some(config) => config.u32("prefix_dense_sliding_window_pattern")?,
        None => None,
    };
    Ok(period.is_none_or(|period| period == 1))
}
