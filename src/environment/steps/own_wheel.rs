//! Wheels that a build made of the tree, looked over before they are installed: see `own_wheel.py`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::precedence::{Importable, Listing};
use super::step::OUT;
use super::taken::{answer, take_wheel};
use super::tooling::Tooling;
use super::wheel::Wheel;
use crate::backend::Mount;
use crate::beneath::Folder;
use crate::environment::plan::failure::StepResult;

const SCRIPT: &str = include_str!("own_wheel.py");
const LIMIT: Duration = Duration::from_mins(10);
/// The build environment, of which texts are read.
const BUILD: &str = "/opt/build";
const LARGEST_RECORD: u64 = 64 << 20;

/// The pinned tree that a wheel was made of.
#[derive(Debug, Clone, Copy)]
pub(in crate::environment) struct Pinned<'a> {
    pub listing: &'a Listing,
    pub importable: &'a Importable,
    /// Where its packages are, as seen inside.
    pub source_root: &'a Path,
}

#[derive(Debug, Deserialize)]
struct Looked {
    why: Option<String>,
}

/// The wheel as it is; or, with a note, one that puts the source root on the path, where it would run code at each start or
/// has something that an import finds before what is pinned. A build that `compiles` Python may bring compiled modules of
/// the names of pinned ones.
pub(in crate::environment) fn look_over(
    tooling: &Tooling,
    wheel: Wheel,
    venv: &Path,
    pinned: Pinned<'_>,
    compiles: bool,
) -> StepResult<(Wheel, Option<String>)> {
    let step = tooling.step()?;
    let script = step.give("own_wheel.py", SCRIPT)?;
    let mut places: Vec<&Path> =
        pinned.listing.keys().flat_map(|path| path.ancestors()).collect::<Vec<&Path>>();
    places.sort_unstable();
    places.dedup();
    let text = |path: &&Path| path.to_str().map(str::to_owned);
    let spec = serde_json::json!({
        "wheel": step.give_file(&wheel.filename, &wheel.file)?,
        "root": tooling.backend.places().root,
        "source_root": pinned.source_root,
        "build": format!("{BUILD}/lib/python{}/site-packages", tooling.python.minor()),
        "names": pinned.importable.all_names().filter_map(Path::to_str).collect::<Vec<_>>(),
        "pinned": places.iter().filter_map(text).collect::<Vec<_>>(),
        "contents": pinned.listing.values().collect::<Vec<_>>(),
        "compiles": compiles,
    });
    let spec = step.give("spec.json", &spec.to_string())?;
    let python = tooling.python.executable.to_string_lossy().into_owned();
    let argv = [&python, "-I", "-S", &script, &spec, OUT].map(str::to_owned).into();
    let mounts = vec![Mount::ReadOnly { host: venv.to_owned(), inside: BUILD.into() }];
    let stage = "looking the wheel of the tree over";
    tooling.run(stage, &tooling.job(argv, &step, mounts), LIMIT)?;
    let looked: Looked = answer(&step, stage)?;
    let Some(why) = looked.why else { return Ok((wheel, None)) };
    let wheel = take_wheel(&step, &tooling.folder.join("wheels"), stage)?;
    Ok((wheel, Some(format!("the wheel of the tree is not installed as it was built: {why}"))))
}

/// Something that a wheel of the tree put where another distribution has a module of that name.
pub(in crate::environment) fn shadowing(venv: &Path, own: &[Wheel]) -> Option<PathBuf> {
    let versions = fs_err::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let sites = versions.map(|version| version.path().join("site-packages"));
    sites.into_iter().find_map(|site| shadowing_in(&Folder::open(&site).ok()?, own))
}

fn shadowing_in(site: &Folder, own: &[Wheel]) -> Option<PathBuf> {
    let (mut ours, mut others) = (Vec::new(), std::collections::BTreeSet::new());
    for entry in site.walk().ok()? {
        let info = entry.path.parent().and_then(Path::to_str).unwrap_or_default();
        let Some(stem) = info.strip_suffix(".dist-info").filter(|_| entry.path.ends_with("RECORD")) else {
            continue;
        };
        let text = site.read(&entry.path, LARGEST_RECORD).ok()?;
        let names = String::from_utf8_lossy(&text).into_owned();
        let names = names.lines().filter_map(top).collect::<Vec<String>>();
        let name = crate::requirement::normalize(stem.split('-').next().unwrap_or_default());
        if own.iter().any(|wheel| wheel.name == name) { ours.extend(names) } else { others.extend(names) }
    }
    ours.into_iter().find(|name| others.contains(name)).map(PathBuf::from)
}

/// The module or package at the top that a line of a RECORD names a file of.
fn top(line: &str) -> Option<String> {
    let (path, rest) = line.split_once(',')?;
    let name = path.split(['/', '.']).next().filter(|name| !name.is_empty() && !rest.is_empty())?;
    let is_module = path.contains('/') || path.ends_with(".py") || path.ends_with(".so");
    (is_module && !path.split('/').next()?.ends_with("-info") && name != "__pycache__")
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a wheel of each case and runs the script on it; prints why it is not taken, by line.
    const CASES: &str = r#"
import json, os, subprocess, sys, zipfile
spec = json.load(sys.stdin)
for number, files in enumerate(spec.pop("cases")):
    spec["wheel"] = wheel = os.path.join(sys.argv[2], "%d.whl" % number)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, "a-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: a\nVersion: 1\n"}.items():
            archive.writestr(name, text)
    with open(wheel + ".json", "w") as file:
        json.dump(spec, file)
    subprocess.run([sys.executable, "-I", "-S", sys.argv[1], wheel + ".json", sys.argv[2]], check=True)
    with open(os.path.join(sys.argv[2], "answer.json")) as file:
        print(json.dumps(json.load(file)["why"]))
"#;

    /// Why each of these wheels is not taken as it is.
    fn looked_over(cases: &[serde_json::Value]) -> Vec<Option<String>> {
        let folder = tempfile::tempdir().unwrap();
        let (script, build) = (folder.path().join("own_wheel.py"), folder.path().join("build"));
        fs_err::write(&script, SCRIPT).unwrap();
        fs_err::create_dir_all(build.join("setuptools/command")).unwrap();
        fs_err::write(build.join("setuptools/command/editable_wheel.py"), FINDER).unwrap();
        let pinned: Vec<PathBuf> =
            ["src/pkg/__init__.py", "src/pkg/core.py", "top.py", "tests/test_a.py"].map(PathBuf::from).into();
        let importable = Importable::of(pinned.iter());
        let mut places: Vec<&str> =
            pinned.iter().flat_map(|path| path.ancestors()).filter_map(Path::to_str).collect();
        places.dedup();
        let spec = serde_json::json!({
            "cases": cases,
            "root": "/testbed",
            "source_root": "/testbed/src",
            "build": build,
            "names": importable.all_names().filter_map(Path::to_str).collect::<Vec<_>>(),
            "pinned": places,
            "contents": [crate::record::id::sha256_hex(b"pinned")],
            "compiles": false,
        });
        let mut python = std::process::Command::new("python3")
            .args(["-c", CASES])
            .args([&script, folder.path()])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut python.stdin.take().unwrap(), spec.to_string().as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    const FINDER: &str = r#"
_FINDER_TEMPLATE = """\
from __future__ import annotations
import sys
MAPPING: dict[str, str] = {mapping!r}
PATH_PLACEHOLDER = {name!r} + ".__path_hook__"
def install():
    sys.meta_path.append({{}})
"""
"#;
    const MADE: &str = "from __future__ import annotations\nimport sys\nMAPPING: dict[str, str] = {'pkg': 'AT'}\n\
                        PATH_PLACEHOLDER = 'x' + \".__path_hook__\"\ndef install():\n    sys.meta_path.append({})\n";
    const STARTED: &str = "import _finder; _finder.install()\n";

    #[test]
    fn what_build_backends_put_into_editable_wheels_is_taken() {
        let finder = MADE.replace("'AT'", "'/testbed/src/pkg'");
        let redirector = "from editables.redirector import RedirectingFinder as F\nF.install()\n\
                          F.map_module('pkg', '/testbed/src/pkg/__init__.py')\n";
        let cases = [
            serde_json::json!({"a.pth": "# A comment\n\n/testbed/src\n/testbed\n"}),
            serde_json::json!({"_finder.py": finder, "a.pth": STARTED}),
            serde_json::json!({"_finder.py": redirector, "a.pth": "import _finder"}),
            serde_json::json!({"rusty/__init__.py": "from .rusty import *", "rusty/rusty.abi3.so": "x"}),
            serde_json::json!({"pkg/_version.py": "x", "pkg/_core.so": "x", "pkg/table.csv": "x"}),
            serde_json::json!({"pkg/core.py": "pinned"}),
            serde_json::json!({"a-1.dist-info/entry_points.txt": "[pytest11]\na = pkg.core\n[console_scripts]\nb = pkg:main\n"}),
            serde_json::json!({"a-1.data/scripts/tool": "x", "a-1.data/data/share/a": "x", "a-1.data/headers/a.h": "x"}),
        ];
        assert_eq!(looked_over(&cases), vec![None; cases.len()]);
    }

    #[test]
    fn what_runs_at_each_start_or_is_found_before_what_is_pinned_is_not_taken() {
        let moved = MADE.replace("'AT'", "'/testbed/build/pkg'");
        let changed = MADE.replace("'AT'", "'/testbed/src/pkg'") + "import os\n";
        let called = MADE.replace("'AT'", "'/testbed/src/pkg'") + "install([print()])\n";
        let cases = [
            serde_json::json!({"a.pth": "import os; os.system('x')\n"}),
            serde_json::json!({"a.pth": "import\tsys\n"}),
            serde_json::json!({"a.start": "evil:main\n"}),
            serde_json::json!({"_finder.py": MADE.replace("'pkg': 'AT'", "'pluggy': '/testbed/build/pluggy'"), "a.pth": STARTED}),
            serde_json::json!({"a-1.data/purelib/a.pth": "import sys\n"}),
            serde_json::json!({"a.pth": "import evil\n", "evil.py": "print()"}),
            serde_json::json!({"_finder.py": moved, "a.pth": STARTED}),
            serde_json::json!({"_finder.py": changed, "a.pth": STARTED}),
            serde_json::json!({"_finder.py": called, "a.pth": STARTED}),
            serde_json::json!({"a.pth": "/testbed/build\n"}),
            serde_json::json!({"a.pth": "/testbed/src/../../tmp\n"}),
            serde_json::json!({"a.pth": "build\n"}),
            serde_json::json!({"pkg/core.py": "x"}),
            serde_json::json!({"pkg/__init__.py": "x"}),
            serde_json::json!({"pkg/core.cpython-312-x86_64-linux-gnu.so": "x"}),
            serde_json::json!({"top.pyc": "x"}),
            serde_json::json!({"other.py": "x"}),
            serde_json::json!({"sitecustomize.so": "x"}),
            serde_json::json!({"a-1.data/platlib/top.py": "x"}),
            serde_json::json!({"a-1.data/data/lib/python3/site-packages/x.pth": "x"}),
            serde_json::json!({"a-1.data/scripts/python3": "x"}),
            serde_json::json!({"evil/a.so": "x", "a-1.dist-info/entry_points.txt": "[pytest11]\na = evil.a\n"}),
            serde_json::json!({"a-1.dist-info/entry_points.txt": "no section"}),
        ];
        let whys = looked_over(&cases);
        let taken: Vec<_> = cases.iter().zip(&whys).filter(|(_, why)| why.is_none()).collect();
        assert!(taken.is_empty(), "{taken:#?}");
    }

    #[test]
    fn what_a_wheel_of_the_tree_puts_over_another_distribution_is_found() {
        let venv = tempfile::tempdir().unwrap();
        let site = venv.path().join("lib/python3.12/site-packages");
        let wheel = Wheel {
            method: "editable".to_owned(),
            filename: "own_tree-1-py3-none-any.whl".to_owned(),
            file: PathBuf::new(),
            sha256: String::new(),
            name: "own-tree".to_owned(),
            version: "1".to_owned(),
            extras: Vec::new(),
            metadata: String::new(),
        };
        let found = |record: &str| {
            for (info, text) in [
                ("own_tree-1", record),
                ("six-1.0", "six.py,sha256=x,1\n"),
                ("x-2", "x/a.py,,\nx-2.dist-info/RECORD,,\n"),
            ] {
                let folder = site.join(format!("{info}.dist-info"));
                fs_err::create_dir_all(&folder).unwrap();
                fs_err::write(folder.join("RECORD"), text).unwrap();
            }
            shadowing(venv.path(), std::slice::from_ref(&wheel))
        };
        for record in ["six.cpython-312-x86_64-linux-gnu.so,sha256=x,1\n", "six/a.so,,\n", "x/b.so,,\n"] {
            assert!(found(record).is_some(), "{record}");
        }
        assert_eq!(found("own_tree.pth,,\nown_tree/a.so,,\nown_tree-1.dist-info/RECORD,,\n"), None);
    }
}
