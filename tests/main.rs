//! Tests of the program from outside, one program for all but those with a harness of their own (`containment`, `docker`,
//! `scoring`). `cargo test --test all kernel` runs those of one module.

mod architecture;
mod bad_command_lines;
mod bad_configs;
mod bad_inputs;
mod clock;
mod command_line;
mod common;
mod environment;
mod hostile;
mod kernel;
mod parsers;
mod pipeline;
mod sandbox;
mod screening;
mod source;
