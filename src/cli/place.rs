//! A repository that the command line names and no configuration does: `init` writes one for it, `try` does without.

use std::fmt::Write as _;
use std::path::Path;

use toml::Value;

use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::source;
use crate::text::shell_quote;

/// Longest path that Linux takes, in bytes.
const LONGEST: usize = 4095;
/// The owner of what has none.
const LOCAL: &str = "local";

#[derive(Debug, clap::Args)]
pub(super) struct PlaceArguments {
    /// A directory, or the URL of a git repository
    #[arg(value_name = "PATH|URL")]
    pub(super) place: String,
    /// The branch or tag to pin; by default the repository's own branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// The folder of a git repository that is the project
    #[arg(long, value_name = "FOLDER")]
    subdirectory: Option<String>,
    /// Leave the submodules of a git repository out
    #[arg(long)]
    no_submodules: bool,
    /// The interpreter, as `python` of a `[[repo]]`: 3.12 or 3.12.4
    #[arg(long, value_name = "VERSION")]
    python: Option<String>,
    /// An extra of the project to install, in place of what the tree declares; may be given several times
    #[arg(long, value_name = "NAME")]
    extra: Vec<String>,
    /// A dependency group to install, in place of what the tree declares; may be given several times
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
}

/// Keys of a `[[repo]]`.
pub(super) type Keys = Vec<(&'static str, Value)>;

impl PlaceArguments {
    /// A place alone.
    pub(super) fn of(place: &str) -> Self {
        PlaceArguments {
            place: place.to_owned(),
            branch: None,
            subdirectory: None,
            no_submodules: false,
            python: None,
            extra: Vec::new(),
            group: Vec::new(),
        }
    }

    /// The keys that say where the repository is; `path` says how a directory is spelled.
    ///
    /// # Errors
    /// Usage errors: neither a directory nor a URL, options that do not go with it. A server that cannot be reached.
    pub(super) fn keys(&self, path: impl FnOnce(&str) -> Result<String>) -> Result<Keys> {
        if Path::new(&self.place).is_dir() {
            if self.branch.is_some() || self.subdirectory.is_some() {
                return Err(Error::usage("--branch and --subdirectory go with the URL of a git repository")
                    .with_hint("name the folder itself"));
            }
            if self.no_submodules {
                return Err(Error::usage("--no-submodules goes with the URL of a git repository").with_hint(
                    "a directory is taken as it is: a submodule that is not checked out is an empty folder",
                ));
            }
            let mut keys: Keys = vec![("path", path(&self.place)?.into())];
            keys.extend(self.recipe());
            return Ok(keys);
        }
        if self.place.len() > LONGEST {
            let start: String = self.place.chars().take(60).collect();
            return Err(Error::usage(format!(
                "the name that begins with {start} is longer than {LONGEST} bytes"
            ))
            .with_hint("go into a folder above it, and name it from there"));
        }
        if !self.place.contains("://") && !self.place.contains('@') {
            return Err(Error::usage(format!(
                "{} is neither a directory nor the URL of a git repository",
                self.place
            )));
        }
        let reference = self.branch.as_deref().unwrap_or("HEAD");
        let commit = source::resolve_reference(&self.place, reference)?.ok_or_else(|| {
            Error::usage(format!("the repository has nothing that is called `{reference}`"))
        })?;
        let mut keys: Keys = vec![("git", self.place.clone().into()), ("commit", commit.into())];
        keys.extend(self.branch.iter().map(|branch| ("branch", branch.clone().into())));
        keys.extend(self.subdirectory.iter().map(|folder| ("subdirectory", folder.clone().into())));
        keys.extend(self.no_submodules.then(|| ("submodules", false.into())));
        keys.extend(self.recipe());
        Ok(keys)
    }

    /// The keys that say what its environment is made of.
    fn recipe(&self) -> Keys {
        let python = self.python.iter().map(|version| ("python", version.clone().into()));
        let lists = [("extras", &self.extra), ("groups", &self.group)];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        python.chain(lists.map(|(key, names)| (key, names.clone().into()))).collect()
    }

    /// The place as words of a command line.
    pub(super) fn words(&self) -> String {
        let mut words = shell_quote(&self.place);
        let mut add = |name: &str, values: &[String]| {
            for value in values {
                let _ = write!(words, " {name} {}", shell_quote(value));
            }
        };
        add("--branch", self.branch.as_slice());
        add("--subdirectory", self.subdirectory.as_slice());
        add("--python", self.python.as_slice());
        add("--extra", &self.extra);
        add("--group", &self.group);
        if self.no_submodules {
            words.push_str(" --no-submodules");
        }
        words
    }

    /// `owner/name`: of a directory those of the remote that it was cloned from, `local` and its name where there is
    /// none (what is around a directory is nobody's business); of a URL its last two parts.
    pub(super) fn slug(&self) -> String {
        let place = Path::new(&self.place);
        let (owner, name) = if place.is_dir() {
            let folder = place.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
            let folder = folder.unwrap_or_default().to_string_lossy().into_owned();
            match source::came_from(place) {
                Some((address, true)) => owner_and_name(&address),
                Some((address, false)) => (owner_and_name(&address).0, folder),
                None => (LOCAL.to_owned(), folder),
            }
        } else {
            match source::without_login(&self.place) {
                Some(address) => owner_and_name(&address),
                None => (LOCAL.to_owned(), last_parts(&self.place).0),
            }
        };
        let filled = |part: &str, default: &str| match plain(part) {
            part if part.is_empty() => default.to_owned(),
            part => part,
        };
        let slug = format!("{}/{}", filled(&owner, LOCAL), filled(&name, "project"));
        RepoSlug::new(&slug).map_or_else(|_| format!("{LOCAL}/project"), |slug| slug.to_string())
    }
}

/// The last two parts of an address without a login; the host counts as the owner of what is at its top.
fn owner_and_name(address: &str) -> (String, String) {
    let (host, path) = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').unwrap_or((rest, "")),
        None => address.split_once(':').unwrap_or(("", address)),
    };
    let host = host.split(':').next().unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let (name, owner) = last_parts(path);
    (owner.unwrap_or_else(|| host.to_owned()), name)
}

/// The last part of a path and the one before.
fn last_parts(path: &str) -> (String, Option<String>) {
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty()).map(str::to_owned);
    (parts.next().unwrap_or_default(), parts.next())
}

/// A part as a slug may have it.
fn plain(part: &str) -> String {
    let part = part.strip_suffix(".git").unwrap_or(part);
    let kept = part.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' });
    kept.collect::<String>().trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// A configuration of one repository.
pub(super) fn document(slug: &str, keys: &[(&str, Value)]) -> String {
    let name = slug.rsplit('/').next().unwrap_or(slug).to_lowercase();
    let mut text = format!(
        "[dataset]\nname = {}\nversion = \"1\"\n\n[[repo]]\nslug = {}\n",
        Value::from(name),
        Value::from(slug)
    );
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

/// Reads a configuration of which this program wrote the text; its paths start at `folder`.
///
/// # Errors
/// A usage error: what was found cannot be said in a configuration.
pub(super) fn parse(text: &str, folder: &Path) -> Result<Config> {
    config::parse(text, folder, &|_, _| None).map_err(|problems| {
        let words: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        Error::usage("no configuration can be written for this").with_detail(words.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> PlaceArguments {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            place: PlaceArguments,
        }
        <Line as clap::Parser>::parse_from([&["x"], words].concat()).place
    }

    fn slug(place: &str) -> String {
        asked(&[place]).slug()
    }

    #[test]
    fn an_address_gives_a_slug_and_none_of_its_login() {
        for (place, expected) in [
            ("https://host.org/pallets/flask.git", "pallets/flask"),
            ("https://token@host.org/flask", "host.org/flask"),
            ("https://host.org:8443/flask?token=abc/def", "host.org/flask"),
            ("git@host.org:acme/core.git", "acme/core"),
            ("git@host.org:core", "host.org/core"),
            ("ssh://git@host/deep/er/a b.git/", "er/a-b"),
            ("ssh://git@host:2222/core.git", "host/core"),
            ("https://host.org", "host.org/project"),
            ("file:///home/ann/one.git", "local/one"),
        ] {
            assert_eq!(slug(place), expected, "{place}");
        }
    }

    /// A clone with this `origin`.
    fn clone(folder: &Path, origin: &str) -> git2::Repository {
        let repository = git2::Repository::init(folder).unwrap();
        repository.remote("origin", origin).unwrap();
        repository
    }

    #[test]
    fn a_directory_has_the_slug_of_its_origin_or_its_own_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("My Shop");
        fs_err::create_dir(&folder).unwrap();
        let of = |folder: &Path| slug(folder.to_str().unwrap());
        assert_eq!(of(&folder), "local/My-Shop", "the folder around it is not told");
        clone(&folder, "https://ann:secret@git.example.org/acme/shop.git");
        assert_eq!(of(&folder), "acme/shop");
        let other = home.path().join("other");
        clone(&other, "../My Shop");
        assert_eq!(of(&other), "local/other", "a clone of a folder");
    }

    #[test]
    fn a_folder_of_a_clone_has_its_own_name() {
        let home = tempfile::tempdir().unwrap();
        let repository = clone(home.path(), "git@git.example.org:acme/all.git");
        let folder = home.path().join("packages/core");
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("a.py"), "").unwrap();
        let of = || slug(folder.to_str().unwrap());
        assert_eq!(of(), "local/core", "git does not know it");
        let mut index = repository.index().unwrap();
        index.add_path(Path::new("packages/core/a.py")).unwrap();
        index.write().unwrap();
        assert_eq!(of(), "acme/core");
    }

    #[test]
    fn the_words_are_those_that_were_given() {
        let line = ["https://h/a b", "--branch", "it's", "--extra", "a", "--extra", "b c", "--no-submodules"];
        let words = "'https://h/a b' --branch 'it'\\''s' --extra a --extra 'b c' --no-submodules";
        assert_eq!(asked(&line).words(), words);
    }

    #[test]
    fn options_are_keys_of_a_repository_and_are_checked_as_those() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_str().unwrap();
        let keys = |words: &[&str]| asked(&[&[folder], words].concat()).keys(|path| Ok(path.to_owned()));
        let found = keys(&["--python", "3.12", "--extra", "a", "--extra", "b", "--group", "test"]).unwrap();
        let config = parse(&document("a/b", &found), Path::new(".")).unwrap();
        let repo = &config.repos[0];
        assert_eq!(repo.python.as_deref(), Some("3.12"));
        assert_eq!(repo.extras.as_deref(), Some(["a".to_owned(), "b".to_owned()].as_slice()));
        assert_eq!(repo.groups.as_deref(), Some(["test".to_owned()].as_slice()));
        assert_eq!(keys(&[]).unwrap().len(), 1, "what was not asked for is inferred");
        let bad = parse(&document("a/b", &keys(&["--python", "new"]).unwrap()), Path::new(".")).unwrap_err();
        assert!(bad.detail().is_some_and(|text| text.contains("python")), "{bad:?}");
        let error = keys(&["--no-submodules"]).unwrap_err();
        assert!(error.to_string().contains("--no-submodules"), "{error}");
    }
}
