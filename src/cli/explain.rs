//! `gistmill explain`: what a cause or a flag means, what leads to it, and what can be done.

use serde_json::json;

use super::{Arguments, Format};
use crate::document::suggest;
use crate::error::{Error, Result};
use crate::record::codetaste::explanation;
use crate::record::explanation::Explanation;
use crate::record::flag::{self, KEPT_BY};
use crate::record::recube::TargetCause;
use crate::referee::gistify::witness::cause::Cause as WitnessCause;
use crate::rules::RuleSet;
use crate::terminal::{self, Text};

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// A cause, a flag or the ID of a built-in rule; without one all of them are listed
    #[arg(value_name = "CAUSE")]
    name: Option<String>,
}

pub(super) fn run(arguments: &Arguments, asked: &ExplainArguments) -> Result<u8> {
    let all = all();
    let Some(name) = &asked.name else {
        list(arguments, &all);
        return Ok(0);
    };
    let general = general(name);
    let found: Vec<&Explanation> =
        all.iter().filter(|one| one.name == *name || one.name == general).collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        let hint = match suggest::nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "`gistmill explain` lists all; rules of your own give their reason in their file".to_owned()
            }
        };
        return Err(
            Error::usage(format!("there is no cause, flag or built-in rule `{name}`")).with_hint(hint)
        );
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({ "explanations": found })),
        Format::Human | Format::Csv => {
            let mut text = Text::default();
            for (number, one) in found.iter().enumerate() {
                if number > 0 {
                    text.line("");
                }
                describe(one, &mut text);
            }
            text.print();
        }
    }
    Ok(0)
}

/// Everything that can be explained: causes, flags, built-in rules, causes of missing witnesses, causes of files that are not masked,
/// causes of pairs that are not instances, flags of pairs and of what is handed in for them.
pub(super) fn all() -> Vec<Explanation> {
    let mut all = Explanation::causes();
    all.extend(flag::explanations());
    all.extend(RuleSet::shipped().rules().iter().map(|rule| Explanation {
        name: rule.id.clone(),
        kind: "rule",
        meaning: format!("a built-in rule with the action `{}` matches", rule.action.as_str()),
        origin: rule.reason.clone(),
        remedy: "A rule of your own with this ID takes its place.".to_owned(),
    }));
    all.extend(WitnessCause::ALL.into_iter().map(|cause| Explanation {
        name: cause.as_str().to_owned(),
        kind: "witness cause",
        meaning: cause.meaning().to_owned(),
        origin: "`gistmill witness` found no solution that the referee accepts; the column `witness` says why.".to_owned(),
        remedy: "The instance may well have a solution that a program does not find.".to_owned(),
    }));
    all.extend(TargetCause::ALL.into_iter().map(TargetCause::explained));
    all.extend(explanation::explanations());
    all.extend(difficulties());
    all
}

/// Words for how hard instances are.
fn difficulties() -> impl Iterator<Item = Explanation> {
    let tier = "It follows from the higher of an instance's two percentile ranks, by trace length and by unique files; `[tier]` sets the bounds.";
    let all = [
        (
            "easy",
            "tier",
            "below the median by both measurements, as the default has it",
            tier,
            "`--tier easy` selects them.",
        ),
        (
            "medium",
            "tier",
            "at or above the median by one of them, and below the bound of hard ones",
            tier,
            "`--tier medium` selects them.",
        ),
        ("hard", "tier", "among the highest by one of them", tier, "`--tier hard` selects them."),
        (
            "top",
            "subset",
            "the first instances by trace length together with the first by unique files",
            "By each of them at most a fifth of all, and at most `hard_per_axis` of `[dataset]`. The paper calls it Gistify-hard; the tier `hard` is something else.",
            "`--subset top` selects them; `[subset.<name>]` makes others.",
        ),
    ];
    all.into_iter().map(|(name, kind, meaning, origin, remedy)| Explanation {
        name: name.to_owned(),
        kind,
        meaning: meaning.to_owned(),
        origin: origin.to_owned(),
        remedy: remedy.to_owned(),
    })
}

/// The name under which a word with a parameter is explained.
fn general(name: &str) -> String {
    match name.strip_prefix("rule:") {
        Some(id) if RuleSet::shipped().rules().iter().any(|rule| rule.id == id) => id.to_owned(),
        Some(_) => "rule:<id>".to_owned(),
        None if name.starts_with(KEPT_BY) => format!("{KEPT_BY}<id>"),
        None => name.to_owned(),
    }
}

fn describe(one: &Explanation, text: &mut Text) {
    text.styled(&console::Style::new().bold(), &one.name);
    text.line(&format!(" ({}): {}", one.kind, one.meaning));
    for (title, words) in [("why", &one.origin), ("what to do", &one.remedy)] {
        text.line(&format!("  {title}: {words}"));
    }
}

fn list(arguments: &Arguments, all: &[Explanation]) {
    if arguments.format == Format::Json {
        terminal::json(&json!({ "explanations": all }));
        return;
    }
    let width = all.iter().map(|one| one.name.len()).max().unwrap_or_default();
    let mut text = Text::default();
    let mut kind = "";
    for one in all {
        if one.kind != kind {
            kind = one.kind;
            text.styled(&console::Style::new().bold(), &format!("{kind}s"));
            text.line("");
        }
        text.line(&format!("  {:width$}  {}", one.name, one.meaning));
    }
    text.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_parameter_are_explained_by_their_kind() {
        let names: Vec<String> = all().into_iter().map(|one| one.name).collect();
        for (name, expected) in [
            ("rule:mine", "rule:<id>"),
            ("rule:trivial-trace", "trivial-trace"),
            ("kept-by:mine", "kept-by:<id>"),
            ("depends-on-clock", "depends-on-clock"),
        ] {
            assert_eq!(general(name), expected);
            assert!(names.iter().any(|name| name == expected), "{expected}");
        }
    }
}
