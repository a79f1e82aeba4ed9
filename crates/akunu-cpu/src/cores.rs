//! How many threads to start when nobody says.
//!
//! Two threads of one core share its arithmetic and its way to memory, and wait for each other at every
//! barrier: one thread a core is best.

/// Cores that this process may use.
pub(crate) fn count() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    physical().map_or(available, |cores| cores.clamp(1, available))
}

/// Cores of the machine, where the system tells: one for each CPU that is the first of its siblings.
#[cfg(target_os = "linux")]
fn physical() -> Option<usize> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let siblings = |cpu: usize| {
        std::fs::read_to_string(format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list")).ok()
    };
    let lists = (0..).map_while(siblings).enumerate();
    let cores = lists.filter(|(cpu, list)| is_first(*cpu, list)).count();
    (cores > 0).then_some(cores)
}

#[cfg(not(target_os = "linux"))]
fn physical() -> Option<usize> {
    None
}

/// Whether a CPU comes first in a list as the system writes it: `0,64` or `2-3`.
#[cfg(any(target_os = "linux", test))]
fn is_first(cpu: usize, siblings: &str) -> bool {
    let first = siblings.trim().split([',', '-']).next();
    first.and_then(|first| first.parse().ok()) == Some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sibling_stands_for_its_core() {
        let machine = ["0,2\n", "1,3\n", "0,2\n", "1,3\n"];
        let cores = machine.iter().enumerate();
        assert_eq!(cores.filter(|(cpu, list)| is_first(*cpu, list)).count(), 2);
        assert!(is_first(2, "2-3") && !is_first(3, "2-3"));
        assert!(is_first(5, "5") && !is_first(5, ""));
    }

    #[test]
    fn there_is_a_core_and_no_more_than_the_process_may_use() {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        assert!((1..=available).contains(&count()));
    }
}
