//! gistmill turns Python repositories into Gistify instances. ARCHITECTURE.md says what each room does, and which others
//! it may name.

// Only what `main`, the tests and the benchmarks use is public, so that the compiler sees what nobody calls. Not in
// Cargo.toml: in a test or benchmark nothing is reachable from outside.
#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod attempt;
pub mod backend;
mod beneath;
pub mod cli;
pub mod collect;
pub mod config;
pub mod dataset;
mod diff;
mod discovery;
mod document;
pub mod environment;
pub mod error;
mod export;
pub mod family;
mod history;
pub mod index;
mod interrupt;
mod ledger;
mod log;
pub mod machine;
mod packed;
mod page;
mod parity;
mod pattern;
pub mod pipeline;
pub mod progress;
mod publish;
pub mod python_source;
pub mod record;
pub mod redact;
mod referee;
pub mod refresh;
mod registry;
pub mod report;
pub mod requirement;
pub mod rules;
pub mod runner;
pub mod score;
mod screen;
mod serve;
pub mod source;
pub mod store;
mod subset;
mod terminal;
#[cfg(test)]
mod testing;
pub mod text;
pub mod trace;
mod verify;
