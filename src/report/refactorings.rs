//! The pages of a dataset of refactorings. The first says which pairs there are, what became of them, and what judges. The
//! second, in `hidden/`, shows golden patches with the lines that patterns match. Plain HTML, without a script.

mod marked;

use std::path::Path;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde::Serialize;

use crate::beneath::Folder;
use crate::dataset::Dataset;
use crate::dataset::codetaste::HiddenPair;
use crate::dataset::query::pairs::{self, FoundPair, Refactoring};
use crate::error::{Error, Fault, Result};
use crate::page;
use crate::record::codetaste::SuiteRun;
use crate::record::id::sha256_hex;
use marked::{Diff, MarkedPattern};

const PAGE: &str = include_str!("refactorings/page.html");
const DIFFS: &str = include_str!("refactorings/diffs.html");
const STYLE: &str = include_str!("refactorings/page.css");
/// The page that is not for agents.
const HIDDEN: &str = "hidden/report.html";
/// Most lines of diffs that it shows of all instances together.
const MOST_LINES: usize = 60_000;

/// A pair as the first page shows it.
#[derive(Debug, Serialize)]
struct Shown {
    id: Option<String>,
    name: String,
    golden: String,
    cause: Option<String>,
    evidence: Option<String>,
    published: Option<Facts>,
}

/// What is said of an instance.
#[derive(Debug, Serialize)]
struct Facts {
    row: crate::dataset::codetaste::CodetasteInstance,
    tier: &'static str,
    runs: Vec<SuiteRun>,
}

/// An instance as the second page shows it.
#[derive(Debug, Serialize)]
struct Instance {
    id: String,
    name: String,
    golden: String,
    patterns: Vec<MarkedPattern>,
    diff: Diff,
    description: Option<String>,
    open_description: Option<String>,
    must_pass: usize,
    failing: Vec<String>,
}

/// Renders the first page, and writes the second one where the dataset has what it shows.
pub(super) fn page(dataset: &Dataset) -> Result<String> {
    let (pairs, hidden) = (pairs::all(dataset)?, dataset.hidden_pairs_if_there()?);
    if let Some(hidden) = &hidden {
        let mut left = MOST_LINES;
        let mut instances = Vec::new();
        for pair in &pairs {
            let known = pair.published.as_ref().zip(pair.instance_id.as_ref());
            if let Some((one, id)) = known
                && let Some(hidden) = hidden.get(id)
            {
                instances.push(instance(dataset, (pair, one, id), hidden, &mut left)?);
            }
        }
        write_hidden(
            dataset,
            &rendered(DIFFS, dataset, context! { instances => Value::from(Serde(instances)) })?,
        )?;
    }
    let published = pairs.iter().filter(|one| one.published.is_some()).count();
    let shown: Vec<Shown> = pairs.into_iter().map(shown).collect();
    let context = context! {
        published => published,
        has_hidden => hidden.is_some(),
        pairs => Value::from(Serde(shown)),
    };
    rendered(PAGE, dataset, context)
}

fn shown(pair: FoundPair) -> Shown {
    Shown {
        id: pair.instance_id,
        name: pair.slug,
        golden: pair.golden_commit,
        cause: pair.cause,
        evidence: pair.evidence,
        published: pair.published.map(|one| Facts { tier: one.tier, runs: one.runs, row: one.row }),
    }
}

fn instance(
    dataset: &Dataset,
    (pair, one, id): (&FoundPair, &Refactoring, &String),
    hidden: &HiddenPair,
    left: &mut usize,
) -> Result<Instance> {
    let (patterns, diff) = match marked::of(dataset, one.row.head.slug.as_str(), hidden, left) {
        Ok(marked) => marked,
        Err(error) if matches!(error.fault(), Fault::Interrupted | Fault::Internal) => return Err(error),
        // What was received may be damaged: that costs the marks alone.
        Err(error) => {
            tracing::warn!("the page has no marks of {id}: {error}");
            marked::without_marks(hidden, left)
        }
    };
    Ok(Instance {
        id: id.clone(),
        name: pair.slug.clone(),
        golden: pair.golden_commit.clone(),
        patterns,
        diff,
        description: hidden.description.clone(),
        open_description: hidden.open_description.clone(),
        must_pass: hidden.must_pass.len(),
        failing: hidden.failing.iter().cloned().collect(),
    })
}

fn rendered(template: &str, dataset: &Dataset, own: Value) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.add_filter("percent", super::view::percent);
    let safe = Value::from_safe_string;
    let context = context! {
        manifest => Value::from(Serde(&dataset.manifest)),
        icon => safe(page::ICON.to_owned()),
        style => safe([page::STYLE, STYLE].concat()),
        ..own
    };
    environment
        .render_str(template, context)
        .map_err(|error| Error::internal("cannot render the page").with_source(error))
}

/// Writes the second page, in place of what an earlier one left.
fn write_hidden(dataset: &Dataset, text: &str) -> Result<()> {
    let (folder, place) = (Folder::named(&dataset.directory)?, Path::new(HIDDEN));
    folder.remove(place)?;
    std::io::Write::write_all(&mut folder.create_new(place)?, text.as_bytes())?;
    Ok(())
}

/// Hashes the second page, where it was written.
pub(super) fn hash_again(dataset: &mut Dataset) -> Result<()> {
    let Some(bytes) = dataset.folder()?.read_if_there(Path::new(HIDDEN), u64::MAX)? else { return Ok(()) };
    let hash = sha256_hex(&bytes);
    if dataset.manifest.hidden.insert(HIDDEN.to_owned(), hash.clone()).as_ref() != Some(&hash) {
        dataset.manifest.save(&dataset.directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::made_up::MadeUp;

    #[test]
    fn the_pages_show_pairs_patches_and_marks_and_the_first_has_nothing_that_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        let mut made_up = MadeUp::pairs(&[12]);
        let one = made_up.repositories[0].codetaste.as_mut().unwrap();
        one.description = Some("</pre><script>alert(1)</script>".to_owned());
        crate::testing::write(&directory, &made_up.input()).unwrap();
        let read = |name: &str| fs_err::read_to_string(directory.join(name)).unwrap().replace("&#x2f;", "/");
        let (first, second) = (read("report.html"), read("hidden/report.html"));
        for words in
            ["few-patterns", "3 patterns are taken", "at least 20 pass", "made/up0-2ac89889", "flaky-suite"]
        {
            assert!(first.contains(words), "{words}");
        }
        for secret in ["the_new_name_of_it", "def-old-name", "ident-the-new-name", "src/made/core.py"] {
            assert!(second.contains(secret), "{secret}");
            assert!(!first.contains(secret), "{secret}");
        }
        let marks: Vec<&str> =
            second.split("<tr class=\"").skip(1).filter_map(|row| row.split('"').next()).collect();
        let marked: Vec<&str> = marks.into_iter().filter(|class| class.contains("marked")).collect();
        assert_eq!(
            marked,
            ["removed marked", "added marked", "added marked"],
            "one removed line has no pattern"
        );
        for page in [&first, &second] {
            assert!(!page.contains("<script") && !page.contains("<b>5"), "what a dataset says is text");
            for loader in ["src=", "@import", "url(", "fetch("] {
                assert!(!page.contains(loader), "{loader}");
            }
        }
        let manifest = read("manifest.json");
        assert!(manifest.contains("\"hidden/report.html\""));
        crate::report::render(&directory).unwrap();
        assert_eq!(
            (first, manifest),
            (read("report.html"), read("manifest.json")),
            "rendering again changes nothing"
        );
    }

    #[test]
    fn without_a_tree_there_are_no_marks_and_without_hidden_no_patch() {
        let folder = tempfile::tempdir().unwrap();
        let (made_up, directory) = (MadeUp::pairs(&[12]), folder.path().join("1"));
        crate::testing::write(&directory, &made_up.input()).unwrap();
        fs_err::write(directory.join("trees/made__up0-2ac89889.tar.zst"), "no archive").unwrap();
        crate::report::render(&directory).unwrap();
        let second = fs_err::read_to_string(directory.join("hidden/report.html")).unwrap();
        assert!(second.contains("the_new_name_of_it") && !second.contains(" marked\""), "{second}");
        let bare = folder.path().join("2");
        let input = crate::dataset::DatasetInput { with_hidden: false, ..made_up.input() };
        crate::testing::write(&bare, &input).unwrap();
        assert!(!bare.join("hidden").exists());
        assert!(fs_err::read_to_string(bare.join("report.html")).unwrap().contains("left out"));
    }

    #[test]
    #[ignore = "needs Chromium, and in GISTMILL_TEST_PYTHON a Python with playwright"]
    fn a_browser_finds_nothing_wrong_with_the_pages_of_refactorings() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        crate::testing::write(&directory, &MadeUp::pairs(&[12]).input()).unwrap();
        let pages = [("report.html", "refactorings", false), ("hidden/report.html", "golden", true)];
        for (page, name, has_marks) in pages {
            let measured =
                crate::testing::browser::check("check_refactorings.py", &directory.join(page), name);
            assert!(measured["heads"].as_u64() > Some(5), "{measured}");
            assert_eq!(measured["marks"].as_u64() > Some(0), has_marks, "{measured}");
        }
    }
}
