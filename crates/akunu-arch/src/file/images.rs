//! How a decoder reads images, from a model's description.

use akunu_gguf::{Container, Value};

use super::rope::rope_section;
use super::{Key, ModelFile, Said, Section};
use crate::error::ArchError;
use crate::images::RopeAxes;

/// Pairs that turn by time, height, width and a fourth axis that images do not have.
const SECTIONS: Key = Key::same(&["rope.dimension_sections"]);
/// Layers after which features of images are added.
const DEEP_LAYERS: Key = Key::same(&["n_deepstack_layers"]);

impl ModelFile<'_> {
    /// The axes that pairs of a head turn by, which the file must have.
    pub(crate) fn required_rope_axes(&self, is_interleaved: bool) -> Result<RopeAxes, ArchError> {
        let axes = self.rope_axes(is_interleaved)?;
        axes.ok_or_else(|| self.missing(self.axes_key()))
    }

    /// The axes that pairs of a head turn by, if the file has them. Whether they are interleaved follows from the architecture.
    pub(crate) fn rope_axes(&self, is_interleaved: bool) -> Result<Option<RopeAxes>, ArchError> {
        let numbers: Option<Vec<Option<u32>>> = match self.said {
            Said::Metadata(file) => match file.metadata().get(&self.key_name(SECTIONS)) {
                Some(Value::Array(list)) => {
                    let number = |value: Value| u32::try_from(value.as_integer()?).ok();
                    Some(list.iter().take(3).map(number).collect())
                }
                _ => None,
            },
            Said::Config(text) => rope_section(&text).and_then(|rope| {
                let list = rope.get("mrope_section")?.as_array()?;
                let number = |value: &serde_json::Value| u32::try_from(value.as_u64()?).ok();
                Some(list.iter().take(3).map(number).collect())
            }),
        };
        let Some(numbers) = numbers else {
            return Ok(None);
        };
        match numbers[..] {
            [Some(time), Some(height), Some(width)] => Ok(Some(RopeAxes {
                pairs: [time, height, width],
                is_interleaved,
            })),
            _ => Err(ArchError::Invalid {
                path: self.path().to_path_buf(),
                key: self.key_name(self.axes_key()),
                found: "another list".into(),
                wanted: "the pairs of three axes",
            }),
        }
    }

    fn axes_key(&self) -> Key {
        Key::new(SECTIONS.gguf, &["mrope_section"])
    }

    /// Layers after which further features are added to the rows of images; 0 where nothing is said.
    pub(crate) fn deep_layers(&self, n_layers: usize) -> Result<u32, ArchError> {
        let found = match (self.said, self.store.container()) {
            (Said::Config(text), Container::Folder(folder)) => {
                let whole = Section {
                    path: text.path,
                    object: folder.config(),
                };
                let vision = whole.section("vision_config");
                let list = vision.and_then(|vision| vision.get("deepstack_visual_indexes"));
                list.and_then(|list| list.as_array()).map(Vec::len)
            }
            _ => self.u32(DEEP_LAYERS)?.map(|n| n as usize),
        };
        let n = found.unwrap_or(0).min(u32::MAX as usize) as u32;
        self.check_size("layers with features of images", n.max(1), n_layers as u32)?;
        Ok(n)
    }
}
