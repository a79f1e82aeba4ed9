//! What can go wrong between a `.metal` file and a finished launch.

use crate::msl::ReadError;
use akunu_kernels::flatten::FlattenError;
use std::path::PathBuf;

/// An error of the simulator or of the PTX compiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A source could not be put together.
    #[error(transparent)]
    Flatten(#[from] FlattenError),
    /// A source's declarations could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A folder or file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no clang that is new enough.
    #[error(
        "clang 19 or newer, or Apple's 17 or newer, is needed ({found}); on Debian: apt-get install clang-19"
    )]
    NoCompiler {
        /// Those that are too old, or the names that were tried.
        found: String,
    },
    /// clang refused a kernel source.
    #[error("{file} does not compile:\n{messages}")]
    Compile {
        /// The `.metal` file.
        file: String,
        /// What clang said, with the lines of the original files.
        messages: String,
    },
    /// A compiled library could not be loaded.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library, or the symbol in it.
        path: PathBuf,
        /// What the loader said.
        source: libloading::Error,
    },
    /// No `.metal` file has this kernel.
    #[error("no kernel `{name}` under {folder}{unread}")]
    UnknownKernel {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// The files that could not be read, and why: the kernel may be in one of them.
        unread: String,
    },
    /// The launch does not fit the kernel.
    #[error("kernel `{kernel}`: {problem}")]
    BadLaunch {
        /// The kernel.
        kernel: String,
        /// What does not fit, and what would.
        problem: String,
    },
    /// The kernel did something that a GPU would not forgive.
    #[error("kernel `{kernel}`, threadgroup {threadgroup:?}{}: {problem}", thread_words(*.thread))]
    Fault {
        /// The kernel.
        kernel: String,
        /// `threadgroup_position_in_grid`.
        threadgroup: [u32; 3],
        /// `thread_index_in_threadgroup`, where one thread is to blame.
        thread: Option<u32>,
        /// What it did, with the source line where it is known.
        problem: String,
    },
    /// The bytes beside a binding were changed.
    #[error("kernel `{kernel}` wrote {} buffer({index})", distance_words(*.distance))]
    Overrun {
        /// The kernel.
        kernel: String,
        /// The binding.
        index: u32,
        /// Bytes from its beginning when negative, else behind its end.
        distance: isize,
    },
}

fn thread_words(thread: Option<u32>) -> String {
    thread.map_or(String::new(), |thread| format!(", thread {thread}"))
}

fn distance_words(distance: isize) -> String {
    if distance < 0 {
        format!("{} bytes before the beginning of", -distance)
    } else {
        format!("{distance} bytes behind the end of")
    }
}
