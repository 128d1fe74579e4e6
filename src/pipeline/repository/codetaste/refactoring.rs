//! What the two trees of a pair say without running anything: the golden patch and its patterns.

use std::collections::BTreeSet;
use std::path::Path;

use super::OrDropped;
use crate::beneath::{Folder, Kind};
use crate::config::Pair;
use crate::error::{Error, Fault, Result};
use crate::family::codetaste::diff::{Changed, changed, is_ignored};
use crate::family::codetaste::funnel::{is_code, is_test};
use crate::family::codetaste::leaks::{leaks, words};
use crate::family::codetaste::score::{Precision, Side};
use crate::history;
use crate::pattern::{self, Checked, Patterns, Reach, Report, Sandbox, Tree};
use crate::record::codetaste::{Dropped, PairCause, PatchShape, PatternRow, Settings};
use crate::record::patch::Patch;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;
/// Largest file whose words are looked at.
const LARGEST_TEXT: u64 = 1 << 20;
/// Names and endings of files that say what is installed.
const DECLARING: [&str; 8] = [".toml", ".cfg", ".txt", ".in", ".lock", "setup.py", "noxfile.py", "Pipfile"];

/// The golden patch with its patterns.
pub(super) struct Refactoring {
    pub(super) text: Vec<u8>,
    pub(super) patch: Patch,
    pub(super) shape: PatchShape,
    pub(super) files: Vec<(String, String)>,
    /// Patterns of OpenGrep's form: name and text.
    pub(super) opengrep: Vec<(String, String)>,
    /// The patterns that are taken.
    pub(super) rows: Vec<PatternRow>,
    /// The program of the user's that runs patterns, where one does.
    pub(super) engine: Option<String>,
    precision: Precision,
    pub(super) changes_declarations: bool,
    pub(super) flags: Vec<String>,
}

impl Refactoring {
    /// That of two trees, or the first cause why they have none.
    ///
    /// # Errors
    /// What cannot be read; patterns of the configuration that cannot be used; an interruption.
    pub(super) fn of(
        (base, golden): (&Path, &Path),
        pair: &Pair,
        settings: &Settings,
        sandbox: Sandbox<'_>,
    ) -> Result<OrDropped<Self>> {
        let (base, golden) = (Folder::open(base)?, Folder::open(golden)?);
        let (text, shape) = history::between(&base, &golden)?;
        let patch = match history::apply(&base, &text)? {
            Ok(patch) if makes(&patch, &golden)? => patch,
            Ok(_) => {
                return Ok(Err(dropped(PairCause::PatchDiffers, "the patch makes another tree".to_owned())));
            }
            Err(why) => return Ok(Err(dropped(PairCause::PatchDiffers, why))),
        };
        let code: Vec<String> = patch
            .files()
            .map(|(path, _)| path)
            .filter(|path| is_code(path) && !is_ignored(path))
            .map(str::to_owned)
            .collect();
        if code.is_empty() {
            let why = format!("none of {} files is code", shape.files);
            return Ok(Err(dropped(PairCause::NoCode, why)));
        }
        let lines = changed(&text);
        let Sources { files, report, opengrep, given, engine } =
            Sources::of((&base, &golden, &lines), pair, settings, sandbox)?;
        if let Some(dropped) = too_little(&report, settings) {
            return Ok(Err(dropped));
        }
        let tests_only = code.iter().all(|path| is_test(path)).then(|| "tests-only".to_owned());
        let tells = match &pair.open_description {
            Some(open) => tells(open, &base, &text)?.then(|| "open-description-leaks".to_owned()),
            None => None,
        };
        let changes_declarations =
            patch.files().any(|(path, _)| DECLARING.iter().any(|end| path.ends_with(end)));
        Ok(Ok(Refactoring {
            changes_declarations,
            rows: taken(&report).map(|one| row(one, given)).collect(),
            precision: report.precision,
            flags: tests_only.into_iter().chain(tells).collect(),
            text,
            patch,
            shape,
            files,
            opengrep,
            engine,
        }))
    }

    /// Share of the lines that patterns match: of all, of those added, of those removed.
    pub(super) fn rates(&self) -> [Option<f64>; 3] {
        self.precision.rates()
    }
}

fn dropped(cause: PairCause, evidence: String) -> Dropped {
    Dropped { cause, evidence }
}

/// Whether what a patch puts and hides is what a tree has.
fn makes(patch: &Patch, golden: &Folder) -> Result<bool> {
    for (path, bytes) in patch.files() {
        let place = Path::new(path);
        let there = golden.look(place)?;
        let is_same = match (bytes, there) {
            (None, None) => true,
            (Some(bytes), Some(entry)) if entry.kind == Kind::File => {
                let is_program = entry.mode & 0o100 != 0;
                is_program == patch.is_executable(path) && golden.read(place, LARGEST)? == bytes
            }
            _ => false,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Files with patterns, name and text, and what they come to on both trees.
struct Sources {
    files: Vec<(String, String)>,
    report: Report,
    /// As far as they have that form, by side.
    opengrep: Vec<(String, String)>,
    /// Whether the configuration has them.
    given: bool,
    engine: Option<String>,
}

/// Files of OpenGrep's form as its users call them.
const OPENGREP: [(Side, &str); 2] =
    [(Side::Additive, "rules_positive.yml"), (Side::Reductive, "rules_negative.yml")];

impl Sources {
    /// Those of the configuration, else those that a program finds.
    fn of(
        (base, golden, lines): (&Folder, &Folder, &Changed),
        pair: &Pair,
        settings: &Settings,
        sandbox: Sandbox<'_>,
    ) -> Result<Self> {
        if !pair.patterns.is_empty() || !settings.mine {
            let patterns = Patterns::parse(&pair.patterns, sandbox)?;
            let reach = patterns.reach();
            let (base, golden) = (Tree::of_folder(base, reach)?, Tree::of_folder(golden, reach)?);
            let report = pattern::check(&patterns, &base, &golden, lines)?;
            let opengrep = by_side(|side| pattern::taken_outside(&patterns, &report, side));
            let (files, engine) = (pair.patterns.clone(), patterns.engine().map(str::to_owned));
            return Ok(Sources { files, report, opengrep, given: true, engine });
        }
        let trees = (Tree::of_folder(base, Reach::Python)?, Tree::of_folder(golden, Reach::Python)?);
        Sources::mined(&trees, lines)
    }

    /// Those that a program finds.
    fn mined((base, golden): &(Tree, Tree), lines: &Changed) -> Result<Self> {
        let check = |files: &[(String, String)]| -> Result<Report> {
            let patterns = Patterns::built_in(files).map_err(|error: Error| error.blame(Fault::Internal))?;
            pattern::check(&patterns, base, golden, lines)
        };
        let mut mined = pattern::mine(base, golden, lines)?;
        let report = check(&[("mined".to_owned(), pattern::documents(&mined))])?;
        let ids: BTreeSet<&str> = taken(&report).map(|one| one.id.as_str()).collect();
        mined.retain(|one| ids.contains(one.id.as_str()));
        let mut files = Vec::new();
        for (side, _) in OPENGREP {
            let of_side: Vec<_> = mined.iter().filter(|one| one.side == side).collect();
            if !of_side.is_empty() {
                files.push((format!("{}.ast-grep.yml", side.as_str()), pattern::documents(of_side)));
            }
        }
        let opengrep = by_side(|side| pattern::opengrep(&mined, side, base, golden));
        let report = check(&files)?;
        Ok(Sources { files, report, opengrep, given: false, engine: None })
    }
}

/// The files that are not empty.
fn by_side(text: impl Fn(Side) -> String) -> Vec<(String, String)> {
    let each = OPENGREP.into_iter().map(|(side, name)| (name.to_owned(), text(side)));
    each.filter(|(_, text)| !text.is_empty()).collect()
}

fn taken(report: &Report) -> impl Iterator<Item = &Checked> {
    report.patterns.iter().filter(|one| one.decision.refusal.is_none())
}

fn row(one: &Checked, given: bool) -> PatternRow {
    let lines = &one.right().lines;
    PatternRow {
        id: one.id.clone(),
        side: one.side,
        given,
        outside: one.outside,
        base: one.base.matches,
        golden: one.golden.matches,
        lines: lines.count(),
        files: lines.paths().count() as u64,
    }
}

fn too_little(report: &Report, settings: &Settings) -> Option<Dropped> {
    let count = taken(report).count();
    if (count as u64) < u64::from(settings.min_patterns) {
        let refused = report.patterns.len() - count;
        let why = format!(
            "{count} patterns are taken and {refused} refused; {} are asked for",
            settings.min_patterns
        );
        return Some(dropped(PairCause::FewPatterns, why));
    }
    let coverage = report.precision.all().rate().unwrap_or_default();
    (coverage < settings.min_coverage).then(|| {
        let why = format!(
            "{count} patterns match {:.1} % of the lines that the golden patch changes; {:.1} % are asked for",
            100.0 * coverage,
            100.0 * settings.min_coverage
        );
        dropped(PairCause::LowCoverage, why)
    })
}

/// Whether an open description has words that the golden patch adds and the base does not have.
fn tells(open: &str, base: &Folder, patch: &[u8]) -> Result<bool> {
    let mut known = BTreeSet::new();
    for entry in
        base.walk()?.into_iter().filter(|entry| entry.kind == Kind::File && entry.size <= LARGEST_TEXT)
    {
        if let Ok(text) = String::from_utf8(base.read(&entry.path, LARGEST_TEXT)?) {
            known.extend(words(&text).map(str::to_lowercase));
        }
    }
    let text = String::from_utf8_lossy(patch);
    let added = text.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++ "));
    let added: Vec<&str> = added.flat_map(words).collect();
    Ok(!leaks(open, known.iter().map(String::as_str), added).is_empty())
}
