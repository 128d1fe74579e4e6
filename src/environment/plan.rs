//! What is tried: interpreters, sets of requirements in their order, what a failure or a missing module says of the next one. Pure but for looking for interpreters.

pub(super) mod asked;
pub mod failure;
pub mod lock;
pub(super) mod markers;
pub mod missing;
pub(super) mod preview;
pub mod python;
pub mod recipe;
pub mod removed;
