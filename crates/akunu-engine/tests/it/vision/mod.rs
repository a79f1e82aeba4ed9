//! Small vision towers of each family against `transformers`, from both containers, on two devices.

mod refused;

use std::iter;
use std::path::{Path, PathBuf};

use crate::support::exact_cpu::{cpu, exact_cpu};
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::{Fixture, Image, uniform};
use akunu_cpu::Isa;
use akunu_engine::Model;
use akunu_engine::vision::{Grid, Grids, VisionModel};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use serde_json::json;

/// The devices, and how far their rows may be from the wanted ones.
fn devices() -> Vec<(Box<dyn Device>, f64)> {
    let mut devices: Vec<(Box<dyn Device>, f64)> =
        vec![(Box::new(TwinDevice::new()), BOUND), (exact_cpu(), BOUND)];
    if Isa::Amx.is_available() {
        devices.push((cpu(), TILE_BOUND));
    }
    devices
}

/// How far rows are from the wanted ones, as a share of their length.
fn error(found: &[f32], wanted: &[f32]) -> f64 {
    nmse(found, wanted).sqrt()
}

/// Both sides have the same weights; three layers of sums in single precision are some 5e-7 from those in double.
const BOUND: f64 = 2e-6;

/// Tiles have 16 bits of each factor.
const TILE_BOUND: f64 = 5e-5;

fn grid(image: &Image) -> Grid {
    Grid {
        height: image.height,
        width: image.width,
    }
}

/// The pixels of an image of a fixture.
fn pixels(at: usize, n: usize) -> Vec<f32> {
    let name = format!("pixels {at}");
    (1..=n as u64).map(|i| uniform(&name, i)).collect()
}

/// A fixture as a GGUF file and as a folder.
fn both(model: &Fixture, folder: &Path) -> [PathBuf; 2] {
    [write_gguf(model, folder), write_folder(model, folder)]
}

/// From both containers.
fn agrees(name: &str) {
    let model = Fixture::read("vision", name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in both(&model, folder.path()) {
        for (device, bound) in devices() {
            agrees_on(&model, &path, device, bound);
        }
    }
}

fn agrees_on(model: &Fixture, path: &Path, device: Box<dyn Device>, bound: f64) {
    let what = format!("{}, {}", path.display(), device.name());
    let mut tower = VisionModel::load(path, device).unwrap_or_else(|error| panic!("{error}"));
    let input = tower.config().input;
    for (at, image) in model.images.iter().enumerate() {
        let grid = grid(image);
        let pixels = pixels(at, grid.len() * input.patch_numbers() as usize);
        let found = tower.see(&pixels, grid).expect("runs");
        assert_eq!(found.rows.len(), found.n_rows * found.dim);
        assert_eq!(found.grid.len(), found.n_rows);
        assert_eq!(found.rows.len(), image.rows.len());
        let wanted = iter::once(&image.rows).chain(&image.deep);
        let all = iter::once(&found.rows).chain(&found.deep);
        assert_eq!(found.deep.len(), image.deep.len());
        for (found, wanted) in all.zip(wanted) {
            let error = error(found, wanted);
            assert!(error < bound, "{what}, image {at}: {error:e}");
        }
    }
}

/// Squares of patches one behind the other, and one product. Patches have 147 numbers, and an image gives 9 rows.
#[test]
fn idefics3_agrees_with_transformers() {
    agrees("idefics3");
}

/// The mean of squares of 4 × 4 patches, a norm whose weights count from 0 in folders, and a product whose columns are rows in
/// the file.
#[test]
fn gemma3_agrees_with_transformers() {
    agrees("gemma3");
}

/// Images of three sizes, whose positions are resized; turns by line and column; q, k and v in one tensor with their biases; a
/// kernel for two images; rows from after the first and the last of three layers.
#[test]
fn qwen3vl_agrees_with_transformers() {
    agrees("qwen3vl");
}

/// The same without rows from layers.
#[test]
fn qwen35_agrees_with_transformers() {
    agrees("qwen35");
}

/// Images of three sizes, whose positions are means of areas; patches pixel by pixel in folders; a norm and two products.
#[test]
fn lfm2_agrees_with_transformers() {
    agrees("lfm2");
}

/// Early converters wrote the first product of a feed-forward block as `ffn_down`.
#[test]
fn feed_forward_products_of_early_files_are_told_apart_by_their_shape() {
    let mut model = Fixture::read("vision", "gemma3");
    for weight in &mut model.weights {
        let swapped = weight.gguf.replace("ffn_up", "ffn_other");
        let swapped = swapped.replace("ffn_down", "ffn_up");
        weight.gguf = swapped.replace("ffn_other", "ffn_down");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    agrees_on(&model, &path, exact_cpu(), BOUND);
}

/// A preprocessor is made from these numbers, so those of the files must arrive.
#[test]
fn a_tower_says_how_images_are_prepared() {
    let model = Fixture::read("vision", "idefics3");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, whole] = both(&model, folder.path());
    let input = |path: &Path| {
        let tower = VisionModel::load(path, Box::new(TwinDevice::new())).expect("a whole tower");
        tower.config().input
    };
    let found = input(&file);
    assert_eq!((found.patch, found.merge), (7, 2));
    assert_eq!(found.grids, Grids::Square(6));
    assert_eq!(found.mean, [0.5, 0.25, 0.75]);
    assert_eq!(found.std, [0.5, 0.25, 0.125]);
    assert_eq!(input(&whole).mean, [0.5; 3]);
    let preprocessor = json!({ "image_mean": [0.5, 0.25, 0.75], "image_std": [0.5, 0.25, 0.125] });
    let path = folder.path().join("preprocessor_config.json");
    std::fs::write(path, preprocessor.to_string()).expect("written");
    assert_eq!(input(&whole), found);
}

/// The weights of a tower are not those of the language model in the same folder, whose biases are all used.
#[test]
fn a_decoder_loads_beside_a_tower() {
    let mut model = Fixture::read("transformers", "llama3");
    model
        .weights
        .extend(Fixture::read("vision", "idefics3").weights);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_folder(&model, folder.path());
    Model::load(&path, Box::new(TwinDevice::new())).expect("a whole model");
}
