//! Progress at the terminal: bars with time left where stderr is a terminal, plain lines with the time elsewhere. Always on
//! stderr.

mod position;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ledger::Ledger;
use crate::record::spent::Spent;
use crate::terminal::{self, Volume, note, one_line};
use position::Position;

/// Time between two plain lines of one stage.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Where progress goes.
#[derive(Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
    /// Where in a long build it is, with the bar that says so.
    position: Mutex<Option<(Position, Option<ProgressBar>)>>,
    ledger: Arc<Ledger>,
}

impl Progress {
    /// Bars when stderr is a terminal that can show them, and nothing else is written there.
    pub fn for_terminal() -> Self {
        let shows = console::user_attended_stderr()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            && terminal::volume() == Volume::Normal;
        Progress::with(shows.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr())))
    }

    /// Nothing is shown: for tests.
    #[cfg(test)]
    pub fn hidden() -> Self {
        Progress::with(Some(MultiProgress::with_draw_target(ProgressDrawTarget::hidden())))
    }

    fn with(bars: Option<MultiProgress>) -> Self {
        Progress { bars, position: Mutex::new(None), ledger: Arc::default() }
    }

    /// Where time goes: what is not a stage, but takes time as well, is entered here.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What all steps so far have cost.
    pub fn spent(&self) -> Vec<Spent> {
        self.ledger.spent()
    }

    /// One line above the bars.
    pub fn say(&self, text: &str) {
        tracing::info!("{text}");
        match &self.bars {
            Some(bars) => {
                let _ = bars.println(one_line(text));
            }
            None => plain(text),
        }
    }

    /// A repository begins, the `number`th (from 1) of so many, each with so many stages.
    pub fn repository(&self, number: usize, of: usize, stages: usize) {
        let mut held = self.position();
        let (position, bar) = held.get_or_insert_with(|| {
            let bar = self.bars.as_ref().map(|bars| bars.add(overall(of * stages)));
            (Position::new(of, stages, Instant::now()), bar)
        });
        position.begin(number, Instant::now());
        show(position, bar.as_ref());
        if let (None, Some(left)) = (bar, position.left(Instant::now())) {
            plain(&format!("repository {number} of {of}, {left}"));
        }
    }

    /// A stage of the repository begins, from 1.
    pub fn enter(&self, stage: usize) {
        if let Some((position, bar)) = &mut *self.position() {
            position.enter(stage);
            show(position, bar.as_ref());
        }
    }

    /// All repositories are done.
    pub fn all_done(&self) {
        if let Some((_, Some(bar))) = self.position().take() {
            bar.finish_and_clear();
        }
    }

    fn position(&self) -> MutexGuard<'_, Option<(Position, Option<ProgressBar>)>> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bar for a stage, above the one of the whole build.
    fn add(&self, bars: &MultiProgress, bar: ProgressBar) -> ProgressBar {
        match &*self.position() {
            Some((_, Some(whole))) => bars.insert_before(whole, bar),
            _ => bars.add(bar),
        }
    }

    /// Starts a stage of `total` steps; 0 when the number is not known.
    pub fn stage(&self, name: &str, total: u64) -> Stage {
        tracing::info!("stage {name} started, steps: {total}");
        let bar = self.bars.as_ref().map(|bars| {
            let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
            let bar = self.add(bars, bar);
            let template = if total > 0 {
                "{prefix:.bold} {wide_bar} {pos}/{len} {elapsed_precise} left {eta_precise} {msg}"
            } else {
                "{prefix:.bold} {spinner} {elapsed_precise} {wide_msg}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(one_line(name).into_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.is_none() {
            let steps = if total > 0 { format!(" ({total})") } else { String::new() };
            let place =
                self.position().as_ref().map(|(position, _)| format!(", {position}")).unwrap_or_default();
            plain(&format!("{name}{steps}{place}"));
        }
        let now = Instant::now();
        Stage {
            name: name.to_owned(),
            bar,
            ledger: Arc::clone(&self.ledger),
            ticket: self.ledger.open(name),
            plain: Mutex::new(Plain { done: 0, total, started: now, last: now }),
        }
    }
}

/// The bar of the whole build.
fn overall(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix:.bold} {wide_bar} {elapsed_precise} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

fn show(position: &Position, bar: Option<&ProgressBar>) {
    if let Some(bar) = bar {
        bar.set_position(position.steps() as u64);
        bar.set_prefix(position.to_string());
        bar.set_message(position.left(Instant::now()).unwrap_or_default());
    }
}

/// A plain line with the time, which a log that is read later would lack. The log has all of them but the pace.
fn plain(text: &str) {
    if terminal::volume() == Volume::Normal {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        note(&format!("{now} {text}"));
    }
}

/// A stage that is under way; dropping it takes its bar away.
#[derive(Debug)]
pub struct Stage {
    name: String,
    bar: Option<ProgressBar>,
    ledger: Arc<Ledger>,
    ticket: u64,
    plain: Mutex<Plain>,
}

#[derive(Debug)]
struct Plain {
    done: u64,
    total: u64,
    started: Instant,
    last: Instant,
}

impl Stage {
    /// One step is done.
    pub fn step(&self) {
        self.ledger.count(self.ticket);
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let mut state = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        if state.last.elapsed() >= PLAIN_INTERVAL {
            state.last = Instant::now();
            let left = time_left(state.started.elapsed(), state.done, state.total);
            plain(&format!("{}: {}/{}{left}", self.name, state.done, state.total));
        }
    }

    /// So many steps more turn out to be needed.
    pub fn more(&self, steps: u64) {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner).total += steps;
        if let Some(bar) = &self.bar {
            bar.inc_length(steps);
        }
    }

    /// What is being done right now.
    pub fn message(&self, text: &str) {
        tracing::info!("stage {}: {text}", self.name);
        match &self.bar {
            Some(bar) => bar.set_message(one_line(text).into_owned()),
            None => plain(&format!("{}: {text}", self.name)),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let started = self.plain.get_mut().unwrap_or_else(PoisonError::into_inner).started;
        let spent = self.ledger.close(self.ticket).unwrap_or_default();
        let seconds = started.elapsed().as_secs_f64();
        tracing::info!(
            "stage {} ended after {seconds:.3} s; of all like it: {} made, {:.3} s, {:.3} s of processors",
            self.name,
            spent.count,
            spent.seconds,
            spent.processor_seconds
        );
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `, 0:42 left`, from what was done so far.
fn time_left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || total < done {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() / done as f64 * (total - done) as f64).ceil() as u64;
    format!(", {}:{:02} left", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_pace_so_far() {
        assert_eq!(time_left(Duration::from_secs(30), 10, 30), ", 1:00 left");
        assert_eq!(time_left(Duration::from_secs(30), 0, 30), "");
    }
}
