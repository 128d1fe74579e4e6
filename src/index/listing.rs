//! What a job sees of a project's page: no later files, no addresses, and wheels in place of source distributions. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pep440_rs::Version;
use serde::Serialize;
use serde_json::{Value, json};

use super::file::{File, Yanked};
use super::filename::{Kind, parse, stand_in};
use super::page::Page;

/// A file that a job sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub version: Version,
    /// As the job sees it.
    pub filename: String,
    pub key: String,
    pub what: What,
    pub file: File,
}

/// What lies behind an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Wheel,
    /// A source distribution of a version that has a wheel for any machine. It is listed for its hash, which belongs in
    /// a lock, and never handed out.
    Source,
    /// A source distribution that looks like a wheel.
    StandIn {
        /// A wheel of the same version for other machines, whose metadata is near at hand. uv takes such metadata for
        /// that of the source distribution, too.
        sibling: Option<Box<File>>,
    },
}

/// The files of a project, in the order of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    pub entries: Vec<Entry>,
    /// Whether a file is listed although no upload time is known of it.
    pub has_undated: bool,
}

/// Projects whose files were removed and uploaded again, and the day of that: their upload times do not say when they came
/// out. Every pytest from 3.6 to 5.2 requires the one that is known.
const UPLOADED_AGAIN: [(&str, &str); 1] = [("atomicwrites", "2022-07-09")];

fn was_uploaded_again(project: &str, uploaded: Timestamp) -> bool {
    UPLOADED_AGAIN.iter().any(|(name, day)| *name == project && uploaded.to_string().starts_with(day))
}

impl Listing {
    /// Lists the files of a page that were not uploaded at or after a moment, which is how uv counts.
    pub(super) fn of(page: &Page, project: &str, exclude_newer: Option<Timestamp>) -> Listing {
        let is_later = |file: &&File| match (file.uploaded, exclude_newer) {
            (Some(uploaded), Some(newest)) => {
                uploaded.as_millisecond() >= newest.as_millisecond() && !was_uploaded_again(project, uploaded)
            }
            _ => false,
        };
        let files: Vec<(&File, Version, Kind)> = page
            .files
            .iter()
            .filter(|file| !is_later(file))
            .filter_map(|file| parse(&file.filename, project).map(|(version, kind)| (file, version, kind)))
            .collect();
        let releases = Releases::of(&files);
        let has_undated = exclude_newer.is_some() && files.iter().any(|(file, ..)| file.uploaded.is_none());
        let entries = files.into_iter().map(|file| releases.entry(file, project)).collect();
        Listing { entries, has_undated }
    }

    /// The entry that an address of a job means.
    pub(super) fn find(&self, key: &str, filename: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key && entry.filename == filename)
    }

    /// The page as a job gets it; `place` is where its files are.
    pub(super) fn page(&self, project: &str, place: &str) -> serde_json::Result<Vec<u8>> {
        let files = self.entries.iter().map(|entry| entry.shown(place)).collect();
        serde_json::to_vec(&ShownPage { meta: json!({"api-version": "1.0"}), name: project, files })
    }
}

/// What the files of each version have in common.
#[derive(Default)]
struct Releases<'a> {
    /// Versions with a wheel for any machine that was not withdrawn.
    with_wheel_for_any: BTreeSet<Version>,
    siblings: BTreeMap<Version, &'a File>,
    /// The source distribution that a wheel stands for.
    sources: BTreeMap<Version, (usize, &'a str)>,
}

impl<'a> Releases<'a> {
    fn of(files: &[(&'a File, Version, Kind)]) -> Self {
        let mut releases = Releases::default();
        for (file, version, kind) in files.iter().filter(|(file, ..)| file.yanked == Yanked::No) {
            match kind {
                Kind::Wheel { is_for_any, is_for_three } => {
                    if *is_for_any {
                        releases.with_wheel_for_any.insert(version.clone());
                    }
                    if *is_for_three {
                        releases.siblings.insert(version.clone(), file);
                    }
                }
                Kind::Sdist { .. } => {}
            }
        }
        for (file, version, kind) in files {
            if let Kind::Sdist { rank } = kind {
                // One that was withdrawn stands behind one that was not.
                let rank = rank + if file.yanked == Yanked::No { 0 } else { 100 };
                let best = releases.sources.entry(version.clone()).or_insert((rank, &file.filename));
                if rank < best.0 {
                    *best = (rank, &file.filename);
                }
            }
        }
        releases
    }

    fn entry(&self, (file, version, kind): (&File, Version, Kind), project: &str) -> Entry {
        let what = match kind {
            Kind::Wheel { .. } => What::Wheel,
            Kind::Sdist { .. } if self.with_wheel_for_any.contains(&version) => What::Source,
            Kind::Sdist { .. }
                if self.sources.get(&version).is_some_and(|(_, name)| *name != file.filename) =>
            {
                What::Source
            }
            Kind::Sdist { .. } => {
                What::StandIn { sibling: self.siblings.get(&version).map(|file| Box::new((*file).clone())) }
            }
        };
        let filename = match what {
            What::StandIn { .. } => stand_in(project, &version),
            What::Wheel | What::Source => file.filename.clone(),
        };
        Entry { version, filename, key: file.key(), what, file: file.clone() }
    }
}

impl Entry {
    fn shown(&self, place: &str) -> Shown<'_> {
        let file = &self.file;
        Shown {
            filename: &self.filename,
            url: format!("{place}/{}/{}", self.key, self.filename),
            hashes: &file.hashes,
            requires_python: file.requires_python.as_deref(),
            yanked: match &file.yanked {
                Yanked::No => None,
                Yanked::Yes => Some(true.into()),
                Yanked::Because(reason) => Some(reason.as_str().into()),
            },
            // That of a wheel which the index has none of is taken out of the wheel.
            core_metadata: self.what != What::Source,
        }
    }
}

/// An entry in a page.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shown<'a> {
    filename: &'a str,
    url: String,
    hashes: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requires_python: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    yanked: Option<Value>,
    core_metadata: bool,
}

#[derive(Serialize)]
struct ShownPage<'a> {
    meta: Value,
    name: &'a str,
    files: Vec<Shown<'a>>,
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn file(filename: &str) -> File {
        let url = format!("https://u.example/secret/{filename}");
        File {
            filename: filename.to_owned(),
            hashes: [("sha256".to_owned(), super::super::sha256(filename.as_bytes()))].into(),
            url: Url::parse(&url).expect("an address"),
            requires_python: None,
            yanked: Yanked::No,
            uploaded: Some("2024-01-01T00:00:00Z".parse().expect("a moment")),
            metadata: Some(BTreeMap::new()),
        }
    }

    fn listed(files: Vec<File>, exclude_newer: Option<&str>) -> Listing {
        let moment = exclude_newer.map(|moment| moment.parse().expect("a moment"));
        Listing::of(&Page { files }, "foo-bar", moment)
    }

    /// Names as a job sees them; a source distribution that is not handed out in parentheses.
    fn names(filenames: &[&str]) -> Vec<String> {
        let listing = listed(filenames.iter().map(|name| file(name)).collect(), None);
        let name = |entry: &Entry| match entry.what {
            What::Source => format!("({})", entry.filename),
            _ => entry.filename.clone(),
        };
        listing.entries.iter().map(name).collect()
    }

    #[test]
    fn a_wheel_stands_in_for_what_no_wheel_is_for_everybody() {
        assert_eq!(names(&["foo-bar-1.0.tar.gz"]), ["foo_bar-1.0-py30-none-any.whl"]);
        assert_eq!(
            names(&["foo_bar-1.0-cp312-cp312-win_amd64.whl", "Foo.Bar-1.0.zip"]),
            ["foo_bar-1.0-cp312-cp312-win_amd64.whl", "foo_bar-1.0-py30-none-any.whl"]
        );
        assert_eq!(
            names(&["foo_bar-1.0-py2-none-any.whl", "foo_bar-1.0.tar.gz"])[1],
            "foo_bar-1.0-py30-none-any.whl"
        );
        assert_eq!(
            names(&["foo_bar-1.0.tar.gz", "foo_bar-1.0-py3-none-any.whl", "foo_bar-2.0.tar.gz"]),
            ["(foo_bar-1.0.tar.gz)", "foo_bar-1.0-py3-none-any.whl", "foo_bar-2.0-py30-none-any.whl"]
        );
        // The best of several; versions that are written differently are the same.
        assert_eq!(
            names(&["foo_bar-1.0.zip", "foo_bar-1.tar.gz", "foo_bar-1.0.exe", "other-1.0.tar.gz"]),
            ["(foo_bar-1.0.zip)", "foo_bar-1-py30-none-any.whl"]
        );
    }

    #[test]
    fn a_wheel_that_was_withdrawn_stands_for_nobody() {
        let mut wheel = file("foo_bar-1.0-py3-none-any.whl");
        wheel.yanked = Yanked::Because("broken".to_owned());
        let listing = listed(vec![wheel, file("foo_bar-1.0.tar.gz")], None);
        assert_eq!(listing.entries[1].what, What::StandIn { sibling: None });
        let page: Value =
            serde_json::from_slice(&listing.page("foo-bar", "/0").expect("a page")).expect("JSON");
        assert_eq!(page["files"][0]["yanked"], "broken");
        assert_eq!(page["files"][1].get("yanked"), None);
    }

    #[test]
    fn the_metadata_of_a_wheel_for_others_is_near_at_hand() {
        let wheel = file("foo_bar-1.0-cp312-cp312-win_amd64.whl");
        let two = file("foo_bar-1.0-cp27-cp27m-win32.whl");
        let listing = listed(vec![wheel.clone(), two, file("foo_bar-1.0.tar.gz")], None);
        assert_eq!(listing.entries[2].what, What::StandIn { sibling: Some(Box::new(wheel)) });
    }

    #[test]
    fn what_was_uploaded_later_is_not_listed() {
        let (mut undated, mut later) =
            (file("foo_bar-2-py3-none-any.whl"), file("foo_bar-3-py3-none-any.whl"));
        undated.uploaded = None;
        later.uploaded = Some("2024-01-01T00:00:00.001Z".parse().expect("a moment"));
        let files = vec![file("foo_bar-1.tar.gz"), undated, later];
        let versions = |moment: Option<&str>| -> (String, bool) {
            let listing = listed(files.clone(), moment);
            (listing.entries.iter().map(|entry| entry.version.to_string()).collect(), listing.has_undated)
        };
        assert_eq!(versions(None), ("123".to_owned(), false));
        assert_eq!(versions(Some("2024-01-01T00:00:00.002Z")), ("123".to_owned(), true));
        assert_eq!(versions(Some("2024-01-01T00:00:00.001Z")), ("12".to_owned(), true));
        assert_eq!(versions(Some("2024-01-01T00:00:00Z")), ("2".to_owned(), true));
    }

    #[test]
    fn what_was_uploaded_again_counts_as_from_before() {
        let moment = |text: &str| text.parse::<Timestamp>().expect("a moment");
        for (project, uploaded, expected) in [
            ("atomicwrites", "2022-07-09T04:08:56.943612Z", true),
            ("atomicwrites", "2022-07-08T18:31:40Z", false),
            ("atomicwrites2", "2022-07-09T04:08:56Z", false),
        ] {
            assert_eq!(was_uploaded_again(project, moment(uploaded)), expected, "{project} {uploaded}");
        }
        let mut again = file("atomicwrites-1.3.0-py2.py3-none-any.whl");
        again.uploaded = Some(moment("2022-07-09T04:09:07Z"));
        let page = Page { files: vec![again] };
        let listing = |project| Listing::of(&page, project, Some(moment("2019-08-29T00:00:00Z")));
        assert_eq!(listing("atomicwrites").entries.len(), 1);
    }

    #[test]
    fn a_job_sees_hashes_and_facts_but_no_address() {
        let mut source = file("foo_bar-1.tar.gz");
        source.requires_python = Some(">=3.6,<\"4".to_owned());
        let key = source.key();
        let listing = listed(vec![source], None);
        let page = listing.page("foo-bar", "/7/files/foo-bar").expect("a page");
        assert!(!String::from_utf8_lossy(&page).contains("example"));
        let page: Value = serde_json::from_slice(&page).expect("JSON");
        let url = format!("/7/files/foo-bar/{key}/foo_bar-1-py30-none-any.whl");
        let expected = json!({
            "filename": "foo_bar-1-py30-none-any.whl", "url": url, "hashes": {"sha256": key},
            "requires-python": ">=3.6,<\"4", "core-metadata": true,
        });
        assert_eq!(page["files"][0], expected);
        assert!(listing.find(&key, "foo_bar-1-py30-none-any.whl").is_some());
        assert!(listing.find(&key, "foo_bar-1.tar.gz").is_none());
    }
}
