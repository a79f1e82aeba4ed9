//! A program of which only the sizes are known, with buffers of a device.
//!
//! [`Decoder`] numbers buffers that do not exist. The launches that a device's rules make of its program say how far each
//! is read and written, and as what: weights become blocks of random numbers, vectors random numbers, and the row and the page
//! table are those of a text as long as the context.

use super::target::Target;
use crate::decoder::Decoder;
use akunu_gguf::quant;
use akunu_kernels::case::Rng;
use akunu_kernels::lower::{self, Rules};
use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::table::{Access, Element};
use akunu_kernels::{Dispatch, KernelCall, KernelDevice, PipelineKey, Plan};
use akunu_program::{Buffer, DeviceError, Program, Slice};
use akunu_types::DType;
use akunu_types::params::Row;
use std::collections::BTreeMap;

/// Slots of a page.
const PAGE: u32 = 64;

/// A program as launches, before it has buffers.
pub struct Recipe {
    pub plan: Plan,
    program: Program,
    context: u32,
    needs: BTreeMap<u32, Need>,
}

/// What a buffer must be.
struct Need {
    bytes: usize,
    element: Element,
    dtype: Option<DType>,
}

/// The launches with buffers of a device.
pub struct Material {
    pub calls: Vec<KernelCall>,
    buffers: BTreeMap<u32, Buffer>,
}

impl Recipe {
    /// The launches of a model's step after `context` tokens.
    pub fn of(decoder: &Decoder, context: u32, rules: &dyn Rules) -> Result<Recipe, DeviceError> {
        let program = decoder.program(context);
        let scratch = Buffer {
            id: u32::MAX,
            generation: 0,
            len: lower::scratch_bytes(&program, rules),
            writable: true,
        };
        let calls = lower::by_rules(&program, rules, Some(scratch));
        let plan = Plan::make(calls, program.plan_room(), &mut HostPipelines::default())?;
        let mut needs = BTreeMap::new();
        for dispatch in plan.dispatches() {
            let row = dispatch.kernel.row();
            let places = dispatch.bindings.iter().zip(dispatch.extents());
            for ((slice, range), binding) in places.zip(row.bindings) {
                let need = needs.entry(slice.buffer.id).or_insert(Need {
                    bytes: 0,
                    element: binding.element,
                    dtype: dispatch.dtype,
                });
                need.bytes = need.bytes.max(range.end);
            }
        }
        Ok(Recipe {
            plan,
            program,
            context,
            needs,
        })
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.needs.values().map(|need| need.bytes as u64).sum()
    }

    /// Takes the buffers, and fills them.
    pub fn on(&self, device: &mut dyn KernelDevice) -> Result<Material, DeviceError> {
        let mut material = Material {
            calls: Vec::new(),
            buffers: BTreeMap::new(),
        };
        for (&id, need) in &self.needs {
            match device.allocate(need.bytes.max(16), "a model") {
                Ok(buffer) => material.buffers.insert(id, buffer),
                Err(error) => {
                    material.release(device);
                    return Err(error);
                }
            };
        }
        let dispatches = self.plan.dispatches().iter();
        material.calls = dispatches.map(|dispatch| material.call(dispatch)).collect();
        self.fill(device, &material)?;
        Ok(material)
    }

    /// Fills all buffers as they were at first.
    pub fn fill(
        &self,
        device: &mut dyn KernelDevice,
        material: &Material,
    ) -> Result<(), DeviceError> {
        for (id, need) in &self.needs {
            let buffer = material.buffers[id];
            let pattern = match need.element {
                Element::F32 => bytemuck::cast_slice(&floats(1024)).to_vec(),
                Element::F16 => halves(),
                Element::Weight => blocks(need.dtype),
                Element::U32 | Element::U16 | Element::Row | Element::Rule => vec![0; 64],
            };
            crate::timing::fill(device, buffer, &pattern)?;
        }
        for pages in self.program.pages() {
            if let Some(&table) = material.buffers.get(&pages.table.id) {
                let pages: Vec<u32> = (0..self.context.div_ceil(PAGE)).collect();
                device.write(table, 0, bytemuck::cast_slice(&pages))?;
            }
        }
        self.rewind(device, material)
    }

    /// Puts the row back to the end of the text: a step moves it on.
    pub fn rewind(
        &self,
        device: &mut dyn KernelDevice,
        material: &Material,
    ) -> Result<(), DeviceError> {
        let step = self.program.step.as_ref();
        let rows = step.and_then(|step| material.buffers.get(&step.rows.id));
        let Some(&rows) = rows else { return Ok(()) };
        let row = Row::at(0, self.context.saturating_sub(1));
        device.write(rows, 0, bytemuck::bytes_of(&row))
    }
}

impl Material {
    fn call(&self, dispatch: &Dispatch) -> KernelCall {
        let places = dispatch.bindings.iter().map(|slice| Slice {
            buffer: self.buffers[&slice.buffer.id],
            offset: slice.offset,
        });
        KernelCall {
            key: PipelineKey {
                kernel: dispatch.kernel,
                constants: dispatch.constants.clone(),
            },
            params: dispatch.params,
            bindings: places.collect(),
            row_fields: Vec::new(),
            label: dispatch.label,
        }
    }

    /// The bytes that a launch may have written: the binding's place in the row, its buffer and range.
    pub fn written(&self, dispatch: &Dispatch) -> Vec<(usize, Buffer, std::ops::Range<usize>)> {
        let row = dispatch.kernel.row();
        let places = dispatch.bindings.iter().zip(dispatch.extents()).enumerate();
        places
            .filter(|(at, _)| row.bindings[*at].access != Access::Read)
            .map(|(at, (slice, range))| (at, self.buffers[&slice.buffer.id], range))
            .collect()
    }

    /// Gives the buffers back.
    pub fn release(self, device: &mut dyn KernelDevice) {
        for buffer in self.buffers.into_values() {
            device.release(buffer);
        }
    }
}

/// Numbers between -0.5 and 0.5.
fn floats(n: usize) -> Vec<f32> {
    let mut rng = Rng::new(7);
    (0..n).map(|_| 0.5 * rng.unit()).collect()
}

fn halves() -> Vec<u8> {
    let halves = floats(1024).into_iter().map(half::f16::from_f32);
    halves.flat_map(|half| half.to_le_bytes()).collect()
}

/// Blocks of a format.
fn blocks(dtype: Option<DType>) -> Vec<u8> {
    const VALUES: usize = 1024;
    let bytes = dtype.and_then(|dtype| Some((dtype, dtype.bytes_of(VALUES)?)));
    let Some((dtype, n)) = bytes else {
        return vec![0; 64];
    };
    let mut blocks = vec![0; n];
    // A format that cannot be written stays zeros, which are numbers in each.
    let _ = quant::quantise(dtype, &floats(VALUES), &mut blocks);
    blocks
}

/// Whether a device has room for it, with something left for scratch memory.
pub fn fits(target: &dyn Target, recipe: &Recipe) -> bool {
    let room = target.memory_limit().unwrap_or(u64::MAX);
    recipe.bytes().saturating_mul(9) / 8 <= room
}
