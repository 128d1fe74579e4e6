//! The entries of a repository beside its groups: what of them cannot be run is said at once, and what the same programs
//! print as help is known before they are screened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::attempt::cold::Cold;
use crate::beneath::{Folder, Kind};
use crate::document::suggest::nearest;
use crate::error::{Error, Result};
use crate::record::collected::{Collected, Group};
use crate::record::entry::{Entry, EntryCommand, Stdin};
use crate::record::id::{Name, hash_parts};

/// Options that ask a program about itself.
const ABOUT: [&str; 2] = ["--help", "--version"];
/// An option that programs do not have: one that prints the same with it does not look at its options.
const UNKNOWN: &str = "--no-program-has-this-option";

/// Says which of these entries name what the tree and its environment do not have. Pure but for the look.
///
/// # Errors
/// A repository error that names all of them, with their lines in the configuration.
pub fn check(entries: &[Entry], tree: &Folder, scripts: &BTreeSet<String>) -> Result<()> {
    let told: Vec<String> = entries
        .iter()
        .filter_map(|entry| missing(entry, tree, scripts).map(|what| format!("{}: {what}", place(entry))))
        .collect();
    if told.is_empty() {
        return Ok(());
    }
    let count = crate::text::count(told.len(), "entry");
    Err(Error::usage(format!("{count} cannot be run")).with_detail(told.join("\n")))
}

fn place(entry: &Entry) -> String {
    let line = entry.origin.line.map(|line| format!(" (line {line} of the configuration)"));
    format!("entry {}{}", entry.name, line.unwrap_or_default())
}

/// What an entry names that is missing, in words.
pub fn missing(entry: &Entry, tree: &Folder, scripts: &BTreeSet<String>) -> Option<String> {
    let in_folder = |path: &str| {
        if entry.cwd.is_empty() { path.to_owned() } else { format!("{}/{path}", entry.cwd) }
    };
    if !entry.cwd.is_empty() && !has_folder(tree, &entry.cwd) {
        return Some(format!("the tree has no folder {}", entry.cwd));
    }
    if let Some(Stdin::File(file)) = &entry.stdin
        && !tree.has_file(Path::new(file))
    {
        return Some(format!("the tree has no file {file} for standard input"));
    }
    match &entry.command {
        EntryCommand::Script { path, .. } if !tree.has_file(Path::new(&in_folder(path))) => {
            Some(format!("the tree has no file {}", in_folder(path)))
        }
        EntryCommand::Console { name, .. } if !scripts.contains(name) => {
            let known: Vec<&str> = scripts.iter().map(String::as_str).collect();
            let hint =
                nearest(name, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            Some(format!("the installed project declares no script {name}{hint}"))
        }
        EntryCommand::Script { .. }
        | EntryCommand::Module { .. }
        | EntryCommand::Console { .. }
        | EntryCommand::Code { .. }
        | EntryCommand::Pytest { .. } => None,
    }
}

fn has_folder(tree: &Folder, path: &str) -> bool {
    matches!(tree.look(Path::new(path)), Ok(Some(found)) if matches!(found.kind, Kind::Folder))
}

/// The scripts of an environment, by name.
///
/// # Errors
/// The folder of scripts cannot be read.
pub fn scripts(venv: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs_err::read_dir(venv.join("bin"))? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Adds entries that were found to those that are configured, which come first: the same command is one entry. Gives a note
/// on what was found.
pub fn join(entries: &mut Vec<Entry>, found: Vec<Entry>, rejects: usize) -> Option<String> {
    let (candidates, mut added) = (found.len(), 0);
    for mut one in found {
        let is_same = |known: &Entry| known.command == one.command && known.stdin == one.stdin;
        if entries.iter().any(is_same) {
            continue;
        }
        let plain = one.name.to_string();
        let mut number = 1;
        while entries.iter().any(|known| known.name == one.name) {
            number += 1;
            one.name = Name::new(&format!("{plain}-{number}")).ok()?;
        }
        added += 1;
        entries.push(one);
    }
    let commands = crate::text::count(candidates, "command");
    Some(format!(
        "{commands} found by reading, {added} of them not configured; {rejects} lines cannot be entries"
    ))
}

/// Adds the entries to what was collected, each with what its program prints as help and as version. `printed` gives the
/// hash of what an attempt of a case printed.
///
/// # Errors
/// The harness's trouble.
pub fn add(
    collected: &mut Collected,
    entries: Vec<Entry>,
    cold: &Cold<'_>,
    printed: &dyn Fn(&crate::record::outcome::CaseResult) -> String,
) -> Result<()> {
    let asked: BTreeMap<Asked, Group> = entries
        .iter()
        .flat_map(|entry| {
            about(entry).into_iter().map(|command| (asked_in(entry, &command), probe(entry, command)))
        })
        .collect();
    let groups: Vec<(usize, &Group)> = asked.values().enumerate().collect();
    let mut told: Vec<Vec<String>> = vec![Vec::new(); groups.len()];
    cold.run(&groups, |at, attempt| {
        let says = attempt.cases.iter().filter(|case| !(case.stdout.is_empty() && case.stderr.is_empty()));
        told[at].extend(says.map(printed));
        Ok(())
    })?;
    let told: BTreeMap<&Asked, Vec<String>> = asked.keys().zip(told).collect();
    for entry in entries {
        let help = help_of(&entry, &told);
        let group = Group::of_entry(Entry { help, ..entry });
        collected.node_ids.push(group.group_id.clone());
        collected.groups.push(group);
    }
    Ok(())
}

/// A command, its folder and its variables: the same words may be another program elsewhere.
type Asked = (EntryCommand, String, BTreeMap<String, String>);

fn asked_in(entry: &Entry, command: &EntryCommand) -> Asked {
    (command.clone(), entry.cwd.clone(), entry.env.clone())
}

/// What the program of an entry, and its subcommand, print about themselves.
fn help_of(entry: &Entry, told: &BTreeMap<&Asked, Vec<String>>) -> Vec<String> {
    let mut help = BTreeSet::new();
    for asked in about(entry).chunks(ABOUT.len() + 1) {
        let [told @ .., unknown] =
            &asked.iter().map(|command| told.get(&asked_in(entry, command))).collect::<Vec<_>>()[..]
        else {
            continue;
        };
        help.extend(
            told.iter().filter(|one| *one != unknown).flatten().flat_map(|texts| texts.iter().cloned()),
        );
    }
    help.into_iter().collect()
}

/// Commands that ask the program of an entry, and its subcommand, about themselves; the last of each asks in vain.
fn about(entry: &Entry) -> Vec<EntryCommand> {
    let command = &entry.command;
    if matches!(command, EntryCommand::Code { .. } | EntryCommand::Pytest { .. }) {
        return Vec::new();
    }
    let subcommand = command.arguments().first().filter(|word| !word.starts_with('-'));
    let prefixes = std::iter::once(Vec::new()).chain(subcommand.map(|word| vec![word.clone()]));
    let with = |prefix: Vec<String>| {
        [ABOUT[0], ABOUT[1], UNKNOWN]
            .map(|option| command.with_arguments(prefix.iter().cloned().chain([option.to_owned()]).collect()))
    };
    prefixes.flat_map(with).collect()
}

/// An entry that asks.
fn probe(entry: &Entry, command: EntryCommand) -> Group {
    let place = format!("{:?}", (&entry.cwd, &entry.env));
    let parts: Vec<String> = command.words().into_iter().chain([place]).collect();
    let name = format!("about-{}", &hash_parts(&parts)[..16]);
    let name = Name::new(&name).unwrap_or_else(|_| entry.name.clone());
    Group::of_entry(Entry { name, command, stdin: None, help: Vec::new(), ..entry.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempts::entry;

    #[test]
    fn all_that_is_missing_is_said_at_once_with_the_nearest_names() {
        let scratch = tempfile::tempdir().unwrap();
        fs_err::create_dir(scratch.path().join("tools")).unwrap();
        fs_err::write(scratch.path().join("tools/sum.py"), "").unwrap();
        let tree = Folder::open(scratch.path()).unwrap();
        let scripts = ["shop", "shop-admin", "pip"].map(str::to_owned).into();
        let fine = [
            entry("shop a"),
            entry("python tools/sum.py"),
            Entry { cwd: "tools".into(), ..entry("python sum.py") },
            entry("python -m anything"),
        ];
        check(&fine, &tree, &scripts).unwrap();
        let bad = [
            entry("shpo a"),
            entry("python tools/product.py"),
            Entry { cwd: "nowhere".into(), ..entry("shop b") },
            Entry { stdin: Some(Stdin::File("in.txt".into())), ..entry("shop c") },
            entry("zzz"),
        ];
        let error = check(&bad, &tree, &scripts).unwrap_err();
        assert_eq!(error.to_string().lines().next(), Some("5 entries cannot be run"));
        let detail = error.detail().unwrap();
        let lines: Vec<&str> = detail.lines().collect();
        assert_eq!(
            lines,
            [
                "entry shpo-a (line 9 of the configuration): the installed project declares no script shpo; \
                 did you mean shop?",
                "entry product (line 9 of the configuration): the tree has no file tools/product.py",
                "entry shop-b (line 9 of the configuration): the tree has no folder nowhere",
                "entry shop-c (line 9 of the configuration): the tree has no file in.txt for standard input",
                "entry zzz (line 9 of the configuration): the installed project declares no script zzz",
            ]
        );
    }

    #[test]
    fn what_is_found_joins_what_is_configured() {
        let mut entries =
            vec![entry("shop list"), Entry { name: Name::new("shop").unwrap(), ..entry("shop a") }];
        let found = vec![entry("shop list"), entry("shop"), entry("shop b")];
        let note = join(&mut entries, found, 4).unwrap();
        let names: Vec<&str> = entries.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["shop-list", "shop", "shop-2", "shop-b"]);
        assert!(note.starts_with("3 commands found by reading, 2 of them"), "{note}");
    }

    #[test]
    fn a_program_and_its_subcommand_are_asked_about_themselves() {
        let asked = |line: &str| about(&entry(line)).iter().map(EntryCommand::line).collect::<Vec<_>>();
        assert_eq!(
            asked("shop list --all x"),
            ["--help", "--version", UNKNOWN, "list --help", "list --version", &format!("list {UNKNOWN}")]
                .map(|words| format!("shop {words}"))
        );
        assert_eq!(asked("python -m shop --all").len(), 3);
        assert!(asked("python -c 'print(1)'").is_empty());
    }

    #[test]
    fn a_program_that_does_not_look_at_its_options_prints_no_help() {
        let one = entry("shop list");
        let asked = about(&one);
        let told = |texts: [&str; 6]| -> Vec<String> {
            let texts = texts.map(|text| vec![text.to_owned()]);
            let asked: Vec<Asked> = asked.iter().map(|command| asked_in(&one, command)).collect();
            help_of(&one, &asked.iter().zip(texts).collect())
        };
        assert_eq!(told(["help", "1.0", "unknown", "of list", "1.0", "unknown"]), ["1.0", "help", "of list"]);
        assert!(told(["same"; 6]).is_empty());
    }
}
