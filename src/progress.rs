//! Progress at the terminal: bars with time left where stderr is a terminal, plain lines with the time elsewhere. Always on
//! stderr.

mod position;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::ledger::Ledger;
use crate::record::spent::Spent;
use crate::terminal::{self, Volume, note, one_line};
use position::Position;

/// Time between two plain lines of one stage.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// Where nothing was written for so long, a line says what is under way.
const SILENCE: Duration = Duration::from_secs(8);
/// Before so long, and a tenth of the steps, nothing is known of the pace.
const PACE_AFTER: Duration = Duration::from_secs(10);
const PACE_OF: u64 = 10;

/// A stage is all that is done.
const ALONE: u8 = 0;
/// It is a step of a build, of which nobody knows how long it takes.
const STEP: u8 = 1;
/// It is a step of a build that has an estimate: one is enough.
const STEP_OF_ESTIMATED: u8 = 2;

/// Where progress goes.
#[derive(Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
    /// Where in a long build it is, with the bar that says so.
    position: Mutex<Option<(Position, Option<ProgressBar>)>>,
    /// What stages are. No lock: bars ask for it while they are drawn, and whoever holds the position draws.
    whole: Arc<AtomicU8>,
    ledger: Arc<Ledger>,
    heard: Heard,
}

/// When the last plain line was written.
type Heard = Arc<Mutex<Instant>>;

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
        let heard = Arc::new(Mutex::new(Instant::now()));
        let whole = Arc::new(AtomicU8::new(ALONE));
        Progress { bars, position: Mutex::new(None), whole, ledger: Arc::default(), heard }
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
            None => plain(&self.heard, text),
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
        let is_known = position.left(Instant::now()).is_some();
        self.whole.store(if is_known { STEP_OF_ESTIMATED } else { STEP }, Ordering::Relaxed);
        show(position, bar.as_ref());
        if let (None, Some(left)) = (bar, position.left(Instant::now())) {
            plain(&self.heard, &format!("repository {number} of {of}, {left}"));
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
        self.whole.store(ALONE, Ordering::Relaxed);
        if let Some((_, Some(bar))) = self.position().take() {
            bar.finish_and_clear();
        }
    }

    fn position(&self) -> MutexGuard<'_, Option<(Position, Option<ProgressBar>)>> {
        lock(&self.position)
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
                "{prefix:.bold} {wide_bar} {pos}/{len} {elapsed_precise}{left} {msg}"
            } else {
                "{prefix:.bold} {spinner} {elapsed_precise} {wide_msg}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                let whole = Arc::clone(&self.whole);
                let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    let left = time_left(state.elapsed(), state.pos(), state.len().unwrap_or_default());
                    let _ = out.write_str(&said_left(left, whole.load(Ordering::Relaxed)));
                };
                bar.set_style(style.with_key("left", left));
            }
            bar.set_prefix(one_line(name).into_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.is_none() {
            let steps = if total > 0 { format!(" ({total})") } else { String::new() };
            let place =
                self.position().as_ref().map(|(position, _)| format!(", {position}")).unwrap_or_default();
            plain(&self.heard, &format!("{name}{steps}{place}"));
        }
        let now = Instant::now();
        let state = Plain { done: 0, total, started: now, last: now, doing: String::new() };
        let state = Arc::new(Mutex::new(state));
        let beat = bar.is_none().then(|| {
            let (ends, ended) = channel();
            let (name, state, heard) = (name.to_owned(), Arc::clone(&state), Arc::clone(&self.heard));
            std::thread::spawn(move || break_silence(&name, &state, &heard, &ended));
            ends
        });
        Stage {
            name: name.to_owned(),
            bar,
            ledger: Arc::clone(&self.ledger),
            ticket: self.ledger.open(name),
            whole: Arc::clone(&self.whole),
            plain: state,
            heard: Arc::clone(&self.heard),
            _beat: beat,
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

/// Writes a line for a stage where nothing was written for a while, until the stage ends.
fn break_silence(name: &str, state: &Mutex<Plain>, heard: &Heard, ended: &Receiver<()>) {
    loop {
        let silent = lock(heard).elapsed();
        match ended.recv_timeout(SILENCE.saturating_sub(silent).max(Duration::from_millis(100))) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        if lock(heard).elapsed() >= SILENCE {
            let text = lock(state).still();
            plain(heard, &format!("{name}: {text}"));
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plain line with the time, which a log that is read later would lack. The log has all of them but the pace.
fn plain(heard: &Heard, text: &str) {
    *lock(heard) = Instant::now();
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
    whole: Arc<AtomicU8>,
    plain: Arc<Mutex<Plain>>,
    heard: Heard,
    /// Ends the thread that breaks the silence.
    _beat: Option<Sender<()>>,
}

#[derive(Debug)]
struct Plain {
    done: u64,
    total: u64,
    started: Instant,
    last: Instant,
    /// What was said last to be done.
    doing: String,
}

impl Plain {
    /// How far it is, where there is nothing new to say.
    fn still(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        let so_far = format!("{}:{:02} so far", seconds / 60, seconds % 60);
        match (&*self.doing, self.total) {
            ("", 0) => so_far,
            (doing, 0) => format!("{doing}, {so_far}"),
            (_, total) => format!("{}/{total}, {so_far}", self.done),
        }
    }
}

impl Stage {
    /// One step is done.
    pub fn step(&self) {
        self.ledger.count(self.ticket);
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let mut state = lock(&self.plain);
        state.done += 1;
        if state.last.elapsed() >= PLAIN_INTERVAL {
            state.last = Instant::now();
            let left = time_left(state.started.elapsed(), state.done, state.total);
            let left = said_left(left, self.whole.load(Ordering::Relaxed));
            plain(&self.heard, &format!("{}: {}/{}{left}", self.name, state.done, state.total));
        }
    }

    /// So many steps more turn out to be needed.
    pub fn more(&self, steps: u64) {
        lock(&self.plain).total += steps;
        if let Some(bar) = &self.bar {
            bar.inc_length(steps);
        }
    }

    /// What is being done right now.
    pub fn message(&self, text: &str) {
        tracing::info!("stage {}: {text}", self.name);
        if let Some(bar) = &self.bar {
            bar.set_message(one_line(text).into_owned());
        } else {
            text.clone_into(&mut lock(&self.plain).doing);
            plain(&self.heard, &format!("{}: {text}", self.name));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let started = lock(&self.plain).started;
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

/// `, 0:42 left` at the mean pace so far; nothing as long as that is not known, and nothing where all that is known of is done:
/// the step may find more to do.
fn time_left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || total <= done || elapsed < PACE_AFTER || done * PACE_OF < total {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() / done as f64 * (total - done) as f64).ceil() as u64;
    format!(", {}:{:02} left", seconds / 60, seconds % 60)
}

/// What a stage says of the time that it has left: nothing where the build says it, and never as if it were the build's.
fn said_left(left: String, whole: u8) -> String {
    match whole {
        STEP_OF_ESTIMATED => String::new(),
        STEP if !left.is_empty() => format!("{left} in this step"),
        _ => left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_pace_so_far() {
        assert_eq!(time_left(Duration::from_secs(30), 10, 30), ", 1:00 left");
        for (seconds, done, total) in [(30, 0, 30), (9, 10, 30), (30, 3, 31)] {
            assert_eq!(time_left(Duration::from_secs(seconds), done, total), "", "{seconds} {done}");
        }
        assert_eq!(time_left(Duration::from_secs(10), 3, 30), ", 1:30 left");
    }

    #[test]
    fn a_step_of_a_build_with_an_estimate_has_none_of_its_own() {
        let said = |whole| said_left(", 1:00 left".to_owned(), whole);
        assert_eq!(
            [ALONE, STEP, STEP_OF_ESTIMATED].map(said),
            [", 1:00 left", ", 1:00 left in this step", ""]
        );
        assert_eq!(said_left(String::new(), STEP), "");
        let progress = Progress::hidden();
        let whole = || progress.whole.load(Ordering::Relaxed);
        assert_eq!(whole(), ALONE);
        progress.repository(1, 2, 8);
        assert_eq!(whole(), STEP, "nothing is known of the pace");
        progress.all_done();
        assert_eq!(whole(), ALONE);
    }

    #[test]
    fn what_is_silent_says_how_far_it_is() {
        let started = Instant::now().checked_sub(Duration::from_secs(75)).unwrap();
        let plain = |total: u64, doing: &str| {
            Plain { done: 3, total, started, last: started, doing: doing.to_owned() }.still()
        };
        assert_eq!(plain(40, ""), "3/40, 1:15 so far");
        assert_eq!(plain(0, "compiling byte code"), "compiling byte code, 1:15 so far");
        assert_eq!(plain(0, ""), "1:15 so far");
    }
}
