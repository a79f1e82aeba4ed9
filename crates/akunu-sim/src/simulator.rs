//! The simulator: a folder of `.metal` files, and their kernels ready to be launched.

use crate::compile::{Purpose, compile};
use crate::error::SimError;
use crate::executor::arena;
use crate::executor::count::{Counts, Recorder};
use crate::executor::fibre_callbacks;
use crate::executor::grid::Grid;
use crate::executor::threadgroup::{Failure, Job, Problem};
use crate::executor::trap::{self, Trap};
use crate::launch::{Binding, Launch};
use crate::library::Library;
use crate::msl::{AddressSpace, FunctionConstant, Kernel, Unit, read};
use crate::toolchain::Toolchain;
use akunu_kernels::ChipConfig;
use akunu_kernels::flatten::{FlatSource, flatten, metal_files};
use akunu_kernels::table::Family;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the kernels of a folder of `.metal` files.
///
/// Files are read when it is made and compiled when a kernel of theirs is first asked for.
pub struct Simulator {
    toolchain: Toolchain,
    folder: PathBuf,
    cache: PathBuf,
    files: Vec<SourceFile>,
    /// Files that could not be read, and why.
    unread: Vec<String>,
    purpose: Purpose,
}

struct SourceFile {
    source: FlatSource,
    unit: Unit,
    library: Mutex<Option<Arc<Library>>>,
}

impl Simulator {
    /// Reads every `.metal` file under `folder`. Compiled libraries are kept in `cache`.
    ///
    /// A file that cannot be read does not stop the others: the reason is given when one of its
    /// kernels is asked for.
    ///
    /// # Errors
    /// When there is no clang or the folder cannot be listed.
    pub fn new(folder: &Path, cache: &Path) -> Result<Simulator, SimError> {
        trap::install();
        let mut simulator = Simulator {
            toolchain: Toolchain::find()?,
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            files: Vec::new(),
            unread: Vec::new(),
            purpose: Purpose::Results,
        };
        for file in metal_files(folder)? {
            match read_file(folder, &file) {
                Ok(source_file) => simulator.files.push(source_file),
                Err(error) => simulator.unread.push(error.to_string()),
            }
        }
        Ok(simulator)
    }

    /// The same, but products and sums are fused and denormal numbers are zeros, as a GPU may have it. Results differ from
    /// those of [`Simulator::new`] by rounding; a kernel that holds its tolerances in both relies on neither.
    ///
    /// # Errors
    /// As [`Simulator::new`].
    pub fn fused(folder: &Path, cache: &Path) -> Result<Simulator, SimError> {
        Ok(Simulator {
            purpose: Purpose::Fused,
            ..Simulator::new(folder, cache)?
        })
    }

    /// The same, but launches are counted ([`KernelHandle::count`]), and slow.
    ///
    /// # Errors
    /// As [`Simulator::new`].
    pub fn counting(folder: &Path, cache: &Path) -> Result<Simulator, SimError> {
        Ok(Simulator {
            purpose: Purpose::Counts,
            ..Simulator::new(folder, cache)?
        })
    }

    /// The same with these kernels alone: the other formats of their files are not compiled.
    #[must_use]
    pub fn only(mut self, kernels: &[&str]) -> Simulator {
        self.files.retain_mut(|file| {
            let theirs = &mut file.unit.kernels;
            theirs.retain(|kernel| kernels.contains(&kernel.name.as_str()));
            file.source.text = without_others(&file.source.text, kernels);
            !file.unit.kernels.is_empty()
        });
        self
    }

    /// The signatures of all kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.files.iter().flat_map(|file| &file.unit.kernels)
    }

    /// The function constants that the file of this kernel declares.
    pub fn constants(&self, kernel: &str) -> &[FunctionConstant] {
        let has = |file: &&SourceFile| file.unit.kernels.iter().any(|k| k.name == kernel);
        self.files
            .iter()
            .find(has)
            .map_or(&[], |file| &file.unit.constants)
    }

    /// The files that could not be read, and why.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// A kernel, compiled and loaded.
    ///
    /// # Errors
    /// When no file has it, or its file does not compile.
    pub fn kernel(&self, name: &str) -> Result<KernelHandle<'_>, SimError> {
        for file in &self.files {
            if let Some(kernel) = file.unit.kernels.iter().find(|kernel| kernel.name == name) {
                return Ok(KernelHandle {
                    kernel,
                    constants: &file.unit.constants,
                    library: self.library(file)?,
                    threadgroup_limit: threadgroup_limit(&file.source.file),
                    flushes: self.purpose == Purpose::Fused,
                });
            }
        }
        let unread: String = self
            .unread
            .iter()
            .map(|why| format!("\nnot read: {why}"))
            .collect();
        Err(SimError::UnknownKernel {
            name: name.to_owned(),
            folder: self.folder.clone(),
            unread,
        })
    }

    fn library(&self, file: &SourceFile) -> Result<Arc<Library>, SimError> {
        let mut slot = file.library.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = &*slot {
            return Ok(library.clone());
        }
        let path = compile(&self.toolchain, &file.source, &self.cache, self.purpose)?;
        let library = Arc::new(Library::load(&path, fibre_callbacks())?);
        *slot = Some(library.clone());
        Ok(library)
    }
}

fn read_file(folder: &Path, file: &str) -> Result<SourceFile, SimError> {
    let source = flatten(folder, file)?;
    let unit = read(&source.text)?;
    Ok(SourceFile {
        source,
        unit,
        library: Mutex::new(None),
    })
}

/// The source without the instantiations of other kernels; every line keeps its number.
fn without_others(text: &str, kernels: &[&str]) -> String {
    let is_other = |line: &str| {
        let name = line.strip_prefix("template [[host_name(\"");
        let name = name.and_then(|rest| rest.split_once('"'));
        name.is_some_and(|(name, _)| !kernels.contains(&name))
    };
    let lines = text.lines();
    lines
        .map(|line| if is_other(line) { "" } else { line })
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Bytes of threadgroup memory that the kernels of a file may use: Metal's, but for those that it never sees.
fn threadgroup_limit(file: &str) -> usize {
    let folder = Path::new(file).parent();
    if folder == Some(Path::new(Family::Nvidia.folder())) {
        arena::NVIDIA_LIMIT
    } else {
        arena::LIMIT
    }
}

/// A kernel that can be launched.
pub struct KernelHandle<'a> {
    kernel: &'a Kernel,
    constants: &'a [FunctionConstant],
    library: Arc<Library>,
    threadgroup_limit: usize,
    /// Whether denormal numbers are zeros.
    flushes: bool,
}

impl KernelHandle<'_> {
    /// The signature of the kernel, as the source declares it.
    pub fn signature(&self) -> &Kernel {
        self.kernel
    }

    /// Bytes of threadgroup memory that it may use.
    pub fn threadgroup_limit(&self) -> usize {
        self.threadgroup_limit
    }

    /// Runs the kernel and waits for it.
    ///
    /// # Errors
    /// When the launch does not fit the signature, or the kernel misbehaved; see [`SimError`].
    pub fn launch(&self, launch: &Launch<'_>) -> Result<(), SimError> {
        self.run(launch, None)
    }

    /// Runs the kernel and counts what it does to memory: nothing but barriers, unless the simulator was made for
    /// counting.
    ///
    /// # Errors
    /// As [`KernelHandle::launch`].
    pub fn count(&self, launch: &Launch<'_>) -> Result<Counts, SimError> {
        let in_device_memory = |index: u32| {
            let mut buffers = self.kernel.buffers();
            buffers.any(|(known, _, space, _)| known == index && space == AddressSpace::Device)
        };
        let buffers = launch
            .bindings
            .iter()
            .filter(|binding| in_device_memory(binding.index))
            .map(|binding| binding.buffer.addresses());
        let mut recorder = Recorder::new(buffers.collect(), ChipConfig::m1().slc_bytes);
        self.run(launch, Some(&mut recorder))?;
        Ok(recorder.counts())
    }

    fn run(&self, launch: &Launch<'_>, recorder: Option<&mut Recorder>) -> Result<(), SimError> {
        launch.check(self.kernel)?;
        let constants = launch.constants(&self.kernel.name, self.constants)?;
        let grid = Grid {
            job: Job {
                entry: self.library.entry(&self.kernel.name)?,
                buffers: launch.addresses(),
                written: launch.written(self.kernel),
                threadgroup_bytes: launch.threadgroup_bytes,
                threadgroup_limit: self.threadgroup_limit,
                threads: launch.threads,
                grid: launch.grid,
                constants: &constants,
            },
            library: &self.library,
            schedule: launch.schedule,
            flushes: self.flushes,
        };
        self.protect(launch, false)?;
        // SAFETY: the entry belongs to the library, and `check` has seen that every binding of the
        // signature has a live buffer.
        let result = unsafe { grid.run(launch.host_threads(self.kernel), recorder) };
        self.protect(launch, true)?;
        result.map_err(|failure| self.explain(launch, failure))?;
        self.check_fillings(launch)
    }

    /// Makes the buffers that the kernel may only read unwritable, or writable again.
    fn protect(&self, launch: &Launch<'_>, writable: bool) -> Result<(), SimError> {
        for binding in launch.bindings {
            if !launch.is_written(self.kernel, binding.buffer) {
                binding
                    .buffer
                    .protect(writable)
                    .map_err(|source| SimError::Io {
                        path: format!("buffer({})", binding.index).into(),
                        source,
                    })?;
            }
        }
        Ok(())
    }

    fn check_fillings(&self, launch: &Launch<'_>) -> Result<(), SimError> {
        for binding in launch.bindings {
            if let Some(distance) = binding.buffer.broken_filling() {
                return Err(SimError::Overrun {
                    kernel: self.kernel.name.clone(),
                    index: binding.index,
                    distance,
                });
            }
        }
        Ok(())
    }

    fn explain(&self, launch: &Launch<'_>, failure: Failure) -> SimError {
        SimError::Fault {
            kernel: self.kernel.name.clone(),
            threadgroup: failure.threadgroup,
            thread: failure.thread,
            problem: match failure.problem {
                Problem::Said(words) => words,
                Problem::Trap(trap) => explain_trap(launch.bindings, trap),
            },
        }
    }
}

/// What an access that the processor refused was. Bindings come first: the system may map the guards of one right below a stack, where
/// a thread that has run out of it would come, too.
fn explain_trap(bindings: &[Binding<'_>], trap: Trap) -> String {
    let verb = if trap.write { "write" } else { "read" };
    for binding in bindings {
        if let Some(position) = binding.buffer.locate(trap.address) {
            let (index, len) = (binding.index, binding.buffer.len() as isize);
            return match position {
                before if before < 0 => {
                    format!(
                        "a {verb} {} bytes before the beginning of buffer({index})",
                        -before
                    )
                }
                behind if behind >= len => {
                    format!(
                        "a {verb} {} bytes behind the end of buffer({index})",
                        behind - len
                    )
                }
                inside => {
                    format!("a {verb} at byte {inside} of buffer({index}), which is read-only")
                }
            };
        }
    }
    if trap.stack_overflow {
        return "the thread's private arrays do not fit its stack".to_owned();
    }
    format!(
        "a {verb} at address {:#x}, far from every buffer",
        trap.address
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::buffer::SimBuffer;

    /// Breaks when an access beside a binding whose guard lies below a stack is taken for the end of that stack.
    #[test]
    fn the_guard_of_a_binding_below_a_stack_is_the_binding_s() {
        let buffer = SimBuffer::from_bytes(&[0; 16]).unwrap();
        let bindings = [Binding {
            index: 3,
            buffer: &buffer,
            offset: 0,
        }];
        let trap = |address| Trap {
            address,
            write: false,
            stack_overflow: true,
        };
        let behind = explain_trap(&bindings, trap(buffer.address().addr() + 28));
        assert_eq!(behind, "a read 12 bytes behind the end of buffer(3)");
        let elsewhere = explain_trap(&bindings, trap(8));
        assert_eq!(
            elsewhere,
            "the thread's private arrays do not fit its stack"
        );
    }
}
