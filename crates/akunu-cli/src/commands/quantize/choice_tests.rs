//! The types that llama.cpp gives the same tensors.
//!
//! The fixtures are tables: a row for each matrix, a column for each recipe. The head of each says how it
//! was made.

use super::super::recipe::RECIPES;
use super::*;
use akunu_gguf::Dims;
use akunu_types::DType::MXFP4;

fn tensor(name: &str, dims: &[u64], dtype: DType) -> TensorInfo {
    TensorInfo {
        name: name.to_string(),
        dims: Dims::new(dims).unwrap(),
        dtype,
        part: 0,
        range: 0..0,
    }
}

fn wish(recipe: Recipe) -> Wish {
    Wish {
        recipe,
        output: None,
        embedding: None,
        pure: false,
        has_importance: false,
    }
}

/// The choice for one matrix of a model without facts.
fn alone(name: &str, dims: &[u64], wish: Wish) -> DType {
    let tensors = [tensor(name, dims, F32)];
    choose(&tensors, Facts::default().with_tensors(&tensors), wish)[0].dtype
}

/// Recipes that are younger than the tables: [`tables_of_numbers_have_the_exceptions_of_llama_cpp`] and
/// [`mxfp4_is_for_experts`] state their rules.
const WITHOUT_COLUMN: [&str; 3] = ["IQ4_NL", "IQ4_XS", "MXFP4_MOE"];

/// A table of the types that llama.cpp chose.
struct Fixture {
    tensors: Vec<TensorInfo>,
    /// Each column's heading, a recipe, with `+i` when an importance matrix was given.
    columns: Vec<&'static str>,
    rows: Vec<Vec<DType>>,
}

impl Fixture {
    fn read(text: &'static str) -> Fixture {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let columns = lines.next().unwrap().split_whitespace().skip(2).collect();
        let (mut tensors, mut rows) = (Vec::new(), Vec::new());
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let dims: Vec<u64> = words[1].split('x').map(|n| n.parse().unwrap()).collect();
            tensors.push(tensor(words[0], &dims, F16));
            let types = words[2..]
                .iter()
                .map(|name| DType::from_name(name).unwrap());
            rows.push(types.collect());
        }
        Fixture {
            tensors,
            columns,
            rows,
        }
    }

    fn check(&self, facts: Facts) {
        let facts = facts.with_tensors(&self.tensors);
        for (column, heading) in self.columns.iter().enumerate() {
            let name = heading.trim_end_matches("+i");
            let wish = Wish {
                has_importance: name != *heading,
                ..wish(Recipe::from_name(name).unwrap())
            };
            let choices = choose(&self.tensors, facts, wish);
            for (at, (types, choice)) in self.rows.iter().zip(&choices).enumerate() {
                let name = &self.tensors[at].name;
                assert_eq!(choice.dtype, types[column], "{name} as {heading}");
            }
        }
        let headings = self.columns.join(" ");
        for row in RECIPES
            .iter()
            .filter(|row| !WITHOUT_COLUMN.contains(&&*row.name))
        {
            assert!(headings.contains(&row.name), "{} has no column", row.name);
        }
    }
}

/// 30 layers, three query heads on a key head, rows of 576 values that no K type fits.
#[test]
fn smollm2_gets_the_types_that_llama_cpp_chooses() {
    let facts = Facts {
        n_layers: 30,
        n_sharing: 3,
        ..Facts::default()
    };
    Fixture::read(include_str!("../../../tests/fixtures/types/smollm2.txt")).check(facts);
}

/// 18 layers, four query heads on a key head, rows of 640, 1024 and 2048 values.
#[test]
fn gemma_3_gets_the_types_that_llama_cpp_chooses() {
    let facts = Facts {
        n_layers: 18,
        n_sharing: 4,
        ..Facts::default()
    };
    Fixture::read(include_str!("../../../tests/fixtures/types/gemma3.txt")).check(facts);
}

/// 16 layers, an output matrix of its own, every row a multiple of 256.
#[test]
fn a_model_with_an_output_matrix_gets_the_types_that_llama_cpp_chooses() {
    let facts = Facts {
        n_layers: 16,
        n_sharing: 1,
        ..Facts::default()
    };
    Fixture::read(include_str!("../../../tests/fixtures/types/untied.txt")).check(facts);
}

/// 16 layers of eight experts.
#[test]
fn a_model_of_eight_experts_gets_the_types_that_llama_cpp_chooses() {
    let facts = Facts {
        n_layers: 16,
        n_sharing: 4,
        n_experts: 8,
        ..Facts::default()
    };
    Fixture::read(include_str!("../../../tests/fixtures/types/experts.txt")).check(facts);
}

/// 16 layers: the first two of `ffn_down` and, where four heads share them, all values get Q5_K.
#[test]
fn tables_of_numbers_have_the_exceptions_of_llama_cpp() {
    has_the_exceptions_of_iq4(IQ4_NL);
    has_the_exceptions_of_iq4(IQ4_XS);
}

fn has_the_exceptions_of_iq4(dtype: DType) {
    let names = ["attn_v", "attn_output", "ffn_up", "ffn_down"];
    let of_layer = |layer| names.map(|name| format!("blk.{layer}.{name}.weight"));
    let names: Vec<String> = (0..16).flat_map(of_layer).collect();
    let mut tensors: Vec<TensorInfo> = names
        .iter()
        .map(|name| tensor(name, &[256, 8], F16))
        .collect();
    tensors.push(tensor("output.weight", &[256, 8], F16));
    let types = |n_sharing, n_experts, has_importance| {
        let facts = Facts {
            n_layers: 16,
            n_sharing,
            n_experts,
            ..Facts::default()
        };
        let wish = Wish {
            has_importance,
            ..wish(Recipe::Of(dtype))
        };
        let choices = choose(&tensors, facts.with_tensors(&tensors), wish);
        let of = |at: usize| choices[at].dtype;
        assert_eq!(of(64), Q6_K, "the output matrix");
        [
            [of(0), of(1), of(2), of(3)],
            [of(60), of(61), of(62), of(63)],
        ]
    };
    let plain = [dtype; 4];
    assert_eq!(types(1, 0, false), [[dtype, dtype, dtype, Q5_K], plain]);
    assert_eq!(types(1, 0, true), [plain; 2]);
    let shared = [Q5_K, dtype, dtype, dtype];
    assert_eq!(types(4, 0, true), [shared; 2]);
    let experts = [Q8_0, Q5_K, dtype, dtype];
    assert_eq!(types(1, 8, true), [experts; 2]);
}

/// Tensors of three dimensions hold the matrices of all experts.
#[test]
fn mxfp4_is_for_experts() {
    let of = |name: &str, dims: &[u64]| alone(name, dims, wish(Recipe::Mxfp4Experts));
    assert_eq!(of("blk.0.ffn_up_exps.weight", &[64, 8, 4]), MXFP4);
    assert_eq!(of("blk.0.ffn_up.weight", &[64, 8]), Q8_0);
    assert_eq!(of("token_embd.weight", &[64, 8]), Q8_0);
    assert_eq!(of("output.weight", &[64, 8]), Q8_0);
    assert_eq!(of("blk.0.ffn_gate_inp.weight", &[64, 8]), F32, "the router");
    let pure = Wish {
        pure: true,
        ..wish(Recipe::Mxfp4Experts)
    };
    assert_eq!(alone("blk.0.ffn_up.weight", &[64, 8], pure), MXFP4);
}

#[test]
fn where_a_type_does_not_fit_the_nearest_larger_one_is_taken() {
    let rows_of = |cols, recipe| alone("blk.0.ffn_up.weight", &[cols, 8], wish(recipe));
    assert_eq!(rows_of(512, Recipe::Q4KSmall), Q4_K);
    assert_eq!(rows_of(96, Recipe::Q4KSmall), Q5_0);
    assert_eq!(rows_of(96, Recipe::Of(Q6_K)), Q8_0);
    assert_eq!(rows_of(96, Recipe::Q2K), Q4_0);
    assert_eq!(rows_of(96, Recipe::Of(IQ4_XS)), IQ4_NL);
    assert_eq!(rows_of(80, Recipe::Q4KSmall), F16);
    assert_eq!(rows_of(80, Recipe::Of(Q8_0)), F16);
    assert_eq!(rows_of(80, Recipe::Of(DType::BF16)), DType::BF16);
}

#[test]
fn what_is_no_operand_of_a_product_stays_as_it_is() {
    let kept = |name, dims: &[u64]| alone(name, dims, wish(Recipe::Of(Q8_0)));
    assert_eq!(kept("blk.0.attn_norm.weight", &[576]), F32);
    assert_eq!(kept("blk.0.attn_norm.weight", &[576, 1]), F32);
    assert_eq!(kept("position_embd.weight", &[384, 512]), F32);
    assert_eq!(kept("blk.0.ffn_gate_inp.weight", &[256, 8]), F32);
    let half = [tensor("blk.0.attn_norm.weight", &[576], F16)];
    let choice = choose(&half, Facts::default(), wish(Recipe::Of(Q8_0)))[0];
    assert_eq!(choice.dtype, F32);
    let table = [tensor("lookup.table", &[256, 8], DType::I32)];
    let choice = choose(&table, Facts::default(), wish(Recipe::Of(Q8_0)))[0];
    assert_eq!(choice.dtype, DType::I32);
}

#[test]
fn the_user_has_the_last_word_on_embedding_and_output() {
    let tied = [tensor("token_embd.weight", &[512, 8], F16)];
    let mut both = tied.to_vec();
    both.push(tensor("output.weight", &[512, 8], F16));
    let types = |tensors: &[TensorInfo], wish: Wish| {
        let facts = Facts::default().with_tensors(tensors);
        let choices = choose(tensors, facts, wish);
        choices
            .iter()
            .map(|choice| choice.dtype)
            .collect::<Vec<_>>()
    };
    let plain = wish(Recipe::Of(Q4_0));
    let (output, embedding) = (Some(DType::Q5_K), Some(Q3_K));
    assert_eq!(types(&tied, plain), [Q6_K]);
    assert_eq!(types(&tied, Wish { output, ..plain }), [Q5_K]);
    assert_eq!(
        types(
            &tied,
            Wish {
                embedding,
                output,
                ..plain
            }
        ),
        [Q3_K]
    );
    assert_eq!(types(&both, plain), [Q4_0, Q6_K]);
    assert_eq!(types(&both, Wish { output, ..plain }), [Q4_0, Q5_K]);
    assert_eq!(types(&both, Wish { embedding, ..plain }), [Q3_K, Q6_K]);
    let pure = Wish {
        pure: true,
        ..plain
    };
    assert_eq!(types(&both, pure), [Q4_0, Q4_0]);
    assert_eq!(types(&both, Wish { output, ..pure }), [Q4_0, Q5_K]);
}
