//! The plan of a step, for the sequences that take part in it.
//!
//! All sequences go on by one position a step, so that the distances between them stay: the plan is
//! patched to the position of the one that is furthest behind, and the others are so far ahead of it.
//! It is written anew only when a sequence joins, ends, leaves or loses its oldest tokens.

use akunu_kernels::Plan;

use super::seat::Seat;
use super::{Batch, SequenceId};
use crate::builder::{Builder, Choice, Lane, at};
use crate::error::EngineError;

/// Who steps together, and how.
pub(super) struct Lineup {
    members: Vec<Member>,
    plan: Plan,
}

/// A sequence that takes part: its row is its place among the members.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Member {
    id: SequenceId,
    /// Positions that it is ahead of the one furthest behind.
    ahead: u32,
}

impl Lineup {
    /// The sequences in the order of their rows.
    pub fn ids(&self) -> impl Iterator<Item = SequenceId> {
        self.members.iter().map(|member| member.id)
    }
}

impl<'m> Batch<'m> {
    /// Runs the last token of each sequence that has one through the model; returns the tokens that
    /// were chosen next.
    pub(super) fn step_together(&mut self) -> Result<Vec<(SequenceId, u32)>, EngineError> {
        let Some(position) = self.going().map(Seat::position).min() else {
            self.lineup = None;
            return Ok(Vec::new());
        };
        let members = self.members(position);
        let lineup = match self.lineup.take() {
            Some(lineup) if lineup.members == members => lineup,
            _ => self.line_up(members)?,
        };
        for seat in self.seats.iter_mut().filter(|seat| seat.is_going()) {
            seat.session.will_write(1);
        }
        let mut chosen = vec![0; lineup.members.len()];
        let mut device = self.model.device();
        device.run(&lineup.plan, position)?;
        let bytes = bytemuck::cast_slice_mut(&mut chosen);
        device.read(self.rows.tokens, 0, bytes)?;
        drop(device);
        for seat in &mut self.seats {
            seat.store_last();
        }
        let chosen = lineup.ids().zip(chosen).collect();
        self.lineup = Some(lineup);
        Ok(chosen)
    }

    /// The sequences that have a token to run.
    fn going(&self) -> impl Iterator<Item = &Seat<'m>> {
        self.seats.iter().filter(|seat| seat.is_going())
    }

    fn members(&self, position: u32) -> Vec<Member> {
        let member = |seat: &Seat| Member {
            id: seat.id,
            ahead: seat.position() - position,
        };
        self.going().map(member).collect()
    }

    /// Writes the plan for these members, and tells the device their last tokens.
    fn line_up(&self, members: Vec<Member>) -> Result<Lineup, EngineError> {
        let rows = members.len() as u32;
        let pairs = self.going().zip(&members).zip(0..);
        let lanes = pairs.map(|((seat, member), row)| Lane {
            first_row: row,
            ahead: member.ahead,
            ..seat.session.lane(1)
        });
        let mut device = self.model.device();
        let mut builder = Builder {
            device: device.as_mut(),
            config: self.model.config(),
            weights: self.model.weights(),
            activations: &self.rows.activations,
            lanes: lanes.collect(),
            rows,
            dispatches: Vec::new(),
        };
        builder.layers(self.rows.tokens)?;
        builder.logits(0..rows, self.rows.logits.into())?;
        let lanes = builder.lanes.clone();
        for (seat, lane) in self.going().zip(&lanes) {
            let choice = self.choice(*lane);
            seat.sampling().write(&mut builder, choice)?;
        }
        // The largest position at which no sequence is beyond its context.
        let last = lanes.iter().map(|lane| lane.context - 1 - lane.ahead).min();
        let plan = Plan::check(builder.dispatches, last.unwrap_or(0))?;
        device.prepare(&plan)?;
        let tokens: Vec<u32> = self.going().filter_map(|seat| seat.last).collect();
        device.write(self.rows.tokens, 0, bytemuck::cast_slice(&tokens))?;
        Ok(Lineup { members, plan })
    }

    /// The choice of a lane's token from its row of the logits.
    fn choice<'a>(&self, lane: Lane<'a>) -> Choice<'a> {
        let row = u64::from(lane.first_row);
        let vocab_size = u64::from(self.model.config().vocab_size);
        Choice {
            lane,
            logits: at(self.rows.logits, row * vocab_size),
            token: at(self.rows.tokens, row),
        }
    }
}
