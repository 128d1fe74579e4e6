//! What users read when something else than a value of the configuration is wrong: the command line, files and folders,
//! repositories, datasets. Every message with its exit code, held against a snapshot; `bad_configs.rs` has the table
//! for the configuration itself.
//!
//! `INSTA_UPDATE=always cargo test --test all bad_inputs` writes the snapshot anew; read the difference.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Bench, Running};

const DATASET: &str = "[dataset]\nname = \"d\"\nversion = \"1\"\n";

/// A mistake: what it is, what lies there, and what is asked for.
struct Mistake {
    title: &'static str,
    prepare: fn(&Path),
    arguments: &'static [&'static str],
}

const fn line(title: &'static str, arguments: &'static [&'static str]) -> Mistake {
    Mistake { title, prepare: |_| {}, arguments }
}

const fn lies(title: &'static str, prepare: fn(&Path), arguments: &'static [&'static str]) -> Mistake {
    Mistake { title, prepare, arguments }
}

fn write(here: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = here.join(name);
    std::fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
    std::fs::write(path, text).expect("can be written");
}

fn config(here: &Path, repository: &str) {
    write(here, "repos.toml", format!("{DATASET}[[repo]]\nslug = \"a/b\"\n{repository}\n"));
}

fn good_config(here: &Path) {
    write(here, "tree/a.py", "");
    config(here, "path = \"tree\"");
}

/// A git repository with one commit in `tree`; gives its hash.
fn git(here: &Path) -> String {
    write(here, "tree/a.py", "");
    let script = "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm one && git rev-parse HEAD";
    let mut command = std::process::Command::new("sh");
    command.args(["-ec", script]).current_dir(here.join("tree"));
    command.env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z").env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z");
    let output = command.output().expect("sh starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a hash").trim().to_owned()
}

/// One that can be read; what it belongs to is missing.
const MANIFEST: &str = r#"{"format_version": 2, "name": "d", "version": "1", "sources": {}, "files": {}, "counts": {"repositories": {},
    "total": {"cases": 0, "groups": 0, "kept": 0, "published": 0, "dropped": {}, "deselected": 0, "attempts": 0, "tiers": {}}}}"#;

const BUILD: &[&str] = &["build", "repos.toml", "--until", "source"];
const NO_COMMIT: &str = "0123456789012345678901234567890123456789";

const MISTAKES: &[Mistake] = &[
    // The command line.
    line("no command", &[]),
    line("a misspelt command", &["biuld"]),
    line("an unknown option", &["build", "--job", "3"]),
    line("no jobs", &["build", "--jobs", "0"]),
    line("jobs that are no number", &["build", "--jobs", "many"]),
    line("a stage that is not there", &["build", "--until", "scren"]),
    line("a format that is not there", &["build", "--format", "yaml"]),
    line("an isolation that is not there", &["build", "--isolation", "none"]),
    line("a slug without an owner", &["build", "--only", "flask"]),
    lies("an unknown repository", good_config, &["build", "repos.toml", "--only", "a/c"]),
    lies("an unknown subset", good_config, &["build", "repos.toml", "--subset", "hrad"]),
    line("two configurations", &["build", "a.toml", "b.toml"]),
    line("show without a query", &["show"]),
    line("a world that is not there", &["replay", "test", "--world", "upside-down"]),
    line("a diff with one side", &["diff", "output/a/1"]),
    // Files and folders.
    line("a configuration that is not there", &["build", "nowhere.toml"]),
    lies("a configuration that is a folder", |here| write(here, "repos.toml/x", ""), BUILD),
    lies("a configuration that is no text", |here| write(here, "repos.toml", b"\xff\xfe[\0d\0"), BUILD),
    lies(
        "a configuration that links to itself",
        |here| symlink("repos.toml", here.join("repos.toml")).expect("a link"),
        BUILD,
    ),
    lies("rules that are not there", good_config, &["build", "repos.toml", "--rules", "nowhere"]),
    lies(
        "a rule that cannot be read",
        |here| {
            good_config(here);
            write(
                here,
                "filters/a.toml",
                "[[rule]]\nid = \"A b\"\naction = \"dorp\"\n[rule.match]\nname = \"(\"\n",
            );
        },
        BUILD,
    ),
    lies(
        "a rule file that is no text",
        |here| {
            good_config(here);
            write(here, "filters/a.toml", b"\xff");
        },
        BUILD,
    ),
    lies(
        "an output that is a file",
        |here| {
            good_config(here);
            write(here, "output", "mine");
        },
        BUILD,
    ),
    lies(
        "a cache that is a file",
        |here| {
            good_config(here);
            write(here, "mine", "");
        },
        &["build", "repos.toml", "--cache-dir", "mine"],
    ),
    lies("a configuration to refresh that is not there", |_| {}, &["refresh", "nowhere.toml"]),
    // Repositories.
    lies("a path that is not there", |here| config(here, "path = \"nowhere\""), BUILD),
    lies(
        "a path that is a file",
        |here| {
            write(here, "tree", "");
            config(here, "path = \"tree\"");
        },
        BUILD,
    ),
    lies(
        "an empty folder",
        |here| {
            std::fs::create_dir(here.join("tree")).expect("a folder");
            config(here, "path = \"tree\"");
        },
        &["build", "repos.toml", "--until", "collect"],
    ),
    lies(
        "uncommitted changes",
        |here| {
            git(here);
            write(here, "tree/new.py", "");
            config(here, "path = \"tree\"");
        },
        BUILD,
    ),
    lies(
        "a commit that is not there",
        |here| {
            git(here);
            config(here, &format!("git = \"file://{}/tree\"\ncommit = \"{NO_COMMIT}\"", here.display()));
        },
        BUILD,
    ),
    lies(
        "a branch instead of a commit",
        |here| {
            git(here);
            config(here, &format!("git = \"file://{}/tree\"\ncommit = \"HEAD\"", here.display()));
        },
        BUILD,
    ),
    lies(
        "a git address that is no repository",
        |here| {
            write(here, "tree/a.py", "");
            config(here, &format!("git = \"file://{}/tree\"\ncommit = \"{NO_COMMIT}\"", here.display()));
        },
        BUILD,
    ),
    lies(
        "a repository whose objects are damaged",
        |here| {
            let commit = git(here);
            let objects = here.join("tree/.git/objects");
            let all = walkdir::WalkDir::new(objects)
                .into_iter()
                .flatten()
                .filter(|entry| entry.file_type().is_file());
            for entry in
                all.filter(|entry| !entry.path().to_string_lossy().replace('/', "").ends_with(&commit))
            {
                std::fs::set_permissions(entry.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))
                    .expect("can be set");
                std::fs::write(entry.path(), "rubbish").expect("can be written");
            }
            config(here, &format!("git = \"file://{}/tree\"\ncommit = \"{commit}\"", here.display()));
        },
        BUILD,
    ),
    lies(
        "a server that is not there",
        |here| config(here, &format!("git = \"https://localhost:1/a/b\"\ncommit = \"{NO_COMMIT}\"")),
        BUILD,
    ),
    lies(
        "an interpreter that is not there",
        |here| {
            write(here, "tree/test_a.py", "");
            config(here, "path = \"tree\"\npython = \"3.99\"");
        },
        &["build", "repos.toml", "--until", "environment"],
    ),
    lies(
        "a project file that is no TOML",
        |here| {
            write(here, "tree/pyproject.toml", "[project\nname = 1");
            config(here, "path = \"tree\"");
        },
        &["build", "repos.toml", "--until", "environment"],
    ),
    // Datasets.
    line("no dataset at all", &["show", "test_a"]),
    line("a dataset that is not there", &["report", "output/d/1"]),
    line("a dataset to compare that is not there", &["diff", "output/d/1", "output/d/2"]),
    line("a dataset to cut that is not there", &["subset", "output/d/1"]),
    lies("an empty manifest", |here| write(here, "d/manifest.json", ""), &["report", "d"]),
    lies(
        "a manifest that is cut",
        |here| write(here, "d/manifest.json", "{\"format_version\": 2, \"name\": \"d"),
        &["report", "d"],
    ),
    lies("a manifest that is a list", |here| write(here, "d/manifest.json", "[1, 2]"), &["report", "d"]),
    lies(
        "a manifest of another version",
        |here| write(here, "d/manifest.json", "{\"format_version\": 99}"),
        &["report", "d"],
    ),
    lies(
        "a dataset without its tables",
        |here| write(here, "d/manifest.json", MANIFEST),
        &["show", "x", "--dataset", "d"],
    ),
    lies(
        "a table that is cut",
        |here| {
            write(here, "d/manifest.json", MANIFEST);
            write(here, "d/groups.parquet", "PAR1\u{15}\u{4}");
        },
        &["show", "x", "--dataset", "d"],
    ),
    lies(
        "a table that is no table",
        |here| {
            write(here, "d/manifest.json", MANIFEST);
            for name in ["groups", "cases", "instances"] {
                write(
                    here,
                    &format!("d/{name}.parquet"),
                    "not a table at all, but long enough to look like one PAR1",
                );
            }
        },
        &["diff", "d", "d"],
    ),
    lies(
        "a manifest without a name",
        |here| write(here, "d/manifest.json", "{\"format_version\": 2, \"version\": \"1\"}"),
        &["diff", "d", "d"],
    ),
    lies(
        "a manifest whose counts are text",
        |here| {
            write(
                here,
                "d/manifest.json",
                MANIFEST.replace("\"repositories\": {}", "\"repositories\": \"x\""),
            );
        },
        &["report", "d"],
    ),
    lies("a dataset that is a file, shown", good_config, &["show", "x", "--dataset", "repos.toml"]),
    lies("a dataset that is a file, compared", good_config, &["diff", "repos.toml", "repos.toml"]),
    lies("a dataset that is a file, reported", good_config, &["report", "repos.toml"]),
    lies("a dataset without lines", |here| write(here, "d/manifest.json", MANIFEST), &["subset", "d"]),
    lies(
        "a dataset with a bad line",
        |here| {
            write(here, "d/manifest.json", MANIFEST);
            write(here, "d/instances.jsonl", "[]\n");
        },
        &["subset", "d"],
    ),
    lies(
        "a pipe in place of a manifest",
        |here| dataset(here, |_| {}, "manifest.json", pipe),
        &["report", "d"],
    ),
    lies(
        "a manifest that is a link to a device without end",
        |here| dataset(here, |_| {}, "manifest.json", |place| link("/dev/zero", place)),
        &["list", "d"],
    ),
    lies("a manifest without end", |here| dataset(here, |_| {}, "manifest.json", endless), &["list", "d"]),
    lies(
        "a pipe in place of lines",
        |here| dataset(here, manifest, "instances.jsonl", pipe),
        &["subset", "d"],
    ),
    lies("lines without end", |here| dataset(here, manifest, "instances.jsonl", endless), &["subset", "d"]),
    lies(
        "a pipe in place of a table",
        |here| dataset(here, manifest, "instances.parquet", pipe),
        &["list", "d"],
    ),
    lies(
        "a folder in place of a table",
        |here| {
            dataset(here, manifest, "instances.parquet", |place| {
                std::fs::create_dir(place).expect("a folder");
            });
        },
        &["show", "x", "--dataset", "d"],
    ),
    lies(
        "a table that is a link",
        |here| dataset(here, manifest, "instances.parquet", |place| link("/etc/passwd", place)),
        &["list", "d"],
    ),
    lies("a table of nothing", |here| dataset(here, manifest, "instances.parquet", endless), &["list", "d"]),
    lies(
        "a subset that leads elsewhere",
        |here| {
            let summary = r#""subsets": {"top": {"size": 0, "repositories": {}, "tiers": {}, "definition": {"name": "../../up"}}}"#;
            write(
                here,
                "d/manifest.json",
                MANIFEST.replace("\"files\": {}", &format!("\"files\": {{}}, {summary}")),
            );
            write(here, "d/instances.jsonl", "");
        },
        &["verify", "d"],
    ),
    line("a query without a word", &["show", ""]),
    line("a group without a name", &["replay", ""]),
    lies("rules in a file", |here| rules(here, |here| write(here, "filters", "")), BUILD),
    lies(
        "rules behind a link to nothing",
        |here| rules(here, |here| link("nowhere", &here.join("filters"))),
        BUILD,
    ),
    lies(
        "a rule behind a link to nothing",
        |here| {
            rules(here, |here| {
                write(here, "filters/README", "");
                link("nowhere", &here.join("filters/f.toml"));
            });
        },
        BUILD,
    ),
    lies(
        "a rule that is a pipe",
        |here| {
            rules(here, |here| {
                write(here, "filters/README", "");
                pipe(&here.join("filters/f.toml"));
            });
        },
        BUILD,
    ),
    lies("a rule that is a folder", |here| rules(here, |here| write(here, "filters/f.toml/x", "")), BUILD),
    lies("a configuration that is a pipe", |here| pipe(&here.join("repos.toml")), BUILD),
    lies(
        "patterns that have no meaning",
        |here| {
            rules(here, |here| {
                let bad = "path = \"[\"\nmarker = [\"a[!\"]\nnode = \"NoSuchNode\"\nmin_cases = 99999999999999999999\n";
                write(
                    here,
                    "filters/a.toml",
                    format!("[[rule]]\nid = \"a\"\nreason = \"r\"\naction = \"flag\"\n[rule.match]\n{bad}"),
                );
            });
        },
        BUILD,
    ),
    lies(
        "thousands of wrong repositories",
        |here| write(here, "repos.toml", format!("{DATASET}{}", "[[repo]]\nslug = \"a\"\n".repeat(2500))),
        BUILD,
    ),
    lies(
        "an output that is a link to nothing",
        |here| {
            good_config(here);
            std::fs::create_dir_all(here.join("output/d")).expect("a folder");
            link("nowhere", &here.join("output/d/1"));
        },
        BUILD,
    ),
    lies(
        "a repository whose settings name another work tree",
        |here| {
            git(here);
            write(here, "outside/private.txt", "");
            configure(here, &format!("[core]\n\tworktree = {}\n", here.join("outside").display()));
            write(here, "tree/new.py", "");
            config(here, "path = \"tree\"");
        },
        BUILD,
    ),
    lies(
        "a repository with objects of another one",
        |here| {
            git(here);
            write(here, "tree/.git/objects/info/alternates", "/outside/.git/objects\n");
            config(here, "path = \"tree\"");
        },
        BUILD,
    ),
];

/// A dataset in `d` with something else in the place of one of its files.
fn dataset(here: &Path, first: fn(&Path), name: &str, other: fn(&Path)) {
    std::fs::create_dir_all(here.join("d")).expect("a folder");
    first(here);
    other(&here.join("d").join(name));
}

fn manifest(here: &Path) {
    write(here, "d/manifest.json", MANIFEST);
}

/// A terabyte of nothing.
fn endless(place: &Path) {
    std::fs::File::create(place).and_then(|file| file.set_len(1 << 40)).expect("can be made");
}

fn link(target: &str, place: &Path) {
    symlink(target, place).expect("a link");
}

fn pipe(place: &Path) {
    nix::unistd::mkfifo(place, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
}

/// A good configuration, with something beside it in the place of rules.
fn rules(here: &Path, prepare: fn(&Path)) {
    good_config(here);
    prepare(here);
}

/// Adds to the settings of the repository in `tree`.
fn configure(here: &Path, settings: &str) {
    let path = here.join("tree/.git/config");
    let before = std::fs::read_to_string(&path).expect("a repository");
    std::fs::write(path, before + settings).expect("can be written");
}

fn run(mistake: &Mistake) -> String {
    let bench = Bench::with_empty_cache();
    let here = bench.path().join("here");
    std::fs::create_dir(&here).expect("a folder can be made");
    (mistake.prepare)(&here);
    let mut command = bench.gistmill(mistake.arguments);
    command.current_dir(&here).env("COLUMNS", "120");
    if mistake.arguments.contains(&"--cache-dir") {
        command.env_remove("GISTMILL_CACHE_DIR");
    }
    let ended = Running::start(command).wait();
    assert!(!ended.stderr.contains("panicked"), "{}: {}", mistake.title, ended.stderr);
    let code = ended.code().unwrap_or_else(|| panic!("{}: killed", mistake.title));
    assert!(code != 0 && code != 4, "{}: exit code {code}\n{}{}", mistake.title, ended.stdout, ended.stderr);
    let asked = ["gistmill"].iter().chain(mistake.arguments).copied().collect::<Vec<_>>().join(" ");
    let said = plain(&format!("{}{}", ended.stdout, ended.stderr), bench.path());
    format!("=== {}\n$ {asked}\n{said}exit code {code}\n\n", mistake.title)
}

/// What differs between machines and runs is taken out: places, versions, progress.
fn plain(said: &str, bench: &Path) -> String {
    let place = bench.display().to_string();
    let said = console::strip_ansi_codes(said)
        .replace(&format!("{place}/here"), "<here>")
        .replace(&place, "<bench>");
    let versions = regex::Regex::new(r"has( \d+\.\d+\.\d+[a-z0-9]*,?)+").expect("a pattern");
    let said = versions.replace_all(&said, "has <versions>");
    let times = regex::Regex::new(r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ").expect("a pattern");
    let said = times.replace_all(&said, "");
    let own = |line: &&str| {
        !["config: ", "rules: ", "log: ", "took ", "warning: missing from full isolation: "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    said.lines().filter(own).fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[test]
fn every_mistake_has_its_message_and_exit_code() {
    let mut shown = String::new();
    for mistake in MISTAKES {
        let _ = write!(shown, "{}", run(mistake));
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("bad_inputs", shown);
    });
}

#[test]
fn a_build_that_fails_names_its_log_which_says_why_and_holds_no_login() {
    let bench = Bench::with_empty_cache();
    let here = bench.path();
    std::fs::create_dir(here.join("tree")).expect("a folder");
    config(here, &format!("git = \"https://me:s3cr3t@127.0.0.1:9/x\"\ncommit = \"{NO_COMMIT}\""));
    let ended =
        Running::start(bench.gistmill(&["build", "repos.toml", "--format", "json"])).wait().with_code(1);
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).expect("is JSON");
    let path = answer["log"].as_str().expect("has the path of the log");
    assert!(ended.stderr.lines().any(|line| line == format!("log: {path}")), "{}", ended.stderr);
    let log = std::fs::read_to_string(path).expect("can be read");
    for part in
        [" INFO stage a/b source started", "started: /bin/true", "exit code 0", "ERROR a/b (source): "]
    {
        assert!(log.contains(part), "{part}\n{log}");
    }
    assert!(!log.contains("s3cr3t"), "{log}");
}

#[test]
fn without_a_home_the_cache_has_no_place() {
    let bench = Bench::with_empty_cache();
    good_config(bench.path());
    let mut command = bench.gistmill(BUILD);
    command.env_remove("HOME").env_remove("GISTMILL_CACHE_DIR").env_remove("XDG_CACHE_HOME");
    let ended = Running::start(command).wait().with_code(2);
    assert!(ended.stderr.contains("there is no HOME to keep the cache in"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: name one with --cache-dir"), "{}", ended.stderr);
}

#[test]
fn names_that_are_not_utf8_are_taken_or_refused_in_words() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"caf\xe9");
    let bench = Bench::with_empty_cache();
    let here = bench.path().join(odd);
    std::fs::create_dir(&here).expect("a folder");
    good_config(&here);
    let start = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = bench.gistmill(BUILD);
        command.current_dir(&here).env("PWD", &here).env("A_LATIN1_VARIABLE", odd);
        change(&mut command);
        let ended = Running::start(command).wait();
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        (ended.code(), ended.stderr)
    };
    let (code, said) = start(&|_| {});
    assert_eq!(code, Some(0), "variables and the current folder may have any name: {said}");
    let (code, said) = start(&|command| {
        command.arg("--only").arg(odd);
    });
    assert!(code == Some(2) && said.contains(r"`caf\xe9` is not UTF-8"), "{said}");
    let (code, said) = start(&|command| {
        command.arg("--cache-dir").arg(odd);
    });
    assert!(
        code == Some(2) && said.contains("is not UTF-8") && said.contains("hint: name another"),
        "{said}"
    );
}

#[test]
fn a_temporary_directory_that_is_not_there_is_named() {
    let bench = Bench::with_empty_cache();
    let hash = "0".repeat(64);
    config(bench.path(), &format!("pypi = \"six==1.17.0\"\nsha256 = \"{hash}\""));
    let mut command = bench.gistmill(BUILD);
    command.current_dir(bench.path()).env("TMPDIR", "/nowhere");
    let ended = Running::start(command).wait().with_code(3);
    assert!(ended.stderr.contains("cannot write to the temporary directory /nowhere"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("hint: name a directory that can be written to in TMPDIR"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_a_repository_wrote_reaches_no_terminal_as_a_command() {
    let bench = Bench::with_empty_cache();
    let name = "a\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}2J\u{202e}\nfailed x\r.py";
    git(bench.path());
    write(bench.path(), &format!("tree/{name}"), "");
    config(bench.path(), "path = \"tree\"");
    let mut command = bench.gistmill(BUILD);
    command.current_dir(bench.path());
    let ended = Running::start(command).wait().with_code(1);
    for said in [&ended.stdout, &ended.stderr] {
        assert!(said.contains("has uncommitted changes: `a\\u{1b}]52"), "{said:?}");
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r']), "{said:?}");
        assert!(!said.lines().any(|line| line.starts_with("failed x")), "{said:?}");
    }
}

#[test]
fn what_waits_for_a_dataset_heeds_the_first_request_to_stop() {
    use nix::sys::signal::Signal;
    for (command, signal) in [("verify", Signal::SIGINT), ("verify", Signal::SIGTERM)] {
        let bench = Bench::with_empty_cache();
        write(
            bench.path(),
            "d/manifest.json",
            MANIFEST.replace("\"files\": {}", "\"files\": {\"big\": \"0\"}"),
        );
        endless(&bench.path().join("d/big"));
        let mut asked = bench.gistmill(&[command, "d"]);
        asked.current_dir(bench.path());
        let mut running = Running::start(asked);
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(running.is_alive(), "{command} hashes a terabyte");
        running.signal(signal);
        let ended = running.wait_at_most(std::time::Duration::from_secs(10)).with_code(130);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}
