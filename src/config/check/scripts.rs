//! `run_tests` of a `[[pair]]`: a folder of scripts that run its suite in an image of the user's.

use std::path::Path;

use super::Field;
use super::checker::Checker;
use crate::beneath::{Entry, Folder, Kind};
use crate::config::raw::RawPair;
use crate::config::{BackendKind, Repo};
use crate::error::{Error, Result};
use crate::record::codetaste::{RUN_TESTS, Scripts};
use crate::record::trace::check_path;
use crate::redact::quote;

/// Most files, and most bytes of all of them together.
const MOST_FILES: usize = 1000;
const MOST_BYTES: u64 = 16 << 20;

/// The scripts of a pair, and its repository with nothing of Python; without the key both as they are.
pub(super) fn of(
    pair: &RawPair<'_>,
    repo: Repo,
    docker_base: &Field<&str>,
    checker: &mut Checker<'_, '_>,
) -> (Scripts, Repo) {
    let Field::Given(folder) = &pair.run_tests else { return (Scripts::new(), repo) };
    let mut refuse = |at: usize, message: String, hint: &str| {
        checker.problems.add(at, message, Some(hint.to_owned()));
    };
    if repo.backend != BackendKind::Docker {
        let hint = "add backend = \"docker\" and `base`, an image that has what the suite needs";
        refuse(folder.at, "`run_tests` goes with the Docker backend alone".to_owned(), hint);
    } else if repo.base.is_none() && !docker_base.is_present() {
        let hint =
            "add `base` to the pair, to its [[repo]] or to [docker]: an image that has what the suite needs";
        refuse(folder.at, "`run_tests` needs an image of yours".to_owned(), hint);
    }
    for (key, at) in of_python(pair) {
        let hint = "leave one of them out: the image has what is installed, and the script knows the tests";
        refuse(at, format!("`{key}` does not go with `run_tests`"), hint);
    }
    let scripts = read(checker.base, folder.value).unwrap_or_else(|error| {
        let hint = "name a folder beside the configuration with an executable `run_tests` and what it needs";
        refuse(folder.at, format!("run_tests {}: {error}", quote(folder.value)), hint);
        Scripts::new()
    });
    let repo = Repo {
        is_scripted: true,
        python: None,
        groups: None,
        extras: None,
        requirements: None,
        tests: None,
        exclude_newer: None,
        ..repo
    };
    (scripts, repo)
}

/// Keys of the pair that say what is installed, or what pytest is given.
fn of_python(pair: &RawPair<'_>) -> Vec<(&'static str, usize)> {
    fn at<T: Clone>(field: &Field<T>) -> Option<usize> {
        field.clone().given().map(|given| given.at)
    }
    let own = &pair.own;
    let all = [
        ("python", at(&own.python)),
        ("groups", at(&own.groups)),
        ("extras", at(&own.extras)),
        ("requirements", at(&own.requirements)),
        ("tests", at(&own.tests)),
        ("exclude_newer", at(&own.exclude_newer)),
    ];
    all.into_iter().filter_map(|(key, at)| Some((key, at?))).collect()
}

/// The files of a folder below another one.
fn read(base: &Path, folder: &str) -> Result<Scripts> {
    check_path(folder).map_err(|_| Error::usage("is not a folder beside the configuration"))?;
    let folder = Folder::open(&base.join(folder))?;
    let (mut scripts, mut left) = (Scripts::new(), MOST_BYTES);
    let mut is_executable = false;
    for Entry { path, kind, mode, .. } in folder.walk()? {
        let name = path.to_str().map(str::to_owned);
        match (kind, name) {
            (Kind::Folder, _) => {}
            (Kind::File, Some(name)) => {
                let bytes = folder.read(&path, left)?;
                left = left.saturating_sub(bytes.len() as u64);
                is_executable |= name == RUN_TESTS && mode & 0o100 != 0;
                scripts.insert(name, bytes);
            }
            _ => return Err(Error::usage(format!("{} is not a plain file", path.display()))),
        }
    }
    if scripts.len() > MOST_FILES {
        return Err(Error::usage(format!("it has more than {MOST_FILES} files")));
    }
    if !scripts.contains_key(RUN_TESTS) {
        return Err(Error::usage("it has no file `run_tests`"));
    }
    if !is_executable {
        return Err(Error::usage("its file `run_tests` is not executable"));
    }
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use crate::config::{self, public, published};

    const TEXT: &str = "\
[dataset]\nfamily = 'codetaste'\nname = 'n'\nversion = '1'\n[codetaste]\nsuite_timeout = '7m'\n\
[docker]\nbase = 'image:1'\n[[repo]]\nslug = 'a/b'\ngit = 'https://host/a/b'\ntests = ['t']\npython = '3.12'\n\
[[pair]]\nrepo = 'a/b'\ngolden = '2ac89889f4cc330eabd50f295dcef02828522c69'\n\
commit = '1ac89889f4cc330eabd50f295dcef02828522c69'\nbackend = 'docker'\nrun_tests = 'here/one'\n\
[[pair]]\nrepo = 'a/b'\ngolden = '3ac89889f4cc330eabd50f295dcef02828522c69'\n\
commit = '0ac89889f4cc330eabd50f295dcef02828522c69'\n";

    #[test]
    fn scripts_are_read_and_their_pair_has_nothing_of_python() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = folder.path().join("here/one");
        fs_err::create_dir_all(scripts.join("lib")).unwrap();
        fs_err::write(scripts.join("run_tests"), "#!/bin/sh\n").unwrap();
        fs_err::write(scripts.join("lib/more"), [0, 255]).unwrap();
        fs_err::set_permissions(scripts.join("run_tests"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = config::parse(TEXT, folder.path(), &|_, _| None).unwrap();
        let [scripted, other] = &config.repos[..] else { panic!("two pairs") };
        let read = &scripted.pair.as_ref().unwrap().scripts;
        assert_eq!(read.keys().collect::<Vec<_>>(), ["lib/more", "run_tests"]);
        assert_eq!((scripted.is_scripted, &scripted.tests, &scripted.python), (true, &None, &None));
        assert!(!other.is_scripted && other.pair.as_ref().unwrap().scripts.is_empty());
        assert_eq!((other.tests.is_some(), other.python.is_some()), (true, true));

        let json = public::to_public_json(&config);
        assert!(json["repos"][0]["run_tests"].as_str().unwrap().starts_with("sha256:"), "{json:#}");
        assert!(json["repos"][1].get("run_tests").is_none());
        let slugs: BTreeSet<_> = config.repos.iter().map(|repo| repo.slug.clone()).collect();
        let nowhere = (&BTreeMap::new(), &BTreeSet::new());
        let read = |json| published::from_published(json, &slugs, nowhere, &|_| None);
        let again = read(&json).unwrap();
        assert_eq!(again.repos.iter().map(|repo| repo.is_scripted).collect::<Vec<_>>(), [true, false]);
        assert_eq!(again.codetaste.suite_timeout, Duration::from_mins(7));
        let mut long = json.clone();
        long["codetaste"]["suite_timeout"]["secs"] = (7 * 3600).into();
        assert!(read(&long).unwrap_err().to_string().contains("suite_timeout"));
    }
}
