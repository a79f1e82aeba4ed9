//! Whether this machine runs out of memory.

/// Below this share of all memory, models that nobody uses make room.
const SHORT: f64 = 0.1;

/// Whether little memory is left. Where the system does not say, there is enough.
pub(crate) fn is_short() -> bool {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available(&told).is_some_and(|share| share < SHORT)
}

/// The share of the memory that programs can still have, from Linux's `/proc/meminfo`.
fn available(told: &str) -> Option<f64> {
    let kilobytes = |name: &str| -> Option<f64> {
        let line = told.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(kilobytes("MemAvailable:")? / kilobytes("MemTotal:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when memory that is only a cache of files counts as taken, or when a missing line is taken for a full memory.
    #[test]
    fn what_programs_can_have_is_available() {
        let told = "MemTotal:       16000 kB\nMemFree:          100 kB\nMemAvailable:    4000 kB\n";
        let share = available(told).expect("a share");
        assert!((share - 0.25).abs() < 1e-9);
        assert_eq!(available("MemTotal: 16000 kB\n"), None);
        assert_eq!(available(""), None);
    }
}
