use std::collections::BTreeMap;

use super::*;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn system(requires: &str) -> BuildSystem {
    BuildSystem {
        requires: vec![requires.to_owned()],
        backend: "setuptools.build_meta".to_owned(),
        backend_path: Vec::new(),
    }
}

/// What a project in `folder` of a tree of these files needs.
fn found(folder: &str, requires: &str, files: &[(&str, &str)]) -> Option<Locked> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    locked(folder, &system(requires), &|path| files.get(path).map(|text| (*text).to_owned()))
}

fn entry(name: &str, version: &str, source: &str, hash: &str) -> String {
    format!("[[package]]\nname = {name:?}\nversion = {version:?}\nsource = {source:?}\nchecksum = {hash:?}\n")
}

/// What a lock of these entries says.
fn said(entries: &[String]) -> Locked {
    let mut locked = Locked::default();
    locked.add("Cargo.lock", &entries.concat());
    locked
}

fn names(locked: &Locked) -> Vec<String> {
    locked.crates.iter().map(ToString::to_string).collect()
}

fn sha256(digit: &str) -> String {
    digit.repeat(64)
}

#[test]
fn what_a_lock_pins_by_a_hash_is_fetched() {
    let locked = said(&[
        "version = 4\n[[package]]\nname = 'own'\nversion = '0.1.0'\n".to_owned(),
        entry("memoffset", "0.9.1", REGISTRY, &sha256("a")),
        entry("syn", "1.0.109", "sparse+https://index.crates.io/", &sha256("b")),
        entry("syn", "2.0.1", REGISTRY, &sha256("c")),
        entry("libgit2-sys", "0.18.2+1.9.1", REGISTRY, &sha256("d")),
        entry("syn", "2.0.1", REGISTRY, &sha256("c")),
    ]);
    assert_eq!(names(&locked), ["libgit2-sys 0.18.2+1.9.1", "memoffset 0.9.1", "syn 1.0.109", "syn 2.0.1"]);
    assert_eq!(locked.left_out, BTreeSet::new());
    assert!(locked.crates.iter().any(|one| one.sha256 == sha256("a")));
}

#[test]
fn hashes_may_stand_in_a_table_of_their_own() {
    let lock = format!(
        "[[package]]\nname = 'libc'\nversion = '0.2.1'\nsource = '{REGISTRY}'\n\
         [metadata]\n\"checksum libc 0.2.1 ({REGISTRY})\" = \"{}\"\n",
        sha256("e")
    );
    assert_eq!(names(&said(&[lock])), ["libc 0.2.1"]);
}

#[test]
fn what_comes_from_elsewhere_is_not_fetched_and_named() {
    let git = "git+https://me:s3cret@git.example.org/own?rev=1#0123";
    let locked = said(&[
        entry("from-git", "1.0.0", git, &sha256("a")),
        entry("from-mirror", "1.0.0", "registry+https://mirror.example.org/index", &sha256("a")),
        entry(
            "nearly",
            "1.0.0",
            "registry+https://github.com/rust-lang/crates.io-index.example.org",
            &sha256("a"),
        ),
        entry("no-hash", "1.0.0", REGISTRY, ""),
        entry("half-a-hash", "1.0.0", REGISTRY, "abc"),
        entry("large", "1.0.0", REGISTRY, &sha256("A")),
    ]);
    assert_eq!(locked.crates, BTreeSet::new());
    let all = Vec::from_iter(locked.left_out).join("\n");
    for expected in [
        "from-git 1.0.0, which is not from crates.io (git+https",
        "from-mirror 1.0.0, which is not from crates.io",
        "nearly 1.0.0, which is not from",
        "no-hash 1.0.0, which has no SHA-256",
        "half-a-hash 1.0.0, which has no SHA-256",
        "large 1.0.0, which has no SHA-256",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn names_that_lead_elsewhere_are_never_fetched() {
    for (name, version) in [
        ("../x", "1.0.0"),
        ("x/../../y", "1.0.0"),
        ("", "1.0.0"),
        ("a b", "1.0.0"),
        ("a\n", "1.0.0"),
        ("a%2f", "1.0.0"),
        ("a", ""),
        ("a", ".."),
        ("a", "1-2.0.0"),
        ("a", "1.0"),
        ("a", "1.0."),
        ("a", "1.0./x"),
        ("a", "../1"),
        ("a", "1/../../x"),
        ("a", "1.0.0?x"),
        ("a", "1.0.0\u{202e}"),
    ] {
        let locked = said(&[entry(name, version, REGISTRY, &sha256("a"))]);
        assert_eq!(locked.crates, BTreeSet::new(), "{name:?} {version:?}");
        assert_eq!(locked.left_out.len(), 1, "{name:?} {version:?}");
    }
}

#[test]
fn a_crate_with_two_hashes_is_fetched_once_at_most() {
    let locked =
        said(&[entry("a", "1.0.0", REGISTRY, &sha256("a")), entry("a", "1.0.0", REGISTRY, &sha256("b"))]);
    assert_eq!(names(&locked), ["a 1.0.0"]);
    assert_eq!(Vec::from_iter(locked.left_out), ["a 1.0.0, which has two hashes"]);
}

#[test]
fn a_lock_that_cannot_be_read_is_named() {
    let locked = said(&["[[package\n".to_owned()]);
    assert!(locked.left_out.iter().any(|words| words.contains("Cargo.lock, which cannot be read")));
}

/// A folder, files of the tree, and the crates that are found.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn the_lock_is_found_where_cargo_has_it() {
    let (a, b) = (entry("aa", "1.0.0", REGISTRY, &sha256("a")), entry("bb", "1.0.0", REGISTRY, &sha256("b")));
    let (a, b) = (a.as_str(), b.as_str());
    let (package, workspace) = ("[package]\nname = 'x'\n", "[workspace]\nmembers = ['*']\n");
    let maturin = "[tool.maturin]\nmanifest-path = 'native/Cargo.toml'\n";
    let setuptools = "[[tool.setuptools-rust.ext-modules]]\ntarget = 'x'\npath = 'src/_x/Cargo.toml'\n";
    let cases: [Case<'_>; 9] = [
        ("", &[("Cargo.toml", package), ("Cargo.lock", a)], &["aa 1.0.0"]),
        ("py", &[("py/Cargo.toml", package), ("py/Cargo.lock", a), ("Cargo.lock", b)], &["aa 1.0.0"]),
        // A workspace has its lock at its root, and one that lies with a member is not read.
        (
            "",
            &[
                ("pyproject.toml", maturin),
                ("Cargo.toml", workspace),
                ("Cargo.lock", a),
                ("native/Cargo.toml", package),
                ("native/Cargo.lock", b),
            ],
            &["aa 1.0.0"],
        ),
        // But for what the workspace excludes.
        (
            "",
            &[
                ("pyproject.toml", maturin),
                ("Cargo.toml", "[workspace]\nexclude = ['native']\n"),
                ("native/Cargo.toml", package),
                ("native/Cargo.lock", b),
            ],
            &["bb 1.0.0"],
        ),
        (
            "py",
            &[
                ("py/pyproject.toml", setuptools),
                ("py/src/_x/Cargo.toml", "[package]\nworkspace = '../..'\n"),
                ("py/Cargo.lock", b),
            ],
            &["bb 1.0.0"],
        ),
        (
            "",
            &[("pyproject.toml", setuptools), ("src/_x/Cargo.toml", package), ("src/_x/Cargo.lock", a)],
            &["aa 1.0.0"],
        ),
        (
            "",
            &[
                ("setup.py", "RustExtension('x', 'ext/Cargo.toml')"),
                ("ext/Cargo.toml", package),
                ("ext/Cargo.lock", b),
            ],
            &["bb 1.0.0"],
        ),
        ("", &[("rust/Cargo.toml", package), ("rust/Cargo.lock", a)], &["aa 1.0.0"]),
        // Nothing outside of the source is read, and a lock without a manifest is none of the build's.
        (
            "py",
            &[
                ("py/pyproject.toml", "[tool.maturin]\nmanifest-path = '../../Cargo.toml'\n"),
                ("../Cargo.toml", package),
                ("../Cargo.lock", a),
                ("py/Cargo.lock", b),
            ],
            &[],
        ),
    ];
    for (folder, files, expected) in cases {
        let locked = found(folder, "setuptools-rust>=1", files).expect("it compiles Rust");
        assert_eq!(names(&locked), expected, "{files:?}");
        assert_eq!(locked.locks.is_empty(), expected.is_empty(), "{files:?}");
    }
}

#[test]
fn a_build_that_says_nothing_of_rust_gets_no_crates() {
    let lock = entry("aa", "1.0.0", REGISTRY, &sha256("a"));
    let files = [("Cargo.toml", "[package]\nname = 'x'\n"), ("Cargo.lock", lock.as_str())];
    assert_eq!(found("", "setuptools", &files), None);
    for requires in ["maturin>=1,<2", "Setuptools_Rust", "hatch-rust"] {
        assert!(found("", requires, &files).is_some(), "{requires}");
    }
    let setup = [("setup.py", "from setuptools_rust import RustExtension")];
    assert!(found("", "setuptools", &setup).is_some());
}
