//! Function constants: one registry for all kernels.
//!
//! Metal identifies a function constant by its index. Each family has a range of indices of its own,
//! so that one index means one thing in every kernel. A constant that is not set is undefined: the
//! kernel then takes the value from its params, or the default written here.

/// The host type of a function constant; Metal wants it to match exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantType {
    /// MSL `bool`.
    Bool,
    /// MSL `uint`.
    U32,
    /// MSL `float`.
    F32,
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct ConstantSpec {
    /// Which constant.
    pub constant: Constant,
    /// Name in MSL.
    pub name: &'static str,
    /// Index in MSL, `[[function_constant(index)]]`.
    pub index: u16,
    /// The type of its value.
    pub ty: ConstantType,
    /// What it means, and what holds when it is not set.
    pub doc: &'static str,
}

/// Every function constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// Attention: elements of a head.
    HeadDim,
    /// Attention: sliding window.
    Window,
    /// Attention: soft cap of the scores.
    Softcap,
    /// Attention: query rows of a threadgroup.
    QueryRows,
    /// Matmul: the contracted dimension.
    GemmK,
    /// Matmul: rows of a batched gemv.
    BatchM,
    /// Matmul: MLX group size.
    GroupSize,
    /// Matmul: type of MLX scales.
    ScaleType,
    /// Matmul: the first product is the gate of the second.
    Gate,
    /// RoPE: a frequency table is bound.
    FreqTable,
    /// RoPE: each head of q and k is normalised first.
    HeadNorm,
    /// RoPE: keys are stored less a constant.
    KeyCentre,
    /// RoPE: elements of a head that turn.
    TurnedDim,
    /// RoPE: heads turn before they are multiplied by the weights of their norms.
    TurnFirst,
    /// Pages: keys and values are stored in 8 bits.
    KvQ8,
}

/// The registry. Ranges: attention 0–19, matmul 20–39, rope 40–49, pages 50–59.
pub const REGISTRY: &[ConstantSpec] = &[
    spec(
        Constant::HeadDim,
        "FC_HEAD_DIM",
        0,
        ConstantType::U32,
        "Elements of a head; unset: from the params.",
    ),
    spec(
        Constant::Window,
        "FC_WINDOW",
        2,
        ConstantType::U32,
        "A row sees this many keys, the last ones; unset: all.",
    ),
    spec(
        Constant::Softcap,
        "FC_SOFTCAP",
        3,
        ConstantType::F32,
        "Scores become cap * tanh(score / cap); unset: no cap.",
    ),
    spec(
        Constant::QueryRows,
        "FC_QUERY_ROWS",
        5,
        ConstantType::U32,
        "Query rows of a threadgroup in the first prefill kernel; unset: 8.",
    ),
    spec(
        Constant::GemmK,
        "FC_GEMM_K",
        20,
        ConstantType::U32,
        "The contracted dimension; unset: from the params.",
    ),
    spec(
        Constant::BatchM,
        "FC_BATCH_M",
        21,
        ConstantType::U32,
        "Rows of a batched gemv, 2 to 16; unset: from the params.",
    ),
    spec(
        Constant::GroupSize,
        "FC_GROUP_SIZE",
        22,
        ConstantType::U32,
        "MLX group size, 32, 64 or 128; unset: from the params.",
    ),
    spec(
        Constant::Gate,
        "FC_GATE",
        23,
        ConstantType::U32,
        "The first product is the gate of the second, through SiLU (1) or the tanh form of GELU (2); unset: no gate.",
    ),
    spec(
        Constant::ScaleType,
        "FC_SCALE_TYPE",
        24,
        ConstantType::U32,
        "Type of MLX scales and biases: f16 (0), bf16 (1) or f32 (2); unset: from the params.",
    ),
    spec(
        Constant::FreqTable,
        "FC_FREQ_TABLE",
        40,
        ConstantType::Bool,
        "A table of frequency divisors is bound; unset: computed from theta.",
    ),
    spec(
        Constant::HeadNorm,
        "FC_HEAD_NORM",
        41,
        ConstantType::Bool,
        "Each head of q and k is normalised before it turns; unset: it is not.",
    ),
    spec(
        Constant::KeyCentre,
        "FC_KEY_CENTRE",
        42,
        ConstantType::Bool,
        "Turned keys are stored less the centre that is bound; unset: as they are.",
    ),
    spec(
        Constant::TurnedDim,
        "FC_TURNED_DIM",
        43,
        ConstantType::U32,
        "Elements of a head that turn, from its first on, an even number; unset: all.",
    ),
    spec(
        Constant::TurnFirst,
        "FC_TURN_FIRST",
        44,
        ConstantType::Bool,
        "Normalised queries turn before they are multiplied by the weights of their norm, and keys are not multiplied; unset: both are multiplied, then turn.",
    ),
    spec(
        Constant::KvQ8,
        "FC_KV_Q8",
        50,
        ConstantType::Bool,
        "Keys and values are stored in 8 bits; unset: in f16.",
    ),
];

#[rustfmt::skip]
const fn spec(
    constant: Constant, name: &'static str, index: u16, ty: ConstantType, doc: &'static str,
) -> ConstantSpec {
    ConstantSpec { constant, name, index, ty, doc }
}

impl Constant {
    /// Its row in the registry.
    pub fn spec(self) -> &'static ConstantSpec {
        match REGISTRY.iter().find(|spec| spec.constant == self) {
            Some(spec) => spec,
            None => unreachable!("every constant has a row: see the test"),
        }
    }
}

/// The value of a function constant.
#[derive(Clone, Copy, Debug)]
pub enum ConstantValue {
    /// MSL `bool`.
    Bool(bool),
    /// MSL `uint`.
    U32(u32),
    /// MSL `float`.
    F32(f32),
}

impl ConstantValue {
    /// Its type.
    pub const fn ty(self) -> ConstantType {
        match self {
            ConstantValue::Bool(_) => ConstantType::Bool,
            ConstantValue::U32(_) => ConstantType::U32,
            ConstantValue::F32(_) => ConstantType::F32,
        }
    }

    /// Its bits, which distinguish two specialisations.
    pub const fn bits(self) -> u32 {
        match self {
            ConstantValue::Bool(value) => value as u32,
            ConstantValue::U32(value) => value,
            ConstantValue::F32(value) => value.to_bits(),
        }
    }
}

impl PartialEq for ConstantValue {
    fn eq(&self, other: &Self) -> bool {
        self.ty() == other.ty() && self.bits() == other.bits()
    }
}
impl Eq for ConstantValue {}
impl core::hash::Hash for ConstantValue {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.ty().hash(state);
        self.bits().hash(state);
    }
}

/// The constants of one specialisation, sorted: equal sets are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Constants(Vec<(Constant, ConstantValue)>);

impl Constants {
    /// No constant set.
    pub const fn none() -> Constants {
        Constants(Vec::new())
    }

    /// Sets a `uint` constant.
    pub fn with_u32(self, constant: Constant, value: u32) -> Constants {
        self.with(constant, ConstantValue::U32(value))
    }

    /// Sets a `bool` constant.
    pub fn with_bool(self, constant: Constant, value: bool) -> Constants {
        self.with(constant, ConstantValue::Bool(value))
    }

    /// Sets a `float` constant.
    pub fn with_f32(self, constant: Constant, value: f32) -> Constants {
        self.with(constant, ConstantValue::F32(value))
    }

    fn with(mut self, constant: Constant, value: ConstantValue) -> Constants {
        assert_eq!(
            constant.spec().ty,
            value.ty(),
            "{constant:?} has another type"
        );
        self.0.retain(|(set, _)| *set != constant);
        self.0.push((constant, value));
        self.0.sort_by_key(|(set, _)| *set);
        self
    }

    /// The values set, in the order of the registry.
    pub fn iter(&self) -> impl Iterator<Item = (Constant, ConstantValue)> + '_ {
        self.0.iter().copied()
    }

    /// A `uint` constant, if set.
    pub fn u32(&self, constant: Constant) -> Option<u32> {
        self.bits(constant)
    }

    /// A `bool` constant; `false` when not set.
    pub fn bool(&self, constant: Constant) -> bool {
        self.bits(constant).is_some_and(|bits| bits != 0)
    }

    /// A `float` constant, if set.
    pub fn f32(&self, constant: Constant) -> Option<f32> {
        self.bits(constant).map(f32::from_bits)
    }

    fn bits(&self, constant: Constant) -> Option<u32> {
        self.0
            .iter()
            .find(|(set, _)| *set == constant)
            .map(|(_, value)| value.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_names_are_unique_and_every_constant_has_a_row() {
        for (at, row) in REGISTRY.iter().enumerate() {
            assert_eq!(row.constant.spec().index, row.index);
            for other in &REGISTRY[at + 1..] {
                assert_ne!(row.index, other.index, "{} and {}", row.name, other.name);
                assert_ne!(row.name, other.name);
                assert_ne!(row.constant, other.constant);
            }
        }
    }

    #[test]
    fn the_order_of_setting_does_not_matter() {
        let a = Constants::none()
            .with_u32(Constant::HeadDim, 64)
            .with_f32(Constant::Softcap, 50.0);
        let b = Constants::none()
            .with_f32(Constant::Softcap, 50.0)
            .with_u32(Constant::HeadDim, 64);
        assert_eq!(a, b);
        assert_ne!(a, b.with_u32(Constant::HeadDim, 80));
    }

    #[test]
    #[should_panic(expected = "another type")]
    fn a_value_of_another_type_is_refused() {
        let _ = Constants::none().with_u32(Constant::Softcap, 50);
    }
}
