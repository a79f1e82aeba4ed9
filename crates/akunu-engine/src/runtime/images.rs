//! The rows of images in a step: where they stand, and their features on the device.

use std::ops::Range;

use akunu_types::params::Row;

use super::state::Runtime;
use crate::error::EngineError;
use crate::sequence::Sequence;

impl Runtime {
    /// How much smaller the positions of tokens are than their slots, from this slot on, behind all images.
    pub(super) fn position_offset(&self, sequence: &Sequence, slot: usize) -> u32 {
        match self.model.config.has_axes() {
            true => sequence.images.offset(slot) as u32,
            false => 0,
        }
    }

    /// The row of a token of a prompt, or of an image.
    pub(super) fn row_at(&self, sequence: &Sequence, slot: usize) -> Row {
        let plain = Row::at(sequence.seat, slot as u32);
        let images = &sequence.images;
        if images.is_empty() {
            return plain;
        }
        let row = match self.model.config.has_axes() {
            true => Row {
                position: images.axes(slot).time,
                ..plain
            },
            false => plain,
        };
        match images.at(slot) {
            None => row,
            Some(image) if sequence.has_whole_images => Row {
                length: image.end() as u32,
                ..row.of_image()
            },
            Some(_) => row.of_image(),
        }
    }

    /// Writes the features of the images in these slots, whose rows begin at `first_row` of the step.
    pub(super) fn write_images(
        &mut self,
        sequence: &Sequence,
        slots: Range<usize>,
        first_row: usize,
    ) -> Result<(), EngineError> {
        let width = self.model.config.dim as usize;
        for (piece, image) in sequence.images.pieces(slots.clone()) {
            self.has_images = true;
            let device = self.device.as_mut();
            let memory = self.memory.want_images(&self.model.config, device)?;
            let to = size_of::<f32>() * width * (first_row + piece.start - slots.start);
            let from = width * (piece.start - image.start)..width * (piece.end - image.start);
            let features = &image.features;
            let maps = [features.rows()].into_iter();
            let maps = maps.chain(features.deep().iter().map(|map| &map[..]));
            for (buffer, map) in memory.of_features().zip(maps) {
                let rows = bytemuck::cast_slice(&map[from.clone()]);
                device.write(buffer, to, rows)?;
            }
            if let Some((_, places)) = memory.axes {
                let axes = piece.clone().map(|slot| sequence.images.axes(slot));
                let axes: Vec<[u32; 2]> = axes.map(|axes| [axes.height, axes.width]).collect();
                let first = first_row + piece.start - slots.start;
                let bytes = bytemuck::cast_slice(&axes);
                device.write(places, size_of::<[u32; 2]>() * first, bytes)?;
            }
        }
        Ok(())
    }
}
