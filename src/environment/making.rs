//! One environment from start to end, made of steps.

pub(super) mod bare;
pub(super) mod construction;
pub(super) mod dockerfile;
pub(super) mod inputs;
pub(super) mod record;
pub(super) mod run_tree;
pub(super) mod trials;
