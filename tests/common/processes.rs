//! Which processes of a build are alive, by way of `/proc`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A process, told from a later one with the same number by its start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    id: u32,
    parent: u32,
    started: String,
    space: PathBuf,
}

/// The processes below a process, and the process ID namespaces that they live in.
#[derive(Debug)]
pub struct Descendants {
    processes: BTreeSet<Process>,
    spaces: BTreeSet<PathBuf>,
}

impl Descendants {
    pub fn of(root: u32) -> Self {
        let all = all();
        let mut ids = BTreeSet::from([root]);
        loop {
            let more: Vec<u32> =
                all.iter().filter(|one| ids.contains(&one.parent)).map(|one| one.id).collect();
            let before = ids.len();
            ids.extend(more);
            if ids.len() == before {
                break;
            }
        }
        let own = std::fs::read_link("/proc/self/ns/pid").expect("has a namespace");
        let processes: BTreeSet<Process> = all.into_iter().filter(|one| ids.contains(&one.id)).collect();
        let spaces = processes.iter().map(|one| one.space.clone()).filter(|space| *space != own).collect();
        Descendants { processes, spaces }
    }

    /// Their numbers, the first process not among them.
    pub fn below(&self, root: u32) -> Vec<u32> {
        self.processes.iter().map(|one| one.id).filter(|id| *id != root).collect()
    }

    /// How many sandboxes are among them.
    pub fn sandboxes(&self) -> usize {
        self.spaces.len()
    }

    /// Waits until none of them is left, nor anything that they started in their sandboxes.
    #[track_caller]
    pub fn assert_end_within(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let left: Vec<Process> = all()
                .into_iter()
                .filter(|one| {
                    let same = |old: &Process| old.id == one.id && old.started == one.started;
                    self.spaces.contains(&one.space) || self.processes.iter().any(same)
                })
                .collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "processes survive: {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Every process that lives (a zombie does not).
fn all() -> Vec<Process> {
    let numbers = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    numbers.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn process(id: u32) -> Option<Process> {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // pid (name) state ppid … the start is the 22nd field
    let fields: Vec<&str> = status.rsplit_once(") ")?.1.split(' ').collect();
    let space = std::fs::read_link(format!("/proc/{id}/ns/pid")).unwrap_or_default();
    let (parent, started) = (fields[1].parse().ok()?, fields[19].to_owned());
    (fields[0] != "Z" && fields[0] != "X").then_some(Process { id, parent, started, space })
}
