//! Progress at the terminal: bars with time left where stderr is a terminal, plain lines elsewhere. Always on stderr.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ledger::Ledger;
use crate::record::spent::Spent;
use crate::terminal::{note, one_line};

/// Time between two plain lines of one stage.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Where progress goes.
#[derive(Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
    ledger: Arc<Ledger>,
}

impl Progress {
    /// Bars when stderr is a terminal that can show them.
    pub fn for_terminal() -> Self {
        let bars =
            console::user_attended_stderr() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Progress {
            bars: bars.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr())),
            ledger: Arc::default(),
        }
    }

    /// Nothing is shown: for tests.
    #[cfg(test)]
    pub fn hidden() -> Self {
        let bars = Some(MultiProgress::with_draw_target(ProgressDrawTarget::hidden()));
        Progress { bars, ledger: Arc::default() }
    }

    /// Where time goes: what is no stage, but takes time as well, is entered here.
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
            None => note(text),
        }
    }

    /// Starts a stage of `total` steps; 0 when the number is not known.
    pub fn stage(&self, name: &str, total: u64) -> Stage {
        tracing::info!("stage {name} started, steps: {total}");
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() });
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
            note(&format!("{name}{steps}"));
        }
        let now = Instant::now();
        Stage {
            name: name.to_owned(),
            total,
            bar,
            ledger: Arc::clone(&self.ledger),
            ticket: self.ledger.open(name),
            plain: Mutex::new(Plain { done: 0, started: now, last: now }),
        }
    }
}

/// A stage that is under way; dropping it takes its bar away.
#[derive(Debug)]
pub struct Stage {
    name: String,
    total: u64,
    bar: Option<ProgressBar>,
    ledger: Arc<Ledger>,
    ticket: u64,
    plain: Mutex<Plain>,
}

#[derive(Debug)]
struct Plain {
    done: u64,
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
        let mut plain = self.plain.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        plain.done += 1;
        if plain.last.elapsed() >= PLAIN_INTERVAL {
            plain.last = Instant::now();
            let left = time_left(plain.started.elapsed(), plain.done, self.total);
            note(&format!("{}: {}/{}{left}", self.name, plain.done, self.total));
        }
    }

    /// What is being done right now.
    pub fn message(&self, text: &str) {
        tracing::info!("stage {}: {text}", self.name);
        match &self.bar {
            Some(bar) => bar.set_message(one_line(text).into_owned()),
            None => note(&format!("{}: {text}", self.name)),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let started = self.plain.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).started;
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
