//! Files of a dataset of `ReCUBE` that are masked, or could have been.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Answer, Found, nearest_names};
use crate::dataset::Dataset;
use crate::dataset::recube::{InstanceCases, RecubeInstance};
use crate::error::Result;
use crate::text::count;

/// A candidate of a dataset, with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FoundTarget {
    pub(crate) slug: String,
    /// From the root of the tree.
    pub(crate) target: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) cause: Option<String>,
    pub(crate) evidence: Option<String>,
    pub(crate) rank: Option<i64>,
    pub(crate) target_lines: i64,
    pub(crate) target_statements: i64,
    pub(crate) masked_functions: i64,
    pub(crate) called_functions: i64,
    pub(crate) reached_by: i64,
    pub(crate) caller_files: i64,
    /// What is known of a published one alone.
    #[serde(flatten)]
    pub(crate) published: Option<MaskedFile>,
}

/// A masked file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MaskedFile {
    pub(crate) tier: &'static str,
    pub(crate) flags: Vec<String>,
    pub(crate) noticed_functions: u64,
    pub(crate) unnoticed: Vec<String>,
    pub(crate) callers: Vec<String>,
    pub(crate) leaks: Vec<String>,
    pub(crate) hidden_files: usize,
    pub(crate) published_leak: Option<String>,
    pub(crate) attempts: u32,
    /// Cases that judge.
    pub(crate) n_cases: u64,
    pub(crate) n_groups: u64,
    pub(crate) n_external: u64,
    pub(crate) n_internal: u64,
    /// Cases that a gate took, with the gate.
    pub(crate) left_out: Vec<(String, String)>,
}

impl MaskedFile {
    fn of(one: &RecubeInstance, cases: &InstanceCases) -> Self {
        let own = cases.get(one.head.instance_id.as_str()).into_iter().flatten();
        let left_out = own.filter_map(|case| Some((case.case_id.clone(), case.left_out.clone()?)));
        MaskedFile {
            tier: one.tier.as_str(),
            flags: one.flags.clone(),
            noticed_functions: one.noticed_functions,
            unnoticed: one.unnoticed.clone(),
            callers: one.callers.clone(),
            leaks: one.leaks.clone(),
            hidden_files: one.hidden_files.len(),
            published_leak: one.published_leak.clone(),
            attempts: one.attempts,
            n_cases: one.n_cases,
            n_groups: one.n_groups,
            n_external: one.n_external,
            n_internal: one.n_internal,
            left_out: left_out.collect(),
        }
    }
}

/// Every candidate of a dataset, in its order.
///
/// # Errors
/// Usage errors: its tables are not as gistmill writes them.
pub(crate) fn all(dataset: &Dataset) -> Result<Vec<FoundTarget>> {
    let (instances, cases) = (dataset.recube_instances()?, dataset.recube_cases()?);
    let place = |one: &RecubeInstance| (one.head.slug.to_string(), one.target.clone());
    let instances: BTreeMap<(String, String), RecubeInstance> =
        instances.into_iter().map(|one| (place(&one), one)).collect();
    let table = dataset.table("targets", &[])?;
    let (slugs, files) = (table.whole_texts("slug")?, table.whole_texts("target")?);
    let (causes, evidence) = (table.texts("cause")?, table.texts("evidence")?);
    let ranks = table.numbers("rank")?;
    let numbers = |name: &str| table.whole_numbers(name);
    let (lines, statements) = (numbers("target_lines")?, numbers("target_statements")?);
    let (masked, called) = (numbers("masked_functions")?, numbers("called_functions")?);
    let (reached, callers) = (numbers("reached_by")?, numbers("caller_files")?);
    let row = |at: usize| {
        let instance = instances.get(&(slugs[at].to_owned(), files[at].to_owned()));
        FoundTarget {
            slug: slugs[at].to_owned(),
            target: files[at].to_owned(),
            instance_id: instance.map(|one| one.head.instance_id.to_string()),
            cause: causes[at].map(str::to_owned),
            evidence: evidence[at].map(str::to_owned),
            rank: ranks[at],
            target_lines: lines[at],
            target_statements: statements[at],
            masked_functions: masked[at],
            called_functions: called[at],
            reached_by: reached[at],
            caller_files: callers[at],
            published: instance.map(|one| MaskedFile::of(one, &cases)),
        }
    };
    Ok((0..table.rows()).map(row).collect())
}

/// Candidates whose path or instance ID is `query`, or all of the repository of that name; when there is none, those whose
/// path or ID contains it.
///
/// # Errors
/// Usage errors: the tables are not as gistmill writes them.
pub(crate) fn find(dataset: &Dataset, query: &str) -> Result<Answer<FoundTarget>> {
    let all = all(dataset)?;
    let of = |fits: &dyn Fn(&FoundTarget) -> bool| -> Vec<FoundTarget> {
        all.iter().filter(|one| fits(one)).cloned().collect()
    };
    let mut found =
        of(&|one| one.target == query || one.slug == query || one.instance_id.as_deref() == Some(query));
    if found.is_empty() {
        found = of(&|one| {
            one.target.contains(query) || one.instance_id.as_deref().is_some_and(|id| id.contains(query))
        });
    }
    let names = all.iter().flat_map(|one| [(one.target.as_str(), '/'), (one.slug.as_str(), '/')]);
    let nearest = if found.is_empty() { nearest_names(names, query) } else { Vec::new() };
    Ok(Answer { found, nearest })
}

impl Found for FoundTarget {
    fn slug(&self) -> &str {
        &self.slug
    }

    fn name(&self) -> &str {
        &self.target
    }

    fn instance_id(&self) -> Option<&str> {
        self.instance_id.as_deref()
    }

    fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    fn flags(&self) -> &[String] {
        self.published.as_ref().map(|one| one.flags.as_slice()).unwrap_or_default()
    }

    fn tier(&self) -> Option<&str> {
        self.published.as_ref().map(|one| one.tier)
    }

    /// It is not among the first of its repository.
    fn remaining_state(&self) -> &'static str {
        "kept"
    }

    fn lines(&self) -> Vec<String> {
        let many = |number: i64, what: &str| count(usize::try_from(number).unwrap_or_default(), what);
        let mut lines = vec![format!("{} {}", self.slug, self.target)];
        lines.push(match (&self.cause, &self.instance_id) {
            (Some(cause), _) => format!("  out: {cause}"),
            (None, Some(id)) => format!("  in: published as {id}"),
            (None, None) => "  kept, but not among the first `per_repo` of its repository".to_owned(),
        });
        lines.extend(self.evidence.iter().map(|evidence| format!("  {evidence}")));
        lines.extend(self.rank.map(|rank| format!("  rank {rank}")));
        lines.push(format!(
            "  {}, {}; {} with a body, {} called",
            many(self.target_lines, "line"),
            many(self.target_statements, "statement"),
            many(self.masked_functions, "function"),
            self.called_functions
        ));
        lines.push(format!(
            "  reached by {}, called by {}",
            many(self.reached_by, "group"),
            many(self.caller_files, "file")
        ));
        lines.extend(self.published.iter().flat_map(MaskedFile::lines));
        lines
    }
}

impl MaskedFile {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "  judged by {} of {}: {} external, {} internal",
                count(self.n_cases as usize, "case"),
                count(self.n_groups as usize, "group"),
                self.n_external,
                self.n_internal
            ),
            format!(
                "  tier: {}; at least {} that agree",
                self.tier,
                count(self.attempts as usize, "attempt")
            ),
            format!("  bodies that the cases notice: {}", self.noticed_functions),
        ];
        let list = |name: &str, words: &[String]| {
            (!words.is_empty()).then(|| format!("  {name}: {}", words.join(", ")))
        };
        lines.extend(list("not noticed", &self.unnoticed));
        lines.extend(list("callers", &self.callers));
        lines.extend(list("the original can be read in", &self.leaks));
        lines.extend(list("flags", &self.flags));
        lines.push(format!("  hidden from agents: {}", count(self.hidden_files, "file")));
        lines.extend(
            self.published_leak
                .iter()
                .map(|why| format!("  the published full-context prompt would show its bodies: {why}")),
        );
        lines.extend(self.left_out.iter().map(|(case, gate)| format!("  left out by {gate}: {case}")));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;
    use crate::testing::masked::TARGET;

    #[test]
    fn a_target_is_found_by_each_of_its_names_and_says_what_judges_it() {
        let folder = tempfile::tempdir().unwrap();
        crate::testing::write(&folder.path().join("1"), &MadeUp::masked(&[12]).input()).unwrap();
        let dataset = Dataset::open_any(&folder.path().join("1")).unwrap();
        let all = all(&dataset).unwrap();
        let states: Vec<_> = all.iter().map(|one| (one.target.as_str(), one.verdict())).collect();
        let expected = [("src/made/api.py", "few-functions"), (TARGET, "published")];
        assert_eq!(states, expected.map(|(target, verdict)| (target, verdict.into())));
        let id = all[1].instance_id.clone().unwrap();
        for query in [TARGET, id.as_str(), "core"] {
            let found = find(&dataset, query).unwrap().found;
            assert_eq!(found, [all[1].clone()], "{query}");
        }
        assert_eq!(find(&dataset, "made/up0").unwrap().found.len(), 2);
        let answer = find(&dataset, "cor.py").unwrap();
        assert_eq!((answer.found.len(), answer.nearest), (0, vec![TARGET.to_owned()]));
        let said = all[1].describe();
        for words in [
            "published as",
            "callers: src/made/api.py",
            "not noticed: third",
            "left out by imports-kept: tests/",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(all[0].describe().contains("out: few-functions\n  1 of at least 3"));
    }
}
