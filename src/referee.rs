//! The referee: submissions are run in the dataset's own environments and judged by the rules of [`crate::score`].
//!
//! A submission is hostile code and gets what a hostile test gets: the sandbox, the limits and the fork tree of a build.
//! It runs in a tree without the repository's code (`gistify::ground`); imports of the repository are noted, whether or not they
//! are caught.

pub(crate) mod codetaste;
pub(crate) mod gistify;
pub(crate) mod page;
pub(crate) mod recube;
mod run;
pub(crate) mod scored;
pub(crate) mod submissions;
pub(crate) mod texts;
pub(crate) mod write;
