//! How much memory the host has left, for devices that live in it.

/// Bytes that can be allocated without swapping; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    available_of(&text)
}

/// The line `MemAvailable:   12345 kB`.
fn available_of(text: &str) -> Option<u64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_and_nothing_else_is_taken_for_it() {
        let text = "MemTotal:  24 kB\nMemFree:    1 kB\nMemAvailable:     17 kB\nBuffers: 9 kB\n";
        assert_eq!(available_of(text), Some(17 * 1024));
        for other in [
            "",
            "MemFree: 3 kB",
            "MemAvailable: 3 MB",
            "MemAvailable: kB",
        ] {
            assert_eq!(available_of(other), None, "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_it() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
