//! What of a patch may satisfy the judges without the work: flags, which change no number.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::diff::{Changed, is_ignored};
use super::funnel::is_python;
use super::lines::Lines;

/// Comments by which engines pass over code.
const SUPPRESSING: [&str; 2] = ["nosem", "ast-grep-ignore"];
/// Files by which pytest is configured.
const SETTINGS: [&str; 8] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
];
/// A name by which a test file loads plugins.
const LOADS_PLUGINS: &str = "pytest_plugins";

static SHIM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)\bsys\.modules\s*\[[^\]]*\]\s*=[^=]|^(async\s+)?def\s+__getattr__\s*\(")
        .expect("the pattern of shims is a pattern")
});

/// How a file declares its encoding: in the first line, or in the second one after a comment or nothing.
static ENCODING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\A(?:[ \t\x0c]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\x0c]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
        .expect("the pattern of encodings is a pattern")
});
/// Encodings in which names are written as they are.
const ENCODINGS: [&str; 11] = [
    "utf-8",
    "utf8",
    "u8",
    "utf-8-sig",
    "latin-1",
    "latin1",
    "l1",
    "iso-8859-1",
    "iso8859-1",
    "ascii",
    "us-ascii",
];
/// Files that Python imports, or puts on its path, and that nobody reads.
const WITHOUT_SOURCE: [&str; 7] = [".pyc", ".pyo", ".so", ".pyd", ".pth", ".egg", ".zip"];

/// A patch that was applied.
pub struct Applied<'a> {
    /// Python files of the tree that it makes, by path.
    pub files: &'a BTreeMap<String, String>,
    /// Paths that it puts; whether the base has them.
    pub put: &'a [(&'a str, bool)],
    /// Paths that it takes away.
    pub gone: &'a [&'a str],
    pub changed: &'a Changed,
    /// Lines of each additive pattern that matches.
    pub additive: &'a [&'a Lines],
}

/// The flags that hold, in order.
pub fn flags(applied: &Applied<'_>) -> Vec<String> {
    let added: Vec<&str> = applied.added().collect();
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let is_hidden = |(path, _): &(&str, bool)| is_python(path) && is_ignored(path);
    let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let suppresses = |line: &&str| SUPPRESSING.iter().any(|word| line.contains(word));
    let is_binary =
        |(path, existed): &(&str, bool)| !existed && WITHOUT_SOURCE.iter().any(|end| path.ends_with(end));
    let is_encoded =
        |(path, _): &(&str, bool)| applied.files.get(*path).is_some_and(|text| is_encoded_otherwise(text));
    let hides_code = added.iter().any(|line| suppresses(line) || line.chars().any(is_read_otherwise))
        || applied.put.iter().any(|put| is_hidden(put) || is_binary(put) || is_encoded(put));
    let loads_plugins = added.iter().any(|line| line.contains(LOADS_PLUGINS));
    let all = [
        ("adds-shim", added.iter().any(|line| SHIM.is_match(line))),
        ("comments-only", !added.is_empty() && added.iter().all(is_comment)),
        ("hides-code", hides_code),
        (
            "test-config-changed",
            applied.touched().any(|path| SETTINGS.contains(&name(path).as_str())) || loads_plugins,
        ),
        ("unreached-additive", applied.additive.iter().any(|lines| applied.is_unreached(lines))),
    ];
    all.iter().filter(|(_, holds)| *holds).map(|(flag, _)| (*flag).to_owned()).collect()
}

/// Whether a file declares an encoding in which its bytes may be other names than they seem.
fn is_encoded_otherwise(text: &str) -> bool {
    let name = ENCODING.captures(text.trim_start_matches('\u{feff}'));
    name.is_some_and(|name| !ENCODINGS.contains(&name[1].to_lowercase().replace('_', "-").as_str()))
}

/// Whether a character of a name is an ASCII one to Python and is written otherwise. Superscripts and signs are in no name.
fn is_read_otherwise(c: char) -> bool {
    let is_digit =
        matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{1d7ce}'..='\u{1d7ff}' | '\u{1fbf0}'..='\u{1fbf9}');
    let is_joined = matches!(c, '\u{ff3f}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'..='\u{fe4f}');
    !c.is_ascii() && (c.is_alphabetic() || is_digit || is_joined) && c.nfkc().all(|part| part.is_ascii())
}

impl Applied<'_> {
    fn touched(&self) -> impl Iterator<Item = &str> {
        self.put.iter().map(|(path, _)| *path).chain(self.gone.iter().copied())
    }

    /// The lines that it adds.
    fn added(&self) -> impl Iterator<Item = &str> {
        self.changed.added.ranges().flat_map(|(path, first, last)| {
            let lines = self.files.get(path).into_iter().flat_map(|text| text.split('\n'));
            let place = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
            lines.skip(place(first.saturating_sub(1))).take(place((last + 1).saturating_sub(first)))
        })
    }

    /// Whether a pattern matches in new Python files alone, which no other file imports and which are not tests.
    fn is_unreached(&self, lines: &Lines) -> bool {
        let mut paths = lines.paths().peekable();
        paths.peek().is_some()
            && paths.all(|path| super::funnel::is_python(path) && self.is_new(path) && !self.is_reached(path))
    }

    fn is_new(&self, path: &str) -> bool {
        self.put.iter().any(|(put, existed)| *put == path && !existed)
    }

    fn is_reached(&self, path: &str) -> bool {
        let mut parts = path.rsplit('/');
        let (file, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        if super::funnel::is_test(path) || stem == "conftest" {
            return true;
        }
        let name = if stem == "__init__" { folder } else { stem };
        let has_name = |line: &str| {
            line.contains("import")
                && line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
        };
        let others = self.files.iter().filter(|(other, _)| *other != path);
        others.flat_map(|(_, text)| text.lines()).any(has_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)], existed: &[&str], additive: &[(&str, u64)]) -> Vec<String> {
        let all: BTreeMap<String, String> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let put: Vec<(&str, bool)> = files.iter().map(|(path, _)| (*path, existed.contains(path))).collect();
        let mut changed = Changed::default();
        for (path, text) in files.iter().filter(|(path, _)| !is_ignored(path)) {
            changed.added.insert(path, 1, text.lines().count() as u64);
        }
        let lines: Lines = additive.iter().copied().collect();
        flags(&Applied { files: &all, put: &put, gone: &[], changed: &changed, additive: &[&lines] })
    }

    #[test]
    fn each_way_to_look_right_has_its_flag() {
        assert_eq!(of(&[("a.py", "x = 1\n")], &["a.py"], &[("a.py", 1)]), Vec::<String>::new());
        assert_eq!(of(&[("a.py", "# new_name\n\n")], &["a.py"], &[("a.py", 1)]), ["comments-only"]);
        let shims = ["sys.modules['old'] = new\n", "def __getattr__(name):\n"];
        for shim in shims {
            assert_eq!(of(&[("a.py", shim)], &["a.py"], &[("a.py", 1)]), ["adds-shim"], "{shim}");
        }
        assert_eq!(
            of(&[("a.py", "    def __getattr__(self, name): 1\n")], &["a.py"], &[]),
            Vec::<String>::new()
        );
        assert_eq!(of(&[("a.py", "old()  # nosem\n")], &["a.py"], &[]), ["hides-code"]);
        assert_eq!(of(&[("dist/a.py", "old()\n")], &[], &[]), ["hides-code"]);
        let hide = [
            ("a.py", "# coding: utf-7\ndef +AG8-ld(): 1\n"),
            ("a.py", "\r# vim: set fileencoding=cp037 :\nx = 1\n"),
            ("a.py", "\u{ff4f}ld()\n"),
            ("a.py", "old\u{ff3f}name()\n"),
            ("a.pyc", "x"),
            ("lib/b.so", "x"),
        ];
        for one in hide {
            assert_eq!(of(&[one], &[], &[]), ["hides-code"], "{one:?}");
        }
        let plain = [
            ("a.py", "# -*- coding: UTF_8 -*-\nx = 'm\u{b2} \u{e9} \u{2122} \u{2026}'\n"),
            ("a.py", "#!/usr/bin/python\n# coding: latin-1\nx = 1\n"),
            ("a.py", "x = 1\n# coding: utf-7\n"),
        ];
        for one in plain {
            assert_eq!(of(&[one], &[one.0], &[]), Vec::<String>::new(), "{one:?}");
        }
        assert_eq!(of(&[("t/conftest.py", "x = 1\n")], &["t/conftest.py"], &[]), ["test-config-changed"]);
        let loads = [("t/test_a.py", "pytest_plugins = ['x']\n")];
        assert_eq!(of(&loads, &["t/test_a.py"], &[]), ["test-config-changed"]);
        let (files, changed) = (BTreeMap::new(), Changed::default());
        let deletes =
            Applied { files: &files, put: &[], gone: &["tox.ini"], changed: &changed, additive: &[] };
        assert_eq!(flags(&deletes), ["test-config-changed"]);
    }

    #[test]
    fn an_addition_that_nothing_imports_is_flagged() {
        let dead = ("pkg/dead.py", "new()\n");
        assert_eq!(of(&[dead], &[], &[("pkg/dead.py", 1)]), ["unreached-additive"]);
        assert_eq!(of(&[("a.lua", "new()\n")], &[], &[("a.lua", 1)]), Vec::<String>::new());
        assert_eq!(
            of(&[dead, ("a.py", "from pkg import dead\n")], &[], &[("pkg/dead.py", 1)]),
            Vec::<String>::new()
        );
        assert_eq!(
            of(&[dead, ("a.py", "new()\n")], &["a.py"], &[("pkg/dead.py", 1), ("a.py", 1)]),
            Vec::<String>::new()
        );
        assert_eq!(
            of(&[("pkg/test_dead.py", "new()\n")], &[], &[("pkg/test_dead.py", 1)]),
            Vec::<String>::new()
        );
    }
}
