//! The kernels as Metal libraries: the embedded one, or one compiled from each embedded source.

use std::sync::OnceLock;

use dispatch2::DispatchData;
use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLCompileOptions, MTLDevice, MTLLanguageVersion, MTLLibrary, MTLMathFloatingPointFunctions,
    MTLMathMode,
};

use super::system::Gpu;
use crate::sources::{METAL_LIBRARY, SOURCES};

type RawLibrary = Retained<ProtocolObject<dyn MTLLibrary>>;

/// Where functions come from.
pub(super) struct Libraries {
    gpu: Gpu,
    /// All kernels, compiled before the program was built.
    embedded: Option<RawLibrary>,
    /// A library for each source, compiled when it is first asked for.
    compiled: Vec<OnceLock<Result<RawLibrary, String>>>,
}

impl Libraries {
    pub(super) fn new(gpu: Gpu) -> Libraries {
        Libraries {
            embedded: METAL_LIBRARY.and_then(|bytes| load(&gpu, bytes)),
            compiled: SOURCES.iter().map(|_| OnceLock::new()).collect(),
            gpu,
        }
    }

    /// The library with the kernels of a `.metal` file.
    pub(super) fn of(&self, file: &str) -> Result<RawLibrary, String> {
        if let Some(library) = &self.embedded {
            return Ok(library.clone());
        }
        let at = SOURCES.binary_search_by_key(&file, |(name, _)| name);
        let at = at.map_err(|_| format!("no source {file} is embedded"))?;
        self.compiled[at]
            .get_or_init(|| compile(&self.gpu, SOURCES[at]))
            .clone()
    }
}

fn load(gpu: &Gpu, bytes: &'static [u8]) -> Option<RawLibrary> {
    let data = DispatchData::from_static_bytes(bytes);
    gpu.newLibraryWithData_error(&data)
        .inspect_err(|error| {
            let error = error.localizedDescription();
            tracing::warn!(%error, "the embedded Metal library is refused, compiling the sources");
        })
        .ok()
}

fn compile(gpu: &Gpu, (file, text): (&str, &str)) -> Result<RawLibrary, String> {
    tracing::debug!(file, "compiling for Metal");
    gpu.newLibraryWithSource_options_error(&NSString::from_str(text), Some(&options()))
        .map_err(|error| format!("{file}: {}", error.localizedDescription()))
}

/// The same language and mathematics as `cargo xtask shaders` asks for. Fast mathematics is Metal's
/// default; it would break masks of minus infinity.
fn options() -> Retained<MTLCompileOptions> {
    let options = MTLCompileOptions::new();
    options.setLanguageVersion(MTLLanguageVersion::Version3_1);
    if available!(macos = 15.0) {
        options.setMathMode(MTLMathMode::Safe);
        options.setMathFloatingPointFunctions(MTLMathFloatingPointFunctions::Precise);
    } else {
        #[allow(deprecated, reason = "macOS 14 has no other way to say it")]
        options.setFastMathEnabled(false);
    }
    options
}
