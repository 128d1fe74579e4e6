//! End-to-end tests: the real program on small real trees, judged by what it wrote.

#[path = "../common/mod.rs"]
mod common;

mod command_line;
mod determinism;
mod git_sources;
mod interruption;
mod neighbours;
mod rules;
mod verdicts;
mod versions;
