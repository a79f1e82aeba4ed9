//! From the tokens of texts to vectors or scores.

use akunu_arch::{ClassifierHead, Pooling};
use akunu_program::{ActivationFunction, Op, Rows, Slice, op};

use super::{Builder, Of};
use crate::weights::Bound;

/// Places for one vector of each text, (texts, dim), and what a classifier makes of it.
#[derive(Clone, Copy)]
pub(crate) struct TextPlaces {
    pub pooled: Slice,
    pub hidden: Slice,
    /// (texts, labels).
    pub scores: Slice,
}

impl Builder<'_> {
    /// One vector for each text.
    pub fn pool(&mut self, model: &Bound, pooling: Pooling, to: Slice) {
        let from = match &model.norm {
            Some(norm) => self.norm_aside(norm),
            None => self.stream.slice(),
        };
        let dim = self.dim;
        self.ops.push(match pooling {
            Pooling::Mean => Op::Mean(op::Mean { from, to, dim }),
            Pooling::First | Pooling::Last => Op::Gather(op::Gather { from, to, dim }),
        });
    }

    /// `scores = Wc head(v)`, where v is the vector that the classifier reads.
    pub fn scores(&mut self, model: &Bound, places: TextPlaces) {
        let Some(classifier) = model.classifier() else {
            return;
        };
        let TextPlaces {
            pooled: v,
            hidden,
            scores,
        } = places;
        self.pool(model, classifier.pooling, v);
        let (rows, width) = (Rows::Outputs, self.dim);
        let state = match &classifier.head {
            None => v,
            Some(ClassifierHead::Tanh(pooler)) => {
                self.products(Of::outputs(v, "pooler"), &[(pooler, hidden)]);
                // A cap of 1 is the hyperbolic tangent itself.
                let (x, cap) = (hidden, 1.0);
                self.ops.push(Op::Softcap(op::Softcap { x, width, cap }));
                hidden
            }
            Some(ClassifierHead::GeluNorm(pooler, norm)) => {
                self.products(Of::outputs(v, "pooler"), &[(pooler, hidden)]);
                let x = hidden;
                self.ops.push(Op::Activate(op::Activate {
                    function: ActivationFunction::GeluErf,
                    rows,
                    x,
                    width,
                }));
                self.norm((rows, width), norm, hidden, v);
                v
            }
        };
        let of = Of::outputs(state, "classifier");
        self.products(of, &[(&classifier.scores, scores)]);
    }
}
