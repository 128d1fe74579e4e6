//! What agents must not know: patterns, the golden patch, descriptions of either track, and the cases that must pass.
//!
//! ```text
//! hidden/patterns.parquet              every pattern that judges, with its matches on both trees
//! hidden/must_pass.parquet             cases that must pass, and those that fail on both trees
//! hidden/<instance_id>/golden.diff     the golden patch, where code is passed on
//!                      *.yml           the patterns; `rules_*.yml` are those that OpenGrep reads as well
//!                      description.md open_description.md
//!                      scripts/…   what runs the suite, where pytest does not
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::beneath::Folder;
use crate::dataset::manifest::{HIDDEN, Manifest};
use crate::dataset::schema::{ColumnOf, flag, number, text};
use crate::dataset::table::{AGAIN, Columns, Table};
use crate::dataset::write::table_bytes;
use crate::dataset::{Dataset, DatasetInput};
use crate::error::{Error, Result};
use crate::family::codetaste::score::Side;
use crate::record::codetaste::{PatternRow, PublishedPair, Scripts};
use crate::record::id::{InstanceId, sha256_hex};

/// Largest hidden file that is read, in bytes.
const LARGEST: u64 = 1 << 30;
/// Patterns in the form of the authors' engine.
pub(crate) const OPENGREP: [&str; 2] = ["rules_positive.yml", "rules_negative.yml"];
/// Whose form patterns have: that of the built-in engine, and that of a program of the user's.
const ENGINES: [&str; 2] = ["ast-grep", "opengrep"];
/// Kinds of cases.
const MUST_PASS: &str = "must-pass";
const FAILS: &str = "fails";
/// Where the scripts of an instance are.
const SCRIPTS: &str = "scripts/";

struct PatternOf<'a> {
    id: &'a InstanceId,
    row: &'a PatternRow,
}

fn patterns<'a>() -> Vec<ColumnOf<PatternOf<'a>>> {
    vec![
        text("instance_id", |of| Some(of.id.as_str())),
        text("pattern_id", |of| Some(&of.row.id)),
        text("side", |of| Some(of.row.side.as_str())),
        text("engine", |of| Some(ENGINES[usize::from(of.row.outside)])),
        flag("given", |of| Some(of.row.given)),
        number("m_base", |of| Some(of.row.base)),
        number("m_golden", |of| Some(of.row.golden)),
        number("lines", |of| Some(of.row.lines)),
        number("files", |of| Some(of.row.files)),
    ]
}

struct CaseOf<'a> {
    id: &'a InstanceId,
    case: &'a str,
    kind: &'static str,
}

fn cases<'a>() -> Vec<ColumnOf<CaseOf<'a>>> {
    vec![
        text("instance_id", |of| Some(of.id.as_str())),
        text("case_id", |of| Some(of.case)),
        text("kind", |of| Some(of.kind)),
    ]
}

/// Writes what is hidden, or, where it is left out, its hashes alone.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(crate) fn write(folder: &Path, dataset: &DatasetInput<'_>, manifest: &mut Manifest) -> Result<()> {
    let files = files(dataset)?;
    for (path, bytes) in &files {
        manifest.hidden.insert(format!("{HIDDEN}/{path}"), sha256_hex(bytes));
    }
    if !dataset.with_hidden {
        return Ok(());
    }
    let place = Folder::open(folder)?;
    place.make_folder(Path::new(HIDDEN))?;
    for (path, bytes) in files {
        let path = Path::new(HIDDEN).join(path);
        if let Some(above) = path.parent() {
            place.make_folder(above)?;
        }
        std::io::Write::write_all(&mut place.create_new(&path)?, &bytes)?;
    }
    Ok(())
}

/// Hidden files by their path in `hidden/`.
fn files(dataset: &DatasetInput<'_>) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut published: Vec<&PublishedPair> =
        dataset.repositories.iter().filter_map(|one| one.codetaste.as_ref()).collect();
    published.sort_by(|one, other| one.row.slug.cmp(&other.row.slug));
    let rows: Vec<PatternOf<'_>> = published
        .iter()
        .flat_map(|pair| pair.patterns.iter().map(|row| PatternOf { id: &pair.row.instance_id, row }))
        .collect();
    let of = |pair: &'_ PublishedPair| -> Vec<(String, &'static str)> {
        let must = pair.must_pass.iter().map(|case| (case.clone(), MUST_PASS));
        must.chain(pair.failing.iter().map(|case| (case.clone(), FAILS))).collect()
    };
    let named: Vec<(&InstanceId, Vec<(String, &'static str)>)> =
        published.iter().map(|pair| (&pair.row.instance_id, of(pair))).collect();
    let all: Vec<CaseOf<'_>> = named
        .iter()
        .flat_map(|(id, cases)| cases.iter().map(|(case, kind)| CaseOf { id, case, kind }))
        .collect();
    let mut files = BTreeMap::from([
        ("patterns.parquet".to_owned(), table_bytes(patterns(), &rows)?),
        ("must_pass.parquet".to_owned(), table_bytes(cases(), &all)?),
    ]);
    for pair in published {
        let id = &pair.row.instance_id;
        for (at, (name, text)) in pair.pattern_files.iter().enumerate() {
            // Names of the user's files are not paths of the dataset.
            let is_own = name.ends_with(".ast-grep.yml")
                && !name.contains('/')
                && !pair.patterns.iter().any(|row| row.given);
            let name = if is_own { name.clone() } else { format!("given-{}.yml", at + 1) };
            files.insert(format!("{id}/{name}"), text.clone().into_bytes());
        }
        for (name, text) in &pair.opengrep {
            files.insert(format!("{id}/{name}"), text.clone().into_bytes());
        }
        let texts = [("description.md", &pair.description), ("open_description.md", &pair.open_description)];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            files.insert(format!("{id}/{name}"), text.clone().into_bytes());
        }
        for (path, bytes) in &pair.scripts {
            files.insert(format!("{id}/{SCRIPTS}{path}"), bytes.clone());
        }
        if dataset.passes_code_on {
            files.insert(format!("{id}/golden.diff"), pair.golden_patch.clone());
        }
    }
    Ok(files)
}

/// What is hidden of an instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenPair {
    pub(crate) patterns: Vec<PatternRow>,
    /// Files with patterns: name and text.
    pub(crate) pattern_files: Vec<(String, String)>,
    /// Files with patterns of OpenGrep's form: name and text.
    pub(crate) opengrep: Vec<(String, String)>,
    pub(crate) must_pass: BTreeSet<String>,
    /// Cases that fail on both trees.
    pub(crate) failing: BTreeSet<String>,
    /// What runs the suite; none where pytest does.
    pub(crate) scripts: Scripts,
    pub(crate) golden_patch: Option<Vec<u8>>,
    pub(crate) description: Option<String>,
    pub(crate) open_description: Option<String>,
}

/// A folder with hidden files whose hashes are those of the manifest.
struct Hidden<'a> {
    folder: Folder,
    /// Between the folder and the files.
    prefix: PathBuf,
    dataset: &'a Dataset,
}

impl Hidden<'_> {
    /// A file; none where the dataset never had one.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let Some(hash) = self.dataset.manifest.hidden.get(&format!("{HIDDEN}/{path}")) else {
            return Ok(None);
        };
        let place = self.prefix.join(path);
        let shown = self.folder.path().join(&place);
        let Some(bytes) = self.folder.read_if_there(&place, LARGEST)? else {
            return Err(Error::usage(format!("{} does not exist", shown.display()))
                .with_hint("name the folder `hidden` of the build that has it with --hidden"));
        };
        if sha256_hex(&bytes) != *hash {
            return Err(Error::usage(format!("{} is not that of this dataset", shown.display()))
                .with_detail("its SHA-256 is not the one in manifest.json")
                .with_hint(AGAIN));
        }
        Ok(Some(bytes))
    }

    fn text(&self, path: &str) -> Result<Option<String>> {
        let Some(bytes) = self.read(path)? else { return Ok(None) };
        let text = String::from_utf8(bytes)
            .map_err(|error| Error::usage(format!("hidden/{path} is not text")).with_source(error))?;
        Ok(Some(text))
    }

    fn table(&self, name: &str, columns: &[&str]) -> Result<Table> {
        self.read(&format!("{name}.parquet"))?;
        let place = self.prefix.join(name);
        Table::read((&self.folder, &place.to_string_lossy()), Columns::named(columns), None, None)
    }
}

impl Dataset {
    /// What is hidden of each instance; none where it was left out.
    ///
    /// # Errors
    /// Usage errors: it is not what the manifest says.
    pub(crate) fn hidden_pairs_if_there(&self) -> Result<Option<BTreeMap<String, HiddenPair>>> {
        let is_there = self.folder()?.has_file(&Path::new(HIDDEN).join("patterns.parquet"));
        is_there.then(|| self.hidden_pairs(None)).transpose()
    }

    /// What is hidden of each instance, from the dataset or from another folder.
    ///
    /// # Errors
    /// Usage errors: it was left out, or is not what the manifest says.
    pub(crate) fn hidden_pairs(&self, elsewhere: Option<&Path>) -> Result<BTreeMap<String, HiddenPair>> {
        let (folder, prefix) = match elsewhere {
            None => (self.folder()?, PathBuf::from(HIDDEN)),
            Some(path) => (Folder::named(path)?, PathBuf::new()),
        };
        let hidden = Hidden { folder, prefix, dataset: self };
        let mut pairs: BTreeMap<String, HiddenPair> = BTreeMap::new();
        let not_ours =
            |what: &str| Error::usage(format!("{what} is not what gistmill wrote")).with_hint(AGAIN);
        let columns =
            ["instance_id", "pattern_id", "side", "engine", "given", "m_base", "m_golden", "lines", "files"];
        let table = hidden.table("patterns", &columns)?;
        let (ids, names, sides) =
            (table.whole_texts("instance_id")?, table.whole_texts("pattern_id")?, table.whole_texts("side")?);
        let engines = table.whole_texts("engine")?;
        let (given, base, golden) =
            (table.flags("given")?, table.whole_numbers("m_base")?, table.whole_numbers("m_golden")?);
        let (lines, files) = (table.whole_numbers("lines")?, table.whole_numbers("files")?);
        let plain = |number: i64| u64::try_from(number).unwrap_or_default();
        for at in 0..table.rows() {
            let side: Side =
                serde_json::from_value(sides[at].into()).map_err(|_| not_ours("hidden/patterns.parquet"))?;
            pairs.entry(ids[at].to_owned()).or_default().patterns.push(PatternRow {
                id: names[at].to_owned(),
                side,
                given: given[at],
                outside: engines[at] == ENGINES[1],
                base: plain(base[at]),
                golden: plain(golden[at]),
                lines: plain(lines[at]),
                files: plain(files[at]),
            });
        }
        let table = hidden.table("must_pass", &["instance_id", "case_id", "kind"])?;
        let (ids, cases, kinds) =
            (table.whole_texts("instance_id")?, table.whole_texts("case_id")?, table.whole_texts("kind")?);
        for at in 0..table.rows() {
            let pair = pairs.entry(ids[at].to_owned()).or_default();
            let set = if kinds[at] == FAILS { &mut pair.failing } else { &mut pair.must_pass };
            set.insert(cases[at].to_owned());
        }
        for (id, pair) in &mut pairs {
            self.files_of(&hidden, id, pair)?;
        }
        Ok(pairs)
    }

    fn files_of(&self, hidden: &Hidden<'_>, id: &str, pair: &mut HiddenPair) -> Result<()> {
        let start = format!("{HIDDEN}/{id}/");
        let names = self.manifest.hidden.keys().filter_map(|file| file.strip_prefix(&start));
        let (scripts, others): (Vec<&str>, Vec<&str>) = names.partition(|name| name.starts_with(SCRIPTS));
        for name in scripts {
            let bytes = hidden.read(&format!("{id}/{name}"))?.unwrap_or_default();
            pair.scripts.insert(name[SCRIPTS.len()..].to_owned(), bytes);
        }
        for name in others.into_iter().filter(|name| name.ends_with(".yml")) {
            let text = hidden.text(&format!("{id}/{name}"))?.unwrap_or_default();
            let is_opengrep = OPENGREP.contains(&name);
            let files = if is_opengrep { &mut pair.opengrep } else { &mut pair.pattern_files };
            files.push((name.to_owned(), text));
        }
        pair.golden_patch = hidden.read(&format!("{id}/golden.diff"))?;
        pair.description = hidden.text(&format!("{id}/description.md"))?;
        pair.open_description = hidden.text(&format!("{id}/open_description.md"))?;
        Ok(())
    }
}
