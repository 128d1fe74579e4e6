//! Samples of the nouns, a made-up dataset, and a backend that plays a scripted repository: for unit tests, one of which
//! `bench/dataset.rs` runs.

pub(crate) mod attempts;
pub(crate) mod backend;
pub(crate) mod browser;
pub(crate) mod lab;
pub(crate) mod made_up;
pub(crate) mod masked;
pub(crate) mod pairs;
pub(crate) mod script;

pub(crate) use crate::pipeline::publish as write;
