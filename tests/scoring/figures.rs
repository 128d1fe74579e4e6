//! The two submissions that the Gistify paper prints, against the numbers that it prints beside them.

use std::collections::BTreeSet;
use std::path::Path;

use gistmill::family::gistify;
use gistmill::family::gistify::{Corpus, TestName};
use gistmill::score::{File, Modules, Ratio};
use libtest_mimic::{Failed, Trial};
use walkdir::WalkDir;

use crate::{agree, needing};

const TEST: &str = "test_discover_package_path_source_root_as_parent";
const TEST_FILE: &str = "tests/pyreverse/test_main.py";
/// Lines of figure 9 with a line event under pytest.
const EVENTS: [u32; 23] =
    [5, 7, 8, 9, 11, 13, 15, 16, 20, 21, 22, 23, 35, 36, 37, 38, 40, 50, 51, 52, 53, 56, 57];

pub fn trials() -> Vec<Trial> {
    vec![needing("GISTMILL_TEST_FIGURES", "figures 9 and 10 have the numbers that are printed", |folder| {
        figures(Path::new(&folder))
    })]
}

fn figures(folder: &Path) -> Result<(), Failed> {
    let nine = std::fs::read_to_string(folder.join("figure-9.py"))?;
    let ten = std::fs::read_to_string(folder.join("figure-10.py"))?;
    let files = python_files(&folder.join("pylint"))?;
    let modules: Modules = ["pylint", "pylint.lint"].into_iter().collect();
    let files: Vec<_> = files.iter().map(|(path, text)| File { path, text }).collect();
    let corpus = Corpus::of(&files, modules.clone());
    let original = *files.iter().find(|file| file.path == TEST_FILE).ok_or("the test file is not there")?;
    let Ok(test) = TEST.parse::<TestName>();
    for (name, text, existence, f1) in [
        ("figure 9", &nine, Ratio { part: 25, whole: 25 }, 1.0),
        ("figure 10", &ten, Ratio { part: 7, whole: 25 }, 0.0),
    ] {
        agree(name, corpus.line_existence(text).map_err(|why| format!("{why:?}"))?.rate, existence)?;
        let overlap =
            gistify::test_overlap(text, original, &test, &modules).map_err(|why| format!("{why:?}"))?;
        agree(name, overlap.map(gistify::Overlap::f1), Some(f1))?;
    }
    let got = gistify::line_execution(&nine, &BTreeSet::from(EVENTS)).map_err(|why| format!("{why:?}"))?;
    agree("figure 9, statements", got.statements, Ratio { part: 19, whole: 29 })?;
    agree("figure 9, lines", got.rate, Ratio { part: 14, whole: 19 })
}

/// Path and text of every Python file that is UTF-8.
fn python_files(folder: &Path) -> Result<Vec<(String, String)>, Failed> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() && entry.path().extension().is_some_and(|ending| ending == "py") {
            let path = entry.path().strip_prefix(folder)?.to_string_lossy().into_owned();
            files.extend(std::fs::read_to_string(entry.path()).ok().map(|text| (path, text)));
        }
    }
    Ok(files)
}
