//! What a tree says of itself: projects, requirements, groups, members, variables. Reads files through `beneath`, runs nothing.

mod conda;
pub(super) mod crates;
pub mod declarations;
pub mod groups;
pub mod ini;
pub mod known_names;
pub mod members;
pub mod own;
mod pipfile;
pub mod project;
pub(super) mod pyproject;
pub mod requirements_files;
pub(super) mod sources;
pub mod survey;
pub mod tox;
pub mod variables;
pub mod version;
