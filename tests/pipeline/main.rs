//! End-to-end tests: the real program on small real trees, judged by what it wrote.

#[path = "../common/mod.rs"]
mod common;

mod cheats;
mod codetaste;
mod collection;
mod command_line;
mod damage;
mod determinism;
mod entries;
mod exported;
mod full_disk;
mod git_sources;
mod harmful;
mod interruption;
mod isolation;
mod kills;
mod labelled_commands;
mod neighbours;
mod recube;
mod rules;
mod rust;
mod score;
mod secrets;
mod serve;
mod shapes;
mod variants;
mod verdicts;
mod versions;
mod witness;
