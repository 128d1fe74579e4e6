//! The nouns that the stages hand to each other. No IO here, no clock, no process.
//!
//! A record walks one way: [`source::Pinned`] → [`environment::Built`] → [`collected::Collected`] →
//! [`collected::Group`]s → [`outcome::Attempt`]s and a [`verdict::Verdict`] → [`trace::Traced`] →
//! [`instance::Instance`].

pub mod codetaste;
pub mod collected;
pub mod duration;
pub mod engine;
pub mod entry;
pub mod environment;
pub mod evidence;
pub mod execution;
pub mod explanation;
pub mod family;
pub mod flag;
pub mod host;
pub mod id;
pub mod instance;
pub mod limits;
pub mod moment;
pub mod outcome;
pub mod patch;
pub mod prompt;
pub mod recube;
pub mod rule;
pub mod shard;
pub mod source;
pub(crate) mod spelling;
pub mod spent;
pub mod strength;
pub mod task;
pub mod trace;
pub mod variant;
pub mod verdict;
pub mod witness;
pub mod world;
