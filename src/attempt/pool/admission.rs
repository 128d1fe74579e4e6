//! How many attempts are under way at once. As many as were asked for compute at the same time; where attempts wait for
//! something else, more of them do, as long as processors have nothing to do and memory is left. Under load, three times
//! as many compute, and are each other's load. Pools that work at the same time share one admission.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::queue::Processors;
use crate::attempt::contention::Contention;
use crate::backend::usage;

/// Attempts under way for each one that may compute, at most.
const MOST_FOR_EACH: usize = 16;
/// Attempts that compute for each job where they are to contend: each gets a third of a processor.
pub(super) const CONTENDING_FOR_EACH: usize = 3;
/// One of so many attempts under way may open a file.
const OPENING_PART: usize = 4;
/// Time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after which is decided.
const LOOKS: u32 = 4;
/// Longest wait of a worker before it looks again whether it should go on.
const PATIENCE: Duration = Duration::from_millis(50);
/// Part of all memory that stays free.
const RESERVED_MEMORY: u64 = 4;

/// What of the workers of one pool, or of several at the same time, may work.
#[derive(Debug)]
pub struct Admission<'a> {
    jobs: usize,
    most: usize,
    limit: Limit<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

/// What bounds how many attempts are under way at once.
#[derive(Debug, Clone, Copy)]
enum Limit<'a> {
    /// As many as may compute.
    Jobs,
    /// More while processors are idle.
    Processors,
    /// So many more that they contend for the processors, with busy processes in the place of those that wait.
    Contention(&'a Contention),
}

#[derive(Debug)]
struct State {
    /// How many workers of each pool have a task.
    working: BTreeMap<u64, usize>,
    /// Pools so far.
    pools: u64,
    allowed: usize,
    active: usize,
    /// How many of the active ones open files.
    opening: usize,
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

/// A pool that works.
pub(super) struct Member<'a> {
    pub(super) admission: &'a Admission<'a>,
    number: u64,
    passes: usize,
}

/// That a worker has a task.
pub(super) struct Working<'a>(&'a Member<'a>);

/// The right to make attempts; it is given back when dropped.
pub(super) struct Permit<'a> {
    admission: &'a Admission<'a>,
    opens: bool,
}

/// What was seen since the last decision.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Processors that the attempts wanted on average, whether or not they had them.
    wanted: f64,
    full: bool,
    enough_memory: bool,
}

impl Admission<'static> {
    /// As many as may compute.
    pub fn exact(jobs: usize) -> Self {
        Admission::new(jobs, Limit::Jobs)
    }

    /// An [`Admission::shared`] under which so many were at work last.
    #[cfg(test)]
    pub(super) fn learned(jobs: usize, allowed: usize) -> Self {
        let admission = Admission::shared(jobs);
        admission.state().allowed = allowed;
        admission
    }

    /// More than so many while processors are idle, where this machine tells what processes do. It keeps how many there
    /// were last.
    pub fn shared(jobs: usize) -> Self {
        Admission::new(jobs, if usage::can_look() { Limit::Processors } else { Limit::Jobs })
    }
}

impl<'a> Admission<'a> {
    /// So many that they contend for the processors.
    pub(super) fn contending(jobs: usize, contention: &'a Contention) -> Self {
        Admission::new(jobs, if usage::can_look() { Limit::Contention(contention) } else { Limit::Jobs })
    }

    fn new(jobs: usize, limit: Limit<'a>) -> Self {
        let jobs = jobs.max(1);
        let state = State {
            working: BTreeMap::new(),
            pools: 0,
            allowed: jobs,
            active: 0,
            opening: 0,
            calm: false,
            crowded: None,
            full: false,
            looked: Instant::now(),
            looks: 0,
            runnable: 0,
            runners: BTreeSet::new(),
        };
        let most = if matches!(limit, Limit::Jobs) { jobs } else { jobs * MOST_FOR_EACH };
        Admission { jobs, most, limit, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Attempts that may compute at the same time.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Workers that can ever be of use.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Attempts that are probably going to be under way at the same time.
    pub(super) fn expected(&self) -> usize {
        self.state().allowed
    }

    /// A pool of so many passes begins.
    pub(super) fn join(&'a self, passes: usize) -> Member<'a> {
        let mut state = self.state();
        if state.working.is_empty() {
            (state.calm, state.full, state.looks, state.runnable) = (false, false, 0, 0);
            (state.crowded, state.looked) = (None, Instant::now());
            state.runners.clear();
        }
        state.pools += 1;
        let number = state.pools;
        state.working.insert(number, 0);
        Member { admission: self, number, passes }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another attempt may be made; none when a stop was asked for.
    pub(super) fn enter(&'a self) -> Option<Permit<'a>> {
        self.enter_to(false)
    }

    /// Waits until another runner may be started, or file opened: that computes, so few do it at the same time, and those
    /// that are ready can begin to wait.
    pub(super) fn enter_to_open(&'a self) -> Option<Permit<'a>> {
        self.enter_to(true)
    }

    fn enter_to(&'a self, opens: bool) -> Option<Permit<'a>> {
        let mut state = self.state();
        let may_open = |state: &State| match self.limit {
            Limit::Processors => state.opening < self.jobs.max(state.allowed / OPENING_PART),
            Limit::Jobs | Limit::Contention(_) => true,
        };
        while state.active >= state.allowed || (opens && !may_open(&state)) {
            state.full = true;
            if crate::interrupt::requested() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.active += 1;
        state.opening += usize::from(opens);
        state.full |= state.active == state.allowed;
        if state.active > self.jobs {
            state.crowded = Some(Instant::now());
        }
        Some(Permit { admission: self, opens })
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
        if let Limit::Contention(contention) = self.limit {
            contention.beside(self.jobs, 0);
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
        if matches!(self.limit, Limit::Jobs)
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
        if let Limit::Contention(contention) = self.limit {
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
        state.allowed = match self.limit {
            Limit::Contention(_) if seen.enough_memory => {
                let contending = self.jobs * CONTENDING_FOR_EACH;
                next(state.allowed.max(contending), (contending, self.most), seen)
            }
            Limit::Contention(_) | Limit::Jobs => self.jobs,
            Limit::Processors => next(state.allowed, (self.jobs, self.most), seen),
        };
        tracing::debug!("attempts at once: {}, after {seen:?}", state.allowed);
        drop(state);
        self.changed.notify_all();
    }
}

impl Member<'_> {
    /// Workers that are of use in any case: as many as may compute, and one that can keep its runner for each pass.
    pub(super) fn least(&self) -> usize {
        let computing = match self.admission.limit {
            Limit::Contention(_) => self.admission.jobs * CONTENDING_FOR_EACH,
            Limit::Jobs | Limit::Processors => self.admission.jobs,
        };
        computing.max(self.passes)
    }

    /// Whether this worker is one of those that are let in now. Every pool has its part, as many as may compute, and one
    /// for each pass.
    pub(super) fn wants(&self, worker: usize) -> bool {
        let state = self.admission.state();
        let all: usize = state.working.values().sum();
        let others = all - state.working.get(&self.number).copied().unwrap_or_default();
        let part = state.allowed / state.working.len().max(1);
        worker < state.allowed.saturating_sub(others).max(part).max(self.admission.jobs).max(self.passes)
    }

    /// What there is for the runners of the pool.
    pub(super) fn processors(&self) -> Processors {
        let pools = self.admission.state().working.len().max(1);
        let runners = match self.admission.limit {
            // Whoever does not compute is replaced by a busy process.
            Limit::Contention(_) => self.least(),
            Limit::Jobs | Limit::Processors => 1,
        };
        Processors { number: self.admission.jobs as f64 / pools as f64, runners }
    }

    /// A worker of the pool has a task until this is dropped.
    pub(super) fn working(&self) -> Working<'_> {
        self.count(|working| working + 1);
        Working(self)
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        if let Some(working) = self.admission.state().working.get_mut(&self.number) {
            *working = change(*working);
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.admission.state().working.remove(&self.number);
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.count(|working| working.saturating_sub(1));
        self.0.admission.changed.notify_all();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        if state.active > self.admission.jobs {
            state.crowded = Some(Instant::now());
        }
        state.active -= 1;
        state.opening -= usize::from(self.opens);
        drop(state);
        // Who is woken may wait for the other of both rights.
        self.admission.changed.notify_all();
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

    fn wanted(member: &Member<'_>) -> usize {
        (0..100).take_while(|worker| member.wants(*worker)).count()
    }

    #[test]
    fn who_calms_down_never_lets_more_in_and_knows_when_it_was_crowded() {
        let admission = Admission::learned(2, 5);
        let start = Instant::now();
        let member = admission.join(1);
        assert_eq!(wanted(&member), 5);
        let permits: Vec<_> = (0..3).map(|_| admission.enter().unwrap()).collect();
        assert!(admission.was_crowded(start));
        admission.calm_down();
        drop(permits);
        let later = Instant::now();
        let _one = admission.enter().unwrap();
        assert!(!admission.was_crowded(later));
        assert_eq!((wanted(&member), admission.state().calm), (2, true));
        let beside = admission.join(1);
        assert!(admission.state().calm, "another pool is at work");
        drop((member, beside));
        let next = admission.join(1);
        assert_eq!((wanted(&next), admission.state().calm), (2, false), "the next pool begins anew");
    }

    #[test]
    fn pools_at_the_same_time_share_what_is_allowed_and_each_has_as_many_as_may_compute() {
        let admission = Admission::learned(2, 6);
        let (one, other) = (admission.join(1), admission.join(1));
        assert_eq!((wanted(&one), wanted(&other)), (6, 6), "none of them works yet");
        let working: Vec<_> = (0..2).map(|_| one.working()).collect();
        assert_eq!((wanted(&one), wanted(&other)), (6, 4));
        let more: Vec<_> = (0..4).map(|_| one.working()).collect();
        let few = other.working();
        assert_eq!((wanted(&one), wanted(&other)), (5, 3), "half of all are for each");
        let third = admission.join(1);
        assert_eq!((wanted(&one), wanted(&other), wanted(&third)), (5, 2, 2));
        drop((working, more));
        assert_eq!((wanted(&one), wanted(&other)), (5, 6));
        drop(few);
    }

    #[test]
    fn few_open_files_at_the_same_time() {
        let admission = Admission::learned(1, 8);
        let opening: Vec<_> = (0..2).map(|_| admission.enter_to_open().unwrap()).collect();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| drop(admission.enter_to_open().unwrap()));
            let _attempt = admission.enter().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waits.is_finished());
            drop(opening);
            waits.join().unwrap();
        });
        let state = admission.state();
        assert_eq!((state.opening, state.active), (0, 0));
    }

    /// Looks often enough for a decision while so many attempts are under way in a runner that does nothing.
    fn allowed_after_waiting(admission: &Admission<'_>) -> usize {
        let mut runner = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let member = admission.join(1);
        admission.runner(Some(runner.id()));
        std::thread::sleep(Duration::from_millis(200));
        let _permits: Vec<_> = (0..2).map(|_| admission.enter().unwrap()).collect();
        for _ in 0..LOOKS {
            std::thread::sleep(LOOK);
            admission.look();
        }
        runner.kill().unwrap();
        runner.wait().unwrap();
        wanted(&member)
    }

    #[test]
    fn runners_that_wait_let_more_in_where_the_number_is_not_fixed() {
        let shared = Admission::shared(2);
        assert_eq!(allowed_after_waiting(&shared), 4);
        assert_eq!(shared.expected(), 4, "it is kept");
        assert_eq!(allowed_after_waiting(&Admission::exact(2)), 2);
    }

    #[test]
    fn attempts_under_load_are_three_times_as_many_or_more_and_busy_processes_replace_those_that_wait() {
        let contention = contention::start().unwrap();
        let all = contention.busy();
        let after = allowed_after_waiting(&Admission::contending(2, &contention));
        assert_eq!(after, 12, "more, as none computes");
        for (computing, busy) in [(0, all), (2, all), (3, all - 1), (all + 1, 1), (all + 9, 0), (1, all)] {
            contention.beside(2, computing);
            assert_eq!(contention.busy(), busy, "beside {computing}");
        }
        contention.beside(2, 99);
        let admission = Admission::contending(2, &contention);
        assert_eq!(wanted(&admission.join(1)), 2, "until there is something to look at");
        admission.calm_down();
        assert_eq!(contention.busy(), all, "nobody else contends");
    }
}
