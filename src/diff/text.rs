//! A difference for people. Pure.

use std::fmt::{self, Display, Formatter};

use super::{Changed, Diff, Golden, Groups, RepositoryDiff};
use crate::record::family::{Family, Unit};
use crate::terminal::one_line;

impl Display for Diff {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        writeln!(out, "{} → {}", one_line(&self.from), one_line(&self.to))?;
        writeln!(
            out,
            "instances: {} added, {} removed, {} moved, {} changed, {} unchanged",
            total.added, total.removed, total.moved, total.changed, total.unchanged
        )?;
        for (slug, repository) in &self.repositories {
            writeln!(out, "\n{}  {}", one_line(slug), one_line(&commits(repository)))?;
            write!(out, "{}", of_repository(repository, self.family))?;
        }
        Ok(())
    }
}

fn commits(repository: &RepositoryDiff) -> String {
    let short = |commit: &Option<String>| {
        commit.as_ref().map_or("–".to_owned(), |commit| commit.chars().take(12).collect())
    };
    let [before, after] = &repository.commits;
    if before == after { short(before) } else { format!("{} → {}", short(before), short(after)) }
}

fn of_repository(repository: &RepositoryDiff, family: Family) -> String {
    let Groups { only_before, only_after, same_code, other_code, unknown_code } = &repository.groups;
    let what = match family.unit() {
        Unit::Group => format!(
            "groups: {only_after} new, {only_before} gone, {same_code} run the same code, {other_code} other code, \
             {unknown_code} not traced in both"
        ),
        Unit::Pair => format!(
            "pairs: {only_after} new, {only_before} gone, {same_code} with the same golden patch, {other_code} with another, \
             {unknown_code} not published in both"
        ),
        Unit::File => format!(
            "files: {only_after} new, {only_before} gone, {same_code} masked in both with the same text, {other_code} with \
             another, {unknown_code} not masked in both"
        ),
    };
    format!("  {what}\n{repository}")
}

impl Display for RepositoryDiff {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "  instances: {} added, {} removed, {} moved, {} changed, {} unchanged",
            self.added.len(),
            self.removed.len(),
            self.moved.len(),
            self.changed.len(),
            self.unchanged
        )?;
        for one in &self.added {
            let line = format!("  + {}  ({})", one.group_id, one.was);
            writeln!(out, "{}", one_line(&line))?;
        }
        for one in &self.removed {
            let evidence = one.evidence.as_ref().map_or(String::new(), |evidence| format!(": {evidence}"));
            let line = format!("  - {}  ({}{evidence})", one.group_id, one.cause);
            writeln!(out, "{}", one_line(&line))?;
        }
        for one in &self.moved {
            writeln!(out, "{}", one_line(&format!("  > {}  (was {})", one.to, one.from)))?;
        }
        for one in &self.changed {
            writeln!(out, "{}", one_line(&format!("  ~ {}  {}", one.group_id, changes(one))))?;
        }
        Ok(())
    }
}

fn changes(one: &Changed) -> String {
    let shown = |value: &Option<i64>| value.map_or("–".to_owned(), |value| value.to_string());
    let mut parts: Vec<String> =
        one.trace.iter().map(|(name, [a, b])| format!("{name} {} → {}", shown(a), shown(b))).collect();
    if let Some([a, b]) = &one.tier {
        parts.push(format!("tier {a} → {b}"));
    }
    if let Some([a, b]) = &one.hard_axes {
        let list = |axes: &[String]| if axes.is_empty() { "–".to_owned() } else { axes.join("+") };
        parts.push(format!("hard by {} → {}", list(a), list(b)));
    }
    let Golden { added, removed, changed } = &one.golden;
    for (number, what) in [(added, "new"), (removed, "gone"), (changed, "other golden observation")] {
        if !number.is_empty() {
            parts.push(format!("cases: {} {what}", number.len()));
        }
    }
    if one.same_code == Some(true) {
        parts.push("same code".to_owned());
    }
    parts.join(", ")
}
