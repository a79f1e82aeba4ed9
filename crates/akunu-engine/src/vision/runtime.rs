//! A vision tower on its device: an image is a step of one text, whose rows are its patches.

use std::collections::HashMap;

use akunu_program::{Counts, Device, DeviceError, PlanId, Program, RowTable};
use akunu_types::params::Row;

use super::memory::Memory;
use super::patches::{Grid, patch_rows};
use super::positions::Positions;
use crate::error::EngineError;
use crate::weights::BoundTower;

/// The device, and all that lies on it.
pub(super) struct Runtime {
    tower: BoundTower,
    positions: Positions,
    device: Box<dyn Device>,
    memory: Option<Memory>,
    /// The grid whose positions lie on the device.
    placed: Option<Grid>,
    /// A program for each number of squares, rounded up to a power of two.
    programs: HashMap<u32, PlanId>,
}

impl Runtime {
    pub fn new(tower: BoundTower, positions: Positions, device: Box<dyn Device>) -> Runtime {
        Runtime {
            tower,
            positions,
            device,
            memory: None,
            placed: None,
            programs: HashMap::new(),
        }
    }

    pub fn describe(&self) -> (&'static str, String) {
        (self.device.name(), self.device.description())
    }

    /// The rows of an image, (squares, out_dim). The grid and the number of pixels were checked.
    pub fn see(&mut self, pixels: &[f32], grid: Grid) -> Result<Vec<f32>, EngineError> {
        let input = self.tower.input;
        let squares = grid.merged(input.merge).len() as u32;
        let plan = self.plan(squares.next_power_of_two())?;
        let row_len = self.tower.patches.weight.matrix.cols as usize;
        let patches = patch_rows(pixels, grid, &input, row_len);
        let Memory {
            step,
            patches: to,
            positions,
            features,
            ..
        } = *self.memory();
        if self.placed != Some(grid) {
            let rows = self.positions.rows(grid, input.merge);
            self.device
                .write(positions, 0, bytemuck::cast_slice(&rows))?;
            self.placed = Some(grid);
        }
        self.device.write(to, 0, bytemuck::cast_slice(&patches))?;
        let mut table = RowTable::new(step, &[]);
        let n_rows = grid.len() as u32;
        for position in 0..n_rows {
            table.push_run(Row::of_text(0, position, n_rows), 0);
        }
        table.set_outputs(0..squares);
        let checked = table.check_texts().map_err(DeviceError::from)?;
        self.device.run(plan, Some(&checked))?;
        let mut rows = vec![0f32; squares as usize * self.tower.out_dim as usize];
        self.device
            .read(features, 0, bytemuck::cast_slice_mut(&mut rows))?;
        Ok(rows)
    }

    /// The program of an image with this grid.
    pub fn program(&mut self, grid: Grid) -> Result<Program, EngineError> {
        let squares = grid.merged(self.tower.input.merge).len() as u32;
        let squares = squares.next_power_of_two();
        self.make_room(squares)?;
        Ok(self.write_program(squares))
    }

    /// Memory for so many squares. What there was for fewer goes, and the programs that name it.
    fn make_room(&mut self, squares: u32) -> Result<(), EngineError> {
        let has = self.memory.as_ref().map_or(0, |memory| memory.squares);
        if squares <= has {
            return Ok(());
        }
        for (_, plan) in self.programs.drain() {
            self.device.unload(plan);
        }
        self.placed = None;
        if let Some(memory) = self.memory.take() {
            memory.release(self.device.as_mut());
        }
        let memory = Memory::allocate(&self.tower, squares, self.device.as_mut())?;
        self.memory = Some(memory);
        Ok(())
    }

    fn memory(&self) -> &Memory {
        match &self.memory {
            Some(memory) => memory,
            None => unreachable!("an image makes room first"),
        }
    }

    fn plan(&mut self, squares: u32) -> Result<PlanId, EngineError> {
        self.make_room(squares)?;
        if let Some(&plan) = self.programs.get(&squares) {
            return Ok(plan);
        }
        let plan = self.device.load(&self.write_program(squares))?;
        self.programs.insert(squares, plan);
        Ok(plan)
    }

    fn write_program(&self, squares: u32) -> Program {
        let (memory, tower) = (self.memory(), &self.tower);
        let mut builder = memory.builder(tower);
        builder.see(tower, &memory.sight());
        Program {
            ops: builder.ops(),
            step: Some(memory.step),
            room: Counts {
                singles: 0,
                run: squares * tower.input.merge * tower.input.merge,
                outputs: squares,
            },
        }
    }
}
