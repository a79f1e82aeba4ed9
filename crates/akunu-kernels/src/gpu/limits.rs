//! What the system says about a GPU's memory and its layers, as decisions.

/// The name of a class that talks to Apple's GPUs itself. Metal's API validation, shader validation and capture put objects of
/// other classes (`MTLDebugDevice`, `CaptureMTLDevice`) around it.
pub fn is_driver_class(class: &str) -> bool {
    class.starts_with("AGX")
}

/// Bytes that may be wired of what the system recommends for the whole GPU, when `allocated` of them are taken by this process.
///
/// The recommended size is also the most that the system wires for all processes together. Beyond it command buffers fail, and
/// machines have stopped; so a sixteenth, at most 2 GiB, is left to the screen and to other programs. A system that recommends
/// nothing has no limit.
pub fn wirable_bytes(recommended: u64, allocated: u64) -> u64 {
    const MOST_LEFT: u64 = 2 << 30;
    if recommended == 0 {
        return u64::MAX;
    }
    let left_to_others = (recommended / 16).min(MOST_LEFT);
    recommended.saturating_sub(left_to_others.saturating_add(allocated))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when pipelines that a validation layer has changed get into the archive of those without.
    #[test]
    fn layers_around_the_gpu_are_not_the_driver() {
        assert!(is_driver_class("AGXG13XDevice"));
        for layer in ["CaptureMTLDevice", "MTLDebugDevice", "MTLToolsDevice", ""] {
            assert!(!is_driver_class(layer), "{layer}");
        }
    }

    /// Breaks when a context may fill the memory up to the last byte.
    #[test]
    fn not_all_that_is_recommended_is_wired() {
        const GIB: u64 = 1 << 30;
        assert_eq!(wirable_bytes(16 * GIB, 0), 15 * GIB);
        assert_eq!(wirable_bytes(107 * GIB, 5 * GIB), 100 * GIB);
        assert_eq!(wirable_bytes(16 * GIB, 15 * GIB), 0);
        assert_eq!(wirable_bytes(16 * GIB, 40 * GIB), 0);
        assert_eq!(wirable_bytes(0, GIB), u64::MAX);
    }
}
