//! Sources, against real repositories in temporary directories and servers on the loopback.

mod git;
mod local;
mod pypi;
mod sample;
mod server;
