//! What an agent is given and how it is judged: the tree with a mask in the place of one file, without tests.

use std::collections::BTreeMap;

use super::{agents_tree, prompts};
use crate::error::{Error, Result};
use crate::family::{Running, WORKDIR};
use crate::record::entry::EntryCommand;
use crate::record::family::Family;
use crate::record::instance::Head;
use crate::record::outcome::Outcome;
use crate::record::patch::{Patch, PathProblem};
use crate::record::task::{JudgedCase, Judging, Measured, OneShot, Reward, Task};

/// A masked file of a dataset, with what of its tree is needed.
#[derive(Debug, Clone)]
pub struct MaskedFile<'a> {
    pub head: &'a Head,
    pub target: &'a str,
    pub masked: &'a str,
    pub tier: &'static str,
    pub prompt: &'a str,
    pub command: &'a str,
    pub image: Option<&'a str>,
    /// Groups that judge.
    pub groups: Vec<&'a str>,
    /// Cases that judge.
    pub cases: &'a [String],
    pub attempts: u32,
    pub flake_bound: f64,
    /// Files that an agent does not see.
    pub hidden: &'a [String],
    /// Those of them that the judge puts back, by path.
    pub restored: BTreeMap<String, Vec<u8>>,
    /// The context pack, and its tokens where they were counted.
    pub context: Option<(&'a str, Option<u64>)>,
}

impl MaskedFile<'_> {
    /// As a task. `running.gold` is the original, where solutions are passed on.
    ///
    /// # Errors
    /// A usage error: a path that is not one of a tree's own files.
    pub fn task(&self, running: Running) -> Result<Task> {
        let path = |_: PathProblem| {
            Error::usage(format!("{}: a path of it is not that of a file of a tree", self.head.instance_id))
        };
        let gold = running.gold.as_ref().map(|original| -> Result<Patch, PathProblem> {
            let mut patch = Patch::default();
            patch.put(self.target, original.clone())?;
            Ok(patch)
        });
        let mut before = Patch::default();
        for (file, bytes) in &self.restored {
            before.put(file, bytes.clone()).map_err(path)?;
        }
        let judged =
            self.cases.iter().map(|case| JudgedCase { name: case.clone(), outcome: Outcome::Passed });
        Ok(Task {
            id: self.head.instance_id.clone(),
            family: Family::Recube.as_str(),
            slug: self.head.slug.clone(),
            commit: self.head.commit.clone(),
            version: self.head.version.clone(),
            created_at: self.head.created_at.clone(),
            title: format!("{} {}", self.head.slug, self.target),
            tier: self.tier,
            license: self.head.license.clone(),
            image: self.image.map(str::to_owned),
            workdir: WORKDIR.to_owned(),
            instruction: self.prompt.to_owned(),
            mask: agents_tree(self.target, self.masked, self.hidden).map_err(path)?,
            gold: gold.transpose().map_err(path)?,
            command: self.command.to_owned(),
            files: vec![self.target.to_owned()],
            measured: Measured {
                demand: running.demand,
                attempts: self.attempts,
                flake_bound: self.flake_bound,
                worlds: Vec::new(),
            },
            one_shot: self.one_shot(),
            judging: Judging {
                submission: self.target.to_owned(),
                hidden: &[],
                before,
                run: self
                    .groups
                    .iter()
                    .map(|node| EntryCommand::Pytest { node: (*node).to_owned() })
                    .collect(),
                originals: Vec::new(),
                given: Vec::new(),
                code: Vec::new(),
                expect: judged.collect(),
                is_exact: false,
                reward: Reward::All,
                options: running.options,
                variables: running.variables,
                limit: running.limit,
                suite: None,
            },
        })
    }

    fn one_shot(&self) -> Vec<OneShot> {
        let Some((context, tokens)) = self.context else { return Vec::new() };
        let one = |setting, max_tokens| OneShot {
            setting,
            prompt: prompts::full_context(setting, self.head.slug.as_str(), self.target, context),
            max_tokens,
            context_tokens: tokens,
        };
        vec![one(prompts::FULL_CONTEXT, prompts::TOKENS), one(prompts::FULL_CONTEXT_COT, prompts::TOKENS_COT)]
    }
}
