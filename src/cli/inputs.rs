//! Which configuration and which rules a command works with.

use std::path::{Path, PathBuf};

use super::{ConfigArguments, ConfigPlace};
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::rules::{self, RuleSet};

/// The configuration that is looked for where none is named.
const CONFIG: &str = "repos.toml";
/// The folder with rules that is looked for beside the configuration.
const RULES: &str = "filters";

/// Places of what the user wrote; nothing is read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inputs {
    /// None: the built-in one.
    config: Option<PathBuf>,
    config_is_named: bool,
    /// Besides the built-in ones.
    rules: Option<PathBuf>,
}

impl Inputs {
    /// What is named, else what is in the current folder and beside the configuration, else what is built in.
    pub(super) fn choose(arguments: &ConfigArguments) -> Self {
        Inputs::choose_in(Path::new("."), arguments.config.path(), arguments.rules.as_deref())
    }

    fn choose_in(here: &Path, config: Option<&Path>, rules: Option<&Path>) -> Self {
        let found = || Some(here.join(CONFIG)).filter(|path| path.is_file());
        let config_is_named = config.is_some();
        let config = config.map(Path::to_owned).or_else(found);
        let beside = || {
            let folder = config.as_ref()?.parent()?.join(RULES);
            folder.symlink_metadata().ok()?;
            // Folders of that name may hold anything; one that cannot be read as rules is reported when they are read.
            rules::rule_files(&folder).map_or(true, |files| !files.is_empty()).then_some(folder)
        };
        let rules = rules.map(Path::to_owned).or_else(beside);
        Inputs { config, config_is_named, rules }
    }

    /// Whether there is none of the user's.
    pub(super) fn are_built_in(&self) -> bool {
        self.config.is_none()
    }

    /// Where the configuration comes from, for the user.
    pub(super) fn describe_config(&self) -> String {
        match &self.config {
            Some(path) if self.config_is_named => path.display().to_string(),
            Some(path) => format!("{}, because none was named", path.display()),
            None => format!("the built-in one, because none was named and there is no {CONFIG} here"),
        }
    }

    /// Where the rules come from, for the user.
    pub(super) fn describe_rules(&self) -> String {
        match &self.rules {
            Some(folder) => format!("built in, and those of {}", folder.display()),
            None => "built in".to_owned(),
        }
    }

    /// Reads the configuration of a command that writes below `output`; `only` must name repositories of it.
    ///
    /// # Errors
    /// Usage errors: all problems of the file at once.
    pub(super) fn config(&self, only: &[RepoSlug], output: &Path) -> Result<Config> {
        let mut config = match &self.config {
            Some(path) => config::load(path, &resolve)?,
            None => config::parse(config::DEFAULT, Path::new("."), &resolve)
                .map_err(|problems| Error::internal(format!("the built-in repos.toml: {problems:?}")))?,
        };
        let known: Vec<&str> = config.repos.iter().map(|repo| repo.slug.as_str()).collect();
        refuse_unknown(only, &known)?;
        let schema = self.config.as_ref().map(|path| path.with_extension("schema.json"));
        let own = self.config.iter().chain(&schema).chain(&self.rules).map(PathBuf::as_path);
        config.apart =
            own.chain([output]).filter_map(|path| std::path::absolute(path).ok()).map(real_place).collect();
        Ok(config)
    }

    /// File name of the configuration, where it is not one that a later command finds by itself.
    pub(super) fn config_name(&self) -> Option<String> {
        let path = self.config.as_ref().filter(|_| self.config_is_named)?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    }

    /// Reads the rules in force.
    ///
    /// # Errors
    /// Usage errors: all problems of all rule files at once.
    pub(super) fn rules(&self) -> Result<RuleSet> {
        match &self.rules {
            Some(folder) => RuleSet::shipped().with_folder(folder),
            None => Ok(RuleSet::shipped()),
        }
    }
}

/// A path whose folder is named without links; what it names itself need not exist.
fn real_place(path: PathBuf) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, fs_err::canonicalize(above).ok()?)));
    let real = existing.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    real.unwrap_or(path)
}

/// The configuration that a command changes: the named one, else the one in the current folder.
///
/// # Errors
/// A usage error when there is none.
pub(super) fn file(named: &ConfigPlace) -> Result<PathBuf> {
    match named.path() {
        Some(path) => Ok(path.to_owned()),
        None if Path::new(CONFIG).is_file() => Ok(PathBuf::from(CONFIG)),
        None => Err(Error::usage(format!("there is no {CONFIG} here"))
            .with_hint("name the configuration, or write one with `gistmill init`")),
    }
}

/// What a branch, a tag or a short hash means now, where the repository can be reached.
pub(super) fn resolve(url: &str, reference: &str) -> Option<String> {
    crate::source::resolve_reference(url, reference).ok().flatten()
}

/// Refuses a repository that `--only` names and the config does not have.
///
/// # Errors
/// A usage error that names those it has.
pub(super) fn refuse_unknown(only: &[RepoSlug], known: &[&str]) -> Result<()> {
    match only.iter().find(|slug| !known.contains(&slug.as_str())) {
        Some(slug) => Err(Error::usage(format!("--only {slug}: the config has no such repository"))
            .with_hint(format!("it has {}", known.join(", ")))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_here_is_used_when_nothing_is_named() {
        let here = tempfile::tempdir().unwrap();
        let choose = || Inputs::choose_in(here.path(), None, None);
        assert!(choose().describe_config().starts_with("the built-in one, because"));
        assert_eq!(choose().describe_rules(), "built in");
        fs_err::write(here.path().join(CONFIG), "").unwrap();
        assert!(choose().describe_config().ends_with("repos.toml, because none was named"));
        // A folder without a rule file is somebody else's.
        fs_err::create_dir(here.path().join(RULES)).unwrap();
        fs_err::write(here.path().join(RULES).join("__init__.py"), "").unwrap();
        assert_eq!(choose().rules, None);
        fs_err::write(here.path().join(RULES).join("a.toml"), "").unwrap();
        assert_eq!(choose().rules, Some(here.path().join(RULES)));
        assert!(choose().rules().is_err());
    }

    #[test]
    fn what_is_named_comes_first_and_rules_lie_beside_the_config_that_is_used() {
        let here = tempfile::tempdir().unwrap();
        let (one, other) = (here.path().join("one"), here.path().join("other"));
        for folder in [&one, &other] {
            fs_err::create_dir_all(folder.join(RULES)).unwrap();
            fs_err::write(folder.join(CONFIG), "").unwrap();
            fs_err::write(folder.join(RULES).join("a.toml"), "").unwrap();
        }
        let named = Inputs::choose_in(&one, Some(&other.join(CONFIG)), None);
        assert_eq!(named.config, Some(other.join(CONFIG)));
        assert_eq!(named.rules, Some(other.join(RULES)));
        assert_eq!(named.describe_config(), other.join(CONFIG).display().to_string());
        let mine = Inputs::choose_in(&one, None, Some(Path::new("mine")));
        assert_eq!(mine.rules, Some(PathBuf::from("mine")));
        assert_eq!(mine.config, Some(one.join(CONFIG)));
    }
}
