//! Normalization of output: the short list of the definition and nothing else. Pure.
//!
//! Replaced are memory addresses in `0x…` form, the checkout path, the place of the interpreter's own library, the
//! part of a line of `/proc/self/mountinfo` that names the host's folders, the temporary directory (with the name of the user in pytest's own), process IDs that the runner knows, durations that
//! pytest and unittest print, and in lines of well-known loggers and servers the time and the port of a client
//! ([`log_lines`]). Each replacement is counted by kind.

pub mod log_lines;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::backend::Places;

/// The temporary directory that code names when it does not ask.
const USUAL_TMP: &str = "/tmp";

static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b0x[0-9a-fA-F]{5,16}\b"));
static SUMMARY_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(\b(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|no tests ran)\b[^\n]{0,200}?) in \d+\.\d+s(?: \(\d+:\d\d:\d\d\))?",
    )
});
static SLOWEST_DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^(\s*)\d+\.\d+s (call|setup|teardown)\b"));
/// Up to the mount point: numbers that the kernel gives out, and the place in the host's file system.
static MOUNT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)\b\d+ \d+ \d+:\d+ /\S* (/\S*) "));
static UNITTEST_DURATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^(Ran \d+ tests?) in \d+\.\d+s$"));

/// Every kind of replacement, with what it replaces.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let plain = [
        ("address", "<Box object at 0x7f0123456789>"),
        ("duration", "== 1 passed in 0.12s ==, 0.50s call test_x, Ran 1 test in 0.001s"),
        ("mount", "a line of /proc/self/mountinfo, up to the mount point"),
        ("process-id", "the ID of the process of the test"),
        ("python", "the prefix of the interpreter, where a path leads to its own library"),
        ("root", "the path of the checkout"),
        ("tmp", "the path of the temporary directory"),
    ];
    plain.into_iter().chain(log_lines::FORMS.iter().map(|form| (form.name, form.example)))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

/// Smaller IDs are left alone: they could be any number that a test prints.
const SMALLEST_PROCESS_ID: u32 = 10_000;

/// Replaces what may differ between two runs of one and the same behaviour.
#[derive(Debug, Clone)]
pub struct Normalizer {
    root: String,
    venv: String,
    /// The temporary directory, and the usual one where it is another.
    tmp: Vec<String>,
    /// pytest's own directory for the temporary files of this user, without the temporary directory.
    of_user: String,
    /// How the paths of the interpreter's own library begin.
    library: String,
}

impl Normalizer {
    /// A normalizer for code that sees these places, run by an interpreter with this prefix.
    pub fn new(places: &Places, user: &str, python_prefix: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut tmp = vec![text(&places.tmp)];
        if tmp[0] != USUAL_TMP {
            tmp.push(USUAL_TMP.to_owned());
        }
        Normalizer {
            root: text(&places.root),
            venv: text(&places.venv),
            tmp,
            of_user: format!("<tmp>/pytest-of-{user}"),
            library: format!("{}/lib/python3.", text(python_prefix)),
        }
    }

    /// Output of a case; what was replaced is added to `replaced`.
    pub fn output(&self, text: &str, process_ids: &[u32], replaced: &mut BTreeMap<String, u32>) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut text = text.to_owned();
        let mut step = |kind: &str, pattern: &Regex, with: &dyn Fn(&Captures<'_>) -> String| {
            let mut count = 0;
            let changed = pattern.replace_all(&text, |found: &Captures<'_>| {
                count += 1;
                with(found)
            });
            if count > 0 {
                text = changed.into_owned();
                *replaced.entry(kind.to_owned()).or_default() += count;
            }
        };
        step("address", &ADDRESS, &|_| "0x…".to_owned());
        step("duration", &SUMMARY_DURATION, &|found| format!("{} in …s", &found[1]));
        step("duration", &SLOWEST_DURATION, &|found| format!("{}…s {}", &found[1], &found[2]));
        step("duration", &UNITTEST_DURATION, &|found| format!("{} in …s", &found[1]));
        step("mount", &MOUNT, &|found| format!("<mount> {} ", &found[1]));
        for form in &log_lines::FORMS {
            step(form.name, form.pattern, &|found| {
                let mut text = String::new();
                found.expand(form.with, &mut text);
                text
            });
        }
        for process_id in process_ids.iter().filter(|process_id| **process_id >= SMALLEST_PROCESS_ID) {
            let exact = pattern(&format!(r"\b{process_id}\b"));
            step("process-id", &exact, &|_| "<pid>".to_owned());
        }
        let tmp = self.tmp.iter().map(|path| ("tmp", path, "<tmp>"));
        let others = [("root", &self.root, "<root>"), ("python", &self.library, LIBRARY)];
        for (kind, path, name) in others.into_iter().chain(tmp) {
            let (changed, count) = replace_path(&text, path, name);
            if count > 0 {
                text = changed;
                *replaced.entry(kind.to_owned()).or_default() += count;
            }
        }
        self.any_user(text)
    }

    /// A node or parameter ID with machine paths replaced, and whether there were any.
    pub fn id(&self, text: &str) -> (String, bool) {
        let mut text = text.to_owned();
        let mut any = false;
        let tmp = self.tmp.iter().map(|path| (path, "<tmp>"));
        for (path, name) in [(&self.root, "<root>"), (&self.venv, "<venv>")].into_iter().chain(tmp) {
            let (changed, count) = replace_path(&text, path, name);
            any |= count > 0;
            text = changed;
        }
        (self.any_user(text), any)
    }

    /// The name of the user is part of the temporary directory that pytest makes.
    fn any_user(&self, text: String) -> String {
        if text.contains(&self.of_user) {
            text.replace(&self.of_user, "<tmp>/pytest-of-<user>")
        } else {
            text
        }
    }
}

/// What stands for the beginning of paths of the interpreter's own library.
const LIBRARY: &str = "<python>/lib/python3.";

/// Replaces `path` where it stands as a path: not in the middle of a longer name or path. One that ends with a period is
/// the beginning of a name.
fn replace_path(text: &str, path: &str, name: &str) -> (String, u32) {
    let mut result = String::with_capacity(text.len());
    let (mut rest, mut count) = (text, 0);
    while let Some(position) = rest.find(path) {
        let (before, after) = (&rest[..position], &rest[position + path.len()..]);
        let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let starts = !before.chars().next_back().is_some_and(|c| part_of_name(c) || c == '/');
        let ends = path.ends_with('.')
            || !after.chars().next().is_some_and(part_of_name)
            || after.starts_with('.') && !after[1..].starts_with(char::is_alphanumeric);
        result.push_str(before);
        if starts && ends {
            result.push_str(name);
            count += 1;
        } else {
            result.push_str(path);
        }
        rest = after;
    }
    result.push_str(rest);
    (result, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_worlds_show_the_same_for_the_same_temporary_file() {
        let other = Normalizer::new(
            &Places { root: "/srv/tree".into(), tmp: "/var/scratch".into(), ..Places::in_sandbox() },
            "somebody-else",
            Path::new("/home/me/.pyenv/versions/3.12.1"),
        );
        let seen = other.output(
            "/srv/tree/a /var/scratch/pytest-of-somebody-else/pytest-0/t0 /tmp/x \"/home/me/.pyenv/versions/3.12.1/lib/python3.12/json/__init__.py\"",
            &[],
            &mut BTreeMap::new(),
        );
        let expected = "<root>/a <tmp>/pytest-of-<user>/pytest-0/t0 <tmp>/x \"<python>/lib/python3.12/json/__init__.py\"";
        assert_eq!(seen, expected);
        let here =
            "/testbed/a /tmp/pytest-of-gistmill/pytest-0/t0 /tmp/x \"/usr/lib/python3.12/json/__init__.py\"";
        assert_eq!(output(here), seen);
        assert_eq!(output("/srv/usr/lib/python3.12 /usr/lib/x"), "/srv/usr/lib/python3.12 /usr/lib/x");
    }

    #[test]
    fn what_is_mounted_names_no_folder_of_the_host() {
        let line = "713 700 8:1 /home/ann/.cache/gistmill/environments/4f/tree /testbed ro,nosuid - ext4 /dev/sda1 rw\n";
        let seen = normalizer().output(line, &[], &mut BTreeMap::new());
        assert_eq!(seen, "<mount> <root> ro,nosuid - ext4 /dev/sda1 rw\n");
        let other = line.replace("ann", "ben").replace("713 700", "99 98");
        assert_eq!(normalizer().output(&other, &[], &mut BTreeMap::new()), seen);
        let plain = "1 2 3:4 then /a /b\n";
        assert_eq!(normalizer().output(plain, &[], &mut BTreeMap::new()), plain);
    }

    fn normalizer() -> Normalizer {
        Normalizer::new(&Places::in_sandbox(), "gistmill", Path::new("/usr"))
    }

    fn output(text: &str) -> String {
        normalizer().output(text, &[42_421], &mut BTreeMap::new())
    }

    #[test]
    fn an_address_is_replaced_and_a_random_number_is_not() {
        assert_eq!(output("<Foo at 0x7f3a12bc> 0x1f 123456"), "<Foo at 0x…> 0x1f 123456");
    }

    #[test]
    fn paths_are_replaced_only_where_they_are_paths() {
        assert_eq!(
            output("/testbed/a /tmp /tmpfile /var/tmp x/testbed '/testbed' /tmp."),
            "<root>/a <tmp> /tmpfile /var/tmp x/testbed '<root>' <tmp>."
        );
    }

    #[test]
    fn durations_of_pytest_go_and_other_durations_stay() {
        assert_eq!(
            output(
                "== 1 passed, 2 skipped in 0.12s ==\n0.50s call test_x\nRan 2 tests in 0.003s\ntook 0.12s"
            ),
            "== 1 passed, 2 skipped in …s ==\n…s call test_x\nRan 2 tests in …s\ntook 0.12s"
        );
    }

    #[test]
    fn known_process_ids_go_and_replacements_are_counted() {
        let mut replaced = BTreeMap::new();
        let text = normalizer().output("pid 42421 of 424212, 17", &[42_421, 17], &mut replaced);
        assert_eq!((text.as_str(), replaced["process-id"]), ("pid <pid> of 424212, 17", 1));
    }

    #[test]
    fn machine_paths_in_ids_are_replaced_and_reported() {
        assert_eq!(normalizer().id("t.py::t[/testbed/x]"), ("t.py::t[<root>/x]".into(), true));
        assert_eq!(normalizer().id("t.py::t[/x]"), ("t.py::t[/x]".into(), false));
    }

    #[test]
    fn the_judge_of_exports_knows_everything_that_stands_for_something_else() {
        let judge = include_str!("../export/judge.py");
        let mark = pattern(r"<[a-z]+>|0x…|…s");
        for (kind, example) in kinds() {
            let text = match kind {
                "mount" => "7 3 8:1 /home/a /testbed ro",
                "process-id" => "42421",
                "python" => "/usr/lib/python3.12/json",
                "root" => "/testbed/a",
                "tmp" => "/tmp/pytest-of-gistmill/a",
                _ => example,
            };
            let seen = output(text);
            let mut marks = mark.find_iter(&seen).map(|found| found.as_str()).peekable();
            assert!(marks.peek().is_some(), "{kind}: {seen}");
            for mark in marks.filter(|mark| *mark != "<root>") {
                assert!(judge.contains(&format!("\n    \"{mark}\": (")), "{kind}: {mark}");
            }
        }
    }

    #[test]
    fn normalization_is_idempotent() {
        let once = output("0xdeadbeef /testbed 3 failed in 1.00s /tmp/pytest-of-x");
        assert_eq!(output(&once), once);
        for form in &log_lines::FORMS {
            let once = output(form.example);
            assert_eq!(output(&once), once, "{}", form.name);
        }
    }

    #[test]
    fn a_line_of_a_server_is_the_same_at_any_time_and_is_counted() {
        let mut replaced = BTreeMap::new();
        let mut seen = |time: &str| {
            let line = format!("127.0.0.1 - - [{time}] \"GET /get HTTP/1.1\" 200 17");
            normalizer().output(&line, &[], &mut replaced)
        };
        assert_eq!(seen("23/Nov/2026 05:15:34"), seen("01/Jan/2028 00:00:00"));
        assert_eq!(replaced, [("timestamp-http-server".to_owned(), 2)].into());
        assert!(kinds().any(|(kind, _)| kind == "timestamp-http-server"));
    }
}
