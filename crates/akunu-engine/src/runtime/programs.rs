//! The programs of a model, for a few numbers of rows. Each is made when it is first needed.

use akunu_program::{Choose, Counts, PlanId, Program, Slice};

use super::kind::{Kind, ProgramKey};
use super::state::Runtime;
use crate::builder::Builder;
use crate::error::EngineError;

/// Programs have room for 0, 1, 2, 4, 8, … rows.
fn class(n: u32, most: u32) -> u32 {
    match n {
        0 => 0,
        n => n.next_power_of_two().min(most.max(n)),
    }
}

impl Runtime {
    /// The program for as many rows.
    pub(super) fn program(&mut self, kind: Kind, counts: Counts) -> Result<PlanId, EngineError> {
        let most = self.memory.step.row_capacity;
        let singles = class(counts.singles, most);
        let room = Counts {
            singles,
            run: class(counts.run, most - counts.singles).min(most - singles.min(most)),
            outputs: class(counts.outputs, self.memory.outputs.capacity),
        };
        // A full step leaves no room for whole classes.
        let room = if counts.fit(&room) { room } else { counts };
        let key = ProgramKey {
            kind,
            room,
            is_scored: self.is_scored && kind.may_be_scored(),
            adapters: if kind.has_products() {
                self.active_adapters
            } else {
                0
            },
            has_images: self.has_images && kind.runs_layers(),
        };
        if let Some(&plan) = self.programs.loaded.get(&key) {
            return Ok(plan);
        }
        self.programs.make_room(self.device.as_mut());
        let program = self.write_program(key);
        let plan = self.device.load(&program)?;
        self.programs.loaded.insert(key, plan);
        Ok(plan)
    }

    fn write_program(&self, key: ProgramKey) -> Program {
        let ProgramKey {
            kind,
            room,
            is_scored,
            adapters,
            has_images,
        } = key;
        let images = self.memory.images.as_ref().filter(|_| has_images);
        let mut builder = self.builder(adapters).with_images(images);
        let model = &self.model.weights;
        let (outputs, lists) = (&self.memory.outputs, &self.memory.lists);
        if kind.runs_layers() {
            builder.layers(model, &self.memory.layers(&self.model.config));
        }
        let mtp = self.memory.mtp(&self.model.config);
        if let Some(mtp) = mtp.filter(|_| kind.runs_layers()) {
            builder.follow(model, &mtp);
        }
        let [h, x] = [outputs.h, outputs.x].map(Slice::from);
        let scales = Some(lists.logit_scale.into());
        if let (true, Some(memory), Some(block)) = (kind.guesses(), mtp, &model.mtp) {
            builder.guess(model, &memory, [h, x]);
            builder.logits_by(&block.output, model, [x, outputs.logits.into()], scales);
        }
        if kind.normalises() {
            builder.hidden(model, [h, x]);
        }
        if kind.gives_logits() {
            builder.logits(model, x, outputs.logits.into(), scales);
        }
        if let Some(how) = kind.choice() {
            let is_masked = matches!(kind, Kind::MaskedChoice(_));
            let memory = (outputs, lists);
            builder.choice(how, memory, model.vocab_size, [is_masked, is_scored]);
        }
        if kind.advances() {
            builder.advance();
        }
        let ops = builder.ops();
        Program {
            ops,
            step: Some(self.memory.step),
            room,
        }
    }

    /// The program of a decode step for `n` sequences, to be looked at.
    pub fn decode_program(&self, n: u32, how: Choose) -> Program {
        let room = Counts {
            singles: n,
            run: 0,
            outputs: n,
        };
        self.write_program(ProgramKey {
            kind: Kind::Chain(how),
            room,
            is_scored: false,
            adapters: 0,
            has_images: false,
        })
    }

    /// A builder of programs with the adapters of these bits.
    pub(super) fn builder(&self, adapters: u64) -> Builder<'_> {
        let adapters = self.adapters.adapted(adapters);
        self.memory.builder(&self.model).with_adapters(adapters)
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_are_powers_of_two_up_to_what_there_is() {
        let classes: Vec<u32> = [0, 1, 2, 3, 100, 400, 500].map(|n| class(n, 500)).to_vec();
        assert_eq!(classes, [0, 1, 2, 4, 128, 500, 500]);
    }
}
