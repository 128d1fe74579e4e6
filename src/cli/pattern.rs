//! `gistmill pattern`: patterns of code on a pair of commits.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::session::own_program;
use super::{Arguments, Format};
use crate::backend::Backend;
use crate::backend::local::{LocalBackend, Strictness};
use crate::document;
use crate::error::{Error, Result};
use crate::family::codetaste::registered::Refusal;
use crate::family::codetaste::score::Side;
use crate::pattern::{self, Checked, Pair, Patterns, Reach, Report, Tree};
use crate::score::Ratio;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct PatternArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Run patterns on both trees of a pair: which are taken, which are not and why. Exit code 1 where one is not taken
    Check(CheckArguments),
    /// Find patterns of a pair by a program, check them, and write those that are taken
    Mine(MineArguments),
    /// Show the lines that patterns match on both trees of a pair
    Show(ShowArguments),
}

#[derive(Debug, clap::Args)]
struct CheckArguments {
    /// The pair: a clone and full hashes, CLONE@GOLDEN (from its first parent) or CLONE@BASE..GOLDEN
    #[arg(value_name = "PAIR")]
    pair: String,
    /// Files with patterns, ast-grep's YAML or OpenGrep's
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Say what an agent that writes patterns may know: places on the base alone, of the golden tree numbers
    #[arg(long)]
    as_agent: bool,
    /// Write the patterns that are taken into this new file, with their matches in `metadata`
    #[arg(long, value_name = "FILE")]
    register: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ShowArguments {
    /// The pair: a clone and full hashes, CLONE@GOLDEN (from its first parent) or CLONE@BASE..GOLDEN
    #[arg(value_name = "PAIR")]
    pair: String,
    /// Files with patterns, ast-grep's YAML or OpenGrep's
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only the pattern of this ID; may be given several times
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Most lines of each pattern and tree
    #[arg(long, value_name = "N", default_value_t = 10)]
    most: usize,
    /// Show the base alone, and of the golden tree numbers
    #[arg(long)]
    as_agent: bool,
}

#[derive(Debug, clap::Args)]
struct MineArguments {
    /// The pair: a clone and full hashes, CLONE@GOLDEN (from its first parent) or CLONE@BASE..GOLDEN
    #[arg(value_name = "PAIR")]
    pair: String,
    /// A new folder for `additive.ast-grep.yml` and `reductive.ast-grep.yml`
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, asked: &PatternArguments) -> Result<u8> {
    match &asked.action {
        Action::Check(asked) => check(arguments, asked),
        Action::Mine(asked) => mine(arguments, asked),
        Action::Show(asked) => show(arguments, asked),
    }
}

fn read(files: &[PathBuf]) -> Result<Patterns> {
    let read = |file: &PathBuf| Ok((file.display().to_string(), document::read_text(file)?));
    let sandbox = || -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(LocalBackend::with(&own_program()?, Strictness::Best)?))
    };
    Patterns::parse(&files.iter().map(read).collect::<Result<Vec<_>>>()?, &sandbox)
}

fn check(arguments: &Arguments, asked: &CheckArguments) -> Result<u8> {
    let patterns = read(&asked.files)?;
    let pair = Pair::open(&asked.pair)?;
    let (base, golden) = pair.trees(patterns.reach())?;
    let report = pattern::check(&patterns, &base, &golden, &pair.changed()?)?;
    if let Some(file) = &asked.register {
        let text = pattern::registered(&patterns, &report)?;
        let mut new = fs_err::File::create_new(file).map_err(|error| {
            Error::usage(error.to_string()).with_source(error).with_hint("name a new file with --register")
        })?;
        std::io::Write::write_all(&mut new, text.as_bytes())?;
    }
    // Of the golden tree an agent that writes patterns learns numbers.
    let seen = Seen { base: &base, golden: Some(&golden).filter(|_| !asked.as_agent) };
    tell(arguments, &pair, &report, &seen);
    Ok(u8::from(report.patterns.iter().any(|one| one.decision.refusal.is_some())))
}

/// The trees of which places are shown.
struct Seen<'a> {
    base: &'a Tree,
    golden: Option<&'a Tree>,
}

/// The text of a line of a tree.
fn text_at<'a>(tree: &'a Tree, path: &str, line: u64) -> &'a str {
    let at = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    tree.text(path).and_then(|text| text.split('\n').nth(at)).unwrap_or_default()
}

/// Prints where patterns match.
fn show(arguments: &Arguments, asked: &ShowArguments) -> Result<u8> {
    let patterns = read(&asked.files)?;
    if let Some(id) = asked.id.iter().find(|id| patterns.ids().all(|(known, _)| known != id.as_str())) {
        return Err(Error::usage(format!("no file has a pattern `{id}`"))
            .with_hint("gistmill pattern check prints the IDs"));
    }
    let pair = Pair::open(&asked.pair)?;
    let (base, golden) = pair.trees(patterns.reach())?;
    let (before, after) = (patterns.scan(&base)?, patterns.scan(&golden)?);
    let golden_tree = Some(&golden).filter(|_| !asked.as_agent);
    let (mut shown, mut text) = (Vec::new(), String::new());
    let wanted = |id: &str| asked.id.is_empty() || asked.id.iter().any(|one| one == id);
    for (id, side) in patterns.ids().filter(|(id, _)| wanted(id)) {
        let _ =
            writeln!(text, "{id}{}", side.map(|side| format!(" ({})", side.as_str())).unwrap_or_default());
        let mut places = json!({ "id": id, "side": side });
        for (name, tree, found) in
            [("base", Some(&base), before.get(id)), ("golden", golden_tree, after.get(id))]
        {
            let found = found.cloned().unwrap_or_default();
            let _ = writeln!(text, "  {name}: {} on {} lines", found.matches, found.lines.count());
            places[name] = json!({ "matches": found.matches, "lines": found.lines.count() });
            let Some(tree) = tree else { continue };
            let lines = found
                .lines
                .ranges()
                .flat_map(|(path, first, last)| (first..=last).map(move |line| (path, line)));
            let at: Vec<Value> = lines
                .take(asked.most)
                .map(|(path, line)| {
                    let content = text_at(tree, path, line);
                    let _ = writeln!(text, "    {path}:{line}: {}", content.trim_end());
                    json!({ "path": path, "line": line, "text": content })
                })
                .collect();
            places[name]["places"] = at.into();
        }
        shown.push(places);
    }
    match arguments.format {
        Format::Json => {
            terminal::json(&json!({ "base": pair.base, "golden": pair.golden, "patterns": shown }));
        }
        Format::Human | Format::Csv => terminal::say(text.trim_end()),
    }
    Ok(0)
}

fn mine(arguments: &Arguments, asked: &MineArguments) -> Result<u8> {
    let pair = Pair::open(&asked.pair)?;
    let (base, golden) = pair.trees(Reach::Python)?;
    let changed = pair.changed()?;
    let mined = pattern::mine(&base, &golden, &changed)?;
    let patterns = Patterns::built_in(&[("mined".to_owned(), pattern::documents(&mined))])
        .map_err(|error| error.blame(crate::error::Fault::Internal))?;
    let report = pattern::check(&patterns, &base, &golden, &changed)?;
    if let Some(folder) = &asked.output {
        write(folder, |side| {
            let is_taken =
                |id: &str| report.patterns.iter().any(|one| one.id == id && one.decision.refusal.is_none());
            pattern::documents(mined.iter().filter(|one| one.side == side && is_taken(&one.id)))
        })?;
    }
    tell(arguments, &pair, &report, &Seen { base: &base, golden: Some(&golden) });
    Ok(0)
}

fn write(folder: &Path, text: impl Fn(Side) -> String) -> Result<()> {
    fs_err::create_dir(folder).map_err(|error| {
        Error::usage(error.to_string()).with_source(error).with_hint("name a new folder with --output")
    })?;
    for side in [Side::Additive, Side::Reductive] {
        fs_err::write(folder.join(format!("{}.ast-grep.yml", side.as_str())), text(side))?;
    }
    Ok(())
}

fn tell(arguments: &Arguments, pair: &Pair, report: &Report, seen: &Seen<'_>) {
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "base": pair.base, "golden": pair.golden,
            "patterns": report.patterns.iter().map(|one| described(one, seen)).collect::<Vec<_>>(),
            "prec": report.precision.all().rate(), "prec_plus": report.precision.added.rate(),
            "prec_minus": report.precision.removed.rate(),
        })),
        Format::Human | Format::Csv => {
            terminal::say(table(&report.patterns, seen).trim_end());
            terminal::note(&closing(report));
        }
    }
}

fn described(one: &Checked, seen: &Seen<'_>) -> Value {
    json!({
        "id": one.id, "side": one.side, "m_base": one.base.matches, "m_golden": one.golden.matches,
        "lines": one.right().lines.count(), "files": one.right().lines.paths().count(),
        "refused": one.decision.refusal.as_ref().map(Refusal::to_string),
        "witness": witness(one, seen),
    })
}

/// A place on the wrong side, where it is one of few, so that it can be exempted.
fn witness(one: &Checked, seen: &Seen<'_>) -> Option<String> {
    let tree = match one.side {
        Side::Additive => seen.base,
        Side::Reductive => seen.golden?,
    };
    let (path, line, _) = one.wrong().lines.ranges().next().filter(|_| one.decision.shows_witness)?;
    Some(format!("{path}:{line}: {}", text_at(tree, path, line).trim()))
}

fn table(patterns: &[Checked], seen: &Seen<'_>) -> String {
    let widest = patterns.iter().map(|one| one.id.chars().count()).max().unwrap_or_default().max(7);
    let mut text = format!("{:widest$}  side       base  golden  lines  files\n", "pattern");
    for one in patterns {
        let lines = &one.right().lines;
        let _ = write!(
            text,
            "{:widest$}  {:9}  {:>4}  {:>6}  {:>5}  {:>5}",
            one.id,
            one.side.as_str(),
            one.base.matches,
            one.golden.matches,
            lines.count(),
            lines.paths().count()
        );
        if let Some(refusal) = &one.decision.refusal {
            let _ = write!(text, "  {refusal}");
        }
        if let Some(witness) = witness(one, seen) {
            let _ = write!(text, ", as in {witness}");
        }
        text.push('\n');
    }
    text
}

fn closing(report: &Report) -> String {
    let taken = |side: Side| {
        report.patterns.iter().filter(|one| one.side == side && one.decision.refusal.is_none()).count()
    };
    let percent =
        |ratio: Ratio| ratio.rate().map_or_else(|| "no".to_owned(), |rate| format!("{:.1} %", 100.0 * rate));
    let precision = &report.precision;
    format!(
        "{} additive and {} reductive patterns; they match {} of the changed lines ({} of those added, {} of those removed)",
        taken(Side::Additive),
        taken(Side::Reductive),
        percent(precision.all()),
        percent(precision.added),
        percent(precision.removed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::codetaste::diff::Changed;

    #[test]
    fn an_agent_that_writes_patterns_sees_places_of_the_base_alone() {
        let tree =
            |text: &str| Tree { files: [("a.py".to_owned(), text.to_owned())].into(), ..Tree::default() };
        let many = "new(1)\n".repeat(11);
        let (base, golden) =
            (tree(&format!("new(0)\n{}", "old(1)\n".repeat(11))), tree(&format!("{many}old(2)\n")));
        let file = "id: new\nlanguage: python\nmetadata: {side: additive}\nrule: {pattern: new($A)}\n---\nid: \
                    old\nlanguage: python\nmetadata: {side: reductive}\nrule: {pattern: old($A)}\n";
        let patterns = Patterns::built_in(&[("p.yml".to_owned(), file.to_owned())]).unwrap();
        let report = pattern::check(&patterns, &base, &golden, &Changed::default()).unwrap();
        let witnesses = |golden: Option<&Tree>| -> Vec<Option<String>> {
            report.patterns.iter().map(|one| witness(one, &Seen { base: &base, golden })).collect()
        };
        let of_base = Some("a.py:1: new(0)".to_owned());
        assert_eq!(witnesses(Some(&golden)), [of_base.clone(), Some("a.py:12: old(2)".to_owned())]);
        assert_eq!(witnesses(None), [of_base, None]);
        let told = described(&report.patterns[1], &Seen { base: &base, golden: None });
        assert_eq!((&told["m_base"], &told["m_golden"]), (&11.into(), &1.into()));
    }
}
