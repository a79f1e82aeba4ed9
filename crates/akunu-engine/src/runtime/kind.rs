//! What programs do, and those that are loaded.

use std::collections::HashMap;

use akunu_program::{Choose, Counts, Device, PlanId};

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Runs the rows through the layers.
    Layers,
    /// The same, and the logits of the outputs.
    Logits,
    /// The logits of rows that have gone through the layers already.
    OnlyLogits,
    /// The normalised residual streams of the outputs, for embeddings.
    Hidden,
    /// Chooses tokens from logits that are there.
    OnlyChoice(Choose),
    /// The same, from the tokens that masks allow.
    MaskedChoice(Choose),
    /// Layers, logits, choice.
    Step(Choose),
    /// The same, with all rows moved on by one at the end: a round of a chain.
    Chain(Choose),
    /// The block for multi-token prediction, its logits and a choice from them, with all rows moved on: a round of guesses.
    Guess(Choose),
}

/// What tells programs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProgramKey {
    pub kind: Kind,
    /// How many rows it has room for.
    pub room: Counts,
    /// Whether it records log probabilities.
    pub is_scored: bool,
    /// A bit for each adapter that its products have.
    pub adapters: u64,
    /// Whether some rows are of images.
    pub has_images: bool,
}

/// Maximum number of programs that are kept: every combination of adapters needs its own.
const MAX_PROGRAMS: usize = 512;

/// Programs by what they do.
#[derive(Default)]
pub(super) struct Programs {
    pub loaded: HashMap<ProgramKey, PlanId>,
}

impl Programs {
    /// Makes room for another one.
    pub fn make_room(&mut self, device: &mut dyn Device) {
        if self.loaded.len() >= MAX_PROGRAMS {
            self.unload_all(device);
        }
    }

    /// Drops all programs, because buffers have changed. They are made again when they are needed.
    pub fn unload_all(&mut self, device: &mut dyn Device) {
        for (_, plan) in self.loaded.drain() {
            device.unload(plan);
        }
    }
}

impl Kind {
    /// Whether the device moves the rows to their next position.
    pub fn advances(self) -> bool {
        matches!(self, Kind::Chain(_) | Kind::Guess(_))
    }

    /// How tokens are chosen, if they are.
    pub fn choice(self) -> Option<Choose> {
        match self {
            Kind::Layers | Kind::Logits | Kind::OnlyLogits | Kind::Hidden => None,
            Kind::OnlyChoice(how)
            | Kind::MaskedChoice(how)
            | Kind::Step(how)
            | Kind::Chain(how)
            | Kind::Guess(how) => Some(how),
        }
    }

    /// Whether rows go through the layers of the model.
    pub fn runs_layers(self) -> bool {
        self.has_products() && self != Kind::OnlyLogits && !self.guesses()
    }

    /// Whether rows go through the block for multi-token prediction instead.
    pub fn guesses(self) -> bool {
        matches!(self, Kind::Guess(_))
    }

    /// Whether it normalises the residual streams of the outputs.
    pub fn normalises(self) -> bool {
        self.has_products() && self != Kind::Layers && !self.guesses()
    }

    /// Whether it records how likely the chosen tokens were, if a sequence wants that.
    pub fn may_be_scored(self) -> bool {
        self.choice().is_some() && !self.guesses()
    }

    /// Whether it computes the logits of the outputs.
    pub fn gives_logits(self) -> bool {
        self.normalises() && self != Kind::Hidden
    }

    /// Whether it multiplies by weights of the model.
    pub fn has_products(self) -> bool {
        !matches!(self, Kind::OnlyChoice(_) | Kind::MaskedChoice(_))
    }

    /// Whether it reads keys and values.
    pub fn uses_pages(self) -> bool {
        self.runs_layers() || self.guesses()
    }
}
