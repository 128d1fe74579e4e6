//! How Gistify judges: the tree without the repository's code, the original test put into what is handed in, its
//! variants, what the build checks of itself, and submissions that a machine makes.

pub(crate) mod agreement;
mod commands;
pub(crate) mod evaluate;
mod given;
pub(crate) mod ground;
pub(crate) mod judged;
mod on_variants;
pub(crate) mod original;
mod reading;
pub(crate) mod self_check;
pub(crate) mod strength;
pub(crate) mod tables;
pub(crate) mod variants;
pub(crate) mod witness;
