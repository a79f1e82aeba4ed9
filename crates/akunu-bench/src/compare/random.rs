//! Models of real shapes with random weights.

use super::files::{self, ModelFile};
use crate::random_model::{self, Mix, Shape};
use akunu_repo::Failure;
use clap::ValueEnum;

/// The name of a model in tables and charts: `1B Q4_0`.
fn model_name(shape: Shape, mix: Mix) -> String {
    format!("{} {}", value_name(shape), value_name(mix))
}

/// The name that a value has on the command line.
fn value_name(value: impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or_else(String::new, |value| value.get_name().to_string())
}

/// The place of a model in tables: by shape, then by type; unknown names come last.
pub fn place(name: &str) -> usize {
    let shapes = Shape::value_variants().iter();
    let mut names = shapes.flat_map(|&shape| {
        let mixes = Mix::value_variants().iter();
        mixes.map(move |&mix| model_name(shape, mix))
    });
    names.position(|known| known == name).unwrap_or(usize::MAX)
}

/// Writes the models that are not there yet. A model is a whole file or none.
pub fn make(shapes: &[Shape], mixes: &[Mix]) -> Result<Vec<ModelFile>, Failure> {
    let mut made = Vec::new();
    for &shape in shapes {
        for &mix in mixes {
            let name = model_name(shape, mix);
            let file = format!("random.{}.gguf", name.replace(' ', "."));
            let path = files::folder()?.join(file);
            if !path.exists() {
                eprintln!("writing {}", path.display());
                random_model::write(shape, mix, &path)?;
            }
            made.push(ModelFile { name, path });
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_stand_by_size_and_unknown_ones_last() {
        assert_eq!(model_name(Shape::Llama3_2_1b, Mix::Q4KM), "1B Q4_K_M");
        let places = ["135M Q4_0", "135M Q8_0", "1B Q4_0", "8B F16", "9B Q4_0"].map(place);
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places[4], usize::MAX);
    }
}
