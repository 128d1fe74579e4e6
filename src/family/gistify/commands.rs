//! What a judge outside of gistmill has to know of a command: what it is given, and what it must show.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::family::Running;
use crate::record::entry::{Entry, Stdin};
use crate::record::instance::{Expected, Instance};
use crate::record::outcome::{CommandResult, FileChange};
use crate::record::task::{JudgedRun, Shown};
use crate::record::variant::Given;
use crate::score::{Masks, Modules};

/// The runs of a command, its own input first.
///
/// # Errors
/// A usage error: the dataset does not say what the command shows.
pub(super) fn runs(instance: &Instance, entry: &Entry, running: &Running) -> Result<Vec<JudgedRun>> {
    let expected: Option<Expected> =
        instance.expected.first().and_then(|text| serde_json::from_str(text).ok());
    let whole = expected.and_then(|one| Some((one.stdout?, one.stderr?, one.command?)));
    let Some((stdout, stderr, command)) = whole else {
        return Err(Error::usage(format!(
            "{}: the dataset does not say what the command shows in every attempt",
            instance.instance_id
        ))
        .with_hint("leave the instance out, or build the dataset again"));
    };
    let none = Modules::default();
    let modules = running.sources.as_ref().map_or(&none, |sources| &sources.modules);
    let files: BTreeSet<String> = running.sources.iter().flat_map(|it| it.files.keys().cloned()).collect();
    let masks = Masks { modules, files: &files, test_module: "" };
    let own = Given { arguments: entry.command.arguments().to_vec(), ..Given::default() };
    let mut all = vec![run(None, entry, &own, shown(&stdout, &stderr, &command, &masks))];
    for variant in &running.variants {
        let Some(variation) = &variant.variation else { continue };
        let Some(command) = &variation.shows.command else { continue };
        let shows = shown(&variation.shows.stdout, &variation.shows.stderr, command, &masks);
        all.push(run(Some(variant.kind.as_str()), entry, &variation.given, shows));
    }
    Ok(all)
}

fn run(kind: Option<&'static str>, entry: &Entry, given: &Given, shows: Shown) -> JudgedRun {
    let entry = given.to(entry);
    let watched = entry.watched();
    let (stdin, stdin_file) = match entry.stdin {
        Some(Stdin::Text(text)) => (Some(text), None),
        Some(Stdin::File(path)) => (None, Some(path)),
        None => (None, None),
    };
    JudgedRun {
        kind,
        arguments: given.arguments.clone(),
        stdin,
        stdin_file,
        cwd: entry.cwd,
        env: entry.env,
        files: entry.given,
        watched,
        shows,
    }
}

/// What is shown, without places of code.
fn shown(stdout: &str, stderr: &str, command: &CommandResult, masks: &Masks<'_>) -> Shown {
    let file = |file: &FileChange| FileChange {
        text: file.text.as_deref().map(|text| masks.output(text)),
        ..file.clone()
    };
    Shown {
        status: command.status,
        stdout: masks.output(stdout),
        stderr: masks.output(stderr),
        files: command.files.iter().map(file).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::CaseResult;
    use crate::record::variant::{Variant, VariantKind, Variation};
    use crate::testing::attempts::{attempt, entry};

    #[test]
    fn a_judge_gets_the_input_of_each_run_and_what_it_shows() {
        let entry = Entry { cwd: "data".to_owned(), files: vec!["out/*".to_owned()], ..entry("shop sum 1") };
        let given = Given { arguments: vec!["sum".to_owned(), "2".to_owned()], ..Given::default() };
        let own = Given { arguments: entry.command.arguments().to_vec(), ..Given::default() };
        let none = BTreeSet::new();
        let modules: Modules = ["shop", "shop.cli"].into_iter().collect();
        let masks = Masks { modules: &modules, files: &none, test_module: "" };
        let command = CommandResult { status: 3, ..CommandResult::default() };
        let shows = shown("shop.cli: 1\n", "", &command, &masks);
        assert_eq!((shows.status, shows.stdout.as_str()), (3, "<module>: 1\n"));
        let first = run(None, &entry, &own, shows.clone());
        assert_eq!((first.arguments.join(" ").as_str(), first.cwd.as_str()), ("sum 1", "data"));
        assert_eq!(first.watched, ["(?s)^out/[^/]*$"]);
        let other = run(Some("other-argument"), &entry, &given, shows);
        assert_eq!(other.arguments.join(" "), "sum 2");
        let made = attempt(
            &crate::record::world::World::Base,
            crate::record::outcome::Method::Fork,
            0,
            crate::record::outcome::Outcome::Passed,
            "2\n",
        );
        let case = CaseResult { command: Some(CommandResult::default()), ..made.cases[0].clone() };
        let variant = Variant {
            kind: VariantKind::OtherArgument,
            line: 0,
            source: String::new(),
            cases: Vec::new(),
            variation: Some(Variation { given, shows: case.clone() }),
            refutes_constant: false,
        };
        assert_eq!(variant.golden(), [case]);
    }
}
