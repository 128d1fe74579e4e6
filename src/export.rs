//! Tasks as the files of the harnesses that people have. Pure but for [`read`] and [`mod@write`]: tasks in, files out, from
//! [`Task`] alone, without a word of a family.
//!
//! One directory serves several harnesses at once:
//!
//! ```text
//! DIR/
//!   README.md export.json                what it is, how to run and how it is judged
//!   images/build.sh                      builds the image of each environment
//!   images/<owner>__<name>/              Dockerfile, locks, tree.tar.gz
//!   images/tools/ images/tasks/          with tools: commands for agents, and what they know of each task
//!   tasks/<instance_id>/                 a Harbor task; Inspect and verifiers run these as well
//!   receipt.json                         what the judge of each task paid for its solution, nothing and cheats, where it was asked
//!   registry.json dataset.toml           the tasks as a Harbor dataset, the second with their hashes
//!   data/test-00000-of-00001.parquet     the columns that SWE-bench's evaluation and mini-swe-agent read
//!   mini-swe-agent.yaml                  what mini-swe-agent says to its model
//!   swe-agent.jsonl                      SWE-agent's instances
//!   prompts.jsonl                        requests for models that answer in one go
//!   prompts/<setting>.jsonl              the same, where tasks say what they ask
//!   prompts/<instance_id>/<step>.md        texts for agents, where several work one after the other or patches are handed in
//!   images/masked/<instance_id>/         what the image of a task is made of that does not show the whole tree
//! ```

pub(crate) mod codetaste;
mod harbor;
mod images;
mod masked;
mod mini_swe_agent;
mod names;
mod prompts;
pub(crate) mod read;
mod readme;
pub(crate) mod receipt;
mod refactoring;
pub(crate) mod settings;
mod swe_agent;
mod swe_bench;
mod tools;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::family::Sources;
use crate::record::id::RepoSlug;
use crate::record::task::Task;
use masked::MaskedImages;
use settings::Settings;
use tools::Tools;

/// A harness to export to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Harness {
    Harbor,
    /// By way of Harbor's tasks.
    Inspect,
    /// By way of Harbor's tasks.
    Verifiers,
    #[value(name = "swe-bench")]
    SweBench,
    #[value(name = "mini-swe-agent")]
    MiniSweAgent,
    #[value(name = "swe-agent")]
    SweAgent,
    /// Prompts with the code in them, for models without a machine.
    Prompts,
    /// The authors' own layout, of datasets of the family codetaste.
    Codetaste,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

/// Files by their path in the export, with `/`.
pub(crate) type Files = BTreeMap<String, File>;

/// All that is exported.
#[derive(Debug)]
pub(crate) struct Collection {
    /// Commands that are left out, because the dataset does not say what they show.
    pub(crate) unsaid: Vec<String>,
    /// Name and version of the dataset.
    pub(crate) name: String,
    pub(crate) version: String,
    /// In the order of the dataset.
    pub(crate) tasks: Vec<Task>,
    /// Images of tasks of which the agent does not see the whole tree.
    pub(crate) masked: MaskedImages,
    /// What the tasks run in, by slug.
    pub(crate) environments: BTreeMap<RepoSlug, Environment>,
    /// The images with tools, where they were asked for.
    pub(crate) tools: Option<Tools>,
    /// Python files of the repositories, by slug; those of which the dataset has the tree.
    pub(crate) sources: BTreeMap<RepoSlug, Arc<Sources>>,
    pub(crate) settings: Settings,
}

/// What the tasks of one repository run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Environment {
    /// Tag of its image, or name and digest where that is in a registry.
    pub(crate) image: String,
    /// Whether it is in a registry, so that nothing is built.
    pub(crate) is_pulled: bool,
    /// Dockerfile and locks, by name; empty where the dataset has none.
    pub(crate) recipe: BTreeMap<String, Vec<u8>>,
    /// Whether the dataset has the tree.
    pub(crate) has_tree: bool,
    /// Variables that the tests need.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Collection {
    /// Tasks that are judged without variants of their tests.
    pub(crate) fn without_variants(&self) -> usize {
        let has_none = |task: &&Task| task.judging.originals.iter().any(|test| test.variants.is_empty());
        self.tasks.iter().filter(has_none).count()
    }

    /// Commands that are judged by their own run alone.
    pub(crate) fn without_other_input(&self) -> usize {
        self.tasks.iter().filter(|task| task.judging.given.len() == 1).count()
    }

    /// What decides about rewards, in words; several where tests and commands are mixed.
    pub(crate) fn judged_by(&self) -> String {
        let kinds: BTreeSet<&str> = self.tasks.iter().map(|task| task.judging.by()).collect();
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// How many of the tasks are about commands.
    pub(crate) fn commands(&self) -> usize {
        self.tasks.iter().filter(|task| task.judging.is_of_command()).count()
    }

    /// The image of a task.
    fn image<'a>(&'a self, task: &'a Task) -> &'a str {
        if let Some(task) = self.tools.as_ref().and_then(|tools| tools.tasks.get(&task.id)) {
            return &task.name;
        }
        if let Some(image) = self.masked.get(&task.id) {
            return &image.name;
        }
        self.environments.get(&task.slug).map_or("", |environment| &environment.image)
    }

    /// The image of a task as Harbor names it: a file, where they are files.
    fn harbor_image(&self, task: &Task) -> String {
        let image = self.image(task);
        match &self.settings.sif {
            Some(folder) => images::sif(folder, image),
            None => image.to_owned(),
        }
    }
}

/// The files for these harnesses.
///
/// # Errors
/// When something cannot be encoded, which is a bug.
pub(crate) fn files(collection: &Collection, harnesses: &BTreeSet<Harness>) -> Result<Files> {
    let mut files = Files::new();
    for harness in harnesses {
        match harness {
            Harness::Harbor | Harness::Inspect | Harness::Verifiers => {
                files.extend(harbor::files(collection)?);
            }
            Harness::SweBench => files.extend(swe_bench::files(collection)?),
            Harness::MiniSweAgent => {
                files.extend(swe_bench::files(collection)?);
                files.extend(mini_swe_agent::files(collection));
            }
            Harness::SweAgent => files.extend(swe_agent::files(collection)?),
            Harness::Prompts => files.extend(prompts::files(collection)?),
            // Its files are made of what tasks do not have.
            Harness::Codetaste => {}
        }
    }
    files.extend(images::files(collection)?);
    refactoring::search(collection, &files)?;
    files.insert("README.md".to_owned(), text(readme::render(collection, harnesses)?));
    Ok(files)
}

fn text(text: String) -> File {
    File { bytes: text.into_bytes(), executable: false }
}

/// What a verifier's script begins with: a reward that an agent has left does not count where the judge cannot start.
const NOTHING_LEFT: &str = "rm -rf /logs/verifier/reward* /logs/verifier/.reward*\n";

fn script(text: String) -> File {
    File { bytes: text.into_bytes(), executable: true }
}
