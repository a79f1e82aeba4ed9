//! The default number of threads.
//!
//! One for each core that the process may use, for two threads of one core share its arithmetic and its way to memory.
//! Of cores that differ, only the fast ones: slow ones hardly add to what is read from memory, and at the end of each
//! dispatch the fast ones wait for the piece that a slow one has taken.

/// Cores that this process may use and that are worth using: the number of threads of a device unless one is given.
pub fn default_threads() -> usize {
    // The affinity mask, and the share of a control group.
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    system::fast_cores().map_or(available, |cores| cores.clamp(1, available))
}

/// What is known of one CPU of the system: a hardware thread.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpu {
    /// The CPUs of the same core, as the system lists them: `0,64` or `2-3`.
    siblings: String,
    /// A number that is larger for faster cores; `None` where the system does not tell.
    speed: Option<u64>,
}

/// Fast cores among CPUs: those within a fifth of the fastest. Of each core, only one CPU counts.
#[cfg(any(target_os = "linux", test))]
fn fast_cores_of(cpus: &[Cpu]) -> usize {
    let fastest = cpus.iter().filter_map(|cpu| cpu.speed).max().unwrap_or(0);
    let is_fast = |cpu: &&Cpu| cpu.speed.is_none_or(|speed| 5 * speed >= 4 * fastest);
    let mut cores: Vec<&str> = (cpus.iter().filter(is_fast))
        .map(|cpu| cpu.siblings.as_str())
        .collect();
    cores.sort_unstable();
    cores.dedup();
    cores.len()
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Cpu, fast_cores_of};

    const CPUS: &str = "/sys/devices/system/cpu";

    /// Fast cores in the affinity mask of this thread.
    pub fn fast_cores() -> Option<usize> {
        let allowed = allowed()?;
        let cpus: Vec<Cpu> = (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| is_set(cpu, &allowed))
            .map_while(cpu)
            .collect();
        (!cpus.is_empty()).then(|| fast_cores_of(&cpus))
    }

    fn allowed() -> Option<libc::cpu_set_t> {
        // SAFETY: a set of zeros is a valid one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call fills a set of the size that it is told.
        let status = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        (status == 0).then_some(set)
    }

    fn is_set(cpu: usize, set: &libc::cpu_set_t) -> bool {
        // SAFETY: `cpu` is below the size of a set.
        unsafe { libc::CPU_ISSET(cpu, set) }
    }

    /// What the system says about a CPU; `None` if it says nothing.
    fn cpu(index: usize) -> Option<Cpu> {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("{CPUS}/cpu{index}/{name}")).ok()?;
            Some(text.trim().to_owned())
        };
        // ARM has a capacity; elsewhere the highest frequency tells fast from slow.
        let speed = read("cpu_capacity").or_else(|| read("cpufreq/cpuinfo_max_freq"));
        Some(Cpu {
            siblings: read("topology/thread_siblings_list")?,
            speed: speed.and_then(|speed| speed.parse().ok()),
        })
    }
}

#[cfg(target_os = "macos")]
mod system {
    /// Performance cores, the first level that the system knows; all cores of an older Mac.
    pub fn fast_cores() -> Option<usize> {
        number(c"hw.perflevel0.physicalcpu").or_else(|| number(c"hw.physicalcpu"))
    }

    fn number(name: &std::ffi::CStr) -> Option<usize> {
        let (mut value, mut len) = (0i32, size_of::<i32>());
        // SAFETY: the call writes at most `len` bytes to a number that has as many.
        let status = unsafe {
            libc::sysctlbyname(
                name.as_ptr(),
                (&raw mut value).cast(),
                &mut len,
                std::ptr::null_mut(),
                0,
            )
        };
        (status == 0).then(|| usize::try_from(value).ok()).flatten()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    /// Other systems are not asked.
    pub fn fast_cores() -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &[(&str, Option<u64>)]) -> Vec<Cpu> {
        let cpu = |&(siblings, speed): &(&str, Option<u64>)| Cpu {
            siblings: siblings.to_owned(),
            speed,
        };
        list.iter().map(cpu).collect()
    }

    #[test]
    fn threads_of_one_core_count_once() {
        let machine = [("0,2", None), ("1,3", None), ("0,2", None), ("1,3", None)];
        assert_eq!(fast_cores_of(&cpus(&machine)), 2);
        // An affinity mask may hold only one thread of a core, and not the first.
        assert_eq!(fast_cores_of(&cpus(&machine[2..])), 2);
    }

    /// A laptop: two fast cores with two threads each, of which one boosts higher, and four slow ones.
    #[test]
    fn slow_cores_do_not_count() {
        let fast = [("0-1", Some(5_000)), ("0-1", Some(5_000))];
        let boost = [("2-3", Some(5_200)), ("2-3", Some(5_200))];
        let slow = ["4", "5", "6", "7"].map(|cpu| (cpu, Some(3_800)));
        let machine = [&fast[..], &boost, &slow].concat();
        assert_eq!(fast_cores_of(&cpus(&machine)), 2);
        assert_eq!(fast_cores_of(&cpus(&slow)), 4);
    }

    #[test]
    fn there_is_a_core_and_no_more_than_the_process_may_use() {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        assert!((1..=available).contains(&default_threads()));
    }
}
