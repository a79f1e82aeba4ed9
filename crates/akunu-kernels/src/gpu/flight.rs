//! Submissions under way, and what they keep alive.

use std::collections::VecDeque;
use std::time::Duration;

use akunu_program::Ticket;

use super::backend::Backend;
use super::buffers::Memory;

/// One call of `submit`: its command buffers in order.
struct Flight<B: Backend> {
    ticket: Ticket,
    parts: Vec<(usize, B::Submission)>,
    /// Buffers that were released meanwhile.
    released: Vec<Memory<B>>,
    /// Rounds that were given up meanwhile.
    rounds: Vec<B::Round>,
}

/// Submissions in the order in which they were made, which is the order in which they end.
pub(super) struct Flights<B: Backend> {
    flights: VecDeque<Flight<B>>,
    last: Ticket,
}

impl<B: Backend> Flights<B> {
    pub(super) fn new() -> Flights<B> {
        Flights {
            flights: VecDeque::new(),
            last: Ticket::default(),
        }
    }

    /// Takes note of a submission: rounds and command buffer of each part.
    pub(super) fn push(&mut self, parts: Vec<(usize, B::Submission)>) -> Ticket {
        self.last.0 += 1;
        self.flights.push_back(Flight {
            ticket: self.last,
            parts,
            released: Vec::new(),
            rounds: Vec::new(),
        });
        self.last
    }

    /// The oldest one under way.
    pub(super) fn oldest(&self) -> Option<Ticket> {
        self.flights.front().map(|flight| flight.ticket)
    }

    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Keeps a buffer until all that is under way has ended.
    pub(super) fn keep(&mut self, memory: Memory<B>) {
        if let Some(last) = self.flights.back_mut() {
            last.released.push(memory);
        }
    }

    /// Keeps a round until all that is under way has ended.
    pub(super) fn keep_round(&mut self, round: B::Round) {
        if let Some(last) = self.flights.back_mut() {
            last.rounds.push(round);
        }
    }

    /// Waits for the oldest; returns rounds and time of each part.
    pub(super) fn wait_oldest(
        &mut self,
        backend: &mut B,
    ) -> Result<Vec<(usize, Duration)>, String> {
        let Some(flight) = self.flights.pop_front() else {
            return Ok(Vec::new());
        };
        let mut failure = None;
        let mut times = Vec::with_capacity(flight.parts.len());
        // Every part is waited for, even after one that failed: buffers are given back below.
        for (rounds, submission) in flight.parts {
            match backend.wait(submission) {
                Ok(took) => times.push((rounds, took)),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        failure.map_or(Ok(times), Err)
    }
}
