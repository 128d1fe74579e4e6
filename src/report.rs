//! The page: what is in the dataset, what is not, and why. Reads only the dataset's own files.
//!
//! One HTML file that loads nothing. Figures, bars, causes, difficulty, environments and a capped table of instances are plain
//! HTML; the script adds search, sorting, filters, a view of each instance and the evidence of every group, out of data that is
//! embedded as JSON. What is only seen when it is asked for is parsed then, and rows are rendered a hundred at a time, so the
//! number of groups costs bytes, not start-up time.

mod data;
mod details;
mod families;
mod masked;
mod plot;
mod refactorings;
mod scatter;
mod sets;
mod trust;
mod view;
mod witnesses;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};

use crate::dataset::Dataset;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::{AGAIN, Table};
use crate::error::{Error, Fault, Result};
use crate::family::gistify::Corpus;
use crate::page;
use crate::record::family::Unit;
use crate::store::write_atomic;

/// The page's file.
pub const FILE: &str = "report.html";

const PAGE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/page/page.css");
const SCRIPT: &str = concat!(
    include_str!("report/page/lists.js"),
    include_str!("report/page/calls.js"),
    include_str!("report/page/witness.js"),
    include_str!("report/page/instance.js"),
    include_str!("report/page/start.js")
);
/// Columns of `instances` that the page does not show, and that are long.
const UNSHOWN: &[&str] = &["prompt", "expected", "case_ids", "FAIL_TO_PASS", "files", "import_files"];
/// Bars that are shown at once; further repositories are folded.
const MOST_BARS: usize = 31;

/// Renders the page of a dataset again, and hashes it.
///
/// # Errors
/// Usage errors: the directory is not a dataset that this gistmill reads.
pub fn render(directory: &Path) -> Result<()> {
    let mut dataset = Dataset::open_any(directory)?;
    write(&dataset)?;
    if dataset.manifest.family.unit() == Unit::Pair {
        refactorings::hash_again(&mut dataset)?;
    }
    dataset.hash_again(FILE)
}

/// Writes the page of a dataset.
///
/// # Errors
/// Usage errors: its tables are not as gistmill writes them.
pub fn write(dataset: &Dataset) -> Result<()> {
    let page = match dataset.manifest.family.unit() {
        Unit::Group => page(&dataset.manifest, &Tables::read(dataset)?),
        Unit::File => masked::page(dataset),
        Unit::Pair => refactorings::page(dataset),
    };
    let page = page.map_err(|error| {
        // The template fits what gistmill writes: a test renders it.
        if error.fault() != Fault::Internal {
            return error;
        }
        Error::usage(format!("{} is not as gistmill writes it", dataset.directory.display()))
            .with_detail(error.to_string())
            .with_hint(AGAIN)
    })?;
    write_atomic(&dataset.directory.join(FILE), page.as_bytes())
}

/// What the page is made of. What one part of it alone is made of is read there, and not kept.
pub(crate) struct Tables {
    dataset: Dataset,
    instances: Table,
    groups: Table,
    /// Ids of the instances of each named subset.
    subsets: BTreeMap<String, BTreeSet<String>>,
    witnesses: witnesses::Texts,
    /// By slug, of repositories with witnesses.
    corpora: BTreeMap<String, Corpus>,
}

impl Tables {
    fn read(dataset: &Dataset) -> Result<Self> {
        let instances = dataset.table_but("instances", UNSHOWN)?;
        let names = dataset.manifest.subsets.keys();
        let subsets = names
            .map(|name| Ok((name.to_string(), dataset.members(name.as_str())?)))
            .collect::<Result<_>>()?;
        let witnesses = witnesses::texts(dataset, &instances)?;
        Ok(Tables {
            dataset: dataset.clone(),
            groups: dataset.table("groups", data::GROUP_COLUMNS)?,
            corpora: witnesses::corpora(dataset, &instances, &witnesses)?,
            subsets,
            witnesses,
            instances,
        })
    }

    /// The places of the groups in their table, by slug and group id.
    fn group_places(&self) -> Result<HashMap<(&str, &str), usize>> {
        let (slugs, groups) = (self.groups.whole_texts("slug")?, self.groups.whole_texts("group_id")?);
        Ok(slugs.into_iter().zip(groups).enumerate().map(|(at, key)| (key, at)).collect())
    }
}

fn page(manifest: &Manifest, tables: &Tables) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.add_filter("number", view::number);
    environment.add_filter("percent", view::percent);
    environment.add_filter("coefficient", view::coefficient);
    environment.add_filter("plain", view::plain);
    let scatter = scatter::scatter(&tables.instances, &manifest.tiers)?;
    let safe = Value::from_safe_string;
    let lines = witnesses::lines(&tables.instances, &tables.witnesses, &tables.corpora)?;
    let context = context! {
        manifest => Value::from(Serde(manifest)),
        view => Value::from(Serde(view::view(manifest, tables)?)),
        most_bars => MOST_BARS,
        drawn => safe(scatter.svg.clone()),
        scatter => Value::from(Serde(scatter)),
        icon => safe(page::ICON.to_owned()),
        dialog => safe(page::DIALOG.to_owned()),
        style => safe([page::STYLE, STYLE].concat()),
        script => safe([page::SCRIPT, SCRIPT].concat()),
        data => safe(page::embedded(&data::columns(manifest, tables)?)?),
        evidence => safe(page::embedded(&data::evidence(tables)?)?),
        details => safe(page::embedded(&details::details(tables)?)?),
        witness_lines => safe(page::embedded(&lines)?),
    };
    environment
        .render_str(PAGE, context)
        .map_err(|error| Error::internal("cannot render the page").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    fn written() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        crate::testing::write(&directory, &MadeUp::new(&[40, 9]).input()).unwrap();
        (folder, directory)
    }

    #[test]
    fn rendering_again_gives_the_same_page_and_manifest() {
        let (_folder, directory) = written();
        let read = |name| fs_err::read(directory.join(name)).unwrap();
        let before = (read("report.html"), read("manifest.json"));
        render(&directory).unwrap();
        assert_eq!(before, (read("report.html"), read("manifest.json")));
    }

    #[test]
    fn a_changed_page_is_hashed_anew() {
        let (_folder, directory) = written();
        let before = fs_err::read(directory.join("manifest.json")).unwrap();
        fs_err::write(directory.join("report.html"), "edited").unwrap();
        render(&directory).unwrap();
        assert_eq!(before, fs_err::read(directory.join("manifest.json")).unwrap());
    }

    #[test]
    fn nothing_of_the_data_becomes_markup() {
        let (_folder, directory) = written();
        let page = fs_err::read_to_string(directory.join("report.html")).unwrap();
        assert!(!page.contains("<script>alert"), "evidence of a group");
        assert!(!page.contains("<b>bold</b>"), "output of a failed repository");
        assert!(page.contains("&lt;b&gt;bold&lt;&#x2f;b&gt;") || page.contains("&lt;b&gt;bold&lt;/b&gt;"));
        assert_eq!(page.matches("<script").count(), 5, "four times data, and the program");
        assert_eq!(page.matches("</script").count(), 5);
    }

    #[test]
    fn guesses_are_shown_and_older_datasets_have_none() {
        let (_folder, directory) = written();
        let path = directory.join("manifest.json");
        let page = || fs_err::read_to_string(directory.join("report.html")).unwrap();
        assert!(!page().contains("<dt>guessed"));
        let mut manifest: serde_json::Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        let environments = manifest["environments"].as_object_mut().unwrap();
        for (number, environment) in environments.values_mut().enumerate() {
            if number == 0 {
                environment["guesses"] =
                    serde_json::json!([{"distribution": "PyYAML", "wanted": "import <yaml>"}]);
            } else {
                environment.as_object_mut().unwrap().remove("guesses");
            }
        }
        fs_err::write(&path, manifest.to_string()).unwrap();
        render(&directory).unwrap();
        let page = page();
        assert_eq!(page.matches("<dt>guessed").count(), 1);
        assert!(page.contains("PyYAML for <code>import &lt;yaml&gt;"), "escaped");
    }

    #[test]
    fn instances_are_shown_with_source_cases_and_calls_and_groups_with_files() {
        let (_folder, directory) = written();
        let page = fs_err::read_to_string(directory.join("report.html")).unwrap();
        let data = |id: &str| -> serde_json::Value {
            let start = page.split(&format!("id=\"{id}\">")).nth(1).unwrap();
            serde_json::from_str(start.split("</script>").next().unwrap()).unwrap()
        };
        let details = data("details");
        assert!(details["source"][0].as_str().unwrap().starts_with("    def test_"), "{details}");
        assert!(!details["cases"]["of"][0].as_array().unwrap().is_empty());
        assert!(!details["trace"]["of"][0].as_array().unwrap().is_empty());
        let evidence = data("evidence");
        assert!(!evidence["files"]["names"].as_array().unwrap().is_empty(), "{evidence}");
        assert!(evidence["attempts"]["of"][0].is_u64());
        assert!(evidence["evidence"].as_array().unwrap().iter().any(|one| !one["summary"].is_null()));
    }

    #[test]
    fn the_page_loads_nothing() {
        let (_folder, directory) = written();
        let page = fs_err::read_to_string(directory.join("report.html")).unwrap();
        let page = page.replacen("<link rel=\"icon\" href=\"data:image/svg+xml,", "", 1);
        for loader in ["src=", "@import", "url(", "<link", "fetch(", "XMLHttpRequest", "<iframe"] {
            assert!(!page.contains(loader), "{loader}");
        }
    }

    #[test]
    fn the_script_takes_no_text_for_markup() {
        for sink in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
    }

    #[test]
    fn a_dataset_of_another_format_is_refused_by_number() {
        let (_folder, directory) = written();
        let path = directory.join("manifest.json");
        let text = fs_err::read_to_string(&path).unwrap();
        fs_err::write(&path, text.replace("\"format_version\": 2", "\"format_version\": 99")).unwrap();
        assert!(render(&directory).unwrap_err().to_string().contains("has format 99"));
    }

    #[test]
    fn a_directory_without_a_manifest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(render(folder.path()).unwrap_err().fault(), crate::error::Fault::Usage);
    }

    #[test]
    #[ignore = "needs Chromium, and in GISTMILL_TEST_PYTHON a Python with playwright"]
    fn a_browser_finds_nothing_wrong_and_ten_thousand_groups_are_usable() {
        let datasets = [("small", vec![40, 9]), ("many", vec![30; 20]), ("large", vec![7_000, 2_990, 10])];
        for (name, sizes) in datasets {
            let folder = tempfile::tempdir().unwrap();
            let directory = folder.path().join("2026.11");
            crate::testing::write(&directory, &MadeUp::new(&sizes).input()).unwrap();
            let measured =
                crate::testing::browser::check("check_page.py", &directory.join("report.html"), name);
            assert!(measured["bytes"].as_u64().unwrap() < 20_000_000, "{measured}");
            assert!(measured["interactive_ms"].as_u64().unwrap() < 60_000, "{measured}");
        }
    }

    /// The first instance has a witness out of the tree and a line of its own, the second one none.
    fn with_witnesses(directory: &Path) -> Vec<String> {
        use crate::record::witness::{MADE, Witness, WitnessColumns};
        let dataset = Dataset::open(directory).unwrap();
        let ids: Vec<_> =
            dataset.instances().unwrap().into_iter().map(|one| one.instance_id.clone()).collect();
        let columns = |witness: &str, lines| WitnessColumns {
            witness: Some(witness.into()),
            witness_lines: lines,
            ..WitnessColumns::default()
        };
        let text = "def test(): pass\nmine = '</script>'\n";
        let made = Witness { columns: columns(MADE, Some(2)), text: Some(text.into()), ..Witness::default() };
        let none = Witness {
            columns: columns("imports-repository", None),
            evidence: Some("e".into()),
            ..Witness::default()
        };
        crate::dataset::witnesses::add(&dataset, &[(ids[0].clone(), made), (ids[1].clone(), none)].into())
            .unwrap();
        ids.into_iter().map(|id| id.to_string()).collect()
    }

    #[test]
    fn witnesses_are_shown_with_the_places_of_their_lines() {
        let (_folder, directory) = written();
        with_witnesses(&directory);
        render(&directory).unwrap();
        let page = fs_err::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains("For 1 of 2 instances a program found a solution"));
        let start = page.split("id=\"witness-lines\">").nth(1).unwrap();
        let lines: serde_json::Value =
            serde_json::from_str(start.split("</script>").next().unwrap()).unwrap();
        assert_eq!(lines["of"][0], serde_json::json!([0, 2]));
        assert_eq!(lines["of"][1], serde_json::Value::Null);
        assert_eq!(lines["text"], serde_json::json!(["def test(): pass", "mine = '</script>'"]));
        let file = lines["file"][0].as_u64().unwrap() as usize;
        assert!(lines["files"][file].as_str().unwrap().starts_with("tests/test_"), "{lines}");
        assert_eq!((&lines["line"][0], &lines["file"][1]), (&serde_json::json!(1), &serde_json::json!(-3)));
    }

    #[test]
    fn a_damaged_tree_costs_the_places_of_witnesses_alone() {
        let (_folder, directory) = written();
        with_witnesses(&directory);
        for entry in fs_err::read_dir(directory.join("trees")).unwrap() {
            fs_err::write(entry.unwrap().path(), "no archive").unwrap();
        }
        render(&directory).unwrap();
        let page = fs_err::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains("mine = "), "the witness is shown");
    }
}
