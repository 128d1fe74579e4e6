//! Where the time of a run goes: every moment between the first and the last step belongs to exactly one of them. What
//! other threads do meanwhile is beside.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::record::spent::Spent;

/// The steps of a run. Steps may be inside one another; time belongs to the innermost one.
#[derive(Debug)]
pub struct Ledger {
    book: Mutex<Book>,
    clock: fn() -> Reading,
    /// The thread whose steps follow one another.
    owner: ThreadId,
}

/// Wall and processor time since some moment.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    wall: Duration,
    processor: Duration,
}

#[derive(Debug, Default)]
struct Book {
    /// In the order in which they first began.
    rows: Vec<Spent>,
    /// Places of the rows that are open, the innermost last, each with what distinguishes it from others of its name.
    open: Vec<(u64, usize)>,
    /// Rows of other threads that are open, with when they began.
    beside: Vec<(u64, usize, Duration)>,
    next: u64,
    last: Reading,
}

/// A step that is under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Step<'a> {
    ledger: &'a Ledger,
    ticket: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger { book: Mutex::default(), clock: now, owner: std::thread::current().id() }
    }
}

impl Ledger {
    /// Begins a step; time that no step was open in is nobody's.
    pub fn begin(&self, name: &str) -> Step<'_> {
        Step { ledger: self, ticket: self.open(name) }
    }

    /// Begins a step that is ended with [`Ledger::close`]. Gives its ticket.
    pub fn open(&self, name: &str) -> u64 {
        let now = (self.clock)();
        let mut book = self.book();
        book.charge(now);
        let beside = std::thread::current().id() != self.owner;
        let known = book.rows.iter().position(|row| row.step == name && row.beside == beside);
        let place = known.unwrap_or_else(|| {
            book.rows.push(Spent { step: name.to_owned(), beside, ..Spent::default() });
            book.rows.len() - 1
        });
        let ticket = book.next;
        book.next += 1;
        if beside {
            book.beside.push((ticket, place, now.wall));
        } else {
            book.open.push((ticket, place));
        }
        ticket
    }

    /// Ends a step. Gives what all steps of its name have cost so far.
    pub fn close(&self, ticket: u64) -> Option<Spent> {
        let now = (self.clock)();
        let mut book = self.book();
        book.charge(now);
        if let Some(at) = book.beside.iter().position(|(one, ..)| *one == ticket) {
            let (_, place, began) = book.beside.remove(at);
            let row = book.rows.get_mut(place)?;
            row.seconds += now.wall.saturating_sub(began).as_secs_f64();
            return Some(row.clone());
        }
        let at = book.open.iter().position(|(one, _)| *one == ticket)?;
        let (_, place) = book.open.remove(at);
        book.rows.get(place).cloned()
    }

    /// Counts something that was done in a step.
    pub fn count(&self, ticket: u64) {
        let mut book = self.book();
        let beside = book.beside.iter().map(|(one, place, _)| (*one, *place));
        let place = book.open.iter().copied().chain(beside).find(|(one, _)| *one == ticket).map(|(_, at)| at);
        if let Some(row) = place.and_then(|place| book.rows.get_mut(place)) {
            row.count += 1;
        }
    }

    /// All steps so far, in the order in which they first began.
    pub fn spent(&self) -> Vec<Spent> {
        let now = (self.clock)();
        let mut book = self.book();
        book.charge(now);
        book.rows.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Gives the time since the last look to the innermost step.
    fn charge(&mut self, now: Reading) {
        let last = std::mem::replace(&mut self.last, now);
        let Some(row) = self.open.last().and_then(|(_, place)| self.rows.get_mut(*place)) else { return };
        row.seconds += now.wall.saturating_sub(last.wall).as_secs_f64();
        row.processor_seconds += now.processor.saturating_sub(last.processor).as_secs_f64();
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.ledger.close(self.ticket);
    }
}

/// The monotonic clock, and the processor time of this process and of all children that it has waited for.
fn now() -> Reading {
    let wall = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let used = |who| getrusage(who).map_or(Duration::ZERO, |usage| processor_time(&usage));
    Reading {
        wall: wall.unwrap_or_default(),
        processor: used(UsageWho::RUSAGE_SELF) + used(UsageWho::RUSAGE_CHILDREN),
    }
}

fn processor_time(usage: &Usage) -> Duration {
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(microseconds.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static SECONDS: Cell<u64> = const { Cell::new(0) });

    /// A clock that goes on by a second, and half a second of the processor, whenever it is read.
    fn ticking() -> Reading {
        let read = SECONDS.get();
        SECONDS.set(read + 1);
        Reading { wall: Duration::from_secs(read), processor: Duration::from_millis(read * 500) }
    }

    #[test]
    fn every_moment_belongs_to_the_innermost_step() {
        let ledger = Ledger { clock: ticking, ..Ledger::default() };
        let outer = ledger.begin("screen");
        for _ in 0..2 {
            let inner = ledger.open("round");
            ledger.count(inner);
            ledger.close(inner);
        }
        drop(outer);
        drop(ledger.begin("write"));
        let rows: Vec<(String, u64, f64, f64)> = ledger
            .spent()
            .into_iter()
            .map(|row| (row.step, row.count, row.seconds, row.processor_seconds))
            .collect();
        let row = |step: &str, count, seconds: f64| (step.to_owned(), count, seconds, seconds / 2.0);
        assert_eq!(rows, [row("screen", 0, 3.0), row("round", 2, 2.0), row("write", 0, 1.0)]);
    }

    #[test]
    fn what_another_thread_does_stands_beside() {
        let ledger = Ledger::default();
        let outer = ledger.begin("screen");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _step = ledger.begin("environment");
                std::thread::sleep(Duration::from_millis(30));
            });
        });
        drop(outer);
        let spent = ledger.spent();
        let [screen, environment] = spent.as_slice() else { panic!("{spent:?}") };
        assert!(!screen.beside && environment.beside && environment.seconds >= 0.03, "{spent:?}");
        assert!(screen.seconds >= environment.seconds && environment.processor_seconds == 0.0);
        let (whole, _) = crate::record::spent::total(&spent);
        assert!((whole - screen.seconds).abs() < 1e-9);
    }

    #[test]
    fn work_of_a_child_is_seen_once_it_was_waited_for() {
        let ledger = Ledger::default();
        let step = ledger.begin("child");
        let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", busy]).status().unwrap();
        assert!(status.success());
        drop(step);
        let spent = ledger.spent();
        assert!(spent[0].processor_seconds > 0.001 && spent[0].seconds > 0.001, "{spent:?}");
    }
}
