//! The entries of a repository beside its groups: what of them cannot be run is said at once, and what the same programs
//! print as help is known before they are screened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::help::{self, subcommands};
use crate::attempt::cold::Cold;
use crate::beneath::{Folder, Kind};
use crate::document::suggest::nearest;
use crate::error::{Error, Result};
use crate::record::collected::{Collected, Group};
use crate::record::entry::{Entry, EntryCommand, Source, Stdin, name_of};
use crate::record::id::{Name, hash_parts};
use crate::record::outcome::{CaseResult, Exit};

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

/// Adds the entries to what was collected, each with what its program prints as help and as version; where commands are
/// `looked_for`, with the subcommands that the help of a program names. `printed` gives the hash of what an attempt of a case
/// printed.
///
/// # Errors
/// The harness's trouble.
pub fn add(
    collected: &mut Collected,
    mut entries: Vec<Entry>,
    looked_for: bool,
    cold: &Cold<'_>,
    printed: &dyn Fn(&CaseResult) -> String,
) -> Result<()> {
    let mut answers = Answers::default();
    answers.ask(&entries, cold, printed)?;
    if looked_for {
        let mut more = answers.subcommands(&entries);
        if more.len() > MOST_NAMED {
            collected.notes.push(format!("{} subcommands are not looked at", more.len() - MOST_NAMED));
            more.truncate(MOST_NAMED);
        }
        answers.ask(&more, cold, printed)?;
        let (named, before) = (more.len(), entries.len());
        let fit = more.into_iter().filter(|one| !answers.demands(one));
        join(&mut entries, fit.collect(), 0);
        if named > 0 {
            collected.notes.push(format!(
                "{} named by the help of programs, {} of them can be run without an argument and were not known",
                crate::text::count(named, "subcommand"),
                entries.len() - before
            ));
        }
    }
    for entry in entries {
        let help = answers.help_of(&entry);
        let group = Group::of_entry(Entry { help, ..entry });
        collected.node_ids.push(group.group_id.clone());
        collected.groups.push(group);
    }
    Ok(())
}

/// Of what a program prints as its help, so many characters are read.
const LONGEST_HELP: usize = 64 << 10;
/// Subcommands named by the help of all programs: more are not looked at.
const MOST_NAMED: usize = 500;

/// What programs print about themselves.
#[derive(Default)]
struct Answers {
    /// The hash of it.
    hashes: BTreeMap<Asked, Vec<String>>,
    /// The text of it.
    texts: BTreeMap<Asked, String>,
}

impl Answers {
    /// Asks the programs of entries, then the subcommands that they name, what was not asked yet.
    fn ask(
        &mut self,
        entries: &[Entry],
        cold: &Cold<'_>,
        printed: &dyn Fn(&CaseResult) -> String,
    ) -> Result<()> {
        let probes = |entry: &Entry, about: Vec<EntryCommand>| {
            let pair = |command: EntryCommand| (asked_in(entry, &command), probe(entry, command));
            about.into_iter().map(pair).collect::<Vec<_>>()
        };
        let of_programs = entries.iter().flat_map(|entry| probes(entry, about(entry)[0].clone()));
        self.ask_all(of_programs.collect(), cold, printed)?;
        let named = entries.iter().filter(|entry| self.names_subcommand(entry));
        let of_subcommands = named.flat_map(|entry| probes(entry, about(entry)[1].clone())).collect();
        self.ask_all(of_subcommands, cold, printed)
    }

    /// Whether the help of its program has the first word of an entry.
    fn names_subcommand(&self, entry: &Entry) -> bool {
        let help = entry.command.with_arguments(vec![ABOUT[0].to_owned()]);
        let (Some(first), Some(text)) =
            (entry.command.arguments().first(), self.texts.get(&asked_in(entry, &help)))
        else {
            return false;
        };
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        text.split(|c| !is_part(c)).any(|word| word == first)
    }

    fn ask_all(
        &mut self,
        mut asked: BTreeMap<Asked, Group>,
        cold: &Cold<'_>,
        printed: &dyn Fn(&CaseResult) -> String,
    ) -> Result<()> {
        asked.retain(|asked, _| !self.hashes.contains_key(asked));
        let mut open: Vec<(usize, &Group)> = asked.values().enumerate().collect();
        let mut told: Vec<(Vec<String>, String)> = vec![Default::default(); open.len()];
        // What a busy machine had no time for is asked once more.
        for _ in 0..2 {
            let mut late = BTreeSet::new();
            cold.run(&open, |at, attempt| {
                let says =
                    attempt.cases.iter().filter(|case| !(case.stdout.is_empty() && case.stderr.is_empty()));
                let text = says.clone().flat_map(|case| case.stdout.chars()).take(LONGEST_HELP);
                told[at] = (says.clone().map(printed).collect(), text.collect());
                if attempt.exit != Exit::Finished {
                    late.insert(at);
                }
                Ok(())
            })?;
            open.retain(|(at, _)| late.contains(at));
            if open.is_empty() {
                break;
            }
        }
        for (asked, (hashes, text)) in asked.into_keys().zip(told) {
            if asked.0.arguments().last().is_some_and(|last| last == ABOUT[0]) {
                self.texts.insert(asked.clone(), text);
            }
            self.hashes.insert(asked, hashes);
        }
        Ok(())
    }

    /// The subcommands that programs name, as entries without further arguments.
    fn subcommands(&self, entries: &[Entry]) -> Vec<Entry> {
        let mut programs: BTreeSet<Asked> = BTreeSet::new();
        let mut found = Vec::new();
        for entry in entries.iter().filter(|entry| entry.origin.source != Source::Configured) {
            let help = entry.command.with_arguments(vec![ABOUT[0].to_owned()]);
            let asked = asked_in(entry, &help);
            let Some(text) = self.texts.get(&asked).filter(|_| programs.insert(asked.clone())) else {
                continue;
            };
            let of_program = entries.iter().find(|one| {
                let is_it = one.command.program() == entry.command.program();
                is_it && one.command.arguments().is_empty() && one.origin.source != Source::Configured
            });
            found.extend(subcommands(text).into_iter().map(|one| {
                let command = entry.command.with_arguments(vec![one.0]);
                let origin = of_program.unwrap_or(entry).origin.clone();
                Entry {
                    name: name_of(&command),
                    command,
                    stdin: None,
                    origin,
                    help: Vec::new(),
                    ..entry.clone()
                }
            }));
        }
        found
    }

    /// Whether a subcommand cannot be run without an argument, or says nothing of itself.
    fn demands(&self, entry: &Entry) -> bool {
        let subcommand = entry.command.arguments().first().cloned();
        let help = subcommand.into_iter().chain([ABOUT[0].to_owned()]).collect();
        let asked = asked_in(entry, &entry.command.with_arguments(help));
        self.texts.get(&asked).is_none_or(|text| text.is_empty() || help::demands(text))
    }

    /// What the program of an entry, and its subcommand, print about themselves.
    fn help_of(&self, entry: &Entry) -> Vec<String> {
        let mut help = BTreeSet::new();
        for asked in about(entry) {
            let [told @ .., unknown] = &asked
                .iter()
                .map(|command| self.hashes.get(&asked_in(entry, command)))
                .collect::<Vec<_>>()[..]
            else {
                continue;
            };
            help.extend(
                told.iter().filter(|one| *one != unknown).flatten().flat_map(|texts| texts.iter().cloned()),
            );
        }
        help.into_iter().collect()
    }
}

/// A command, its folder and its variables: the same words may be another program elsewhere.
type Asked = (EntryCommand, String, BTreeMap<String, String>);

fn asked_in(entry: &Entry, command: &EntryCommand) -> Asked {
    (command.clone(), entry.cwd.clone(), entry.env.clone())
}

/// Commands that ask the program of an entry, and those that ask its subcommand, about themselves; the last of each asks in vain.
fn about(entry: &Entry) -> [Vec<EntryCommand>; 2] {
    let command = &entry.command;
    if matches!(command, EntryCommand::Code { .. } | EntryCommand::Pytest { .. }) {
        return [Vec::new(), Vec::new()];
    }
    let with = |words: &[&str]| command.with_arguments(words.iter().map(|word| (*word).to_owned()).collect());
    let subcommand = command.arguments().first().filter(|word| !word.starts_with('-'));
    // It has no version of its own.
    let of_subcommand = subcommand.map(|word| [ABOUT[0], UNKNOWN].map(|option| with(&[word, option])).into());
    [[ABOUT[0], ABOUT[1], UNKNOWN].map(|option| with(&[option])).into(), of_subcommand.unwrap_or_default()]
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
    use crate::record::entry::Origin;
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
        let asked =
            |line: &str| about(&entry(line)).concat().iter().map(EntryCommand::line).collect::<Vec<_>>();
        assert_eq!(
            asked("shop list --all x"),
            ["--help", "--version", UNKNOWN, "list --help", &format!("list {UNKNOWN}")]
                .map(|words| format!("shop {words}"))
        );
        assert_eq!(asked("python -m shop --all").len(), 3);
        assert!(asked("python -c 'print(1)'").is_empty());
    }

    #[test]
    fn a_program_that_does_not_look_at_its_options_prints_no_help() {
        let one = entry("shop list");
        let asked = about(&one);
        let told = |texts: [&str; 5]| -> Vec<String> {
            let texts = texts.map(|text| vec![text.to_owned()]);
            let asked: Vec<Asked> = asked.concat().iter().map(|command| asked_in(&one, command)).collect();
            Answers { hashes: asked.into_iter().zip(texts).collect(), texts: BTreeMap::new() }.help_of(&one)
        };
        assert_eq!(told(["help", "1.0", "unknown", "of list", "unknown"]), ["1.0", "help", "of list"]);
        assert!(told(["same"; 5]).is_empty());
    }

    #[test]
    fn subcommands_that_a_help_names_are_entries_where_they_demand_nothing() {
        let found = |line: &str| {
            let mut one = entry(line);
            one.origin =
                Origin { source: Source::ConsoleScript, file: Some("pyproject.toml".into()), line: Some(4) };
            one
        };
        let all = [
            Entry { stdin: Some(Stdin::Text("x".into())), ..found("shop buy") },
            found("shop"),
            entry("cart"),
        ];
        let text = |line: &str, text: &str| (asked_in(&all[0], &entry(line).command), text.to_owned());
        let help = "Usage: x\n\nCommands:\n  buy   B\n  list  L\n  get   G\n  odd   O\n";
        let texts = [
            text("shop --help", help),
            text("cart --help", help),
            text("shop buy --help", "Usage: shop buy [OPTIONS]"),
            text("shop list --help", "Usage: shop list [OPTIONS]"),
            text("shop get --help", "Usage: shop get [OPTIONS] NAME"),
        ];
        let answers = Answers { hashes: BTreeMap::new(), texts: texts.into() };
        assert!(answers.names_subcommand(&all[0]) && !answers.names_subcommand(&all[1]));
        let named = answers.subcommands(&all);
        let lines: Vec<String> = named.iter().map(|one| one.command.line()).collect();
        assert_eq!(lines, ["shop buy", "shop list", "shop get", "shop odd"], "cart is configured");
        assert!(named.iter().all(|one| one.stdin.is_none() && one.origin == all[1].origin));
        let demand: Vec<bool> = named.iter().map(|one| answers.demands(one)).collect();
        assert_eq!(demand, [false, false, true, true]);
    }
}
