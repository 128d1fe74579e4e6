//! Samples of the nouns and a made-up dataset, for unit tests and benchmarks.

pub mod attempts;
pub mod made_up;

pub use crate::pipeline::publish as write;
