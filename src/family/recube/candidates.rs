//! Files of a repository that could be targets: what reaches them, what is masked in them, why they cannot be any.

use std::collections::{BTreeMap, BTreeSet};

use super::choose::{Exercise, choose};
use super::docstring::DocstringKind;
use super::kinds::{Entries, called_by_code, classify, entries, way};
use super::mask::{Cut, Function, Masked, NotMaskable, mask, published_leak, text_of_target};
use super::surface::{FileNames, surface};
use crate::family::tokens;
use crate::record::recube::{Bounds, Kind, Measured, Reason, TargetCause, TargetRow, Way};
use crate::record::trace::{FunctionCalls, is_test_path};

/// A kept group and its calls.
#[derive(Debug, Clone, Copy)]
pub struct GroupCalls<'a> {
    pub group_id: &'a str,
    /// Golden cases that passed.
    pub cases: u32,
    pub functions: &'a [FunctionCalls],
    pub starts_threads: bool,
    /// Functions on which its traces disagree, `file::function`.
    pub unstable: &'a [String],
    /// The only file that it judges, where whoever wrote it says so, and the kind that it has there.
    pub given: Option<(&'a str, Option<Kind>)>,
}

/// How one group reaches one file.
#[derive(Debug, Clone)]
struct Reach {
    exercise: Exercise,
    entries: Entries,
    /// Lines at which functions begin that it calls.
    called: BTreeSet<u32>,
    kind: Option<Kind>,
}

/// Which groups reach which files.
#[derive(Debug, Default)]
pub struct Reached {
    /// By file, then group ID.
    files: BTreeMap<String, BTreeMap<String, Reach>>,
}

impl Reached {
    /// Notes the calls of a group.
    pub fn add(&mut self, group: GroupCalls<'_>, test_roots: &[String]) {
        let functions = group.functions.iter().filter(|one| one.is_called());
        let of_tree = || functions.clone().filter(|one| !is_test_path(&one.file, test_roots));
        let package = of_tree().map(|one| one.calls).fold(0, u64::saturating_add);
        let files: BTreeSet<&str> = of_tree().map(|one| one.file.as_str()).collect();
        let judges = |file: &&str| group.given.is_none_or(|(only, _)| only == *file);
        for file in files.into_iter().filter(|file| is_candidate(file)).filter(judges) {
            let Some(entries) = entries(group.functions, file) else { continue };
            let inside = || functions.clone().filter(|one| one.file == file);
            // Where lines are not known, functions take their place.
            let lines =
                inside().flat_map(|one| one.lines.as_deref().unwrap_or(std::slice::from_ref(&one.line)));
            let unstable = |name: &String| name.strip_prefix(file).is_some_and(|rest| rest.starts_with("::"));
            let exercise = Exercise {
                lines: lines.copied().collect(),
                into: inside().map(|one| one.calls).fold(0, u64::saturating_add),
                package,
                cases: group.cases,
                is_unsteady: group.starts_threads || group.unstable.iter().any(unstable),
            };
            let called = inside().map(|one| one.line).collect();
            let kind = group.given.and_then(|(_, kind)| kind);
            let reach = Reach { exercise, entries, called, kind };
            self.files.entry(file.to_owned()).or_default().insert(group.group_id.to_owned(), reach);
        }
    }
}

/// Whether a file can be a candidate by its name.
fn is_candidate(file: &str) -> bool {
    file.ends_with(".py") && file != "setup.py"
}

/// A target with the groups that judge it.
#[derive(Debug, Clone)]
pub struct Target {
    pub masked: Masked,
    /// Chosen groups, in the order in which they were chosen.
    pub groups: Vec<JudgingGroup>,
}

/// A group that judges a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgingGroup {
    pub group_id: String,
    pub kind: Kind,
    pub reason: Reason,
    pub way: Way,
    /// Lines at which functions of the target begin that it calls.
    pub called: BTreeSet<u32>,
    /// Lines of the target that it runs in functions; those of `called` where lines are not known.
    pub lines: BTreeSet<u32>,
}

/// All candidates of a repository: their rows, by path, and those that are kept, in the order of their ranks.
///
/// `texts` are the bytes of the tree's Python files, tests aside; `named` are the only targets where there are any.
pub fn candidates(
    reached: &Reached,
    texts: &BTreeMap<&str, &[u8]>,
    (bounds, test_roots): (&Bounds, &[String]),
    named: &[String],
) -> (Vec<TargetRow>, Vec<(String, Target)>) {
    let paths: BTreeSet<&str> = texts.keys().copied().collect();
    let names = texts
        .iter()
        .filter_map(|(path, bytes)| Some((*path, FileNames::of(path, text_of_target(bytes).ok()?, &paths))));
    let names: BTreeMap<&str, FileNames> = names.collect();
    let (mut rows, mut kept) = (Vec::new(), Vec::new());
    for (file, groups) in &reached.files {
        let bytes = texts.get(&**file).copied().unwrap_or_default();
        let mut measured = measured(groups, test_roots);
        let judged = judge(bytes, groups, bounds, &mut measured);
        let judged = match judged {
            Ok(_) if !named.is_empty() && !named.contains(file) => Err((TargetCause::NotNamed, None)),
            other => other,
        };
        let (cause, evidence) = match judged {
            Ok(masked) => {
                let shared = surface(file, &names, test_roots);
                let groups = judging(groups, bounds, test_roots, &shared);
                kept.push((file.clone(), Target { masked, groups }));
                (None, None)
            }
            Err((cause, evidence)) => (Some(cause), evidence),
        };
        rows.push(TargetRow { file: file.clone(), cause, evidence, rank: None, published: false, measured });
    }
    rank(&mut rows, &mut kept);
    (rows, kept)
}

/// Orders what is kept: more calling files first, then more calls, then the path.
fn rank(rows: &mut [TargetRow], kept: &mut [(String, Target)]) {
    let mut order: Vec<&mut TargetRow> = rows.iter_mut().filter(|row| row.cause.is_none()).collect();
    let key = |row: &TargetRow| {
        let Measured { callers, trace_calls, .. } = &row.measured;
        (std::cmp::Reverse((callers.len(), *trace_calls)), row.file.clone())
    };
    order.sort_by_cached_key(|row| key(row));
    let mut ranks = BTreeMap::new();
    for (at, row) in order.into_iter().enumerate() {
        row.rank = Some(at as u64 + 1);
        ranks.insert(row.file.clone(), at);
    }
    kept.sort_by_key(|(file, _)| ranks.get(file).copied());
}

/// What traces say of a file.
fn measured(groups: &BTreeMap<String, Reach>, test_roots: &[String]) -> Measured {
    let files = groups.values().flat_map(|one| one.entries.values().flatten().flatten());
    let callers: BTreeSet<&String> = files.filter(|file| !is_test_path(file, test_roots)).collect();
    Measured {
        reached_by: groups.len() as u64,
        callers: callers.into_iter().cloned().collect(),
        trace_calls: groups.values().map(|one| one.exercise.into).fold(0, u64::saturating_add),
        ..Measured::default()
    }
}

/// The mask of a file that can be a target, or the first cause why it cannot.
fn judge(
    bytes: &[u8],
    groups: &BTreeMap<String, Reach>,
    bounds: &Bounds,
    measured: &mut Measured,
) -> Result<Masked, (TargetCause, Option<String>)> {
    let read = text_of_target(bytes).and_then(|text| Ok((text, mask(text, Cut::All)?)));
    let (text, masked) = read.map_err(|why| (TargetCause::NotMaskable, Some(reason(&why))))?;
    let with_body = || masked.functions.iter().filter(|one| !one.is_trivial);
    let called: BTreeSet<u32> = groups.values().flat_map(|one| one.called.iter().copied()).collect();
    measured.target_lines = text.lines().count() as u64;
    measured.target_statements = with_body().map(|one| u64::from(one.statements)).sum();
    measured.functions = masked.functions.len() as u64;
    measured.masked_functions = with_body().count() as u64;
    measured.called_functions = with_body().filter(|one| called.contains(&one.line)).count() as u64;
    let of_kind = |kind| with_body().filter(|one: &&Function| one.docstring == kind).count() as u64;
    measured.docstring_none = of_kind(DocstringKind::None);
    measured.docstring_line = of_kind(DocstringKind::Line);
    measured.docstring_sections = of_kind(DocstringKind::Sections);
    measured.docstring_full = of_kind(DocstringKind::Full);
    measured.imports_removed = masked.imports.into();
    measured.published_leak = published_leak(text).map(str::to_owned);
    let dropped = |cause, evidence: String| Err((cause, Some(evidence)));
    let (functions, reached_by) = (measured.masked_functions, measured.reached_by);
    if functions < u64::from(bounds.min_functions) {
        return dropped(TargetCause::FewFunctions, format!("{functions} functions have a body"));
    }
    let length = tokens::count(text).filter(|tokens| *tokens > u64::from(bounds.max_target_tokens));
    if let Some(length) = length {
        return dropped(TargetCause::TooLong, format!("it has {length} tokens"));
    }
    if reached_by < u64::from(bounds.min_groups) {
        return dropped(TargetCause::FewTests, format!("{reached_by} kept groups reach it"));
    }
    if (measured.called_functions as f64) < bounds.min_exercised * functions as f64 {
        let words = format!("groups call {} of {functions} functions", measured.called_functions);
        return dropped(TargetCause::LittleExercised, words);
    }
    Ok(masked)
}

fn reason(why: &NotMaskable) -> String {
    let line = why.line().map(|line| format!(", line {line}")).unwrap_or_default();
    format!("{}{line}", why.reason())
}

/// The groups that judge a target.
fn judging(
    groups: &BTreeMap<String, Reach>,
    bounds: &Bounds,
    test_roots: &[String],
    shared: &BTreeSet<String>,
) -> Vec<JudgingGroup> {
    let used: BTreeSet<&str> =
        groups.values().flat_map(|one| called_by_code(&one.entries, test_roots)).collect();
    let exercises = groups.iter().map(|(id, one)| (id.as_str(), one.exercise.clone())).collect();
    let chosen = choose(&exercises, bounds.max_groups as usize);
    let judging = |id: &str| {
        let reach = groups.get(id)?;
        let reason = match reach.kind {
            Some(_) => Reason::Given,
            None => classify(&reach.entries, test_roots, &used, shared),
        };
        Some(JudgingGroup {
            group_id: id.to_owned(),
            kind: reach.kind.or(reason.kind())?,
            reason,
            way: way(&reach.entries, test_roots),
            called: reach.called.clone(),
            lines: reach.exercise.lines.clone(),
        })
    };
    chosen.into_iter().filter_map(judging).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &str =
        "import os\n\ndef a():\n    return 1\n\ndef b():\n    return 2\n\ndef c():\n    return 3\n";

    fn call(order: u32, file: &str, function: &str, line: u32, callers: &[u32]) -> FunctionCalls {
        let lines = Some(vec![line + 1]);
        let callers = Some(callers.to_vec());
        FunctionCalls { file: file.into(), function: function.into(), line, calls: 1, order, lines, callers }
    }

    fn reached(groups: usize) -> Reached {
        let mut reached = Reached::default();
        for at in 0..groups {
            let functions = [
                call(0, "tests/test_a.py", "test_a", 1, &[]),
                call(1, "pkg/core.py", if at % 2 == 0 { "a" } else { "b" }, 3 + 3 * (at as u32 % 2), &[0]),
                call(2, "pkg/odd.py", "f", 1, &[1]),
            ];
            let id = format!("tests/test_a.py::test_{at}");
            let group = GroupCalls {
                group_id: &id,
                cases: 1,
                functions: &functions,
                starts_threads: false,
                unstable: &[],
                given: None,
            };
            reached.add(group, &["tests".to_owned()]);
        }
        reached
    }

    fn rows(groups: usize, bounds: &Bounds, named: &[String]) -> (Vec<TargetRow>, Vec<(String, Target)>) {
        let texts = [("pkg/core.py", CORE.as_bytes()), ("pkg/odd.py", b"def f(:\n")].into();
        candidates(&reached(groups), &texts, (bounds, &["tests".to_owned()]), named)
    }

    #[test]
    fn the_first_cause_that_holds_is_the_one_that_is_said() {
        let causes = |groups, bounds: &Bounds, named: &[String]| {
            let (rows, kept) = rows(groups, bounds, named);
            (rows.iter().map(|row| row.cause).collect::<Vec<_>>(), kept.len())
        };
        let odd = Some(TargetCause::NotMaskable);
        let bounds = Bounds::default();
        assert_eq!(causes(5, &bounds, &[]), (vec![None, odd], 1));
        assert_eq!(causes(4, &bounds, &[]), (vec![Some(TargetCause::FewTests), odd], 0));
        let short = Bounds { max_target_tokens: 9, ..bounds.clone() };
        assert_eq!(causes(5, &short, &[]), (vec![Some(TargetCause::TooLong), odd], 0));
        let more = Bounds { min_functions: 4, ..bounds.clone() };
        assert_eq!(causes(4, &more, &[]), (vec![Some(TargetCause::FewFunctions), odd], 0));
        let all = Bounds { min_exercised: 0.7, ..bounds.clone() };
        assert_eq!(causes(5, &all, &[]), (vec![Some(TargetCause::LittleExercised), odd], 0));
        let other = ["pkg/else.py".to_owned()];
        assert_eq!(causes(5, &bounds, &other), (vec![Some(TargetCause::NotNamed), odd], 0));
    }

    #[test]
    fn a_target_has_its_measurements_and_its_groups() {
        let (rows, kept) = rows(6, &Bounds { max_groups: 2, ..Bounds::default() }, &[]);
        let measured = &rows[0].measured;
        assert_eq!(
            (measured.masked_functions, measured.called_functions, measured.target_statements),
            (3, 2, 3)
        );
        assert_eq!((measured.reached_by, measured.imports_removed, measured.docstring_none), (6, 1, 3));
        assert_eq!(rows[0].rank, Some(1));
        assert_eq!(rows[1].evidence.as_deref(), Some("syntax, line 1"));
        assert_eq!(rows[1].measured.callers, ["pkg/core.py"]);
        let (_, target) = &kept[0];
        let ids: Vec<&str> = target.groups.iter().map(|one| one.group_id.as_str()).collect();
        assert_eq!(ids, ["tests/test_a.py::test_0", "tests/test_a.py::test_1"]);
        assert_eq!((target.groups[0].reason, target.groups[0].way), (Reason::TestCallsUnshared, Way::Direct));
    }

    #[test]
    fn a_group_that_was_written_for_a_file_judges_that_one_alone() {
        let functions = [call(0, "tests/a_test.py", "test_a", 1, &[]), call(1, "pkg/core.py", "a", 3, &[0])];
        let texts = [("pkg/core.py", CORE.as_bytes())].into();
        let judging = |given| {
            let mut reached = Reached::default();
            let (group_id, functions) = ("tests/a_test.py::test_a", &functions[..]);
            let group =
                GroupCalls { group_id, cases: 1, functions, starts_threads: false, unstable: &[], given };
            reached.add(group, &["tests".to_owned()]);
            let bounds = Bounds { min_groups: 1, min_exercised: 0.0, ..Bounds::default() };
            let (_, kept) = candidates(&reached, &texts, (&bounds, &["tests".to_owned()]), &[]);
            let group = |(_, target): &(String, Target)| (target.groups[0].kind, target.groups[0].reason);
            kept.first().map(group)
        };
        assert_eq!(judging(Some(("pkg/other.py", None))), None);
        let given = Some((Kind::External, Reason::Given));
        assert_eq!(judging(Some(("pkg/core.py", Some(Kind::External)))), given);
        let found = Some((Kind::Internal, Reason::TestCallsUnshared));
        assert_eq!(judging(Some(("pkg/core.py", None))), found);
    }
}
