//! A vision tower on its device: an image is a step of one text, whose rows are its patches.

use std::collections::HashMap;

use akunu_program::{Buffer, Counts, Device, DeviceError, PlanId, Program, RowTable};
use akunu_types::params::Row;

use super::memory::Memory;
use super::patches::{Grid, patch_rows};
use super::positions::Positions;
use super::turns;
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

    /// The rows of an image, (squares, out_dim), and those of the projectors of layers. The grid and the number of pixels were
    /// checked.
    pub fn see(
        &mut self,
        pixels: &[f32],
        grid: Grid,
    ) -> Result<(Vec<f32>, Vec<Vec<f32>>), EngineError> {
        let input = self.tower.input;
        let squares = grid.merged(input.merge).len() as u32;
        let plan = self.plan(squares.next_power_of_two())?;
        self.place(grid)?;
        let row_len = self.tower.patches.weight.matrix.cols as usize;
        let patches = patch_rows(pixels, grid, &input, row_len);
        let to = self.memory().patches;
        self.device.write(to, 0, bytemuck::cast_slice(&patches))?;
        self.run(plan, grid.len() as u32, squares)?;
        let memory = self.memory();
        let deep = memory.deep.iter().map(|&from| self.read(from, squares));
        Ok((
            self.read(memory.features, squares)?,
            deep.collect::<Result<_, _>>()?,
        ))
    }

    /// Writes the positions of a grid, and what its patches turn by, unless they are there.
    fn place(&mut self, grid: Grid) -> Result<(), EngineError> {
        if self.placed == Some(grid) {
            return Ok(());
        }
        let merge = self.tower.input.merge;
        let Memory {
            positions, turns, ..
        } = *self.memory();
        let rows = self.positions.rows(grid, merge);
        self.device
            .write(positions, 0, bytemuck::cast_slice(&rows))?;
        if let (Some(turn), Some(to)) = (self.tower.turn, turns) {
            let rows = turns::turns(turn, grid, merge);
            self.device.write(to, 0, bytemuck::cast_slice(&rows))?;
        }
        self.placed = Some(grid);
        Ok(())
    }

    /// Runs a program with the rows of an image.
    fn run(&mut self, plan: PlanId, n_rows: u32, squares: u32) -> Result<(), EngineError> {
        let mut table = RowTable::new(self.memory().step, &[]);
        for position in 0..n_rows {
            table.push_run(Row::of_text(0, position, n_rows), 0);
        }
        table.set_outputs(0..squares);
        let checked = table.check_texts().map_err(DeviceError::from)?;
        Ok(self.device.run(plan, Some(&checked))?)
    }

    /// The rows that a projector has written.
    fn read(&self, from: Buffer, squares: u32) -> Result<Vec<f32>, EngineError> {
        let mut rows = vec![0f32; squares as usize * self.tower.out_dim as usize];
        self.device
            .read(from, 0, bytemuck::cast_slice_mut(&mut rows))?;
        Ok(rows)
    }

    /// The program of an image with this grid.
    pub fn program(&mut self, grid: Grid) -> Result<Program, EngineError> {
        let squares = grid.merged(self.tower.input.merge).len() as u32;
        let squares = squares.next_power_of_two();
        self.make_room(squares)?;
        Ok(self.write_program(squares))
    }

    /// Makes memory for so many squares; a smaller one is released, with the programs that use it.
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
