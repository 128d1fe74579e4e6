//! Byte code of an environment and its tree, so that no run has to compile. The driver's own: what a build or a test run left
//! of it is never taken.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::step::OUT;
use super::tooling::Tooling;
use crate::backend::{Mount, retry};
use crate::beneath::{Folder, Kind};
use crate::environment::plan::failure::StepResult;
use crate::error::{Error, Result};

/// The script that has pytest rewrite test files.
const REWRITE: &str = include_str!("rewrite.py");
const SHORT_LIMIT: Duration = Duration::from_mins(10);
/// Byte code of one file, in bytes.
const LARGEST: u64 = 64 << 20;

/// Compiles byte code of an environment and its tree, under the paths that runs see. Nothing of either is run: the bare
/// interpreter reads them. Files that do not compile are the tests' business.
pub(in crate::environment) fn compile(tooling: &Tooling, venv: &Path, tree: &Path) -> StepResult<()> {
    let places = tooling.backend.places();
    let python = tooling.python.executable.to_string_lossy().into_owned();
    let mut argv: Vec<String> =
        [&python, "-I", "-S", "-m", "compileall", "-qq", "-f", "-j", "0"].map(str::to_owned).into();
    argv.extend(
        [places.venv.join("lib"), places.root.clone()].map(|path| path.to_string_lossy().into_owned()),
    );
    let mounts = vec![
        Mount::Writable { host: venv.to_owned(), inside: places.venv.clone() },
        Mount::Writable { host: tree.to_owned(), inside: places.root.clone() },
    ];
    let step = tooling.step()?;
    let mut job = tooling.job(argv, &step, mounts);
    job.env.remove("PYTHONDONTWRITEBYTECODE");
    let finished = retry::run(&*tooling.backend, &job, SHORT_LIMIT)?;
    if finished.timed_out {
        return Err(Error::harness("compiling byte code took too long").into());
    }
    // Exit code 1 means that some file does not compile; a traceback means that compiling itself broke.
    if finished.stderr.contains("Traceback (most recent call last)") {
        let detail = tooling.hosts.tail(&finished.stderr);
        return Err(Error::harness("compiling byte code broke off").with_detail(detail).into());
    }
    Ok(())
}

/// Files of a tree that pytest takes for tests unless it is told otherwise: paths below the root, as text.
///
/// # Errors
/// IO errors.
pub(in crate::environment) fn likely_tests(tree: &Path) -> Result<Vec<String>> {
    let is_test = |name: &str| {
        let stem = name.strip_suffix(".py").unwrap_or_default();
        stem.starts_with("test_") || stem.ends_with("_test")
    };
    let entries = Folder::open(tree)?.walk()?.into_iter().filter(|entry| entry.kind == Kind::File);
    let paths = entries.filter_map(|entry| entry.path.to_str().map(str::to_owned));
    Ok(paths.filter(|path| is_test(path.rsplit('/').next().unwrap_or_default())).collect())
}

/// Removes what [`rewrite`] made.
///
/// # Errors
/// IO errors.
pub(in crate::environment) fn forget_tests(tree: &Path) -> Result<()> {
    for entry in Folder::open(tree)?.walk()? {
        if entry.kind == Kind::File && source_of(&entry.path).is_some() {
            fs_err::remove_file(tree.join(&entry.path))?;
        }
    }
    Ok(())
}

/// Compiles test files as pytest does, with their assertions rewritten, by the pytest of the environment. Nothing of the
/// tree is run. What cannot be had is left to each run, which is slower and comes to the same.
pub(in crate::environment) fn rewrite(
    tooling: &Tooling,
    venv: &Path,
    tree: &Path,
    files: &[String],
) -> Result<()> {
    let places = tooling.backend.places();
    let step = tooling.step()?;
    let script = step.give("rewrite.py", REWRITE)?;
    let site = places.venv.join(format!("lib/python{}/site-packages", tooling.python.minor()));
    let spec = serde_json::json!({"root": places.root, "site": site, "files": files, "out": OUT});
    let spec = step.give("spec.json", &spec.to_string())?;
    let python = tooling.python.executable.to_string_lossy().into_owned();
    let argv = [&python, "-I", "-S", &script, &spec].map(str::to_owned).into();
    let mounts = vec![
        Mount::ReadOnly { host: venv.to_owned(), inside: places.venv.clone() },
        Mount::ReadOnly { host: tree.to_owned(), inside: places.root.clone() },
    ];
    let finished = retry::run(&*tooling.backend, &tooling.job(argv, &step, mounts), SHORT_LIMIT)?;
    if finished.success() { take(&step.out()?, tree) } else { Ok(()) }
}

/// Puts byte code beside the files that it is of.
fn take(out: &Folder, tree: &Path) -> Result<()> {
    let beneath = Folder::open(tree)?;
    for entry in out.walk()? {
        let Some(source) = source_of(&entry.path) else { continue };
        // Neither a link nor a folder that leads elsewhere: the tree's own file.
        if entry.kind != Kind::File || entry.size > LARGEST || beneath.open_file(&source).is_err() {
            continue;
        }
        let mut code = Vec::new();
        let from = out.open_file(&entry.path)?;
        from.take(LARGEST)
            .read_to_end(&mut code)
            .map_err(|error| Error::from(error).at(entry.path.display()))?;
        let Some(target) = place_for(tree, &entry.path) else { continue };
        if let Ok(mut file) = fs_err::OpenOptions::new().write(true).create_new(true).open(&target) {
            file.write_all(&code)?;
        }
    }
    Ok(())
}

/// Where a file is put in the tree, with its folder made; none where a link or anything else is on the way.
fn place_for(tree: &Path, relative: &Path) -> Option<PathBuf> {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut folder = tree.to_owned();
    for part in relative.parent()?.components() {
        folder.push(part);
        if !is_folder(&folder) && fs_err::create_dir(&folder).is_err() {
            return None;
        }
    }
    Some(tree.join(relative))
}

/// `a/test_b.py` of `a/__pycache__/test_b.cpython-312-pytest-9.0.2.pyc`; none for any other name.
fn source_of(code: &Path) -> Option<PathBuf> {
    let name = code.file_name()?.to_str()?.strip_suffix(".pyc")?;
    let (stem, tag) = name.split_once(".cpython-")?;
    let folder = code.parent()?;
    let plain = tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
    (tag.contains("-pytest-") && plain && folder.file_name()? == "__pycache__")
        .then(|| folder.parent().unwrap_or(Path::new("")).join(format!("{stem}.py")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_pytest_takes_for_tests_is_found_and_what_was_made_of_it_forgotten() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path();
        fs_err::create_dir_all(tree.join("t/__pycache__")).unwrap();
        let code = "t/__pycache__/test_a.cpython-312-pytest-9.0.2.pyc";
        let plain = "t/__pycache__/test_a.cpython-312.pyc";
        for name in ["test_top.py", "t/test_a.py", "t/b_test.py", "t/testing.py", "t/test_c.txt", code, plain]
        {
            fs_err::write(tree.join(name), "").unwrap();
        }
        symlink("test_a.py", tree.join("t/test_link.py")).unwrap();
        let mut found = likely_tests(tree).unwrap();
        found.sort();
        assert_eq!(found, ["t/b_test.py", "t/test_a.py", "test_top.py"]);
        forget_tests(tree).unwrap();
        assert!(!tree.join(code).exists() && tree.join(plain).exists());
    }

    #[test]
    fn only_byte_code_of_files_of_the_tree_is_taken() {
        let scratch = tempfile::tempdir().unwrap();
        let (out, tree, victim) =
            (scratch.path().join("out"), scratch.path().join("tree"), scratch.path().join("victim"));
        for folder in [&out, &tree, &victim] {
            fs_err::create_dir_all(folder.join("t/__pycache__")).unwrap();
        }
        fs_err::write(tree.join("t/test_a.py"), "").unwrap();
        // The folder of byte code itself may be a link, to a folder or to nothing.
        for (folder, target) in [("linked", victim.as_path()), ("dangling", Path::new("/nowhere"))] {
            fs_err::create_dir_all(tree.join(folder)).unwrap();
            fs_err::write(tree.join(folder).join("test_l.py"), "").unwrap();
            symlink(target, tree.join(folder).join("__pycache__")).unwrap();
            fs_err::create_dir_all(out.join(folder).join("__pycache__")).unwrap();
        }
        fs_err::write(victim.join("test_v.py"), "").unwrap();
        symlink(&victim, tree.join("away")).unwrap();
        fs_err::create_dir_all(out.join("away/__pycache__")).unwrap();
        for name in [
            "t/__pycache__/test_a.cpython-312-pytest-9.0.2.pyc",
            "t/__pycache__/test_b.cpython-312-pytest-9.0.2.pyc",
            "t/__pycache__/test_a.cpython-312.pyc",
            "t/planted.py",
            "away/__pycache__/test_v.cpython-312-pytest-9.0.2.pyc",
            "linked/__pycache__/test_l.cpython-312-pytest-9.0.2.pyc",
            "dangling/__pycache__/test_l.cpython-312-pytest-9.0.2.pyc",
        ] {
            fs_err::write(out.join(name), "code").unwrap();
        }
        take(&Folder::open(&out).unwrap(), &tree).unwrap();
        let names: Vec<_> = fs_err::read_dir(tree.join("t/__pycache__"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, ["test_a.cpython-312-pytest-9.0.2.pyc"]);
        assert!(!tree.join("t/planted.py").exists() && !victim.join("__pycache__").exists());
        assert_eq!(fs_err::read_dir(&victim).unwrap().count(), 2, "the victim's own");
    }
}
