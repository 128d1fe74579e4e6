//! gistmill turns Python repositories into Gistify instances. Contents, in the order of the flow.

pub mod backend;
pub mod cli;
pub mod collect;
pub mod config;
pub mod dataset;
pub mod document;
pub mod environment;
pub mod error;
pub mod group;
pub mod interrupt;
pub mod pipeline;
pub mod progress;
pub mod python_source;
pub mod record;
pub mod redact;
pub mod report;
pub mod rules;
pub mod runner;
pub mod sample;
pub mod screen;
pub mod source;
pub mod store;
pub mod tier;
pub mod trace;
