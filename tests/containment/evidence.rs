//! What a build left behind, as the tests judge it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::bytes::Regex;
use serde_json::Value;

use crate::caller::Place;
use crate::common::Ended;
use crate::common::dataset::{Dataset, text};

/// A build that is over: the place, how it ended (none: it did not, within its limit), and its dataset.
pub struct Built {
    pub place: Place,
    pub ended: Option<Ended>,
}

impl Built {
    /// How the build ended.
    #[track_caller]
    pub fn ended(&self) -> &Ended {
        self.ended.as_ref().expect("the build ends within its limit")
    }

    /// It ended with this code.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        let ended = self.ended();
        assert_eq!(ended.code(), Some(code), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    }

    #[track_caller]
    pub fn dataset(&self) -> Dataset {
        let ended = self.ended();
        let folder = self.place.output();
        assert!(folder.join("manifest.json").is_file(), "no dataset: {}\n{}", ended.stdout, ended.stderr);
        Dataset::at(&folder)
    }

    /// `kept`, or the cause, of each group of a repository.
    #[track_caller]
    pub fn groups(&self, name: &str) -> BTreeMap<String, String> {
        let slug = format!("trees/{name}");
        let rows = self.dataset().rows("groups");
        let verdict = |row: &Value| if row["kept"] == true { "kept" } else { text(&row["cause"]) }.to_owned();
        let own = rows.iter().filter(|row| row["slug"] == slug.as_str());
        own.map(|row| (text(&row["group_id"]).to_owned(), verdict(row))).collect()
    }

    /// Why a repository failed, as the manifest says it; none when it did not.
    #[track_caller]
    pub fn failure(&self, name: &str) -> Option<String> {
        let manifest = self.dataset().manifest();
        let failed = manifest["failed"].as_array().expect("a list").clone();
        failed.iter().map(Value::to_string).find(|one| one.contains(&format!("\"trees/{name}\"")))
    }

    /// The repository failed, and was not taken for good.
    #[track_caller]
    pub fn assert_failed(&self, name: &str) {
        assert!(self.failure(name).is_some(), "{name} did not fail: {:#?}", self.groups(name));
    }

    #[track_caller]
    pub fn assert_groups(&self, name: &str, expected: &[(&str, &str)]) {
        assert_eq!(self.failure(name), None, "{name} failed");
        let found = self.groups(name);
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(group, verdict)| ((*group).to_owned(), (*verdict).to_owned())).collect();
        assert_eq!(found, expected, "groups of {name}");
    }

    /// What the published cases of a group print.
    #[track_caller]
    pub fn stdout(&self, name: &str, group: &str) -> String {
        let rows = self.dataset().rows("cases");
        let slug = format!("trees/{name}");
        let own = rows.iter().filter(|row| row["slug"] == slug.as_str() && row["group_id"] == group);
        // A case that was not published has none.
        let printed: Vec<&str> = own.filter_map(|row| row["stdout"].as_str()).collect();
        assert!(
            !printed.is_empty(),
            "{group} of {name} was not published: {:?}, {:#?}",
            self.failure(name),
            self.groups(name)
        );
        printed.concat()
    }

    /// The neighbour that does nothing to anybody is complete.
    #[track_caller]
    pub fn assert_neighbour_is_complete(&self) {
        let groups = self.groups("neighbour");
        assert_eq!(groups.len(), 4, "the neighbour suffers: {groups:#?}, {:?}", self.failure("neighbour"));
        assert_eq!(groups.values().filter(|verdict| *verdict == "kept").count(), 3, "{groups:#?}");
    }

    /// Nothing that the user alone may know was written or printed.
    #[track_caller]
    pub fn assert_tells_nothing_of(&self, forms: &[&str]) {
        let found = files_with(&self.place.written(), forms);
        assert!(found.is_empty(), "{forms:?} stands in {found:#?}");
        let ended = self.ended();
        for form in forms {
            assert!(!ended.stdout.contains(form), "{form} was printed: {}", ended.stdout);
            assert!(!ended.stderr.contains(form), "{form} was printed: {}", ended.stderr);
        }
    }

    /// No process that an attack started is left.
    #[track_caller]
    pub fn assert_nothing_stays(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left: Vec<PathBuf> = std::fs::read_dir("/proc")
                .expect("/proc is there")
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| {
                    let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
                    line.split(|byte| *byte == 0).any(|word| word == self.place.stays.as_bytes())
                })
                .collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "processes go on after the build: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Files below these folders that hold a text, by name or content; compressed ones are looked into.
pub fn files_with(folders: &[PathBuf], forms: &[&str]) -> Vec<PathBuf> {
    let pattern = forms.iter().map(|form| regex::escape(form)).collect::<Vec<_>>().join("|");
    let pattern = Regex::new(&pattern).expect("is a pattern");
    let entries = folders.iter().filter(|folder| folder.exists()).flat_map(walkdir::WalkDir::new);
    entries
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| {
            pattern.is_match(path.as_os_str().as_encoded_bytes())
                || path.symlink_metadata().is_ok_and(|one| one.is_file() && one.len() < 1 << 30)
                    && pattern.is_match(&plain(path))
        })
        .collect()
}

/// The content of a file as text that can be searched.
fn plain(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut text = Vec::new();
    match path.extension().and_then(|end| end.to_str()) {
        Some("gz") if flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).is_ok() => text,
        Some("parquet") => {
            let table = path.file_stem().expect("has a name").to_string_lossy().into_owned();
            let rows = Dataset::at(path.parent().expect("has a folder")).rows(&table);
            serde_json::to_vec(&rows).expect("is JSON")
        }
        _ => bytes,
    }
}

/// Characters that a terminal obeys: all controls but the end of a line and the tabulator.
pub fn controls(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect()
}
