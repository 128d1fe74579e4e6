//! Refactorings in the layout of their authors' own harness. Pure: rows and texts in, files out. Nothing of it is for agents:
//! it has what judges beside what is judged.
//!
//! ```text
//! instances.csv                                                  repository, golden and base commit, category, language
//! assets/rules/<owner>/<repo>/<hash8>/rules_*.yml                patterns as OpenGrep reads them, where they have that form
//!                                     *.ast-grep.yml             all patterns
//! assets/descriptions/<owner>/<repo>/<hash8>/*.md
//! assets/diffs/<owner>/<repo>/<hash8>/golden.diff
//! instance_images/<owner>/<repo>/<hash8>/instance_metadata.json  counts of both trees
//!                                            scripts/            what runs the suite, where pytest does not
//! baseline_results/<owner>/<repo>/<hash8>/*_agent.jsonl          counts of every run, a line each
//! outputs/pseudo_agents/direct/<owner>/<repo>/<hash8>/*_agent/   the golden and the empty patch as submissions
//! ```

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{File, Files};
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::record::codetaste::{Counts, PairTree, SuiteRun};

/// Names of the two made-up agents with the trees that they make.
const AGENTS: [(&str, PairTree); 2] = [("golden_agent", PairTree::Golden), ("null_agent", PairTree::Base)];
/// The engine skips tests where no file says what it ignores; this one ignores nothing.
const IGNORES_NOTHING: &str = "# nothing is ignored\n";

/// An instance with all that is known of it.
pub(crate) struct Known<'a> {
    pub(crate) instance: &'a CodetasteInstance,
    pub(crate) hidden: &'a HiddenPair,
    pub(crate) runs: &'a [SuiteRun],
}

/// The files of these instances.
pub(crate) fn files(all: &[Known<'_>]) -> Files {
    let mut files = Files::new();
    let mut rows = "owner,repo,golden_commit_hash,commit_hash,category,language\n".to_owned();
    for one in all {
        let (owner, repo) = one.instance.head.repo.split_once('/').unwrap_or_default();
        let (golden, base) = (&one.instance.golden_commit, &one.instance.head.commit);
        let language = one.instance.language.as_deref().unwrap_or_default();
        let _ = writeln!(rows, "{owner},{repo},{golden},{base},refactoring,{language}");
        one.add(&mut files);
    }
    put(&mut files, "instances.csv".to_owned(), rows.into_bytes());
    put(&mut files, "assets/default.semgrepignore".to_owned(), IGNORES_NOTHING.into());
    files
}

fn put(files: &mut Files, path: String, bytes: Vec<u8>) {
    files.insert(path, File { bytes, executable: false });
}

impl Known<'_> {
    fn add(&self, files: &mut Files) {
        let digits: String = self.instance.head.commit.chars().take(8).collect();
        let place = format!("{}/{digits}", self.instance.head.repo);
        let rules = self.hidden.opengrep.iter().chain(&self.hidden.pattern_files);
        for (name, text) in rules {
            put(files, format!("assets/rules/{place}/{name}"), text.clone().into_bytes());
        }
        let texts = [
            ("description.md", &self.hidden.description),
            ("open_description.md", &self.hidden.open_description),
        ];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            put(files, format!("assets/descriptions/{place}/{name}"), text.clone().into_bytes());
        }
        if let Some(patch) = &self.hidden.golden_patch {
            put(files, format!("assets/diffs/{place}/golden.diff"), patch.clone());
        }
        for (path, bytes) in &self.hidden.scripts {
            let file = File { bytes: bytes.clone(), executable: true };
            files.insert(format!("instance_images/{place}/scripts/{path}"), file);
        }
        let path = format!("instance_images/{place}/instance_metadata.json");
        put(files, path, pretty(&self.metadata()));
        for (agent, tree) in AGENTS {
            let runs = self.runs.iter().filter(|run| run.tree == tree).filter_map(|run| run.counts);
            let lines: Vec<String> = runs.map(|counts| counted(counts).to_string() + "\n").collect();
            let path = format!("baseline_results/{place}/{agent}.jsonl");
            put(files, path, lines.concat().into_bytes());
            self.add_agent(files, &place, agent, tree);
        }
    }

    fn metadata(&self) -> Value {
        let (owner, repo) = self.instance.head.repo.split_once('/').unwrap_or_default();
        let first = |tree: PairTree| {
            let mut runs = self.runs.iter().filter(|run| run.tree == tree);
            runs.find_map(|run| run.counts).map(counted)
        };
        json!({
            "owner": owner, "repo": repo,
            "base_hash": self.instance.head.commit, "golden_hash": self.instance.golden_commit,
            "golden_metrics": first(PairTree::Golden), "base_metrics": first(PairTree::Base),
            "has_execution_environment": true,
            "reason_no_execution_environment": "",
        })
    }

    /// A patch as its made-up agent hands it in; an empty one is a blank line.
    fn add_agent(&self, files: &mut Files, place: &str, agent: &str, tree: PairTree) {
        let patch = match tree {
            PairTree::Golden => self.hidden.golden_patch.clone(),
            PairTree::Base => Some(b"\n".to_vec()),
        };
        let Some(patch) = patch else { return };
        let folder = format!("outputs/pseudo_agents/direct/{place}/{agent}");
        let who = agent.trim_end_matches("_agent");
        let config = json!({
            "id": agent,
            "agent": { "name": agent, "version": "0.0.0", "provider": who, "additional": null },
            "model": { "name": format!("{who}_model"), "provider": who, "additional": null },
        });
        // Nobody made it, so that it took no time.
        let moment = &self.instance.head.created_at;
        let made = json!({
            "cost_usd": 0.0, "finish_reason": "success", "start_time": moment, "finish_time": moment, "additional": null,
        });
        put(files, format!("{folder}/prediction.diff"), patch);
        put(files, format!("{folder}/agent_config.json"), pretty(&config));
        put(files, format!("{folder}/inference_metadata.json"), pretty(&made));
    }
}

fn counted(counts: Counts) -> Value {
    let Counts { passed, failed, skipped, total } = counts;
    json!({ "passed": passed, "failed": failed, "skipped": skipped, "total": total })
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}
