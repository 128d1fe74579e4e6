//! A page in Chromium: what people see, used as they would use it, by a script of `tests/page`.

use std::path::{Path, PathBuf};

/// Runs a script of `tests/page` on a page and gives back what it measured.
///
/// # Panics
/// When the script finds something wrong, when `GISTMILL_TEST_PYTHON` names no Python, and where there is no Chromium. With
/// `GISTMILL_TEST_SCREENSHOTS` the pictures and the page stay in a folder of this name below that one.
pub(crate) fn check(script: &str, page: &Path, name: &str) -> serde_json::Value {
    let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
    let folder = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("GISTMILL_TEST_SCREENSHOTS").map(PathBuf::from);
    let shots = shots.unwrap_or_else(|| folder.path().to_owned()).join(name);
    fs_err::create_dir_all(&shots).unwrap();
    fs_err::copy(page, shots.join("report.html")).unwrap();
    let output = std::process::Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page").join(script))
        .args([page, &shots, &chromium()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&output.stderr));
    println!("{name}: {said}");
    serde_json::from_str(said.trim()).unwrap()
}

fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    let mut programs = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    programs.find(|program| program.is_file()).expect("chromium or google-chrome is on PATH")
}
