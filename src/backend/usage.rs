//! What processes and the machine use, as `/proc` tells it. Nothing here is a measurement that anything but speed may
//! depend on.

use fs_err::read_to_string;

/// Processes that are looked at below one, at most.
const MOST_PROCESSES: usize = 2000;

/// Threads of a process, and of all that live below it, that run or wait for a processor at this moment; none when the
/// process is gone.
pub(crate) fn runnable_below(process: u32) -> Option<usize> {
    let (mut open, mut seen, mut runnable) = (vec![process], 0, 0);
    while let Some(process) = open.pop() {
        seen += 1;
        let Ok(tasks) = fs_err::read_dir(format!("/proc/{process}/task")) else { continue };
        for task in tasks.flatten() {
            let read = |name| read_to_string(task.path().join(name)).unwrap_or_default();
            runnable += usize::from(is_runnable(&read("stat")));
            if seen + open.len() < MOST_PROCESSES {
                open.extend(read("children").split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
            }
        }
    }
    (runnable > 0 || std::fs::exists(format!("/proc/{process}")).unwrap_or(false)).then_some(runnable)
}

/// Whether this machine tells who lives below a process.
pub(crate) fn can_look() -> bool {
    std::fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// The state of a thread. Its name, which comes before, may hold anything.
fn is_runnable(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.starts_with(" R"))
}

/// Memory that is to be had without anybody losing what they hold, and all memory, in bytes.
pub(crate) fn memory() -> Option<(u64, u64)> {
    let (available, total) = memory_in(&read_to_string("/proc/meminfo").ok()?)?;
    let number = |path: &str| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // A container has a bound of its own, in either version of control groups.
    let bounds = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    let bound = bounds.iter().find_map(|(most, used)| Some((number(most)?, number(used)?)));
    Some(match bound {
        Some((most, used)) if most < total => (available.min(most.saturating_sub(used)), most),
        _ => (available, total),
    })
}

fn memory_in(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
    };
    Some((field("MemAvailable:")?, field("MemTotal:")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn fields_are_found_whatever_a_process_calls_itself() {
        assert!(is_runnable("12 (a) S b (c)) R 1 12 12 0"));
        assert!(!is_runnable("12 (a) R b) S 1 12 12 0"));
        assert!(!is_runnable("12 (a"));
        assert_eq!(memory_in("MemTotal: 8 kB\nMemAvailable:  3 kB\n"), Some((3072, 8192)));
    }

    #[test]
    fn busy_grandchildren_count_and_sleeping_ones_do_not() {
        let start = |script: &str| std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let seen = |script: &str, wanted: usize| {
            let mut child = start(script);
            let deadline = Instant::now() + Duration::from_secs(30);
            let mut seen = None;
            while seen != Some(wanted) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
                seen = runnable_below(child.id());
            }
            child.kill().unwrap();
            child.wait().unwrap();
            (seen, runnable_below(child.id()))
        };
        assert_eq!(seen("timeout 3 sh -c 'while :; do :; done' & wait", 1), (Some(1), None));
        assert_eq!(seen("sleep 20 & sleep 20 & wait", 0), (Some(0), None));
    }
}
