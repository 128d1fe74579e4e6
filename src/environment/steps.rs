//! Single steps that act: resolving, installing, building, compiling byte code; each a job in the sandbox with folders of its own.

mod asked;
pub(super) mod building;
pub(super) mod byte_code;
pub(super) mod direct;
pub mod install;
pub(super) mod own_wheel;
pub mod precedence;
pub(super) mod rust;
pub(super) mod source_distributions;
pub(super) mod step;
pub(super) mod taken;
pub(super) mod toolchain;
pub(super) mod tooling;
pub mod tools;
pub mod tree;
pub mod uv;
pub(super) mod wheel;
