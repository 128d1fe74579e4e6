use std::collections::BTreeSet;

use super::*;
use crate::record::entry::Stdin;
use crate::record::id::Name;
use crate::record::instance::Tier;
use crate::record::moment::Cutoff;
use crate::record::outcome::Compare;
use crate::subset::{Measure, Range};

const HASH: &str = "2ac89889f4cc330eabd50f295dcef02828522c69";

fn unknown(_: &str, _: &str) -> Option<String> {
    None
}

fn read(text: &str) -> Result<Config, Vec<Problem>> {
    parse(text, Path::new("/"), &unknown)
}

fn with_repo(keys: &str) -> String {
    format!("[dataset]\nname = \"d\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\n{keys}\n")
}

fn messages(text: &str) -> Vec<String> {
    read(text).unwrap_err().into_iter().map(|problem| problem.message).collect()
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_contract() {
    let config = read(&with_repo(&format!("git = \"https://h/a/b\"\ncommit = \"{HASH}\""))).unwrap();
    let dataset = Dataset {
        name: Name::fixed("d"),
        version: Name::fixed("1"),
        seed: 0,
        per_repo: 25,
        hard_per_axis: 30,
        family: crate::record::family::Family::Gistify,
        sample_unsolvable: false,
        kinds: None,
    };
    assert_eq!(config.dataset, dataset);
    let screen = Screen {
        attempts: 10,
        cold_runs: 1,
        parity_groups: 0,
        case_timeout: Duration::from_mins(1),
        group_timeout: Duration::from_mins(5),
        partial_groups: false,
        compare: Compare::Output,
    };
    assert_eq!(config.screen, screen);
    assert_eq!(config.tier, TierBounds { medium: 50.0, hard: 80.0 });
    assert_eq!(config.limits, Limits { memory: 0, processes: 1024, file_size: 1 << 30, output: 1 << 20 });
    let repo = &config.repos[0];
    assert_eq!(
        (&repo.groups, &repo.extras, &repo.tests, repo.backend),
        (&None, &None, &None, BackendKind::Local)
    );
    assert!(matches!(repo.source, SourceSpec::Git { submodules: true, .. }));
}

#[test]
fn a_plural_and_a_list_of_variables_are_put_right_without_their_values() {
    let problems =
        read("[dataset]\nname = \"mine\"\nversion = \"1\"\n[[repos]]\nslug = \"a/b\"\n").unwrap_err();
    let said = format!("{problems:#?}");
    assert!(
        said.contains("unknown key `repos` in the file") && said.contains("did you mean `repo`?"),
        "{said}"
    );
    let text = "[dataset]\nname = \"mine\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\npath = \".\"\nenv = [\"A=1\", \"TOKEN=hush\"]\n";
    let problems = read(text).unwrap_err();
    let said = format!("{problems:#?}");
    assert!(
        said.contains("write env = { A = ") && said.contains("TOKEN = ") && !said.contains("hush"),
        "{said}"
    );
}

#[test]
fn every_key_arrives() {
    let text = r#"
[dataset]
name = "mine"
version = "2026.11-rc.1"
seed = 18446744073709551615
per_repo = 0
hard_per_axis = 1
[screen]
attempts = 170
cold_runs = 3
case_timeout = "1m30s"
group_timeout = "1h"
partial_groups = true
compare = "exception"
[tier]
medium = 33.3
hard = 66
[limits]
memory = "4GiB"
processes = 64
file_size = 1048576
output = "10KiB"
[[repo]]
slug = "a/b"
git = "git@host:a/b.git"
commit = "2ac89889f4cc330eabd50f295dcef02828522c69"
submodules = false
python = "3.12.1"
groups = []
extras = ["async", "dotenv"]
requirements = ["numpy>=1.24 ; python_version > '3.8'", "requirements/tests.txt", "x @ https://h/x.zip"]
tests = ["tests/unit", "tests/test_a.py::TestB"]
env = { MPLBACKEND = "agg" }
backend = "docker"
exclude_newer = 2026-01-01
"#;
    let config = read(text).unwrap();
    assert_eq!(config.dataset.seed, u64::MAX);
    assert_eq!(config.screen.case_timeout, Duration::from_secs(90));
    assert_eq!(config.screen.compare, Compare::Exception);
    assert_eq!(config.tier, TierBounds { medium: 33.3, hard: 66.0 });
    assert_eq!(
        config.limits,
        Limits { memory: 4 << 30, processes: 64, file_size: 1 << 20, output: 10 << 10 }
    );
    let repo = &config.repos[0];
    assert!(
        matches!(&repo.source, SourceSpec::Git { url, submodules: false, .. } if url == "git@host:a/b.git")
    );
    assert_eq!(repo.python.as_deref(), Some("3.12.1"));
    assert_eq!(repo.groups.as_deref(), Some(&[][..]));
    assert_eq!(repo.requirements.as_ref().map(Vec::len), Some(3));
    assert_eq!(repo.env["MPLBACKEND"], "agg");
    assert_eq!(repo.backend, BackendKind::Docker);
    assert_eq!(repo.exclude_newer, Cutoff::parse("2026-01-01"));
}

#[test]
fn paths_start_at_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::create_dir(folder.path().join("local")).unwrap();
    let text = with_repo("path = \"./local\"\nallow_uncommitted = true");
    let config = parse(&text, folder.path(), &unknown).unwrap();
    let path = fs_err::canonicalize(folder.path().join("local")).unwrap();
    assert_eq!(config.repos[0].source, SourceSpec::Path { path, commit: None, allow_uncommitted: true });
}

#[test]
fn a_project_name_is_normalized() {
    let text = with_repo(&format!("pypi = \"Typing_Extensions == 4.1\"\nsha256 = \"{}\"", "a".repeat(64)));
    let source = read(&text).unwrap().repos.remove(0).source;
    assert!(
        matches!(source, SourceSpec::Pypi { project, version, .. } if project == "typing-extensions" && version == "4.1")
    );
}

#[test]
fn a_branch_is_answered_with_its_commit() {
    let text = with_repo("git = \"https://me:s3cret@h/a/b\"\ncommit = \"main\"");
    let resolve = |url: &str, reference: &str| {
        assert_eq!((url, reference), ("https://me:s3cret@h/a/b", "main"));
        Some(HASH.to_owned())
    };
    let problems = parse(&text, Path::new("/"), &resolve).unwrap_err();
    assert_eq!(problems[0].message, format!("commit `main` is not a full hash; it means {HASH} now"));
    assert_eq!(problems[0].hint, Some(format!("write commit = \"{HASH}\"")));
    assert_eq!((problems.len(), problems[0].line), (1, 7));
}

#[test]
fn no_message_shows_a_credential() {
    for keys in [
        "git = \"http://me:s3cret@h/a/b\"\ncommit = \"main\"",
        "git = \"https://me:s3cret@h/a/b\"",
        "git = \"me:s3cret@h:a/b\"\ncommit = \"v1\"",
        "pypi = \"https://me:s3cret@h/a/b\"",
        "path = \"https://me:s3cret@h/a/b\"",
        "path = \".\"\nrequirements = [\"a @ git+https://me:s3cret@h/a ; python_versio > 3\"]",
        "path = \".\"\nrequirements = [\"https://me:s3cret@h/a\", \"-i https://me:s3cret@h/a\"]",
        "path = \".\"\nextras = \"https://me:s3cret@h/a\"",
        "path = \".\"\ntests = [\"https://me:s3cret@h/../a\"]",
        "path = \".\"\nslug = \"https://me:s3cret@h/../a\"",
        "path = \".\"\n\"https://me:s3cret@h/\" = 1",
        "path = \".\"\nbackend = \"https://me:s3cret@h/\"\npython = \"https://me:s3cret@h/\"",
        "path = \".\"\nenv = {\"https://me:s3cret@h/\" = 1}\nexclude_newer = \"https://me:s3cret@h/\"",
        "git = \"https://me:s3cret@h/a/b",
    ] {
        let shown = document::render("f", &read(&with_repo(keys)).unwrap_err());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn an_environment_that_no_process_could_be_started_with_is_refused() {
    let message = |env: &str| {
        let problems =
            read(&with_repo(&format!("path = \".\"\nenv = {{ {env} }}"))).err().unwrap_or_default();
        document::render("f", &problems)
    };
    let pair = |name: &str, length: usize| format!("{name} = \"{}\"", "x".repeat(length));
    assert_eq!(message(&pair("A", (128 << 10) - 3)), "");
    assert!(
        message(&pair("A", (128 << 10) - 2))
            .contains("`A` has 131073 bytes, the most is 131072\n  hint: put")
    );
    let many: Vec<String> = (0..11).map(|number| pair(&format!("A{number}"), 100 << 10)).collect();
    assert!(
        message(&many.join(", ")).contains("`env` has 1126445 bytes in all, the most is 1048576"),
        "{}",
        message(&many.join(", "))
    );
}

#[test]
fn what_the_manifest_says_names_no_user_and_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::create_dir(folder.path().join("local")).unwrap();
    let text = format!(
        "{}requirements = [\"a @ https://me:s3cret@h/a.zip\"]\n\
         env = {{ API_TOKEN = \"s3cret\", PROXY = \"https://me:s3cret@h\", MODE = \"x\" }}\n\
         [[repo]]\nslug = \"c/d\"\npath = \"local\"\n",
        with_repo(&format!("git = \"https://me:s3cret@h/a/b\"\ncommit = \"{HASH}\"")),
    );
    let public = to_public_json(&parse(&text, folder.path(), &unknown).unwrap());
    let shown = public.to_string();
    assert!(!shown.contains("s3cret") && !shown.contains(folder.path().to_str().unwrap()), "{shown}");
    assert_eq!(public["repos"][0]["git"], "https://h/a/b");
    assert_eq!(public["repos"][0]["env"]["MODE"], "x");
    assert_eq!(public["repos"][1]["path"], "local");
    assert_eq!(public["screen"]["case_timeout"], "60s");
    assert_eq!(public["repos"][1]["groups"], serde_json::Value::Null);
}

#[test]
fn published_configurations_are_valid() {
    let resolve: &Resolve<'_> = &unknown;
    assert_eq!(parse(DEFAULT, Path::new("/"), resolve).unwrap().repos.len(), 2);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gistify.toml");
    assert_eq!(load(&example, resolve).unwrap().repos.len(), 6);
}

#[test]
fn the_minimal_example_lacks_only_a_real_hash() {
    let messages = messages(MINIMAL);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("<full commit hash>"));
}

#[test]
fn loading_reports_a_missing_file_and_a_bad_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repos.toml");
    let error = load(&path, &unknown).unwrap_err();
    assert_eq!(error.fault(), crate::error::Fault::Usage);
    assert!(error.hint().unwrap().contains("[dataset]"));
    fs_err::write(&path, b"[dataset]\nname = \"\xff\"\n").unwrap();
    assert!(load(&path, &unknown).unwrap_err().to_string().contains("repos.toml:2: this is not UTF-8"));
}

const SUBSETS: &str = r#"
[subset.small]
repos = ["a/b"]
tiers = ["easy", "hard"]
kinds = ["console", "module"]
hard = false
per_repo = 3
size = 5
seed = 7
trace_length = { min = 10, max = 99.5 }
[subset.small.unique_files]
min = 2
[subset.all]
"#;

#[test]
fn subsets_have_conditions_ranges_and_names() {
    let text = with_repo(&format!("git = \"https://h/a/b\"\ncommit = \"{HASH}\"")) + SUBSETS;
    let config = read(&text).unwrap();
    let small = Subset {
        name: Name::fixed("small"),
        repos: Some(vec![RepoSlug::new("a/b").unwrap()]),
        tiers: Some(vec![Tier::Easy, Tier::Hard]),
        kinds: Some(vec!["console".to_owned(), "module".to_owned()]),
        top: Some(false),
        ranges: [
            (Measure::TraceLength, Range { min: Some(10.0), max: Some(99.5) }),
            (Measure::UniqueFiles, Range { min: Some(2.0), max: None }),
        ]
        .into(),
        per_repo: 3,
        size: 5,
        seed: 7,
    };
    assert_eq!(config.subsets, [Subset { name: Name::fixed("all"), ..Subset::default() }, small]);
    let names = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        named_subsets(&config.subsets, &wanted)
            .map(|found| found.into_iter().map(|subset| subset.name.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).unwrap(), ["top", "all", "small"]);
    assert_eq!(names(&["small", "top"]).unwrap(), ["top", "small"]);
    let former = names(&["hard"]).unwrap_err();
    assert!(former.hint().is_some_and(|hint| hint.contains("`top`") && hint.contains("--tier hard")));
    assert!(names(&["smal"]).unwrap_err().hint().unwrap().contains("`small`"));
}

#[test]
fn entries_are_read_with_their_names_and_published_as_they_were_written() {
    let repo = "[dataset]\nname = 'd'\nversion = '1'\n[[repo]]\nslug = 'a/b'\ngit = 'https://h.org/a/b'\n\
                commit = '2ac89889f4cc330eabd50f295dcef02828522c69'\n";
    let text = format!(
        "{repo}tests = []\n[[repo.entry]]\ncommand = \"shop export --json 'a b'\"\nexit = 2\nfiles = ['out/**']\n\
         [[repo.entry]]\nname = 'sum'\ncommand = 'python tools/sum.py'\nstdin_file = 'data/in.txt'\ncwd = 'tools'\n\
         env = {{A = '1'}}\n"
    );
    let config = read(&text).unwrap();
    let entries = &config.repos[0].entries;
    assert_eq!(config.repos[0].tests.as_deref(), Some(&[][..]));
    let names: Vec<String> = entries.asked().iter().map(Entry::id).collect();
    assert_eq!(names, ["entry::shop-export-json-a-b", "entry::sum"]);
    assert_eq!(entries.asked()[0].command.words(), ["shop", "export", "--json", "a b"]);
    assert_eq!(entries.asked()[1].stdin, Some(Stdin::File("data/in.txt".to_owned())));
    let public = to_public_json(&config);
    let slugs = [config.repos[0].slug.clone()].into();
    let none = (&BTreeMap::new(), &BTreeSet::new());
    let again = published::from_published(&public, &slugs, none, &|_| None).unwrap();
    let without_lines = |entries: &Entries| -> Vec<Entry> {
        let mut entries = entries.configured.clone();
        for entry in &mut entries {
            entry.origin.line = None;
        }
        entries
    };
    assert_eq!(without_lines(&again.repos[0].entries), without_lines(entries));
    assert!(to_public_json(&read(repo).unwrap())["repos"][0].get("entry").is_none());
}

#[test]
fn scopes_and_tests_from_outside_go_with_masked_files_alone_and_are_checked() {
    let recube = |keys: &str| {
        with_repo(&format!("git = \"https://h/a/b\"\ncommit = \"{HASH}\"\n{keys}")).replacen(
            "[dataset]",
            "[dataset]\nfamily = \"recube\"",
            1,
        )
    };
    let scope = "[[repo.scope]]\nname = \"json\"\npaths = [\"src/json/**\"]\n";
    let config = read(&recube(&format!("large = true\ntests_from = \"tmp\"\n{scope}"))).unwrap();
    let repo = &config.repos[0];
    assert_eq!((repo.scopes[0].name.as_str(), repo.scopes[0].paths.len(), repo.large), ("json", 1, true));
    let outside = repo.outside.as_ref().unwrap();
    assert_eq!((outside.folder.as_path(), outside.at.as_str()), (Path::new("/tmp"), "tests"));
    let twice = format!(
        "tests_from = \"no-such-folder\"\ntests_at = \"../t\"\n{scope}{scope}[[repo.scope]]\nname = \"x\"\n"
    );
    let said = messages(&recube(&twice));
    for words in ["is not a folder in the tree", "is named twice", "missing key `paths`"] {
        assert!(said.iter().any(|message| message.contains(words)), "{words}: {said:?}");
    }
    let both = messages(&recube("tests_from = \"tmp\"\ntests = [\"t.py\"]"));
    assert!(both[0].contains("does not go with `tests_from`"), "{both:?}");
    let gistify =
        messages(&with_repo(&format!("git = \"https://h/a/b\"\ncommit = \"{HASH}\"\nlarge = true\n{scope}")));
    assert_eq!(gistify.len(), 2, "{gistify:?}");
    assert!(
        gistify.iter().all(|message| message.contains("goes with the family recube alone")),
        "{gistify:?}"
    );
}
