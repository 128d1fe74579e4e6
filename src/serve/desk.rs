//! The desk: takes submissions in, has them judged, gives answers out.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fair::{Client, Fair};
use super::figures::Figures;
use super::wire::{Answer, Kind, One};
use super::{Judge, MoreFigures, Settings, Submitted};
use crate::error::{Error, Fault, Result};
use crate::interrupt::{self, Waiting};

/// Bytes of submissions that may wait.
const MOST_BYTES: usize = 256 << 20;
/// Time between two looks at what is over.
const LOOK: Duration = Duration::from_millis(100);

/// What waits, what is judged, and how it went.
pub(super) struct Desk {
    pub(super) settings: Settings,
    pub(super) figures: Figures,
    more: Box<MoreFigures>,
    state: Mutex<State>,
    changed: Condvar,
    clients: AtomicU64,
    /// Whether there is one client, and never another one.
    pub(super) has_one_client: bool,
}

#[derive(Default)]
struct State {
    queue: Fair<Job>,
    bytes: usize,
    bytes_of: BTreeMap<Client, usize>,
    running: usize,
    of_client: BTreeMap<Client, usize>,
    of_instance: BTreeMap<String, usize>,
    /// Nothing more comes.
    is_closed: bool,
}

impl State {
    fn bytes_of(&self, client: Client) -> usize {
        self.bytes_of.get(&client).copied().unwrap_or_default()
    }

    /// A text of a client does not wait any more.
    fn frees(&mut self, job: &Job) {
        self.bytes -= job.one.text.len();
        take(&mut self.bytes_of, &job.client, job.one.text.len());
    }
}

/// Takes the answer.
pub(super) type Reply = Box<dyn FnOnce(Answer) + Send>;

struct Job {
    client: Client,
    one: One,
    waiting: Waiting,
    received: Instant,
    reply: Reply,
}

impl Job {
    fn answer(self, kind: Kind, figures: &Figures) {
        let answer =
            Answer { id: self.one.id, instance: self.one.instance, took: self.received.elapsed(), kind };
        figures.answered(&answer);
        (self.reply)(answer);
    }
}

impl Desk {
    pub(super) fn new(settings: Settings, more: Box<MoreFigures>) -> Self {
        Desk {
            settings,
            figures: Figures::default(),
            more,
            state: Mutex::default(),
            changed: Condvar::new(),
            clients: AtomicU64::new(0),
            has_one_client: false,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a client that comes.
    pub(super) fn client(&self) -> Client {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a submission in. What is not judged is answered at once.
    pub(super) fn take(&self, client: Client, one: One, reply: Reply) -> Waiting {
        let waiting = Waiting::until(Instant::now());
        self.take_for(&waiting, client, one, reply)
    }

    /// Takes a submission in for somebody who waits for more than that.
    pub(super) fn take_for(&self, who: &Waiting, client: Client, one: One, reply: Reply) -> Waiting {
        let received = Instant::now();
        let waiting = who.also_until(received + one.deadline.unwrap_or(self.settings.deadline));
        let job = Job { client, one, waiting: waiting.clone(), received, reply };
        let refused = if self.settings.instances.contains(&job.one.instance) {
            let mut state = self.state();
            match self.refuses(&state, client, job.one.text.len()) {
                None => {
                    state.bytes += job.one.text.len();
                    *state.bytes_of.entry(client).or_default() += job.one.text.len();
                    let instance = job.one.instance.clone();
                    state.queue.push(client, &instance, job);
                    drop(state);
                    self.changed.notify_all();
                    return waiting;
                }
                Some(kind) => kind,
            }
        } else {
            Kind::Unknown
        };
        job.answer(refused, &self.figures);
        waiting
    }

    /// Why nothing more of a client is taken in. A client may have as much waiting as is free for all others, in number and
    /// in bytes: however many they are, the next one finds a place.
    fn refuses(&self, state: &State, client: Client, bytes: usize) -> Option<Kind> {
        if state.is_closed || interrupt::requested() {
            return Some(Kind::Stopping);
        }
        let free = self.settings.queue.saturating_sub(state.queue.len());
        let is_full = state.queue.of(client) >= free
            || state.bytes_of(client) + bytes > MOST_BYTES.saturating_sub(state.bytes);
        is_full.then(|| Kind::Busy { waiting: state.queue.len() })
    }

    /// Nothing more comes. What waits is still judged, unless a stop was asked for.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// The next job, and how many others are judged at the same time; none once nothing is left, and nothing can come.
    ///
    /// A client, and an instance, may have as much judged at once as is free for others: however long that takes, others
    /// are judged meanwhile. While nobody else waits it may have all but one place, which whoever comes finds; and that one
    /// as well where nobody can come.
    fn next(&self) -> Option<(Client, Job, usize)> {
        let mut state = self.state();
        loop {
            if interrupt::requested() || (state.is_closed && state.queue.len() == 0) {
                return None;
            }
            let State { queue, running, of_client, of_instance, .. } = &mut *state;
            let free = self.settings.slots.saturating_sub(*running);
            let count = |count: Option<&usize>| count.copied().unwrap_or_default();
            let has_more = free > usize::from(!self.has_one_client);
            let (one_client, one_instance) = (queue.clients() == 1, queue.is_of_one_instance());
            let may = |client: Client, instance: &str| {
                (count(of_client.get(&client)) < free.max(1) || (one_client && has_more))
                    && (count(of_instance.get(instance)) < free.max(1) || (one_instance && has_more))
            };
            if let Some((client, instance, job)) = queue.pop(may) {
                let others = *running;
                *running += 1;
                *of_client.entry(client).or_default() += 1;
                *of_instance.entry(instance).or_default() += 1;
                state.frees(&job);
                return Some((client, job, others));
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn done(&self, client: Client, instance: &str) {
        let mut state = self.state();
        state.running -= 1;
        take(&mut state.of_client, &client, 1);
        take(&mut state.of_instance, instance, 1);
        drop(state);
        self.changed.notify_all();
    }

    /// Judges what waits until nothing is left and nothing can come.
    pub(super) fn work(&self, judge: &Judge<'_>) {
        while let Some((client, mut job, others)) = self.next() {
            let kind = if job.waiting.is_over() {
                Kind::Late
            } else {
                let submitted = Submitted {
                    instance: job.one.instance.clone(),
                    text: std::mem::take(&mut job.one.text),
                    evidence: job.one.evidence,
                    waiting: job.waiting.clone(),
                    others,
                };
                let judged = std::panic::catch_unwind(AssertUnwindSafe(|| judge(&submitted)));
                said(judged.unwrap_or_else(|_| Err(Error::internal("the referee broke"))), &job.waiting)
            };
            // Whoever hears the answer may count on the place.
            self.done(client, &job.one.instance);
            job.answer(kind, &self.figures);
        }
    }

    /// Answers what waits too long, or in vain, until nothing can come.
    pub(super) fn watch(&self) {
        loop {
            let mut state = self.state();
            let is_stopped = interrupt::requested();
            let over = state.queue.take_out(|job| is_stopped || job.waiting.is_over());
            for job in &over {
                state.frees(job);
            }
            let is_done = state.is_closed && state.queue.len() == 0;
            drop(state);
            for job in over {
                let kind = if job.waiting.is_over() { Kind::Late } else { Kind::Stopping };
                job.answer(kind, &self.figures);
            }
            if is_done {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What waits, what is judged, and how many clients have something that waits.
    pub(super) fn load(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.queue.len(), state.running, state.queue.clients())
    }

    /// All figures, as Prometheus reads them.
    pub(super) fn metrics(&self) -> String {
        self.figures.text(self.load(), &(self.more)())
    }
}

fn take<K: Ord + ?Sized, O: Ord + std::borrow::Borrow<K>>(
    counts: &mut BTreeMap<O, usize>,
    key: &K,
    number: usize,
) {
    if let Some(count) = counts.get_mut(key) {
        *count -= number;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The answer to what came of a judgement.
fn said(judged: Result<super::Judgement>, waiting: &Waiting) -> Kind {
    match judged {
        Ok(judgement) => match judgement.lost {
            Some(reason) => Kind::Lost { reason },
            None => Kind::Judged { row: judgement.row, evidence: judgement.evidence, known: judgement.known },
        },
        Err(error) if error.fault() == Fault::Interrupted && waiting.is_over() => Kind::Late,
        Err(error) if error.fault() == Fault::Interrupted => Kind::Stopping,
        Err(error) => {
            error.log("a submission is lost");
            Kind::Lost { reason: error.to_string() }
        }
    }
}
