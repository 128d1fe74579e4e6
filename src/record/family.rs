//! Kinds of tasks, by name. What is made of evidence for each of them is the business of the room `family`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spelling::spelling;

spelling! {
    /// A kind of task.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Family, ALL {
        /// One self-contained file that reproduces what a test does.
        #[default]
        Gistify "gistify",
        /// One file of the tree that is masked, and written again.
        Recube "recube",
        /// A refactoring of the repository's own history, done again.
        Codetaste "codetaste",
    }
}

/// What an instance of a family is made of: which tables it has, and how it is read, shown and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A group of tests.
    Group,
    /// A file of the tree.
    File,
    /// Two commits.
    Pair,
}

impl Family {
    /// What its instances are made of.
    pub fn unit(self) -> Unit {
        match self {
            Family::Gistify => Unit::Group,
            Family::Recube => Unit::File,
            Family::Codetaste => Unit::Pair,
        }
    }
}
