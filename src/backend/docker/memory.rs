//! What a container may hold together: what the user says, else a share of the memory of the engine's machine.

use super::{ContainerLimits, Engine, JobLimits};
use crate::error::Result;

/// As other backends say it.
const MISSING: &str = "a bound on the memory of all processes of a job together: the engine sets none";

/// What an engine says of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// Bytes of its machine; 0 where it does not say.
    total: u64,
    /// Whether it bounds containers.
    is_bounded: bool,
}

impl Memory {
    /// Asks the engine.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn of(engine: &Engine) -> Result<Self> {
        let info = engine.ask("asking about memory", engine.client().info())?;
        Ok(Memory {
            total: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default(),
            is_bounded: info.memory_limit == Some(true),
        })
    }

    /// What is missing from full isolation, in words.
    pub(super) fn missing(self) -> Option<String> {
        (!self.is_bounded).then(|| MISSING.to_owned())
    }

    /// The limits of a job's container: no more memory than the user gives containers or jobs, and never all of the
    /// machine's.
    pub(super) fn bound(self, container: ContainerLimits, job: JobLimits) -> ContainerLimits {
        let said = [container.memory, job.memory].into_iter().filter(|bytes| *bytes > 0).min();
        ContainerLimits { memory: said.unwrap_or(self.total / 4 * 3), ..container }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_holds_what_the_smallest_limit_says() {
        let memory = Memory { total: 8 << 30, is_bounded: true };
        let bound = |container: u64, job: u64| {
            let container = ContainerLimits { memory: container, processes: 7, milli_cpus: 9 };
            let limits = memory.bound(container, JobLimits { memory: job, ..JobLimits::default() });
            assert_eq!((limits.processes, limits.milli_cpus), (7, 9));
            limits.memory
        };
        assert_eq!((bound(0, 0), bound(0, 5), bound(4, 0)), (6 << 30, 5, 4));
        assert_eq!((bound(4, 5), bound(5, 4)), (4, 4));
        assert_eq!(memory.missing(), None);
        assert!(Memory { is_bounded: false, ..memory }.missing().is_some());
    }
}
