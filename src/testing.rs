//! Samples of the nouns, a made-up dataset, and a backend that plays a scripted repository: for unit tests and benchmarks.

pub mod attempts;
pub mod backend;
pub mod browser;
pub mod lab;
pub mod made_up;
pub mod masked;
pub mod pairs;
pub mod script;

pub use crate::pipeline::publish as write;
