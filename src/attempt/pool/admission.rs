//! How many attempts are under way at once. As many as were asked for compute at the same time; where attempts wait for
//! something else, more of them do, as long as processors have nothing to do and memory is left. Under load, three times
//! as many compute, and are each other's load.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Crowd;
use crate::backend::usage;

/// Attempts under way for each one that may compute, at most.
const MOST_FOR_EACH: usize = 8;
/// Attempts that compute for each job where they are to contend: each gets a third of a processor.
const CONTENDING_FOR_EACH: usize = 3;
/// Time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after which is decided.
const LOOKS: u32 = 4;
/// Longest wait of a worker before it looks again whether it should go on.
const PATIENCE: Duration = Duration::from_millis(50);
/// Part of all memory that stays free.
const RESERVED_MEMORY: u64 = 4;

/// What of a pool's workers may work.
pub(super) struct Admission<'a> {
    jobs: usize,
    most: usize,
    crowd: Crowd<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    active: usize,
    /// Whether more than `jobs` attempts are out of the question from now on.
    calm: bool,
    /// When there were last more than `jobs`.
    crowded: Option<Instant>,
    /// Whether all that may work did since the last look.
    full: bool,
    looked: Instant,
    looks: u32,
    /// Threads that ran or waited for a processor, in all looks since the last decision.
    runnable: usize,
    /// Processes of the runners.
    runners: BTreeSet<u32>,
}

/// The right to make attempts; it is given back when dropped.
pub(super) struct Permit<'a>(&'a Admission<'a>);

/// What was seen since the last decision.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Processors that the attempts wanted on average, whether or not they had them.
    wanted: f64,
    full: bool,
    enough_memory: bool,
}

impl<'a> Admission<'a> {
    /// So many `jobs`, and as many more as the crowd says where this machine tells what processes do.
    pub(super) fn new(jobs: usize, crowd: Crowd<'a>) -> Self {
        let crowd = if usage::can_look() { crowd } else { Crowd::Exact };
        let (most, before) = match crowd {
            Crowd::Exact => (jobs, jobs),
            Crowd::Idle(learned) => (jobs * MOST_FOR_EACH, learned.load(Ordering::Relaxed)),
            // More of them once there are processes that can be looked at.
            Crowd::Contending(_) => (jobs * MOST_FOR_EACH, jobs),
        };
        let state = State {
            allowed: before.clamp(jobs, most),
            active: 0,
            calm: false,
            crowded: None,
            full: false,
            looked: Instant::now(),
            looks: 0,
            runnable: 0,
            runners: BTreeSet::new(),
        };
        Admission { jobs, most, crowd, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Workers that can ever be of use.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another attempt may be made; none when a stop was asked for.
    pub(super) fn enter(&'a self) -> Option<Permit<'a>> {
        let mut state = self.state();
        while state.active >= state.allowed {
            state.full = true;
            if crate::interrupt::requested() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.active += 1;
        state.full |= state.active == state.allowed;
        if state.active > self.jobs {
            state.crowded = Some(Instant::now());
        }
        Some(Permit(self))
    }

    /// Whether this worker is one of those that are let in now.
    pub(super) fn wants(&self, worker: usize) -> bool {
        worker < self.state().allowed
    }

    /// Whether more than `jobs` attempts were under way at any time since then.
    pub(super) fn was_crowded(&self, since: Instant) -> bool {
        let state = self.state();
        state.active > self.jobs || state.crowded.is_some_and(|last| last >= since)
    }

    /// From now on no more than `jobs`: something took too long, and that must not be for want of a processor.
    pub(super) fn calm_down(&self) {
        let mut state = self.state();
        state.calm = true;
        state.allowed = self.jobs;
        match self.crowd {
            Crowd::Exact => {}
            Crowd::Idle(learned) => learned.store(0, Ordering::Relaxed),
            Crowd::Contending(contention) => contention.beside(self.jobs, 0),
        }
    }

    /// A runner has started.
    pub(super) fn runner(&self, process: Option<u32>) {
        if let Some(process) = process {
            self.state().runners.insert(process);
        }
    }

    /// Looks at the processes of the attempts, if the last look is some time ago.
    pub(super) fn look(&self) {
        let mut state = self.state();
        if matches!(self.crowd, Crowd::Exact)
            || state.calm
            || state.looked.elapsed() < LOOK
            || state.runners.is_empty()
        {
            return;
        }
        let mut runnable = 0;
        state.runners.retain(|process| {
            let below = usage::runnable_below(*process);
            runnable += below.unwrap_or(0);
            below.is_some()
        });
        state.looked = Instant::now();
        if let Crowd::Contending(contention) = self.crowd {
            contention.beside(self.jobs, runnable);
        }
        state.runnable += runnable;
        state.looks += 1;
        if state.looks < LOOKS {
            return;
        }
        let seen = Seen {
            wanted: state.runnable as f64 / f64::from(state.looks),
            full: std::mem::take(&mut state.full),
            enough_memory: usage::memory().is_some_and(|(free, total)| free > total / RESERVED_MEMORY),
        };
        (state.looks, state.runnable) = (0, 0);
        state.allowed = match self.crowd {
            Crowd::Contending(_) if seen.enough_memory => {
                let contending = self.jobs * CONTENDING_FOR_EACH;
                next(state.allowed.max(contending), (contending, self.most), seen)
            }
            Crowd::Contending(_) | Crowd::Exact => self.jobs,
            Crowd::Idle(learned) => {
                let allowed = next(state.allowed, (self.jobs, self.most), seen);
                learned.store(allowed, Ordering::Relaxed);
                allowed
            }
        };
        drop(state);
        self.changed.notify_all();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.active > self.0.jobs {
            state.crowded = Some(Instant::now());
        }
        state.active -= 1;
        drop(state);
        self.0.changed.notify_one();
    }
}

/// How many are let in after what was seen. Pure.
fn next(allowed: usize, (jobs, most): (usize, usize), seen: Seen) -> usize {
    let part = seen.wanted / jobs as f64;
    let wanted = if !seen.enough_memory {
        jobs
    } else if part < 0.75 && seen.full {
        // As many as would want all processors, but not more than twice as many as now.
        ((allowed as f64 / part.max(0.5)) as usize).max(allowed + 1)
    } else if part > 1.25 {
        allowed - allowed.div_ceil(8)
    } else {
        allowed
    };
    wanted.clamp(jobs, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    use crate::attempt::contention;

    const IDLE: Seen = Seen { wanted: 0.1, full: true, enough_memory: true };

    #[test]
    fn attempts_that_wait_make_room_for_others_until_processors_are_wanted() {
        let after = |allowed, seen| next(allowed, (2, 16), seen);
        assert_eq!(after(2, IDLE), 4);
        assert_eq!(after(4, Seen { wanted: 1.4, ..IDLE }), 5);
        assert_eq!(after(12, IDLE), 16, "never more than the most");
        assert_eq!(after(4, Seen { wanted: 1.8, ..IDLE }), 4, "used");
        assert_eq!(after(16, Seen { wanted: 3.0, ..IDLE }), 14, "more than may compute");
        assert_eq!(after(2, Seen { wanted: 9.0, ..IDLE }), 2, "never fewer than was asked for");
        assert_eq!(after(4, Seen { full: false, ..IDLE }), 4, "nobody waits to be let in");
        assert_eq!(after(9, Seen { enough_memory: false, ..IDLE }), 2);
        assert_eq!(next(3, (1, 8), Seen { wanted: 1.5, ..IDLE }), 2, "a bound below the processors");
    }

    #[test]
    fn who_calms_down_never_lets_more_in_and_knows_when_it_was_crowded() {
        let (learned, start) = (AtomicUsize::new(5), Instant::now());
        let admission = Admission::new(2, Crowd::Idle(&learned));
        assert!(admission.wants(4) && !admission.wants(5));
        let permits: Vec<_> = (0..3).map(|_| admission.enter().unwrap()).collect();
        assert!(admission.was_crowded(start));
        admission.calm_down();
        drop(permits);
        let later = Instant::now();
        let _one = admission.enter().unwrap();
        assert!(!admission.was_crowded(later) && !admission.wants(2));
        assert_eq!(learned.load(Ordering::Relaxed), 0);
    }

    /// Looks often enough for a decision while so many attempts are under way in a runner that does nothing.
    fn allowed_after_waiting(crowd: Crowd<'_>) -> usize {
        let mut runner = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let admission = Admission::new(2, crowd);
        admission.runner(Some(runner.id()));
        std::thread::sleep(Duration::from_millis(200));
        let _permits: Vec<_> = (0..2).map(|_| admission.enter().unwrap()).collect();
        for _ in 0..LOOKS {
            std::thread::sleep(LOOK);
            admission.look();
        }
        runner.kill().unwrap();
        runner.wait().unwrap();
        (0..100).take_while(|worker| admission.wants(*worker)).count()
    }

    #[test]
    fn runners_that_wait_let_more_in_where_the_number_is_not_fixed() {
        let learned = AtomicUsize::new(0);
        assert_eq!(allowed_after_waiting(Crowd::Idle(&learned)), 4);
        assert_eq!(learned.load(Ordering::Relaxed), 4);
        assert_eq!(allowed_after_waiting(Crowd::Exact), 2);
    }

    #[test]
    fn attempts_under_load_are_three_times_as_many_or_more_and_busy_processes_replace_those_that_wait() {
        let contention = contention::start().unwrap();
        let all = contention.busy();
        assert_eq!(allowed_after_waiting(Crowd::Contending(&contention)), 12, "more, as none computes");
        for (computing, busy) in [(0, all), (2, all), (3, all - 1), (all + 1, 1), (all + 9, 0), (1, all)] {
            contention.beside(2, computing);
            assert_eq!(contention.busy(), busy, "beside {computing}");
        }
        contention.beside(2, 99);
        let admission = Admission::new(2, Crowd::Contending(&contention));
        assert!(admission.wants(1) && !admission.wants(2), "until there is something to look at");
        admission.calm_down();
        assert_eq!(contention.busy(), all, "nobody else contends");
    }
}
