//! Sources, against real repositories in temporary directories and servers on the loopback.

mod bounds;
mod git;
mod hosts;
mod local;
mod logins;
mod pypi;
mod sample;
mod server;
