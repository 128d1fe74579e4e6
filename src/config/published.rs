//! A configuration from what a dataset publishes of it: enough to make its environments again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use toml::Table;

use super::{BackendKind, Config, Repo, SourceSpec};
use crate::document::units;
use crate::error::{Error, Result};
use crate::record::family::Family;
use crate::record::id::RepoSlug;
use crate::redact::REDACTED;

/// Reads the published configuration, which whoever made the dataset wrote, for some of its repositories. `places` says where
/// repositories are: a path, or a URL of git; the caller replaces the sources of `archived`. Without either only `https` and
/// the package index are taken. `variables` gives values that are not published.
///
/// # Errors
/// Usage errors: a repository or variable that is not published and not given, and what is not a configuration.
pub(crate) fn from_published(
    published: &Value,
    slugs: &BTreeSet<RepoSlug>,
    (places, archived): (&BTreeMap<RepoSlug, String>, &BTreeSet<RepoSlug>),
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Config> {
    let config = published;
    let mut document = Table::new();
    for section in ["dataset", "screen", "tier"] {
        document.insert(section.to_owned(), plain(&config[section])?);
    }
    let sizes = config["limits"].as_object().into_iter().flatten();
    let limits = sizes.map(|(name, value)| {
        let bytes = value.as_u64().unwrap_or_default();
        let value = if name == "processes" { integer(bytes) } else { size(bytes) };
        (name.clone(), value)
    });
    // Of a pair the base is made again, which is a repository like any other.
    let is_of_pairs = config["dataset"]["family"] == Family::Codetaste.as_str();
    if let Some(toml::Value::Table(dataset)) = document.get_mut("dataset").filter(|_| is_of_pairs) {
        dataset.remove("family");
        dataset.remove("per_repo");
    }
    document.insert("limits".to_owned(), toml::Value::Table(limits.collect()));
    document.insert("docker".to_owned(), toml::Value::Table(docker(&config["docker"])));
    let mut repos = Vec::new();
    let wanted = |repo: &&Value| slugs.iter().any(|slug| repo["slug"] == slug.as_str());
    for repo in config["repos"].as_array().into_iter().flatten().filter(wanted) {
        let of_repo = |known: &&RepoSlug| repo["slug"] == known.as_str();
        let place = match places.iter().find(|(known, _)| of_repo(known)) {
            Some((_, place)) => Some(PublishedSource::Given(place)),
            None => archived.iter().find(of_repo).map(|_| PublishedSource::Archived),
        };
        repos.push(repository(repo, place, variables)?);
    }
    document.insert("repo".to_owned(), toml::Value::Array(repos));
    let text = document.to_string();
    let parsed = super::parse(&text, Path::new("/"), &|_, _| None);
    let mut config = parsed.map_err(|problems| {
        let words: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        Error::usage("the dataset's configuration cannot be used").with_detail(words.join("\n"))
    })?;
    if is_of_pairs {
        config_of_pairs(&mut config, published)?;
    }
    for repo in config.repos.iter_mut().filter(|repo| !places.contains_key(&repo.slug)) {
        if let SourceSpec::Git { anonymous, .. } = &mut repo.source {
            *anonymous = true;
        }
    }
    bounded(config)
}

fn config_of_pairs(config: &mut Config, published: &Value) -> Result<()> {
    config.dataset.family = Family::Codetaste;
    config.codetaste = serde_json::from_value(published["codetaste"].clone())
        .map_err(|error| Error::usage("the dataset's configuration has no [codetaste]").with_source(error))?;
    let repos = published["repos"].as_array().into_iter().flatten();
    let scripted: Vec<&Value> = repos.filter(|repo| repo["run_tests"].is_string()).collect();
    for repo in &mut config.repos {
        repo.is_scripted = scripted.iter().any(|one| one["slug"] == repo.slug.as_str());
    }
    Ok(())
}

/// Longest time that a case and a group of a dataset may take: whoever made it does not choose how long others wait.
const LONGEST_CASE: Duration = Duration::from_hours(1);
const LONGEST_GROUP: Duration = Duration::from_hours(6);
/// Most processes, bytes of a file and bytes of output of what a dataset runs, also where it sets no limit.
const MOST_PROCESSES: u64 = 1 << 16;
const LARGEST_FILE: u64 = 1 << 40;
const MOST_OUTPUT: u64 = 1 << 30;

fn bounded(mut config: Config) -> Result<Config> {
    let is_scripted = config.repos.iter().any(|repo| repo.is_scripted);
    let times = [
        ("case_timeout", config.screen.case_timeout, LONGEST_CASE),
        ("group_timeout", config.screen.group_timeout, LONGEST_GROUP),
        // Only scripts are given that time as a whole.
        (
            "suite_timeout",
            if is_scripted { config.codetaste.suite_timeout } else { Duration::ZERO },
            LONGEST_GROUP,
        ),
    ];
    if let Some((key, asked, most)) = times.into_iter().find(|(_, asked, most)| asked > most) {
        let [asked, most] = [asked, most].map(units::format_duration);
        return Err(Error::usage(format!(
            "the dataset asks for {key} = {asked}; {most} is the most that is run"
        ))
        .with_hint("ask whoever made it to build it with less"));
    }
    let within = |asked: u64, most: u64| if asked == 0 { most } else { asked.min(most) };
    let limits = &mut config.limits;
    limits.processes = within(limits.processes, MOST_PROCESSES);
    limits.file_size = within(limits.file_size, LARGEST_FILE);
    limits.output = within(limits.output, MOST_OUTPUT);
    Ok(config)
}

/// Refuses what runs in an image that the dataset chooses: packages are installed there with the network on.
///
/// # Errors
/// A usage error that names what is asked for, and the option that allows it.
pub(crate) fn refuse_containers(config: &Config) -> Result<()> {
    let asks = |repo: &&Repo| {
        repo.backend != BackendKind::Local || repo.base.is_some() || !repo.system_packages.is_empty()
    };
    let Some(repo) = config.repos.iter().find(asks) else { return Ok(()) };
    let base = repo.base.as_ref().unwrap_or(&config.docker.base);
    let packages = &repo.system_packages;
    let packages = if packages.is_empty() {
        String::new()
    } else {
        format!(", with the packages {}", packages.join(", "))
    };
    Err(Error::usage(format!("the dataset has {} run in containers of the image {base}{packages}", repo.slug))
        .with_hint(
            "what is installed in an image is installed with the network on: if you trust whoever made the dataset, add \
             --containers",
        ))
}

fn integer(value: u64) -> toml::Value {
    toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn size(bytes: u64) -> toml::Value {
    toml::Value::String(units::format_size(bytes))
}

/// The section `[docker]`; zero means no limit.
fn docker(published: &Value) -> Table {
    let mut table = Table::new();
    if let Some(base) = published["base"].as_str() {
        table.insert("base".to_owned(), toml::Value::String(base.to_owned()));
    }
    if let Some(bytes) = published["memory"].as_u64().filter(|bytes| *bytes > 0) {
        table.insert("memory".to_owned(), size(bytes));
    }
    if let Some(milli) = published["milli_cpus"].as_u64().filter(|milli| *milli > 0) {
        let cpus = f64::from(u32::try_from(milli).unwrap_or(u32::MAX)) / 1000.0;
        table.insert("cpus".to_owned(), toml::Value::Float(cpus));
    }
    table
}

/// A JSON value without its nulls.
fn plain(value: &Value) -> Result<toml::Value> {
    toml::Value::try_from(without_nulls(value))
        .map_err(|error| Error::usage("the dataset's configuration cannot be used").with_source(error))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Where a repository is.
#[derive(Clone, Copy)]
enum PublishedSource<'a> {
    Given(&'a str),
    /// Whatever the text has is replaced.
    Archived,
}

impl PublishedSource<'_> {
    /// The keys that say so.
    fn write(self, table: &mut Table) {
        let folder = table.remove("subdirectory");
        for key in ["git", "path", "pypi", "sha256"] {
            table.remove(key);
        }
        let (key, place, unknown) = match self {
            PublishedSource::Given(url) if url.contains("://") || url.contains('@') => {
                table.extend(folder.map(|folder| ("subdirectory".to_owned(), folder)));
                ("git", url.to_owned(), "allow_uncommitted")
            }
            PublishedSource::Given(path) => {
                let folder = folder.as_ref().and_then(toml::Value::as_str);
                let below = folder.map(|folder| format!("{}/{folder}", path.trim_end_matches('/')));
                ("path", below.unwrap_or_else(|| path.to_owned()), "submodules")
            }
            PublishedSource::Archived => ("path", "/".to_owned(), "submodules"),
        };
        table.remove(unknown);
        table.insert(key.to_owned(), toml::Value::String(place));
    }
}

fn repository(
    repo: &Value,
    place: Option<PublishedSource<'_>>,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<toml::Value> {
    let slug = repo["slug"].as_str().unwrap_or_default();
    let toml::Value::Table(mut table) = plain(repo)? else {
        return Err(Error::usage("the dataset's configuration has a repository that is not a table"));
    };
    // Tests from elsewhere are in the tree that a dataset has, and its tests are named one by one.
    for key in ["pair", "tests_from", "tests_at", "run_tests"] {
        table.remove(key);
    }
    // A place of the user's takes theirs: what they are is looked at before.
    for key in ["git", "path", "pypi", "sha256", "commit"] {
        if table.get(key).is_some_and(|value| !value.is_str()) {
            return Err(Error::usage(format!(
                "the dataset's configuration has a `{key}` of {slug} that is not a text"
            )));
        }
    }
    if table.get("system_packages").and_then(toml::Value::as_array).is_some_and(Vec::is_empty) {
        table.remove("system_packages");
    }
    if let Some(place) = place {
        place.write(&mut table);
    } else {
        let hidden = repo["git"].as_str().is_some_and(|url| !url.starts_with("https://"));
        if hidden || repo["path"].is_string() {
            return Err(Error::usage(format!("the dataset does not say where {slug} is on this machine"))
                .with_hint(format!("name it with --source {slug}=<path or URL of git>")));
        }
    }
    let entries = table.get_mut("entry").and_then(toml::Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
        reveal(entry, slug, variables)?;
    }
    reveal(&mut table, slug, variables)?;
    Ok(toml::Value::Table(table))
}

/// Puts the values that are not published into `env`.
fn reveal(table: &mut Table, slug: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<()> {
    let Some(toml::Value::Table(env)) = table.get_mut("env") else { return Ok(()) };
    for (name, value) in env.iter_mut().filter(|(_, value)| value.as_str() == Some(REDACTED)) {
        let known = variables(name).ok_or_else(|| {
            Error::usage(format!("the dataset does not publish the value of `{name}` of {slug}")).with_hint(
                format!("the tests see it: if they may, set it for this command and add --variable {name}"),
            )
        })?;
        *value = toml::Value::String(known);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const TEXT: &str = "\
[dataset]\nname = 'n'\nversion = '1'\n
[screen]\ncase_timeout = '7s'\n
[limits]\nfile_size = '3MiB'\nprocesses = 77\n
[docker]\nbase = 'some/base:1'\nmemory = '2GiB'\ncpus = 1.5\n
[[repo]]\nslug = 'a/b'\npypi = 'b==1.0'\nsha256 = '0000000000000000000000000000000000000000000000000000000000000000'\n\
python = '3.12'\nenv = {MODE = 'x'}\nbackend = 'docker'\nsystem_packages = ['libpq5']\n
[[repo]]\nslug = 'a/c'\ngit = 'https://example.org/c.git'\ncommit = '2ac89889f4cc330eabd50f295dcef02828522c69'\n";

    const NOWHERE: (&BTreeMap<RepoSlug, String>, &BTreeSet<RepoSlug>) = (&BTreeMap::new(), &BTreeSet::new());

    fn published(text: &str) -> Value {
        let config = config::parse(text, Path::new("/"), &|_, _| None).unwrap();
        config::public::to_public_json(&config)
    }

    fn both() -> BTreeSet<RepoSlug> {
        ["a/b", "a/c"].map(|slug| RepoSlug::new(slug).unwrap()).into()
    }

    #[test]
    fn only_what_is_asked_for_has_to_be_there() {
        let text = TEXT.replace("https://example.org/c.git", "file:///home/me/private.git");
        let first: BTreeSet<RepoSlug> = both().into_iter().take(1).collect();
        assert_eq!(from_published(&published(&text), &first, NOWHERE, &|_| None).unwrap().repos.len(), 1);
        let mut json = published(TEXT);
        json["repos"][1]["git"] = "file:///home/me/private.git".into();
        assert!(from_published(&json, &both(), NOWHERE, &|_| None).is_err(), "a place of the user's");
    }

    #[test]
    fn what_is_published_makes_the_same_environments() {
        let original = config::parse(TEXT, Path::new("/"), &|_, _| None).unwrap();
        let again = from_published(&published(TEXT), &both(), NOWHERE, &|_| None).unwrap();
        let mut repos = original.repos;
        let config::SourceSpec::Git { anonymous, .. } = &mut repos[1].source else { panic!("is git") };
        *anonymous = true;
        assert_eq!(
            (&again.limits, &again.screen, &again.docker, &again.repos),
            (&original.limits, &original.screen, &original.docker, &repos)
        );
    }

    #[test]
    fn what_the_dataset_names_gets_no_login_and_what_the_user_names_does() {
        let is_anonymous = |places: &BTreeMap<RepoSlug, String>| {
            let json = published(TEXT);
            let config = from_published(&json, &both(), (places, &BTreeSet::new()), &|_| None).unwrap();
            matches!(&config.repos[1].source, config::SourceSpec::Git { anonymous: true, .. })
        };
        assert!(is_anonymous(&BTreeMap::new()));
        let place = "https://me:pw@example.org/c.git".to_owned();
        assert!(!is_anonymous(&BTreeMap::from([(RepoSlug::new("a/c").unwrap(), place)])));
    }

    #[test]
    fn containers_are_the_users_choice() {
        let config = |text: &str| {
            let first: BTreeSet<RepoSlug> = both().into_iter().take(1).collect();
            from_published(&published(text), &first, NOWHERE, &|_| None).unwrap()
        };
        let error = refuse_containers(&config(TEXT)).unwrap_err();
        for words in ["a/b", "some/base:1", "libpq5"] {
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(error.hint().unwrap().contains("--containers"));
        let bare = TEXT.replace("system_packages = ['libpq5']\n", "");
        assert!(refuse_containers(&config(&bare)).is_err(), "the backend alone");
        let based = bare.replace("backend = 'docker'", "backend = 'docker'\nbase = 'other/base:2'");
        assert!(refuse_containers(&config(&based)).unwrap_err().to_string().contains("other/base:2"));
        refuse_containers(&config(&bare.replace("backend = 'docker'\n", ""))).unwrap();
    }

    #[test]
    fn settings_of_a_dataset_have_upper_bounds() {
        let first: BTreeSet<RepoSlug> = both().into_iter().take(1).collect();
        let read = |text: &str| from_published(&published(text), &first, NOWHERE, &|_| None);
        for (from, to, key) in [
            ("case_timeout = '7s'", "case_timeout = '61m'\ngroup_timeout = '2h'", "case_timeout"),
            ("case_timeout = '7s'", "case_timeout = '7s'\ngroup_timeout = '7h'", "group_timeout"),
            ("case_timeout = '7s'", "case_timeout = '7s'\ngroup_timeout = '90000000h'", "group_timeout"),
        ] {
            let error = read(&TEXT.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(key) && error.hint().is_some(), "{error}");
        }
        let wide = TEXT.replace(
            "file_size = '3MiB'\nprocesses = 77",
            "processes = 0\nfile_size = '4096GiB'\noutput = 0",
        );
        let limits = read(&wide).unwrap().limits;
        assert_eq!(
            (limits.processes, limits.file_size, limits.output),
            (MOST_PROCESSES, LARGEST_FILE, MOST_OUTPUT)
        );
        assert_eq!(read(TEXT).unwrap().limits.processes, 77);
    }

    #[test]
    fn what_is_not_published_is_asked_for_by_name() {
        let text = TEXT
            .replace("https://example.org/c.git", "file:///srv/secret/c.git")
            .replace("MODE = 'x'", "API_TOKEN = 'x'");
        let json = published(&text);
        let error = from_published(&json, &both(), NOWHERE, &|_| Some("y".into())).unwrap_err();
        assert!(error.to_string().contains("a/c"), "{error}");
        let archived = from_published(&json, &both(), (&BTreeMap::new(), &both()), &|_| Some("y".into()));
        assert!(matches!(archived.unwrap().repos[0].source, config::SourceSpec::Path { .. }));
        let places = BTreeMap::from([(RepoSlug::new("a/c").unwrap(), "file:///here/c.git".to_owned())]);
        let error = from_published(&json, &both(), (&places, &BTreeSet::new()), &|_| None).unwrap_err();
        assert!(error.to_string().contains("API_TOKEN"), "{error}");
        let again =
            from_published(&json, &both(), (&places, &BTreeSet::new()), &|_| Some("y".into())).unwrap();
        assert_eq!(again.repos[0].env["API_TOKEN"], "y");
        let config::SourceSpec::Git { url, .. } = &again.repos[1].source else { panic!("is git") };
        assert_eq!(url, "file:///here/c.git");
    }
}
