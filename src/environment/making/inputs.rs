//! What an environment is made from, and where the projects of its tree are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::Backend;
use crate::config;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::members::{self, Member};
use crate::environment::declared::own;
use crate::environment::declared::project::Project;
use crate::environment::plan::python::Choice;
use crate::environment::{Candidate, GateReport, Tools};
use crate::error::Result;
use crate::record::source::Pinned;
use crate::requirement::normalize;

/// What construction starts from.
pub(in crate::environment) struct Inputs<'a> {
    pub pinned: &'a Pinned,
    pub repo: &'a config::Repo,
    /// Variables of the tests: those of the configuration and those that the tree sets.
    pub env: BTreeMap<String, String>,
    pub files: Files,
    pub project: Project,
    pub choice: Choice,
    pub backend: &'a Arc<dyn Backend>,
    pub tools: &'a Tools,
    pub gate: &'a dyn Fn(&Candidate<'_>) -> Result<GateReport>,
    pub progress: &'a dyn Fn(&str),
}

/// Where the packages of the project in a folder of the tree lie, as seen inside.
pub(in crate::environment) fn source_root(inputs: &Inputs<'_>, folder: &str) -> PathBuf {
    let root = &inputs.backend.places().root;
    let survey = &inputs.files.survey;
    if folder.is_empty() {
        return if survey.src_layout { root.join("src") } else { root.clone() };
    }
    let source = format!("{folder}/src");
    root.join(if survey.modules.values().any(|place| *place == source) { &source } else { folder })
}

/// Where the tree declares a distribution of its own.
pub(in crate::environment) fn place_of(inputs: &Inputs<'_>, name: &str) -> Option<String> {
    let place = inputs.project.own_distributions.get(name)?;
    Some(place.rsplit_once('/')?.0.to_owned())
}

/// The project around a place of the tree. What lies among tests or samples may take from a folder what nobody else does,
/// and what a workspace excludes contradicts its members.
pub(in crate::environment) fn member_at(inputs: &Inputs<'_>, place: &str, reason: &str) -> Option<Member> {
    let workspace = own::Workspace::of(&inputs.project.pyproject);
    let is_wanted = |folder: &&str| !own::is_aside(folder) && !workspace.excludes(folder);
    let folder = members::around(&inputs.files, place).filter(is_wanted)?;
    Member::read(&inputs.files, folder, reason)
}

/// The project of the tree that provides what the one at its root is built with.
pub(in crate::environment) fn builder(inputs: &Inputs<'_>, name: &str) -> Option<Member> {
    member_at(
        inputs,
        &place_of(inputs, &normalize(name))?,
        &format!("the project at the root is built with `{name}`"),
    )
}
