//! gistmill turns Python repositories into Gistify instances. Contents, in the order of the flow.

pub mod attempt;
pub mod backend;
pub mod beneath;
pub mod cli;
pub mod collect;
pub mod config;
pub mod dataset;
pub mod diff;
pub mod document;
pub mod environment;
pub mod error;
pub mod family;
pub mod index;
pub mod interrupt;
pub mod log;
pub mod machine;
pub mod pipeline;
pub mod progress;
pub mod python_source;
pub mod record;
pub mod redact;
pub mod refresh;
pub mod report;
pub mod requirement;
pub mod rules;
pub mod runner;
pub mod score;
pub mod screen;
pub mod source;
pub mod store;
pub mod subset;
pub mod terminal;
#[cfg(any(test, feature = "made-up"))]
pub mod testing;
pub mod text;
pub mod trace;
