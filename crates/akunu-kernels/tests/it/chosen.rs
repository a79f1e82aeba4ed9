//! Every kernel of the table is chosen by some lowering, and every choice is in the table.
//!
//! A kernel that nothing launches costs a compilation for each target, cases in each schedule and a page of documentation.
//! Here are all operations in all formats, with few and many rows, on each kind of chip; what they become is compared with
//! the table.

mod states;

use std::collections::BTreeSet;

use akunu_kernels::lower;
use akunu_kernels::table::weight_formats;
use akunu_kernels::{ChipConfig, KernelId};
use akunu_program::{
    ActivationFunction, Axes, Buffer, ChoiceMemory, Choose, Counts, DistanceBias, ExpertMatrix,
    GateFunction, Gating, HeadNorms, Heads, LayerCache, LearnedBy, Masks, Matrix, MlxLayout, Op,
    PageMap, Pairing, Program, Rope, Routing, RowKeys, Rows, ScoreMemory, Slice, StepMemory,
    Storage, TranscriptTokens, Weights, Windows, op,
};
use akunu_types::{DType, KvFormat};

use crate::chips::{nvidia, rules};

const DIM: u32 = 256;
const HEADS: Heads = Heads {
    n_heads: 4,
    n_kv_heads: 2,
    head_dim: 64,
};

/// Memory that nobody reads: lowering looks at places, not at what is there.
fn buffer(id: u32) -> Buffer {
    Buffer {
        id,
        generation: 0,
        len: 1 << 30,
        writable: true,
    }
}

fn at(id: u32) -> Slice {
    buffer(id).into()
}

fn step() -> StepMemory {
    StepMemory {
        rows: buffer(0),
        tokens: buffer(1),
        outputs: buffer(2),
        rules: buffer(3),
        history: buffer(4),
        chosen: buffer(5),
        row_capacity: 512,
        n_sequences: 256,
        history_stride: 1,
        max_steps: 1,
    }
}

fn matrix(dtype: DType, rows: u32) -> Matrix {
    Matrix {
        place: at(10),
        dtype,
        rows,
        cols: DIM,
        storage: Storage::of(dtype, || MlxLayout {
            group_size: 64,
            ..MlxLayout::default()
        }),
    }
}

fn product(dtype: DType, rows: u32, x: Slice) -> Op {
    Op::Product(op::Product {
        rows: Rows::All,
        weight: matrix(dtype, rows),
        x,
        to: at(11),
        add: false,
        bias: None,
        label: "product",
    })
}

/// What reads weights of a format.
fn of_format(dtype: DType) -> Vec<Op> {
    let (x, normed) = (at(20), at(21));
    let norm = Op::Norm(op::Norm {
        rows: Rows::All,
        x,
        weight: at(12),
        to: normed,
        dim: DIM,
        eps: 1e-5,
    });
    let gate = |activation| {
        Op::Gate(op::Gate {
            activation,
            gate: at(22),
            up: at(23),
            to: at(24),
            width: DIM,
        })
    };
    let embed = Op::Embed(op::Embed {
        table: matrix(dtype, 1000),
        scale: Some(2.0),
        to: x,
    });
    let experts = ExpertMatrix {
        matrix: matrix(dtype, 4 * DIM),
        rows: DIM,
        stride: DIM,
        bias: None,
        scale: None,
    };
    vec![
        embed,
        norm,
        product(dtype, DIM, normed),
        product(dtype, DIM, normed),
        norm,
        product(dtype, 30_000, x),
        product(dtype, 50_000, x),
        product(dtype, 10_000, at(25)),
        gate(GateFunction::Silu),
        product(dtype, DIM, at(24)),
        gate(GateFunction::Gelu),
        product(dtype, DIM, at(24)),
        // Of the next layer: nothing has read the last one but its product.
        gate(GateFunction::Gelu),
        gate(GateFunction::GeluErf),
        gate(GateFunction::SwigluOai),
        Op::ExpertGate(op::ExpertGate {
            activation: GateFunction::Silu,
            gate: experts,
            up: experts,
            experts: [4, 2],
            x,
            ids: at(26),
            to: at(24),
        }),
        Op::ExpertDown(op::ExpertDown {
            weight: experts,
            experts: [4, 2],
            x: at(24),
            ids: at(26),
            to: at(25),
        }),
    ]
}

fn rope(pairing: Pairing) -> Rope {
    Rope {
        pairing,
        theta: 1e4,
        freq_scale: 1.0,
        turned_dim: HEADS.head_dim,
        divisors: at(13),
    }
}

/// Keys in as many pages of 64 slots.
fn cache(table_stride: u32) -> LayerCache {
    LayerCache {
        format: KvFormat::F16,
        k: buffer(14),
        v: buffer(15),
        pages: PageMap {
            table: buffer(16),
            table_stride,
            page_shift: 6,
            n_pages: 8,
            n_sequences: 256,
            window: None,
        },
    }
}

fn of_attention() -> Vec<Op> {
    let store = |pairing, norms| {
        Op::RopeStore(op::RopeStore {
            q: at(20),
            k: at(21),
            v: at(22),
            heads: HEADS,
            rope: rope(pairing),
            centre: None,
            norms,
            cache: cache(8),
        })
    };
    let attend = |head_dim, cache| {
        Op::Attend(op::Attend {
            q: at(20),
            to: at(21),
            heads: Heads { head_dim, ..HEADS },
            cache,
            scale: 1.0,
            softcap: None,
            sinks: None,
        })
    };
    let turn = |pairing| {
        Op::Rope(op::Rope {
            x: at(20),
            n_heads: 4,
            head_dim: 64,
            rope: rope(pairing),
        })
    };
    let shift = |pairing| {
        Op::Shift(op::Shift {
            cache: cache(8),
            heads: HEADS,
            rope: rope(pairing),
            centre: None,
            sequence: 0,
            keep: 0,
            shift: 1,
            len: 1,
        })
    };
    let norms = HeadNorms {
        q: at(17),
        k: at(18),
        eps: 1e-5,
        turn_first: false,
    };
    vec![
        store(Pairing::Halves, None),
        attend(64, cache(8)),
        store(Pairing::Interleaved, None),
        attend(64, cache(8)),
        store(Pairing::Halves, Some(norms)),
        attend(64, cache(1)),
        attend(64, cache(64)),
        attend(256, cache(64)),
        with_sinks(attend(64, cache(8))),
        turn(Pairing::Halves),
        turn(Pairing::Interleaved),
        shift(Pairing::Halves),
        shift(Pairing::Interleaved),
    ]
}

/// Attention with sinks.
fn with_sinks(op: Op) -> Op {
    match op {
        Op::Attend(attend) => Op::Attend(op::Attend {
            sinks: Some(at(19)),
            ..attend
        }),
        op => op,
    }
}

/// What encoders and adapters have besides.
fn of_encoders() -> Vec<Op> {
    let (x, to) = (at(20), at(21));
    let attend_rows = |keys, bias| {
        Op::AttendRows(op::AttendRows {
            q: x,
            k: at(22),
            v: at(23),
            to,
            heads: HEADS,
            keys,
            scale: 1.0,
            bias,
        })
    };
    let bias = DistanceBias {
        table: at(13),
        reach: 8,
    };
    let activate = |function| {
        Op::Activate(op::Activate {
            function,
            rows: Rows::All,
            x,
            width: DIM,
        })
    };
    vec![
        Op::AddNorm(op::AddNorm {
            x,
            weight: at(12),
            to,
            dim: DIM,
            eps: 1e-5,
        }),
        Op::LayerNorm(op::LayerNorm {
            rows: Rows::All,
            x,
            weight: at(12),
            bias: at(13),
            to,
            dim: DIM,
            eps: 1e-5,
        }),
        Op::AddLearned(op::AddLearned {
            by: LearnedBy::Position,
            table: at(12),
            n_entries: 8,
            x,
            dim: DIM,
        }),
        Op::RopeAxes(op::RopeAxes {
            x,
            n_heads: 2,
            head_dim: 64,
            rope: rope(Pairing::Halves),
            axes: Axes {
                pairs: [12, 10, 10],
                is_interleaved: true,
            },
            places: at(12),
        }),
        Op::Place(op::Place {
            features: at(12),
            x,
            dim: DIM,
            add: false,
        }),
        activate(ActivationFunction::GeluErf),
        activate(ActivationFunction::Gelu),
        activate(ActivationFunction::ReluSquared),
        Op::Halves(op::Halves {
            rows: Rows::All,
            x,
            to,
            width: DIM,
        }),
        Op::CopyPieces(op::CopyPieces {
            x,
            x_strides: [DIM, 0],
            to,
            to_strides: [DIM, DIM],
            pieces: 1,
            width: DIM,
        }),
        Op::Convolve(op::Convolve {
            weight: matrix(DType::F16, DIM),
            bias: at(12),
            x,
            windows: Windows {
                count: 100,
                stride: 80,
            },
            to,
        }),
        attend_rows(RowKeys::OwnText, None),
        attend_rows(RowKeys::OwnText, Some(bias)),
        attend_rows(RowKeys::Across { n_keys: 100 }, None),
        Op::Mean(op::Mean {
            from: x,
            to,
            dim: DIM,
        }),
        Op::ScaleRows(op::ScaleRows {
            rows: Rows::All,
            x,
            width: DIM,
            factors: at(12),
        }),
        Op::TurnHeads(op::TurnHeads {
            x,
            n_heads: 2,
            head_dim: 64,
            turns: at(12),
        }),
        Op::ScaleQueries(op::ScaleQueries {
            q: x,
            n_heads: 2,
            head_dim: 64,
            turned_dim: 48,
            turned_factor: 1.4,
            temperature: 0.1,
            period: 64,
        }),
    ]
}

/// How experts are chosen, and their results added up.
fn of_experts() -> Vec<Op> {
    vec![
        Op::Route(op::Route {
            logits: at(20),
            bias: None,
            routing: Routing {
                n_experts: 4,
                n_used: 2,
                gating: Gating::Softmax,
                groups: None,
                normalise: true,
                scale: 1.0,
            },
            ids: at(21),
            weights: at(22),
            layer: 0,
            fault: at(23),
        }),
        Op::Weigh(op::Weigh {
            rows: Rows::All,
            x: at(20),
            weights: Weights::Numbers(at(22)),
            n_used: 2,
            width: DIM,
            to: at(24),
            add: true,
        }),
    ]
}

/// From the rows to the tokens.
fn of_choice() -> Vec<Op> {
    let (logits, vocab_size) = (at(30), 50_000);
    let memory = ChoiceMemory {
        values: buffer(31),
        ids: buffer(32),
        bias_tokens: buffer(33),
        bias_values: buffer(34),
        bias_stride: 1,
        breakers: buffer(35),
        mu: buffer(36),
    };
    let choose = |how| {
        Op::Choose(op::Choose {
            how,
            logits,
            vocab_size,
            memory,
        })
    };
    let (width, dim) = (vocab_size, DIM);
    vec![
        Op::Gather(op::Gather {
            from: at(20),
            to: at(21),
            dim,
        }),
        Op::Softcap(op::Softcap {
            x: logits,
            width,
            cap: 3.0,
        }),
        Op::SpeechRules(op::SpeechRules {
            logits,
            vocab_size,
            masks: at(37),
            tokens: TranscriptTokens {
                end: 40_000,
                first_time: 45_000,
                n_first_times: 51,
            },
        }),
        Op::Mask(op::Mask {
            logits,
            vocab_size,
            masks: Masks {
                bits: buffer(38),
                rows: buffer(39),
                capacity: 4,
            },
        }),
        Op::KeepLogits(op::KeepLogits {
            logits,
            to: at(40),
            vocab_size,
        }),
        choose(Choose::Best),
        choose(Choose::ByRule),
        Op::Score(op::Score {
            memory: ScoreMemory {
                logits: buffer(40),
                scores: buffer(41),
                best_tokens: buffer(42),
                record_stride: 1,
                max_best: 4,
            },
            vocab_size,
        }),
        Op::Advance,
    ]
}

fn programs() -> Vec<Program> {
    let ops = weight_formats().flat_map(of_format);
    let others = [
        of_attention(),
        of_encoders(),
        of_experts(),
        states::of_states(),
        of_choice(),
    ]
    .concat();
    let ops: Vec<Op> = ops.chain(others).collect();
    // Few and many rows that each have a sequence, then runs of one sequence.
    let rooms = [1, 2, 8, 16, 64, 256]
        .map(|singles| (singles, 0))
        .into_iter()
        .chain([8, 32, 64, 512].map(|run| (0, run)));
    let program = |(singles, run)| Program {
        ops: ops.clone(),
        step: Some(step()),
        room: Counts {
            singles,
            run,
            outputs: singles.max(1),
        },
    };
    rooms.map(program).collect()
}

/// The chips that are lowered for in ways of their own.
fn chips() -> [ChipConfig; 4] {
    [ChipConfig::m1(), nvidia(75), nvidia(80), nvidia(90)]
}

/// Breaks when a kernel is in the table that no lowering chooses, and when one is chosen that is not in the table.
#[test]
fn the_table_has_the_kernels_that_are_chosen_and_no_other() {
    let scratch = Some(buffer(9));
    let mut chosen = BTreeSet::new();
    for program in programs() {
        let on_chips = chips().map(|chip| lower::by_rules(&program, &*rules(&chip), scratch));
        let calls = on_chips.into_iter().chain([lower::plain(&program)]);
        chosen.extend(calls.flatten().map(|call| call.key.kernel));
    }
    let table: BTreeSet<KernelId> = KernelId::all().into_iter().collect();
    let idle: Vec<&KernelId> = table.difference(&chosen).collect();
    assert!(idle.is_empty(), "no lowering chooses {idle:?}");
    let missing: Vec<&KernelId> = chosen.difference(&table).collect();
    assert!(missing.is_empty(), "the table has no {missing:?}");
}
