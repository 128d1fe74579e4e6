//! `gistmill show`: why a test, a file that could be masked, or a pair of commits is in or out, with its evidence.

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;

use super::{Arguments, Format, newest};
use crate::dataset::Dataset;
use crate::dataset::query::{self, Answer, Found, pairs, targets};
use crate::error::{Error, Result};
use crate::record::family::{Family, Unit};
use crate::terminal;
use crate::text::shell_quote;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// An instance ID, a group ID, a case ID, a repository, or a part of an ID; of masked files also a path, of
    /// pairs of commits also a hash
    #[arg(value_name = "ID OR TEST", value_parser = NonEmptyStringValueParser::new())]
    query: String,
    /// The dataset directory; by default the newest below `output/`
    #[arg(long, value_name = "DIR")]
    dataset: Option<PathBuf>,
    /// All that is known about each of several tests, instead of one line each
    #[arg(long)]
    full: bool,
}

pub(super) fn run(arguments: &Arguments, show: &ShowArguments) -> Result<u8> {
    let directory = newest::chosen(show.dataset.as_ref())?;
    let dataset = Dataset::open_any(&directory)?;
    let (files, pairs) = match dataset.manifest.family.unit() {
        Unit::Group => (Answer::none(), Answer::none()),
        Unit::File => (targets::find(&dataset, &show.query)?, Answer::none()),
        Unit::Pair => (Answer::none(), pairs::find(&dataset, &show.query)?),
    };
    let what = match (files.found.is_empty(), pairs.found.is_empty()) {
        (false, _) => "files",
        (_, false) => "pairs",
        _ => "tests",
    };
    // Of a repository that has masked files, or pairs, these are meant.
    let mut tests = if what == "tests" { query::find_in(&dataset, &show.query)? } else { Answer::none() };
    if let Some(named) = &show.dataset {
        for evidence in tests.found.iter_mut().filter_map(|group| group.evidence.as_mut()) {
            evidence.command = in_dataset(&evidence.command, named);
        }
    }
    let nearest = [files.nearest, pairs.nearest, tests.nearest].concat();
    let mut all: Vec<&dyn Found> = Vec::new();
    all.extend(files.found.iter().map(|one| one as &dyn Found));
    all.extend(pairs.found.iter().map(|one| one as &dyn Found));
    all.extend(tests.found.iter().map(|one| one as &dyn Found));
    if all.is_empty() {
        return Err(nothing(show, &directory, dataset.manifest.family, &nearest));
    }
    match arguments.format {
        Format::Json => {
            let mut value = serde_json::json!({ "groups": tests.found });
            if !files.found.is_empty() {
                value["targets"] = serde_json::json!(files.found);
            }
            if !pairs.found.is_empty() {
                value["pairs"] = serde_json::json!(pairs.found);
            }
            terminal::json(&value);
        }
        _ if all.len() > 1 && !show.full => {
            let lines: Vec<String> = all.iter().map(|one| line(*one)).collect();
            terminal::say(&lines.join("\n"));
            terminal::note(&format!("{} {what}; --full shows all about each", all.len()));
        }
        _ => {
            let texts: Vec<String> = all.iter().map(|one| one.describe()).collect();
            terminal::say(texts.join("\n").trim_end_matches('\n'));
        }
    }
    Ok(0)
}

/// A replay for whoever may have only the dataset: in its environment, and not in that of the configuration it was built with.
fn in_dataset(command: &str, directory: &Path) -> String {
    if !command.starts_with("gistmill replay ") {
        return command.to_owned();
    }
    // A build writes its configuration last.
    let plain = command.rsplit_once(" --config ").map_or(command, |(before, _)| before);
    format!("{plain} --dataset {}", shell_quote(&directory.to_string_lossy()))
}

fn nothing(show: &ShowArguments, directory: &Path, family: Family, nearest: &[String]) -> Error {
    let what = match family.unit() {
        Unit::Group => "test",
        Unit::File => "file and no test",
        Unit::Pair => "pair and no test",
    };
    let hint = if nearest.is_empty() {
        "give a part of a test's path or name, or name another dataset with --dataset".to_owned()
    } else {
        format!("did you mean {}?", nearest.join(", or "))
    };
    Error::usage(format!("{} has no {what} that matches `{}`", directory.display(), show.query))
        .with_hint(terminal::one_line(&hint))
}

/// Verdict, repository, name.
pub(super) fn line(found: &(impl Found + ?Sized)) -> String {
    let text = format!("{}  {} {}", found.verdict(), found.slug(), found.name());
    terminal::one_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_of_a_dataset_that_was_named_needs_no_configuration() {
        let plain = "gistmill replay t.py::test --world base --times 10 --only local/parcel";
        let wanted = format!("{plain} --dataset received/parcel/1");
        let directory = Path::new("received/parcel/1");
        for command in [plain.to_owned(), format!("{plain} --config 'my repos.toml'")] {
            assert_eq!(in_dataset(&command, directory), wanted);
        }
        assert!(in_dataset(plain, Path::new("my data/1")).ends_with(" --dataset 'my data/1'"));
        assert_eq!(in_dataset("python -m pytest t.py::test", directory), "python -m pytest t.py::test");
    }
}
