//! What is proved about the tests of a repository, whatever task is made of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collected::{Collected, Group};
use super::environment::{Built, ImageName};
use super::host::HostFacts;
use super::id::{InstanceId, RepoSlug};
use super::outcome::{Attempt, CaseResult, Exit, Method, Outcome, TimeScope};
use super::rule::RuleUse;
use super::source::Pinned;
use super::trace::Traced;
use super::verdict::Verdict;
use super::world::World;
use crate::packed::Packed;

/// A group with all that was found out about it: the row behind `groups`, `cases`, `attempts` and `traces`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupEvidence {
    pub slug: RepoSlug,
    pub instance_id: InstanceId,
    pub group: Group,
    pub verdict: Verdict,
    /// Every attempt, in order. May be empty for what could not be collected.
    pub attempts: Vec<AttemptFacts>,
    /// Attempts that agree with the golden one; 0 when dropped.
    pub agreeing: u32,
    pub traced: Option<Traced>,
    /// Calls outside the tests, where traced.
    pub trace_length_package: Option<u64>,
    /// Outcome, exception and normalized output that every base attempt showed; empty when they differ.
    pub golden: Vec<CaseResult>,
    pub on_trial: OnTrial,
}

/// What is published of an attempt: a hash in place of all that it showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFacts {
    pub world: World,
    pub number: u32,
    pub method: Method,
    pub round: u32,
    /// One word for it.
    pub outcome: Cow<'static, str>,
    /// How its process ended, in words.
    pub exit: Cow<'static, str>,
    /// Whether it came to its end.
    pub finished: bool,
    /// [`Attempt::observation_hash`].
    pub observation: String,
    pub leftover: u32,
    pub connections: Vec<String>,
    pub duration_ms: f64,
    /// The most memory that one of its processes had at a time, where that was measured.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

impl AttemptFacts {
    /// Those of the attempts of a group.
    pub fn of(attempts: &[Attempt]) -> Vec<Self> {
        let facts = |attempt: &Attempt| AttemptFacts {
            world: attempt.world.clone(),
            number: attempt.number,
            method: attempt.method,
            round: attempt.round,
            outcome: outcome(attempt).into(),
            exit: exit(&attempt.exit),
            finished: attempt.exit == Exit::Finished,
            observation: attempt.observation_hash(),
            leftover: attempt.leftover,
            connections: attempt.connections.clone(),
            duration_ms: attempt.duration_ms,
            memory_bytes: attempt.memory_bytes,
        };
        attempts.iter().map(facts).collect()
    }
}

/// One word for an attempt: how the process ended, else the worst outcome of its cases; a group passes when some case
/// does and none is worse.
fn outcome(attempt: &Attempt) -> &'static str {
    match &attempt.exit {
        Exit::Exited { .. } | Exit::Signaled { .. } | Exit::Unusable => "crashed",
        Exit::TimedOut { .. } => "timed-out",
        Exit::NotCollected => "not-collected",
        Exit::Finished => {
            let worst_first = [
                Outcome::Error,
                Outcome::Failed,
                Outcome::Passed,
                Outcome::XPassed,
                Outcome::XFailed,
                Outcome::Skipped,
            ];
            let shown = |outcome: &Outcome| attempt.cases.iter().any(|case| case.outcome == *outcome);
            worst_first.into_iter().find(shown).map_or("no-case", Outcome::as_str)
        }
    }
}

fn exit(exit: &Exit) -> Cow<'static, str> {
    match exit {
        Exit::Finished => "finished".into(),
        Exit::Exited { code } => format!("exit code {code}").into(),
        Exit::Signaled { signal } => format!("signal {signal}").into(),
        Exit::TimedOut { scope: TimeScope::Case, case } => {
            format!("case over its time limit: {}", case.as_deref().unwrap_or("unknown")).into()
        }
        Exit::TimedOut { scope: TimeScope::Group, .. } => "group over its time limit".into(),
        Exit::NotCollected => "file not collected".into(),
        Exit::Unusable => "report cannot be used".into(),
    }
}

/// What the referee found out on the original; nothing where it was not tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnTrial {
    pub flags: Vec<String>,
    /// Files of the tree, other than code, that its cases open.
    pub data_files: Vec<String>,
    /// `file::Class::function` of the test's definition, where that is another file.
    pub defined_in: Option<String>,
}

impl GroupEvidence {
    /// What is special about it: those of the group, and what the referee found out.
    pub fn flags(&self) -> Vec<String> {
        [&self.group.flags[..], &self.on_trial.flags].concat()
    }
}

/// What is published of a collection beside its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionFacts {
    pub pytest: String,
    /// Cases, those of groups that are dropped included.
    pub cases: usize,
    /// Cases that the repository's own options deselect.
    pub deselected: usize,
    pub notes: Vec<String>,
}

impl CollectionFacts {
    /// Those of a collection.
    pub fn of(collected: &Collected) -> Self {
        CollectionFacts {
            pytest: collected.pytest.clone(),
            cases: collected.node_ids.len(),
            deselected: collected.deselected,
            notes: collected.notes.clone(),
        }
    }
}

/// All that is proved about the tests of one repository.
#[derive(Debug, Clone)]
pub struct RepositoryEvidence {
    pub pinned: Pinned,
    pub built: Built,
    pub collected: CollectionFacts,
    /// By group id: many, and each of them is long.
    pub groups: Packed<GroupEvidence>,
    pub parity: Parity,
    /// How often each rule matched and decided, by id.
    pub rules: BTreeMap<String, RuleUse>,
    pub backend: String,
    /// The image that its tests ran in, where they ran in one.
    pub image: Option<ImageName>,
    /// Where that was proved.
    pub host: HostFacts,
}

/// Agreement between the fork tree and cold runs of the literal entry command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parity {
    /// Groups with at least one cold run.
    pub compared: usize,
    /// Groups whose outcomes differ, with the difference in words.
    pub differing: Vec<ParityDifference>,
}

/// One group whose cold run disagrees with the fork tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParityDifference {
    pub group_id: String,
    pub fork: String,
    pub cold: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempts::attempt;

    #[test]
    fn what_is_packed_comes_back_whole() {
        let mut groups = crate::testing::made_up::groups(200);
        groups[0].golden[0].replaced = [("time".to_owned(), 3)].into();
        groups[0].on_trial = OnTrial {
            flags: vec!["reads-data".to_owned()],
            data_files: vec!["tests/data.txt".to_owned()],
            defined_in: Some("tests/base.py::Base::test".to_owned()),
        };
        groups[0].attempts[0].connections = vec!["192.0.2.1:80".to_owned()];
        let traced = groups[0].traced.as_mut().unwrap();
        (traced.threads_seen, traced.troubles, traced.complete) = (true, vec!["lost".to_owned()], false);
        (groups[0].trace_length_package, groups[1].attempts[0].duration_ms) = (None, 0.1 + 0.2);
        assert!(groups.iter().any(|group| !group.verdict.is_kept() && group.golden.is_empty()));
        let packed = Packed::of(groups.iter().cloned().map(Ok)).unwrap();
        assert!(packed.iter().map(Result::unwrap).eq(groups));
    }

    #[test]
    fn facts_of_attempts_tell_what_they_showed_by_hash() {
        let printed = |round, text: &str| attempt(&World::Base, Method::Fork, round, Outcome::Passed, text);
        let late = Attempt {
            exit: Exit::TimedOut { scope: TimeScope::Case, case: Some("t.py::t[1]".to_owned()) },
            ..printed(3, "a")
        };
        let attempts = [printed(0, "a"), printed(1, "b"), printed(2, "a"), late];
        let facts = AttemptFacts::of(&attempts);
        let hashes: Vec<&str> = facts.iter().map(|one| one.observation.as_str()).collect();
        assert_eq!(hashes, attempts.iter().map(Attempt::observation_hash).collect::<Vec<_>>());
        assert_eq!(facts[0].observation, facts[2].observation);
        assert_ne!(facts[0].observation, facts[1].observation);
        let words: Vec<_> = facts.iter().map(|one| (&*one.outcome, &*one.exit, one.finished)).collect();
        let passed = ("passed", "finished", true);
        let timed_out = ("timed-out", "case over its time limit: t.py::t[1]", false);
        assert_eq!(words, [passed, passed, passed, timed_out]);
    }
}
