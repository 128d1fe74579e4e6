//! A hash of the code that a group executes: the definitions of all functions of the tree that its trace shows, its own
//! test and fixtures among them, with their decorators. It shows across versions whether a group is still the same.
//!
//! Neither line numbers nor file names enter it, so code that only moved keeps its hash. Module and class bodies do not
//! enter it either: they run for every group whose test file imports them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::Ranged;

use super::STACK;
use super::depth::is_too_deep;
use super::encoding::decoded;
use crate::beneath::Folder;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::trace::{FunctionCalls, check_path};

/// Largest source file that is read, in bytes.
const LARGEST_SOURCE: u64 = 64 << 20;

/// The content of a source file by its path in the tree; none when it is not a regular file of the tree, or too large.
///
/// Paths come from what tests report. A link of the tree is followed as long as it stays in the tree.
pub fn read_source(tree: &Path, path: &str) -> Option<Vec<u8>> {
    check_path(path).ok()?;
    let tree = tree.canonicalize().ok()?;
    let real = tree.join(path).canonicalize().ok()?;
    Folder::open(&tree).ok()?.read(real.strip_prefix(&tree).ok()?, LARGEST_SOURCE).ok()
}

/// The files of a tree, each read and each definition hashed once.
#[derive(Debug)]
pub struct Definitions {
    root: PathBuf,
    files: BTreeMap<String, Option<Source>>,
    hashes: BTreeMap<(String, u32), String>,
}

impl Definitions {
    /// Nothing is read yet.
    pub fn new(root: &Path) -> Self {
        Definitions { root: root.to_owned(), files: BTreeMap::new(), hashes: BTreeMap::new() }
    }

    /// The hash over the definitions of functions that were called; their order does not matter. A definition that is
    /// not in its file (generated code) counts by its name only.
    pub fn hash(&mut self, functions: &[FunctionCalls]) -> String {
        let mut parts = BTreeSet::new();
        for function in functions.iter().filter(|function| function.calls > 0) {
            parts.insert((function.function.as_str(), self.definition(&function.file, function.line)));
        }
        let flat: Vec<String> = parts.into_iter().flat_map(|(name, hash)| [name.to_owned(), hash]).collect();
        hash_parts(&flat)
    }

    fn definition(&mut self, file: &str, line: u32) -> String {
        let Definitions { root, files, hashes } = self;
        if let Some(known) = hashes.get(&(file.to_owned(), line)) {
            return known.clone();
        }
        let source = files.entry(file.to_owned()).or_insert_with(|| {
            let bytes = read_source(root, file)?;
            Some(Source::new(decoded(&bytes)))
        });
        let text = source.as_ref().and_then(|source| source.definition(line)).unwrap_or_default();
        let hash = sha256_hex(text.as_bytes());
        hashes.insert((file.to_owned(), line), hash.clone());
        hash
    }
}

/// A Python file as logical lines: a statement with its brackets and strings may go over several lines.
#[derive(Debug)]
struct Source {
    text: String,
    lines: Vec<Logical>,
}

/// A logical line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Logical {
    /// First and last line, 1-based.
    first: u32,
    last: u32,
    indent: usize,
    /// Bytes from the first character that is not a blank to the end of the last line.
    start: usize,
    end: usize,
}

impl Source {
    fn new(text: String) -> Self {
        let lines = logical_lines(&text);
        Source { text, lines }
    }

    /// The text of the definition that begins at a line, decorators and body included; for a lambda or a comprehension
    /// the statement that it is in.
    fn definition(&self, line: u32) -> Option<&str> {
        let first = self.lines.iter().position(|one| (one.first..=one.last).contains(&line))?;
        let head = (first..self.lines.len()).find(|at| !self.starts_with(*at, &["@"])).unwrap_or(first);
        let mut last = first;
        if self.starts_with(head, &["def ", "async ", "class "]) {
            let deeper = |one: &&Logical| one.indent > self.lines[head].indent;
            last = head + self.lines[head + 1..].iter().take_while(deeper).count();
        }
        self.text.get(self.lines[first].start..self.lines[last].end)
    }

    fn starts_with(&self, at: usize, words: &[&str]) -> bool {
        let rest = self.text.get(self.lines[at].start..).unwrap_or_default();
        words.iter().any(|word| rest.starts_with(word))
    }
}

/// The logical lines of a text, as the tokens of the parser give them: none of a text that is too deep to be parsed, and of
/// what is not Python whatever is known.
fn logical_lines(text: &str) -> Vec<Logical> {
    if is_too_deep(text) {
        return Vec::new();
    }
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at);
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let logical = |(start, end): (usize, usize)| {
        // The line's end itself is not part of it.
        let end = end - usize::from(text.get(start..end).is_some_and(|text| text.ends_with('\n')));
        let first = line_of(start);
        let indent = indent(&text[starts[first - 1]..start]);
        Logical { first: number(first), last: number(line_of(end)), indent, start, end }
    };
    stacker::grow(STACK, || {
        let parsed = ruff_python_parser::parse_unchecked_source(text, PySourceType::Python);
        let (mut lines, mut begun) = (Vec::new(), None);
        for token in parsed.tokens() {
            match token.kind() {
                TokenKind::NonLogicalNewline
                | TokenKind::Comment
                | TokenKind::Indent
                | TokenKind::Dedent
                | TokenKind::EndOfFile => {}
                TokenKind::Newline => {
                    lines.extend(begun.take().map(|start| logical((start, token.end().to_usize()))));
                }
                _ => {
                    begun.get_or_insert(token.start().to_usize());
                }
            }
        }
        lines
    })
}

/// The column up to which blanks reach; a tab goes to the next multiple of eight.
fn indent(blanks: &str) -> usize {
    blanks.chars().fold(0, |column, blank| if blank == '\t' { (column / 8 + 1) * 8 } else { column + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"import os  # def no(): pass
@decorated(
    "a)",
)
# a comment in between
@again
def first(x,
          y=")"):
    """Long
text at the margin
    """
    if x: return {
1: 2}

    # a comment
    return y
LATER = [lambda: 1,
         lambda: 2]
class Thing:
    async def method(self): return 'it\'s'
    def other(self):
	    pass \
+ 1
value = f"{LATER}" ; done = '''
def not_here():
    pass
'''"#;

    fn definition(line: u32) -> &'static str {
        Source::new(TEXT.to_owned())
            .definition(line)
            .map(|text| TEXT.get(TEXT.find(text).unwrap()..).unwrap().get(..text.len()).unwrap())
            .unwrap_or_default()
    }

    #[test]
    fn only_regular_files_of_the_tree_are_read() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs_err::create_dir_all(tree.join("package")).unwrap();
        fs_err::write(folder.path().join("secret"), "outside").unwrap();
        fs_err::write(tree.join("package/a.py"), "inside").unwrap();
        nix::unistd::mkfifo(&tree.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (name, target) in [
            ("link.py", "package/a.py"),
            ("folder", "package"),
            ("out.py", "../secret"),
            ("zero.py", "/dev/zero"),
            ("loop.py", "loop.py"),
            ("piped.py", "pipe"),
        ] {
            symlink(target, tree.join(name)).unwrap();
        }
        for path in ["package/a.py", "link.py", "folder/a.py"] {
            assert_eq!(read_source(&tree, path).as_deref(), Some(&b"inside"[..]), "{path}");
        }
        let secret = folder.path().join("secret");
        for path in [
            "../secret",
            "package/../../secret",
            secret.to_str().unwrap(),
            "/dev/zero",
            "out.py",
            "zero.py",
            "loop.py",
            "pipe",
            "piped.py",
            "package",
            "",
            "nowhere.py",
        ] {
            assert_eq!(read_source(&tree, path), None, "{path}");
        }
        let sparse = fs_err::File::create(tree.join("large.py")).unwrap();
        sparse.set_len(LARGEST_SOURCE + 1).unwrap();
        assert_eq!(read_source(&tree, "large.py"), None);
    }

    #[test]
    fn a_definition_reaches_from_its_decorators_to_the_end_of_its_body() {
        let first = definition(2);
        assert!(first.starts_with("@decorated(") && first.ends_with("return y"), "{first}");
        assert!(first.contains("text at the margin") && first.contains("1: 2}"));
        assert_eq!(definition(20), "async def method(self): return 'it\\'s'");
        assert_eq!(definition(21), "def other(self):\n\t    pass \\\n+ 1");
    }

    #[test]
    fn a_lambda_stands_for_its_statement_and_strings_define_nothing() {
        assert_eq!(definition(18), "LATER = [lambda: 1,\n         lambda: 2]");
        assert!(definition(25).starts_with("value = f"), "{}", definition(25));
        assert_eq!(Source::new(TEXT.to_owned()).definition(99), None);
    }

    #[test]
    fn any_text_can_be_read() {
        let mut random = fastrand::Rng::with_seed(8);
        let pieces = ["\"", "'''", "\\", "\n", "(", ")", "def a():", "    ", "\t", "#", "é", "@x", "\r\n"];
        for _ in 0..2_000 {
            let text: String =
                (0..random.usize(0..40)).map(|_| pieces[random.usize(0..pieces.len())]).collect();
            let source = Source::new(text.clone());
            let lines = u32::try_from(text.lines().count()).unwrap() + 2;
            for line in 0..=lines {
                assert!(source.definition(line).is_none_or(|found| text.contains(found)), "{text:?}");
            }
        }
    }

    fn call(file: &str, function: &str, line: u32) -> FunctionCalls {
        FunctionCalls {
            file: file.into(),
            function: function.into(),
            line,
            calls: 1,
            order: 0,
            lines: None,
            callers: None,
        }
    }

    #[test]
    fn moved_code_keeps_the_hash_and_changed_code_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs_err::write(folder.path().join(name), text).unwrap();
        write("a.py", "def f():\n    return 1\n\ndef g():\n    return 2\n");
        write("moved.py", "import os\n\n\n\ndef f():\n    return 1\n");
        write("changed.py", "def f():\n    return 3\n");
        let hash = |calls: &[FunctionCalls]| Definitions::new(folder.path()).hash(calls);
        let (f, g) = (call("a.py", "f", 1), call("a.py", "g", 4));
        assert_eq!(hash(&[f.clone(), g.clone()]), hash(&[g.clone(), f.clone()]));
        assert_eq!(hash(std::slice::from_ref(&f)), hash(&[call("moved.py", "f", 5)]));
        assert_ne!(hash(std::slice::from_ref(&f)), hash(&[call("changed.py", "f", 1)]));
        assert_ne!(hash(std::slice::from_ref(&f)), hash(&[f.clone(), g]));
        assert_ne!(hash(&[call("gone.py", "f", 1)]), hash(&[call("gone.py", "g", 1)]));
        let uncalled = FunctionCalls { calls: 0, ..call("a.py", "g", 4) };
        assert_eq!(hash(&[f.clone(), uncalled]), hash(&[f]));
    }
}
