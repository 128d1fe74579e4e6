//! Kinds of tasks, by name. What is made of evidence for each of them is the business of the room `family`.

use serde::{Deserialize, Serialize};

/// A kind of task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// One self-contained file that reproduces what a test does.
    #[default]
    Gistify,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 1] = [Family::Gistify];

    /// The one spelling of this family.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Gistify => "gistify",
        }
    }
}
