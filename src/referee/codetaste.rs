//! How `CodeTaste` judges: a patch is laid over the base, the whole suite is collected anew and run, and patterns look through
//! what it made.

pub(crate) mod judge;
pub(crate) mod patches;
mod script;
pub(crate) mod suite;
pub(crate) mod tables;
