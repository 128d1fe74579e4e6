//! Moves the pins of a `repos.toml` to what is newest now, and leaves everything else of the file as it was typed.
//!
//! A `git` source moves to the head of its `branch`, or of the remote's default branch where it names none; a `pypi`
//! source to the newest release with a source distribution; a `path` stays what it is. What cannot be reached is left
//! and reported.

use serde::Serialize;
use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::error::{Error, Result};

/// Where the newest pin of a repository is looked up.
pub trait Newest {
    /// The full hash of a branch's head, or of the default branch's.
    ///
    /// # Errors
    /// When the repository cannot be reached or has no such branch.
    fn head(&self, url: &str, branch: Option<&str>) -> Result<String>;

    /// Version and SHA-256 of the newest source distribution.
    ///
    /// # Errors
    /// When the index cannot be reached or has none.
    fn release(&self, project: &str) -> Result<(String, String)>;
}

/// What became of one repository's pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub slug: String,
    #[serde(flatten)]
    pub result: Outcome,
    /// What a person should look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum Outcome {
    Moved {
        from: String,
        to: String,
    },
    /// It is the newest one already.
    Current {
        pin: String,
    },
    /// There is nothing that could move.
    Left {
        reason: String,
    },
    /// It could not be looked up.
    Unreachable {
        reason: String,
    },
}

/// The new text of a configuration, and what became of each repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    pub text: String,
    /// In the order of the file.
    pub changes: Vec<Change>,
}

/// Looks every pin up and moves it. `only` names the repositories to look at, all when empty; `version` is the new
/// version of the dataset.
///
/// # Errors
/// When the text is not TOML. A repository's own trouble is among the changes.
pub fn refresh(text: &str, newest: &dyn Newest, only: &[String], version: Option<&str>) -> Result<Refreshed> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| Error::usage(error.message().to_owned()))?;
    let mut changes = Vec::new();
    for table in repositories(&mut document) {
        let slug = read(table, "slug").unwrap_or_default();
        if only.is_empty() || only.contains(&slug) {
            let (result, notes) = move_pin(table, newest);
            changes.push(Change { slug, result, notes });
        }
    }
    if let (Some(version), Some(dataset)) =
        (version, document.get_mut("dataset").and_then(Item::as_table_like_mut))
    {
        set(dataset, "version", version);
    }
    Ok(Refreshed { text: document.to_string(), changes })
}

/// `[[repo]]` sections, or a list of inline tables.
fn repositories(document: &mut DocumentMut) -> Vec<&mut dyn TableLike> {
    match document.get_mut("repo") {
        Some(Item::ArrayOfTables(tables)) => {
            tables.iter_mut().map(|table| table as &mut dyn TableLike).collect()
        }
        Some(Item::Value(Value::Array(list))) => list
            .iter_mut()
            .filter_map(Value::as_inline_table_mut)
            .map(|table| table as &mut dyn TableLike)
            .collect(),
        _ => Vec::new(),
    }
}

fn read(table: &dyn TableLike, key: &str) -> Option<String> {
    table.get(key).and_then(Item::as_str).map(str::to_owned)
}

/// Replaces a text and keeps the blanks and comments around it.
fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    if let Some(value) = table.get_mut(key).and_then(Item::as_value_mut) {
        let decor = value.decor().clone();
        *value = Value::from(text);
        *value.decor_mut() = decor;
    }
}

fn move_pin(table: &mut dyn TableLike, newest: &dyn Newest) -> (Outcome, Vec<String>) {
    let result = if let Some(url) = read(table, "git") {
        move_git(table, &url, newest)
    } else if let Some(release) = read(table, "pypi") {
        move_release(table, &release, newest)
    } else {
        Ok(Outcome::Left { reason: "a local path is built as it is".to_owned() })
    };
    let outcome = result.unwrap_or_else(|error| Outcome::Unreachable { reason: error.to_string() });
    let mut notes = Vec::new();
    if let (Outcome::Moved { .. }, Some(date)) = (&outcome, table.get("exclude_newer")) {
        notes.push(format!("exclude_newer stays {}", date.to_string().trim()));
    }
    (outcome, notes)
}

fn move_git(table: &mut dyn TableLike, url: &str, newest: &dyn Newest) -> Result<Outcome> {
    let head = newest.head(url, read(table, "branch").as_deref())?;
    let pin = read(table, "commit").unwrap_or_default();
    if pin == head {
        return Ok(Outcome::Current { pin });
    }
    set(table, "commit", &head);
    Ok(Outcome::Moved { from: pin, to: head })
}

fn move_release(table: &mut dyn TableLike, release: &str, newest: &dyn Newest) -> Result<Outcome> {
    let (project, pinned) = release.split_once("==").unwrap_or((release, ""));
    let (project, pinned) = (project.trim(), pinned.trim());
    let (version, sha256) = newest.release(project)?;
    let (from, to) = (format!("{project}=={pinned}"), format!("{project}=={version}"));
    let same_hash = read(table, "sha256").is_some_and(|known| known.eq_ignore_ascii_case(&sha256));
    if same_hash {
        return Ok(Outcome::Current { pin: from });
    }
    let parse = |text: &str| text.parse::<pep440_rs::Version>().ok();
    if let (Some(old), Some(new)) = (parse(pinned), parse(&version))
        && new < old
    {
        return Ok(Outcome::Left { reason: format!("the index has nothing newer than {version}") });
    }
    set(table, "pypi", &to);
    set(table, "sha256", &sha256);
    Ok(Outcome::Moved { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";

    struct Told;

    impl Newest for Told {
        fn head(&self, url: &str, branch: Option<&str>) -> Result<String> {
            match (url, branch) {
                ("https://host/gone", _) => Err(Error::repository("cannot reach https://host/gone")),
                (_, Some("stable")) => Ok(OLD.to_owned()),
                _ => Ok(NEW.to_owned()),
            }
        }

        fn release(&self, project: &str) -> Result<(String, String)> {
            assert_eq!(project, "flask");
            Ok(("3.2.0".to_owned(), "bb".to_owned()))
        }
    }

    fn text() -> String {
        format!(
            "# Ours.\n[dataset]\nname    = \"d\"   # the name\nversion = '1'   # raise me\n\n\
             [[repo]]   # first\nslug = \"a/b\"\n  git = \"https://host/b\"\ncommit = '{OLD}'  # the pin\n\
             exclude_newer = 2026-01-01\n\n\
             [[repo]]\nslug = \"a/stable\"\ngit = \"https://host/b\"\nbranch = \"stable\"\ncommit = \"{OLD}\"\n\
             [[repo]]\nslug = \"a/gone\"\ngit = \"https://host/gone\"\ncommit = \"{OLD}\"\n\
             [[repo]]\nslug = \"a/local\"\npath = \"..\"\n\n\n\
             [[repo]]\nslug = \"p/flask\"\npypi = \"flask == 3.1.3\" # sdist\nsha256 = \"aa\"\nenv = {{ A = \"1\" }}\n# end\n"
        )
    }

    #[test]
    fn pins_move_and_every_other_character_stays() {
        let refreshed = refresh(&text(), &Told, &[], Some("2")).unwrap();
        let expected = text()
            .replacen(&format!("'{OLD}'"), &format!("\"{NEW}\""), 1)
            .replace("'1'", "\"2\"")
            .replace("flask == 3.1.3", "flask==3.2.0")
            .replace("\"aa\"", "\"bb\"");
        assert_eq!(refreshed.text, expected);
    }

    #[test]
    fn what_moved_and_what_did_not_is_told_in_the_order_of_the_file() {
        let refreshed = refresh(&text(), &Told, &[], None).unwrap();
        let told: Vec<(&str, &Outcome)> =
            refreshed.changes.iter().map(|change| (change.slug.as_str(), &change.result)).collect();
        let moved = |from: &str, to: &str| Outcome::Moved { from: from.to_owned(), to: to.to_owned() };
        assert_eq!(told[0], ("a/b", &moved(OLD, NEW)));
        assert_eq!(refreshed.changes[0].notes, ["exclude_newer stays 2026-01-01"]);
        assert_eq!(told[1], ("a/stable", &Outcome::Current { pin: OLD.to_owned() }));
        assert!(
            matches!(told[2], ("a/gone", Outcome::Unreachable { reason }) if reason.contains("cannot reach"))
        );
        assert!(matches!(told[3], ("a/local", Outcome::Left { .. })));
        assert_eq!(told[4], ("p/flask", &moved("flask==3.1.3", "flask==3.2.0")));
    }

    #[test]
    fn what_is_not_asked_for_is_not_touched() {
        let refreshed = refresh(&text(), &Told, &["p/flask".to_owned()], None).unwrap();
        assert_eq!(refreshed.changes.len(), 1);
        assert!(!refreshed.text.contains(NEW) && refreshed.text.contains("flask==3.2.0"));
    }

    #[test]
    fn inline_tables_are_repositories_as_well() {
        let text = format!("repo = [{{ slug = \"a/b\", git = \"https://host/b\", commit = \"{OLD}\" }}]\n");
        let refreshed = refresh(&text, &Told, &[], None).unwrap();
        assert_eq!(refreshed.text, text.replace(OLD, NEW));
    }
}
