//! Each operation by itself.

use akunu_program::Op;

use super::lowering::Lowering;

impl Lowering<'_> {
    /// Lowers one operation that is no product.
    pub(super) fn op(&mut self, op: &Op) {
        if !matches!(op, Op::Product(_)) {
            self.halved = None;
        }
        match op {
            Op::Embed(embed) => self.embed(embed),
            Op::Place(place) => self.place(place),
            Op::Norm(norm) => self.norm(norm),
            Op::AddNorm(norm) => self.add_norm(norm),
            Op::HeadNorm(norm) => self.head_norm(norm),
            Op::LayerNorm(norm) => self.layer_norm(norm),
            Op::AddLearned(learned) => self.add_learned(learned),
            Op::Activate(activate) => self.activate(activate),
            Op::Halves(halves) => self.halves(halves),
            Op::CopyPieces(copy) => self.copy_pieces(copy),
            Op::Convolve(convolve) => self.convolve(convolve),
            Op::Route(route) => self.route(route),
            Op::ExpertGate(gate) => self.expert_gate(gate),
            Op::ExpertDown(down) => self.expert_down(down),
            Op::Weigh(weigh) => self.weigh(weigh),
            Op::ShortConv(conv) => self.short_conv(conv),
            Op::DeltaRule(rule) => self.delta_rule(rule),
            Op::Ssd(ssd) => self.ssd(ssd),
            Op::GatedNorm(norm) => self.gated_norm(norm),
            Op::SplitHeads(split) => self.split_heads(split),
            Op::Rope(rope) => self.rope(rope),
            Op::TurnHeads(turn) => self.turn_heads(turn),
            Op::RopeAxes(rope) => self.rope_axes(rope),
            Op::AttendRows(attend) => self.attend_rows(attend),
            Op::Mean(mean) => self.mean(mean),
            Op::Product(_) => unreachable!("products are lowered with those after them"),
            Op::ScaleRows(scale) => self.scale_rows(scale),
            Op::Gate(gate) => self.gate(gate),
            Op::RopeStore(store) => self.rope_store(store),
            Op::ScaleQueries(scale) => self.scale_queries(scale),
            Op::Attend(attend) => self.rules.attend(self, attend),
            Op::Gather(gather) => self.gather(gather),
            Op::Softcap(softcap) => self.softcap(softcap),
            Op::SpeechRules(rules) => self.speech_rules(rules),
            Op::Mask(mask) => self.mask(mask),
            Op::KeepLogits(keep) => self.keep_logits(keep),
            Op::Choose(choose) => self.choose(choose),
            Op::Score(score) => self.score(score),
            Op::Advance => self.advance(),
            Op::Shift(shift) => self.shift(shift),
        }
    }
}
