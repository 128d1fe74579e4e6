//! Every parser that reads what others wrote, given anything: no panic, no endless loop.
//!
//! Texts are samples that are right, changed at random, and heaps of the tokens that the parser knows. `PROPTEST_CASES`
//! sets their number; they are the same in every run, until `GISTMILL_TEST_FUZZ_SECONDS` makes each test go on for so
//! long with new ones all the time.

mod artifacts;
mod datasets;
mod declarations;
mod messages;
mod servers;
mod texts;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// Inputs for each parser when nothing else is asked for.
const CASES: u32 = 64;
/// No small input keeps a parser busy for longer, in time of the processor: however busy the machine is.
const LONGEST: Duration = Duration::from_secs(30);

/// Hands values of a strategy to `check`; a panic or a value that takes too long is a failure, shown at its smallest.
#[track_caller]
pub fn fuzz<S: Strategy>(strategy: S, check: impl Fn(&S::Value))
where
    S::Value: Debug,
{
    let seconds =
        std::env::var("GISTMILL_TEST_FUZZ_SECONDS").map_or(0, |text| text.parse().expect("seconds"));
    let until = Instant::now() + Duration::from_secs(seconds);
    let rng_seed = if seconds > 0 { RngSeed::Random } else { RngSeed::Fixed(0) };
    let mut config =
        Config { failure_persistence: None, max_shrink_time: 30_000, rng_seed, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let mut cases = 0_u64;
    loop {
        cases += u64::from(config.cases);
        let result = TestRunner::new(config.clone()).run(&strategy, |value| {
            let started = time_of_this_thread();
            check(&value);
            let took = time_of_this_thread().saturating_sub(started);
            if took > LONGEST { Err(TestCaseError::fail(format!("it took {took:?}"))) } else { Ok(()) }
        });
        match result {
            Ok(()) => {}
            Err(TestError::Fail(reason, value)) => panic!("{reason}: {value:?}"),
            Err(error) => panic!("{error}"),
        }
        if Instant::now() >= until {
            break;
        }
    }
    println!("{cases} cases");
}

/// What the processor has spent on this thread.
fn time_of_this_thread() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock).expect("every kernel has this clock").into()
}

/// One change of a text.
#[derive(Debug, Clone)]
enum Change {
    Replace(prop::sample::Index, u8),
    Remove(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    /// A part of it, so often.
    Repeat(prop::sample::Index, usize, usize),
    Cut(prop::sample::Index),
}

fn change(tokens: &'static [&'static str]) -> impl Strategy<Value = Change> {
    let at = || any::<prop::sample::Index>();
    prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        4 => (at(), prop::sample::select(tokens)).prop_map(|(at, token)| Change::Insert(at, token.as_bytes().to_vec())),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), 1..60_usize, 2..400_usize).prop_map(|(at, length, times)| Change::Repeat(at, length, times)),
        1 => at().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let place = |at: &prop::sample::Index, bytes: &Vec<u8>| at.index(bytes.len() + 1);
    match change {
        Change::Replace(at, byte) => {
            let at = place(at, bytes);
            if let Some(old) = bytes.get_mut(at) {
                *old = *byte;
            }
        }
        Change::Remove(at, length) => {
            let at = place(at, bytes);
            let end = (at + length).min(bytes.len());
            bytes.drain(at..end);
        }
        Change::Insert(at, new) => {
            let at = place(at, bytes);
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Repeat(at, length, times) => {
            let at = place(at, bytes);
            let end = (at + length).min(bytes.len());
            let part = bytes[at..end].repeat(*times);
            bytes.splice(at..at, part);
        }
        Change::Cut(at) => {
            let at = place(at, bytes);
            bytes.truncate(at);
        }
    }
}

/// Bytes that are nearly right, or made of tokens, or anything.
pub fn bytes(samples: Vec<Vec<u8>>, tokens: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let changed = (prop::sample::select(samples), prop::collection::vec(change(tokens), 0..10)).prop_map(
        |(mut bytes, changes)| {
            for change in &changes {
                apply(&mut bytes, change);
            }
            bytes
        },
    );
    let soup = prop::collection::vec(prop::sample::select(tokens), 0..60)
        .prop_map(|tokens| tokens.concat().into_bytes());
    let deep = (prop::sample::select(tokens), 1..20_000_usize)
        .prop_map(|(token, times)| token.repeat(times).into_bytes());
    prop_oneof![12 => changed, 5 => soup, 1 => deep, 2 => prop::collection::vec(any::<u8>(), 0..300)]
}

/// The same as text.
pub fn text(samples: &[&str], tokens: &'static [&'static str]) -> impl Strategy<Value = String> + use<> {
    let samples = samples.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    bytes(samples, tokens).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
