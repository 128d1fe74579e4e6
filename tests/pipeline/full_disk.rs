//! Disks that are full or cannot be written, by way of small file systems in memory that only the build sees (a user and
//! mount namespace of its own, as any user may have one where gistmill runs).

use std::process::Command;

use crate::common::dataset::Dataset;
use crate::common::{Bench, Ended, Running};
use crate::determinism::assert_same;

/// What a stage needs to be there, and how many KiB are left for it.
struct Case {
    stage: &'static str,
    /// The last stage that is done before the disk is full; none: nothing is done.
    done: Option<&'static str>,
    left: u32,
}

const CASES: [Case; 6] = [
    Case { stage: "source", done: None, left: 0 },
    Case { stage: "environment", done: Some("source"), left: 200 },
    Case { stage: "collect", done: Some("environment"), left: 0 },
    Case { stage: "screen", done: Some("collect"), left: 4 },
    Case { stage: "trace", done: Some("screen"), left: 4 },
    Case { stage: "cold runs", done: Some("trace"), left: 0 },
];

/// Runs a script of the shell as root of a user namespace of its own, where it may mount.
fn inside(bench: &Bench, script: &str) -> Ended {
    let mut gistmill = bench.gistmill(&[]);
    gistmill.env_remove("GISTMILL_CACHE_DIR");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-euc", script]);
    command.current_dir(bench.path()).env_clear();
    command.envs(gistmill.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GISTMILL", crate::common::GISTMILL);
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Running::start(command).wait()
}

/// A bench, and the dataset of a build that nothing disturbed.
fn bench() -> (Bench, Dataset) {
    let bench = Bench::with_downloads_only();
    bench.configure("[screen]\nattempts = 2", &["small_and_good"]);
    bench.build(&["--output", "undisturbed"]).with_code(0);
    let undisturbed = Dataset::at(&bench.path().join("undisturbed/trees/1"));
    for part in ["sources", "environments", "screens"] {
        std::fs::remove_dir_all(bench.cache().join(part)).expect("was there");
    }
    std::fs::remove_file(bench.cache().join("uv")).expect("was a link");
    (bench, undisturbed)
}

/// `exit <code>` of the first and the second build, which the script prints.
fn codes(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("exit ")).collect()
}

#[test]
fn a_full_cache_stops_every_stage_with_a_clear_message_and_the_build_goes_on_when_there_is_room() {
    let (bench, undisturbed) = bench();
    for Case { stage, done, left } in CASES {
        let before = match done {
            Some(done) => {
                format!("\"$GISTMILL\" build repos.toml --cache-dir small --until {done} >/dev/null")
            }
            None => String::new(),
        };
        let ended = inside(
            &bench,
            &format!(
                "rm -rf output; mkdir -p small\n\
                 mount -t tmpfs -o size=1g none small; cp -a cache/. small\n\
                 {before}\n\
                 used=$(df -k --output=used small | tail -n 1)\n\
                 mount -o remount,size=$((used + {left}))k small\n\
                 code=0; \"$GISTMILL\" build repos.toml --cache-dir small >/dev/null 2>first || code=$?; echo exit $code\n\
                 mount -o remount,size=1g small\n\
                 code=0; \"$GISTMILL\" build repos.toml --cache-dir small >/dev/null || code=$?; echo exit $code"
            ),
        );
        let said = std::fs::read_to_string(bench.path().join("first")).unwrap_or_default();
        assert_eq!(codes(&ended), ["3", "0"], "{stage}:\n{said}\n{}", ended.stderr);
        assert!(said.contains("small") && said.contains("hint: free some disk space"), "{stage}:\n{said}");
        assert!(said.contains("No space left") || said.contains("is full"), "{stage}:\n{said}");
        assert_same(&undisturbed, &bench.dataset());
    }
}

#[test]
fn a_full_or_read_only_output_is_named_and_the_dataset_that_was_there_stays_whole() {
    let (bench, undisturbed) = bench();
    let script = |options: &str| {
        format!(
            "mount -t tmpfs -o size=8m none output; cp -a undisturbed/. output; mount -o remount,{options} output\n\
             code=0; \"$GISTMILL\" build repos.toml --cache-dir cache >/dev/null 2>first || code=$?; echo exit $code\n\
             rm -rf seen; cp -a output seen"
        )
    };
    std::fs::create_dir(bench.path().join("output")).expect("can be made");
    for (options, words, hint) in [
        ("size=$(($(df -k --output=used output | tail -n 1) + 8))k", "No space left", "free some disk space"),
        ("ro", "Read-only file system", "choose another place with --output"),
    ] {
        let ended = inside(&bench, &script(options));
        let said = std::fs::read_to_string(bench.path().join("first")).unwrap_or_default();
        assert_eq!(codes(&ended), ["3"], "{options}:\n{said}\n{}", ended.stderr);
        assert!(
            said.contains(words) && said.contains("output/") && said.contains(hint),
            "{options}:\n{said}"
        );
        assert_same(&undisturbed, &Dataset::at(&bench.path().join("seen/trees/1")));
    }
    let ended = inside(
        &bench,
        "mount -t tmpfs -o ro none output\n\
         code=0; \"$GISTMILL\" build repos.toml --cache-dir cache 2>first || code=$?; echo exit $code",
    );
    assert_eq!(codes(&ended), ["3"]);
    bench.build(&[]).with_code(0);
    assert_same(&undisturbed, &bench.dataset());
}
