//! What a submission's text shows without being run.
//!
//! Two findings are the class of an error by definition, one is a violation; the rest are flags, which a run confirms
//! or does not.

mod walk;

use std::collections::BTreeSet;

use ruff_python_ast::visitor::Visitor;
use serde::{Deserialize, Serialize};

use super::locate::TestName;
use crate::python_source::names::{Names, Scope};
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Unreadable};
use walk::{Level, Walk};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An import of the repository, anywhere but under `if TYPE_CHECKING`.
    ImportStatement,
    /// An import of a copy of the repository that a dependency carries.
    VendoredCopy,
    /// The repository's name in a call that imports.
    DynamicImport,
    /// A change of where Python looks for modules.
    PathTrick,
    /// A module that is registered under the repository's name.
    RegistersRepositoryModule,
    /// An assignment into pytest, unittest or the builtins.
    PatchesTestTools,
    /// A path of the tree.
    ReadsTree,
    /// Another process.
    Spawns,
    /// `if __name__ == "__main__"`.
    MainGuard,
    /// A test beside the one that is asked for.
    LeftoverTest,
    /// The file makes itself, or something in it, a plugin of pytest.
    RegistersPlugin,
    /// It reaches what runs the test: pytest's insides, the runner, frames, the garbage collector.
    ReachesTestTools,
    /// Code that is data: a text that is executed, a blob.
    HiddenCode,
    /// The test, or its class, is made into something else.
    NeutralizedTest,
    /// A name that the test takes from outside the repository means something else.
    ShadowsName,
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    ImportError,
    Violation,
    Flag,
}

impl FindingKind {
    pub fn effect(self) -> Effect {
        match self {
            FindingKind::ImportStatement | FindingKind::VendoredCopy => Effect::ImportError,
            FindingKind::RegistersRepositoryModule
            | FindingKind::RegistersPlugin
            | FindingKind::ReachesTestTools
            | FindingKind::HiddenCode
            | FindingKind::NeutralizedTest
            | FindingKind::ShadowsName => Effect::Violation,
            FindingKind::DynamicImport
            | FindingKind::PathTrick
            | FindingKind::PatchesTestTools
            | FindingKind::ReadsTree
            | FindingKind::Spawns
            | FindingKind::MainGuard
            | FindingKind::LeftoverTest => Effect::Flag,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// 1-based.
    pub line: u32,
    /// What it is about: a module, a call, a path, a test.
    pub name: String,
    /// The line, cut after 200 characters.
    pub evidence: String,
}

/// What a submission is looked at with.
#[derive(Debug, Clone, Copy)]
pub struct Scenery<'a> {
    pub modules: &'a Modules,
    /// The test that is asked for.
    pub test: &'a TestName,
    /// Where the tree lies while a submission runs.
    pub root: &'a str,
    /// Files of the tree that are not there while a submission runs, from the root.
    pub hidden: &'a BTreeSet<String>,
}

/// Everything that a submission's text shows, in the order of the text.
pub fn findings(submission: &str, scenery: Scenery<'_>) -> Result<Vec<Finding>, Unreadable> {
    text::parse(submission, |parsed| {
        let module = Scope::of_module(parsed.body);
        let none = Scope::default();
        let mut found = Vec::new();
        let mut walk = Walk {
            scenery,
            parsed,
            bindings: Bindings::by_name(scenery.modules),
            names: Names { module: &module, local: &none },
            classes: Vec::new(),
            has_tests: true,
            place: Level::Module,
            found: &mut found,
        };
        walk.visit_body(parsed.body);
        found.sort_by_key(|finding| (finding.line, finding.kind));
        found
    })
}

#[cfg(test)]
mod tests;
