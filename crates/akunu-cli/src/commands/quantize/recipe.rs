//! The names of TYPE, as llama.cpp spells them.
//!
//! A name stands for a recipe: a type for most matrices, and for some names a few matrices in other
//! types (see [`super::choice`]).

use akunu_types::DType;
use std::cmp::Reverse;
use std::sync::LazyLock;

/// What is to be made of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// This type for most matrices.
    Of(DType),
    Q2K,
    Q2KSmall,
    Q3KSmall,
    Q3KMedium,
    Q3KLarge,
    Q4KSmall,
    Q4KMedium,
    Q5KSmall,
    Q5KMedium,
    /// MXFP4 for experts, Q8_0 for all other matrices.
    Mxfp4Experts,
}

/// One recipe: what it is called, GGUF's `general.file_type`, and the type of most matrices.
pub struct Row {
    pub recipe: Recipe,
    pub name: String,
    pub file_type: u32,
    pub dtype: DType,
}

/// The recipes that give some matrices another type by a rule of their own.
const MIXTURES: &[(Recipe, &str, u32, DType)] = &[
    (Recipe::Q5KMedium, "Q5_K_M", 17, DType::Q5_K),
    (Recipe::Q5KSmall, "Q5_K_S", 16, DType::Q5_K),
    (Recipe::Q4KMedium, "Q4_K_M", 15, DType::Q4_K),
    (Recipe::Q4KSmall, "Q4_K_S", 14, DType::Q4_K),
    (Recipe::Q3KLarge, "Q3_K_L", 13, DType::Q3_K),
    (Recipe::Q3KMedium, "Q3_K_M", 12, DType::Q3_K),
    (Recipe::Q3KSmall, "Q3_K_S", 11, DType::Q3_K),
    (Recipe::Q2K, "Q2_K", 10, DType::Q2_K),
    (Recipe::Q2KSmall, "Q2_K_S", 21, DType::Q2_K),
    (Recipe::Mxfp4Experts, "MXFP4_MOE", 38, DType::MXFP4),
];

/// Every recipe, from the largest type to the smallest.
pub static RECIPES: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let of_one_type = akunu_gguf::quant::supported().filter_map(|dtype| {
        Some(Row {
            recipe: Recipe::Of(dtype),
            name: dtype.name().to_uppercase(),
            file_type: dtype.file_type()?,
            dtype,
        })
    });
    let mixtures = MIXTURES
        .iter()
        .map(|&(recipe, name, file_type, dtype)| Row {
            recipe,
            name: name.to_string(),
            file_type,
            dtype,
        });
    let mut rows: Vec<Row> = mixtures.chain(of_one_type).collect();
    let bytes = |dtype: DType| dtype.block_bytes() * LARGEST_BLOCK / dtype.block_len();
    rows.sort_by_key(|row| Reverse(bytes(row.dtype)));
    rows
});

/// Values that are whole blocks of every type.
const LARGEST_BLOCK: usize = 256;

/// Names without a size mean the medium one; MXFP4 has only the one for experts.
const SHORT: &[(&str, Recipe)] = &[
    ("Q5_K", Recipe::Q5KMedium),
    ("Q4_K", Recipe::Q4KMedium),
    ("Q3_K", Recipe::Q3KMedium),
    ("MXFP4", Recipe::Mxfp4Experts),
];

impl Recipe {
    /// The recipe of a name, in either case.
    pub fn from_name(name: &str) -> Option<Recipe> {
        let full = RECIPES.iter().map(|row| (&*row.name, row.recipe));
        full.chain(SHORT.iter().copied())
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, recipe)| recipe)
    }

    /// Every name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let short = SHORT.iter().map(|(name, _)| *name);
        RECIPES.iter().map(|row| &*row.name).chain(short)
    }

    /// Its row of the table.
    pub fn row(self) -> &'static Row {
        match RECIPES.iter().find(|row| row.recipe == self) {
            Some(row) => row,
            None => unreachable!("a test looks every recipe up"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::quant::supported;

    #[test]
    fn every_name_leads_to_a_row() {
        for name in Recipe::names() {
            let recipe = Recipe::from_name(&name.to_lowercase()).unwrap();
            assert!(recipe.row().name.starts_with(name), "{name}");
        }
        assert_eq!(Recipe::from_name("q4_k"), Some(Recipe::Q4KMedium));
        assert_eq!(Recipe::from_name("q4_9"), None);
    }

    /// A type that the quantisers learn needs a recipe.
    #[test]
    fn every_type_has_a_recipe() {
        for dtype in supported() {
            assert!(RECIPES.iter().any(|row| row.dtype == dtype), "{dtype}");
        }
    }
}
