//! Disks that are full or cannot be written, by way of small file systems in memory that only the build sees (a user
//! and mount namespace of its own, as any user may have one where gistmill runs).

use std::process::Command;

use super::determinism::assert_same;
use crate::common::dataset::Dataset;
use crate::common::{Bench, Ended, Running};

/// Stages in their order, what is said when one begins, and how many KiB are left for it.
const STAGES: [(&str, &str, u32); 6] = [
    ("source", "small_and_good source", 0),
    ("environment", "environment: Python 3", 200),
    ("collect", "pytest collects", 0),
    ("screen", "screen (", 4),
    ("trace", "trace (", 4),
    ("dataset", "self-check (", 0),
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
    let bench = Bench::after_a_build();
    std::fs::rename(bench.path().join("output"), bench.path().join("undisturbed")).expect("can be moved");
    let undisturbed = Dataset::at(&bench.path().join("undisturbed/trees/1"));
    (bench, undisturbed)
}

/// `exit <code>` of each build, which the script prints.
fn codes(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("exit ")).collect()
}

#[test]
fn a_full_cache_stops_every_stage_with_a_clear_message_and_the_build_goes_on_when_there_is_room() {
    let (bench, undisturbed) = bench();
    for part in ["sources", "environments", "screens"] {
        std::fs::remove_dir_all(bench.cache().join(part)).expect("was there");
    }
    std::fs::remove_file(bench.cache().join("index")).expect("was a link");
    // With too little room for the next stage, then with enough of it, one stage after the other.
    let stages: Vec<String> = STAGES
        .iter()
        .map(|(stage, _, left)| {
            format!(
                "used=$(df -k --output=used small | tail -n 1)\n\
                 mount -o remount,size=$((used + {left}))k small\n\
                 code=0; \"$GISTMILL\" build repos.toml --cache-dir small >/dev/null 2>'said {stage}' || code=$?; echo exit $code\n\
                 mount -o remount,size=1g small\n\
                 code=0; \"$GISTMILL\" build repos.toml --cache-dir small --until {stage} >/dev/null || code=$?; echo exit $code\n"
            )
        })
        .collect();
    let script = format!(
        "mkdir small\nmount -t tmpfs -o size=1g none small; cp -a cache/. small\n{}",
        stages.concat()
    );
    let ended = inside(&bench, &script);
    for ((stage, mark, _), found) in STAGES.iter().zip(codes(&ended).chunks(2)) {
        let said = std::fs::read_to_string(bench.path().join(format!("said {stage}"))).unwrap_or_default();
        assert_eq!(found, ["3", "0"], "{stage}:\n{said}\n{}", ended.stderr);
        assert!(said.contains("small/") && said.contains("hint: free some disk space"), "{stage}:\n{said}");
        assert!(said.contains("No space left") || said.contains("is full"), "{stage}:\n{said}");
        assert!(said.contains(mark), "`{mark}` is not in\n{said}");
    }
    assert_eq!(codes(&ended).len(), 2 * STAGES.len(), "{ended:?}");
    assert_same(&undisturbed, &bench.dataset());
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
        ("ro", "cannot be written to", "choose another place with --output"),
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
