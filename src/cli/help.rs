//! What `--help` says beside the options: commands in groups, examples, exit codes.

use std::fmt::Write as _;

use clap::Command;

/// The heading of options that every command has.
pub(super) const EVERYWHERE: &str = "Options of every command";

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but a repository failed; 2 bad usage or config; \
3 the machine lacks something; 4 internal error; 130 interrupted, resumable.";

/// Commands in the order in which people meet them.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Build a dataset",
        &["try", "init", "check", "entries", "commits", "pattern", "build", "merge", "slurm", "refresh"],
    ),
    ("Look into it", &["show", "list", "explain", "replay", "shell", "report", "diff", "subset"]),
    ("Use it", &["export", "publish", "score", "serve", "verify", "witness", "mask", "scopes", "import"]),
    ("Machine and shell", &["cache", "image", "clean", "parity", "completions", "man", "schema"]),
];

pub(super) const BUILD: &str = "\
Examples:
  gistmill build                                  ./repos.toml, else two small repositories
  gistmill build repos.toml --only me/project     one repository of several
  gistmill build --until collect                  which tests can be screened?
  gistmill build -q --format json                 for a program

It can be stopped at any time; the same command goes on where it was.";
pub(super) const MERGE: &str = "\
Examples:
  gistmill merge repos.toml                       after `gistmill build --shard K/N repos.toml` on N machines
  gistmill merge repos.toml --shards 6            six of them, or say which are missing";
pub(super) const SLURM: &str = "\
Examples:
  gistmill slurm repos.toml --shards 16            writes the jobs
  gistmill slurm repos.toml --shards 16 --submit   and submits them";
pub(super) const CHECK: &str = "\
Examples:
  gistmill check
  gistmill check repos.toml --explain --only me/project";
pub(super) const INIT: &str = "\
Examples:
  gistmill init ../project
  gistmill init https://example.org/me/project --branch main";
pub(super) const TRY: &str = "\
Examples:
  gistmill try ../project
  gistmill try https://example.org/me/project --limit 50";
pub(super) const ENTRIES: &str = "\
Examples:
  gistmill entries ../project
  gistmill entries ../project --write repos.toml";
pub(super) const SHOW: &str = "\
Examples:
  gistmill show test_login                        one line for each test that has it in its name
  gistmill show tests/test_login.py::test_login   all about one test
  gistmill show 'tests/test_login.py::test_login[admin]'
  gistmill show me/project                        a repository, one line each";
pub(super) const LIST: &str = "\
Examples:
  gistmill list --state dropped --only me/project
  gistmill list --cause needs-network --cause times-out
  gistmill list output/mine/2026.11 --state published --tier hard --format csv";
pub(super) const EXPLAIN: &str = "\
Examples:
  gistmill explain                                all causes and flags, a line each
  gistmill explain depends-on-hash-seed
  gistmill explain rule:trivial-trace";
pub(super) const REPLAY: &str = "\
Examples:
  gistmill replay tests/test_a.py::test_order --world hash-seed
  gistmill replay tests/test_a.py::test_race --world base --times 20
  gistmill replay me__project.test_order-0123456789abcdef --dataset received/mine/2026.11";
pub(super) const SHELL: &str = "\
Examples:
  gistmill shell output/mine/2026.11 -i me__project.test_order-0123456789abcdef
  gistmill shell received/mine/2026.11 -i tests/test_a.py::test_order -- python -m pytest tests/test_a.py -x
  gistmill shell output/mine/2026.11 -i test_order -- sh -c 'cat > concise.py && python -m pytest concise.py' <a.py";
pub(super) const PARITY: &str = "\
Examples:
  gistmill parity me/project repos.toml";
pub(super) const SCORE: &str = "\
Examples:
  gistmill score output/mine/2026.11 runs/agent-a preds.json
  gistmill score output/mine/2026.11 runs/agent-a --subset top --attempts 3
  gistmill score output/mine/2026.11 runs/agent-a runs/agent-b
  gistmill score output/mine/2026.11 --self-check";
pub(super) const SERVE: &str = "\
Examples:
  gistmill serve output/mine/2026.11                        http://127.0.0.1:8642/score
  gistmill serve output/mine/2026.11 --listen 127.0.0.1:0   a port that is free
  gistmill serve output/mine/2026.11 --stdio                JSON lines, for a program that starts it";
pub(super) const VERIFY: &str = "\
Examples:
  gistmill verify output/mine/2026.11
  gistmill verify output/mine/2026.11 --sample 20 --source me/project=../project";
pub(super) const WITNESS: &str = "\
Examples:
  gistmill witness output/mine/2026.11
  gistmill witness output/mine/2026.11 --subset top";
pub(super) const EXPORT: &str = "\
Examples:
  gistmill export output/mine/2026.11 --to harbor --output run
  gistmill export --to swe-bench --to mini-swe-agent --output run
  gistmill export --to harbor --output run --org my-lab --without-solutions --canary
  gistmill export --to prompts --output batch";
pub(super) const PUBLISH: &str = "\
Examples:
  gistmill publish output/mine/2026.11 --to hub --repo me/mine --author 'Ann Example'";
pub(super) const MASK: &str = "\
Examples:
  gistmill mask src/project/core.py
  gistmill mask src/project/core.py --keep-imports
  gistmill --format json mask src/project/core.py   with the functions, and what was removed";
pub(super) const SCOPES: &str = "\
Examples:
  gistmill scopes                  of the repositories in ./repos.toml
  gistmill scopes mine.toml --only me/project";
pub(super) const IMPORT: &str = "\
Examples:
  gistmill import recube downloads/data --output imported
  gistmill build imported/repos.toml";
pub(super) const COMMITS: &str = "\
Examples:
  gistmill commits ../project
  gistmill commits ../project --min-files 10 --min-code-files 8 --dropped
  gistmill commits me/project=../clone ../other --write pairs.toml";
pub(super) const PATTERN: &str = "\
Examples:
  gistmill pattern mine ../project@25bae89f65de61bdce09df2c1273576b19a2cdf1 --output patterns
  gistmill pattern check ../project@25bae89f65de61bdce09df2c1273576b19a2cdf1 patterns/*.yml";
pub(super) const DIFF: &str = "\
Examples:
  gistmill diff                                   the newest dataset and the version before it
  gistmill diff output/mine/2026.11 output/mine/2026.12
  gistmill diff output/mine/2026.11/subsets/top.parquet output/mine/2026.12/subsets/top.parquet";
pub(super) const REFRESH: &str = "\
Examples:
  gistmill refresh --dry-run
  gistmill refresh repos.toml --set-version 2026.12";
pub(super) const SUBSET: &str = "\
Examples:
  gistmill subset --config repos.toml --subset short-and-wide
  gistmill subset output/mine/2026.11 --output cut";
pub(super) const REPORT: &str = "\
Examples:
  gistmill report --open
  gistmill report output/mine/2026.11";
pub(super) const CACHE: &str = "\
Examples:
  gistmill cache size
  gistmill cache prune --unused-for 60 --dry-run";
pub(super) const IMAGE: &str = "\
Examples:
  gistmill image list
  gistmill image save gistmill/me__project:0123456789ab -o project.tar.gz
  gistmill image load project.tar.gz
  gistmill image push output/mine/2026.11 --registry ghcr.io/me/datasets
  gistmill image check output/mine/2026.11";
pub(super) const CLEAN: &str = "\
Examples:
  gistmill clean --dry-run
  gistmill clean";
pub(super) const COMPLETIONS: &str = "\
Examples:
  gistmill completions bash > ~/.local/share/bash-completion/completions/gistmill
  gistmill completions zsh > ~/.zfunc/_gistmill
  gistmill completions fish > ~/.config/fish/completions/gistmill.fish";
pub(super) const MAN: &str = "\
Examples:
  gistmill man --output ~/.local/share/man/man1";
pub(super) const SCHEMA: &str = "\
Examples:
  gistmill schema config > repos.schema.json      then `#:schema ./repos.schema.json` heads repos.toml
  gistmill schema rules > rules.schema.json";

/// The command line with its commands in groups, in place of one long list.
pub(super) fn grouped(command: Command) -> Command {
    let mut text = String::new();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or_default();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}`gistmill help COMMAND` says more, with \
         examples.\n\nOptions:\n{{options}}{{after-help}}"
    );
    command.help_template(template).after_help(EXIT_CODES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_in_one_group_and_has_examples_of_its_own() {
        let command = super::super::command();
        let names: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = super::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(grouped.len(), names.len(), "each once");
        for one in command.get_subcommands() {
            let examples = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let start = format!("Examples:\n  gistmill {}", one.get_name());
            assert!(examples.starts_with(&start), "{}: {examples}", one.get_name());
        }
    }
}
