//! Requirement lines as they stand in files: which are requirements, which mean the tree itself, which are left out.
//!
//! Pure. Index options, credentials and paths never leave this file: a recipe names no host of an index, and nothing
//! of the tree but the tree itself is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use pep508_rs::VersionOrUrl;
use regex::Regex;

use crate::requirement::{normalize, parse};

/// Hashes (`sha256:…`) that `--hash` options name beside a requirement, by its text.
pub type Hashes = BTreeMap<String, BTreeSet<String>>;

/// What a list of requirement lines amounts to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    pub requirements: Vec<String>,
    pub constraints: Vec<String>,
    /// What both of them must be.
    pub hashes: Hashes,
    /// Extras of the tree itself (`-e .[tests]`).
    pub own_extras: Vec<String>,
    /// Projects below the root (`-e ./packages/a[tests]`).
    pub local: Vec<Local>,
    /// What was left out, and why, in words.
    pub left_out: Vec<String>,
}

/// A project below the root that a requirement names by its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// From the root of the tree.
    pub folder: String,
    pub extras: Vec<String>,
}

impl Lines {
    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
            && self.constraints.is_empty()
            && self.own_extras.is_empty()
            && self.local.is_empty()
    }

    /// Adds one requirement, as pip would read it on a command line or in a file.
    pub fn push(&mut self, text: &str) {
        self.push_from(text, None);
    }

    /// Adds one requirement, with its place, such as `requirements.txt:3`.
    fn push_from(&mut self, text: &str, place: Option<&str>) {
        let text = &self.tidied(text);
        match classify(text) {
            Entry::Requirement(requirement, hashes) => {
                self.hold(&requirement, hashes);
                self.requirements.push(requirement);
            }
            Entry::Own(extras) => self.own_extras.extend(extras),
            Entry::Local(local) => self.local.push(local),
            Entry::LeftOut(reason) => self.left_out.push(reason),
            Entry::Alien => self.left_out.push(alien(place)),
            Entry::Nothing => {}
        }
    }

    /// A line without commas that separate nothing, which pip reads over; a note says so.
    fn tidied(&mut self, text: &str) -> String {
        let (specification, marker) = match text.split_once(';') {
            Some((specification, marker)) => (specification, format!(";{marker}")),
            None => (text, String::new()),
        };
        let parts: Vec<&str> =
            specification.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        let tidy = format!("{}{marker}", parts.join(","));
        let name = parse(&tidy).filter(|_| parse(text).is_none()).map(|requirement| requirement.name);
        match name {
            Some(name) if specification.contains(',') => {
                self.left_out.push(format!("a comma too many after `{name}`"));
                tidy
            }
            _ => text.to_owned(),
        }
    }

    fn hold(&mut self, requirement: &str, hashes: Vec<String>) {
        if !hashes.is_empty() {
            self.hashes.entry(requirement.to_owned()).or_default().extend(hashes);
        }
    }

    /// Adds everything of another list.
    pub fn extend(&mut self, other: Lines) {
        for (requirement, hashes) in other.hashes {
            self.hashes.entry(requirement).or_default().extend(hashes);
        }
        self.requirements.extend(other.requirements);
        self.constraints.extend(other.constraints);
        self.own_extras.extend(other.own_extras);
        self.local.extend(other.local);
        self.left_out.extend(other.left_out);
    }
}

enum Entry {
    /// With the hashes that stand beside it.
    Requirement(String, Vec<String>),
    Own(Vec<String>),
    Local(Local),
    LeftOut(String),
    /// No requirement at all.
    Alien,
    Nothing,
}

/// Whether a path is where conda built what it distributes: the list was made by `pip freeze` in one of its environments, and
/// its name is public.
pub(super) fn is_of_conda(path: &str) -> bool {
    // The last one is where Anaconda's builds of some years ran, all of them.
    ["/feedstock_root/", "/croot/", "/conda-bld/", "/tmp/build/80754af9/"]
        .iter()
        .any(|part| path.contains(part))
}

/// What nobody knows the nature of is never quoted: notes are published.
fn alien(place: Option<&str>) -> String {
    format!("{}, which is not a requirement", place.unwrap_or("an entry"))
}

/// Options that requirement files may have, but for includes.
const PIP_OPTIONS: [&str; 14] = [
    "--extra-index-url",
    "--find-links",
    "--index-url",
    "--no-binary",
    "--no-index",
    "--only-binary",
    "--pre",
    "--prefer-binary",
    "--require-hashes",
    "--trusted-host",
    "--use-feature",
    "-f",
    "-i",
    "-e",
];

fn classify(text: &str) -> Entry {
    static EGG: LazyLock<Regex> = LazyLock::new(|| pattern(r"[#&]egg=([A-Za-z0-9._-]+)"));
    let text = text.trim();
    let text = text.strip_prefix("-e ").or_else(|| text.strip_prefix("--editable ")).unwrap_or(text).trim();
    let text = text.strip_prefix("--editable=").unwrap_or(text).trim();
    let mut options = text.split(" --");
    let plain = options.next().unwrap_or(text).trim();
    let hashes: Vec<String> = options.filter_map(hash).collect();
    let text = &with_hashes(plain, &hashes);
    if text.is_empty() {
        return Entry::Nothing;
    }
    if let Some(extras) = own(text) {
        return Entry::Own(extras);
    }
    if text.starts_with('-') {
        let option = text.split(['=', ' ']).next().unwrap_or("-");
        return match PIP_OPTIONS.iter().find(|known| **known == option) {
            Some(known) => Entry::LeftOut(format!("option {known}")),
            None => Entry::Alien,
        };
    }
    if text.contains("://") && !text.contains(" @ ") {
        return match EGG.captures(text) {
            Some(egg) => classify(&format!("{} @ {}", &egg[1], without_egg(text))),
            None => Entry::LeftOut("a URL without a name".to_owned()),
        };
    }
    if let Some(local) = local(text) {
        return Entry::Local(local);
    }
    let Some(requirement) = parse(text) else {
        return if text.contains("${") {
            Entry::LeftOut("a requirement that names an environment variable".to_owned())
        } else if text.starts_with(['.', '/']) || text.contains('/') {
            Entry::LeftOut("a local path".to_owned())
        } else {
            Entry::Alien
        };
    };
    match &requirement.version_or_url {
        Some(VersionOrUrl::Url(url)) if is_of_conda(url.path()) => {
            Entry::Requirement(requirement.name.to_string(), Vec::new())
        }
        Some(VersionOrUrl::Url(url)) if url.scheme() == "file" => {
            Entry::LeftOut(format!("{} from a local path", requirement.name))
        }
        Some(VersionOrUrl::Url(url)) if has_credentials(url.username(), url.password()) => {
            Entry::LeftOut(format!("{} from a URL with credentials", requirement.name))
        }
        version_or_url => {
            // An address has them in its fragment.
            let is_address = matches!(version_or_url, Some(VersionOrUrl::Url(_)));
            let hashes = if is_address { Vec::new() } else { hashes };
            Entry::Requirement(text.split_whitespace().collect::<Vec<_>>().join(" "), hashes)
        }
    }
}

/// A requirement that names an address says in its fragment what `--hash` options say beside it.
fn with_hashes(plain: &str, hashes: &[String]) -> String {
    if hashes.is_empty() || !plain.contains("://") {
        return plain.to_owned();
    }
    let (requirement, marker) = match plain.split_once(" ;") {
        Some((requirement, marker)) => (requirement, format!(" ;{marker}")),
        None => (plain, String::new()),
    };
    let start = if requirement.contains('#') { '&' } else { '#' };
    let hashes: Vec<String> = hashes.iter().map(|hash| hash.replacen(':', "=", 1)).collect();
    format!("{requirement}{start}{}{marker}", hashes.join("&"))
}

/// `sha256:…` of an option `hash=sha256:…`.
fn hash(option: &str) -> Option<String> {
    let value = option.trim().strip_prefix("hash")?.trim_start_matches(['=', ' ', '\t']);
    let (name, digits) = value.split_once(':')?;
    Some(format!("{}:{}", name.to_ascii_lowercase(), digits.trim().to_ascii_lowercase()))
}

/// An address whose fragment has no name any more: what else it says (a folder, a hash) stays.
fn without_egg(address: &str) -> String {
    let Some((plain, fragment)) = address.split_once('#') else { return address.to_owned() };
    let parts: Vec<&str> = fragment.split('&').filter(|part| !part.starts_with("egg=")).collect();
    if parts.is_empty() { plain.to_owned() } else { format!("{plain}#{}", parts.join("&")) }
}

/// `git@host` is a user name that everybody shares; anything else may be a secret.
fn has_credentials(user: &str, password: Option<&str>) -> bool {
    password.is_some() || !(user.is_empty() || user == "git")
}

/// The extras, when the text means the tree itself: `.`, `./`, `.[a,b]`.
fn own(text: &str) -> Option<Vec<String>> {
    let rest = text.strip_prefix('.')?;
    let rest = rest.strip_prefix('/').unwrap_or(rest).trim();
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split(',').map(normalize).filter(|extra| !extra.is_empty()).collect())
}

/// A folder of the tree: `./packages/a`, `packages/a[tests]`, `file:packages/a`. Whether a project is there is another
/// question; archives and places that leave the tree are none.
fn local(text: &str) -> Option<Local> {
    let (path, extras) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((path, extras)) => (path, extras),
        None => (text, ""),
    };
    let path = path.split([' ', ';', '#']).next()?;
    let path = path.strip_prefix("file:").unwrap_or(path);
    let is_archive = [".whl", ".zip", ".gz", ".bz2", ".xz"].iter().any(|ending| path.ends_with(ending));
    if !path.contains('/')
        || path.contains("://")
        || path.contains(['@', '$', '{', '=', '<', '>'])
        || is_archive
    {
        return None;
    }
    let extras = extras.split(',').map(normalize).filter(|extra| !extra.is_empty()).collect();
    Some(Local { folder: folder_of("", path)?, extras })
}

/// A path below a folder of the tree, from the root of the tree; none when it is the root, or leaves it.
pub fn folder_of(folder: &str, path: &str) -> Option<String> {
    join(&format!("{folder}/_"), path).filter(|path| !path.is_empty())
}

/// Reads a requirements file and what it includes; `read` gives the text of a file of the tree by its relative path.
pub fn read_file(path: &str, read: &dyn Fn(&str) -> Option<String>) -> Lines {
    let mut lines = Lines::default();
    let mut seen = BTreeSet::new();
    read_into(path, read, false, &mut seen, &mut lines);
    lines
}

fn read_into(
    path: &str,
    read: &dyn Fn(&str) -> Option<String>,
    as_constraint: bool,
    seen: &mut BTreeSet<(String, bool)>,
    into: &mut Lines,
) {
    if !seen.insert((path.to_owned(), as_constraint)) {
        return;
    }
    let Some(text) = read(path) else {
        into.left_out.push(format!("{path}, which is not in the tree"));
        return;
    };
    for (number, line) in logical_lines(&text) {
        let place = format!("{path}:{number}");
        if let Some((constraint, target)) = include(&line) {
            match join(path, target) {
                Some(target) => read_into(&target, read, as_constraint || constraint, seen, into),
                None => into.left_out.push("an include that is not a file of the tree".to_owned()),
            }
        } else if as_constraint {
            match classify(&line) {
                Entry::Requirement(requirement, hashes) => {
                    into.hold(&requirement, hashes);
                    into.constraints.push(requirement);
                }
                Entry::LeftOut(reason) => into.left_out.push(reason),
                Entry::Alien => into.left_out.push(alien(Some(&place))),
                Entry::Own(_) | Entry::Local(_) | Entry::Nothing => {}
            }
        } else {
            into.push_from(&line, Some(&place));
        }
    }
}

/// Files that a requirements file includes, relative to the tree.
pub fn includes(path: &str, text: &str) -> Vec<String> {
    logical_lines(text)
        .iter()
        .filter_map(|(_, line)| include(line))
        .filter_map(|(_, target)| join(path, target))
        .collect()
}

/// `-r file` or `-c file` (true), in any of the spellings of pip.
pub fn include(line: &str) -> Option<(bool, &str)> {
    for (flag, constraint) in [("--requirement", false), ("--constraint", true), ("-r", false), ("-c", true)]
    {
        if let Some(rest) = line.strip_prefix(flag) {
            let target = rest.trim_start_matches(['=', ' ', '\t']).trim();
            if !target.is_empty() && (flag.len() == 2 || rest.starts_with(['=', ' ', '\t'])) {
                return Some((constraint, target));
            }
        }
    }
    None
}

/// A path relative to a file of the tree; none when it leaves the tree or is a URL.
pub(in crate::environment) fn join(file: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = file.split('/').filter(|part| !part.is_empty()).collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Lines without comments, continuations joined, each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let (number, mut whole) = begun.take().unwrap_or((at + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(start) => {
                whole.push_str(start);
                whole.push(' ');
                begun = Some((number, whole));
            }
            None => lines.push((number, whole + line)),
        }
    }
    lines.extend(begun);
    let without_comments =
        lines.into_iter().map(|(number, line)| (number, without_comment(&line).to_owned()));
    without_comments.filter(|(_, line)| !line.is_empty()).collect()
}

fn without_comment(line: &str) -> &str {
    let mut comments = line.match_indices('#').map(|(at, _)| at);
    let end = comments.find(|at| *at == 0 || line[..*at].ends_with([' ', '\t']));
    line[..end.unwrap_or(line.len())].trim()
}

/// A regular expression that is known to be valid.
pub(in crate::environment) fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "every caller passes a literal, and a test compiles each")]
    Regex::new(text).expect("a valid literal pattern")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_the_hashes_that_stand_beside_it() {
        let listed = |line: &str| {
            let mut lines = Lines::default();
            lines.push(line);
            lines.requirements
        };
        for (line, expected) in [
            ("a @ https://h.example/a.whl --hash=sha256:00", "a @ https://h.example/a.whl#sha256=00"),
            (
                "a @ https://h.example/a.whl#sha256=00 --hash=sha256:11 --hash md5:22",
                "a @ https://h.example/a.whl#sha256=00&sha256=11&md5=22",
            ),
            (
                "a @ https://h.example/a.whl ; python_version > '3' --hash=sha256:00",
                "a @ https://h.example/a.whl#sha256=00 ; python_version > '3'",
            ),
            ("https://h.example/a.zip#egg=a&sha256=00", "a @ https://h.example/a.zip#sha256=00"),
            ("git+https://h.example/a#subdirectory=b&egg=a", "a @ git+https://h.example/a#subdirectory=b"),
            ("git+https://h.example/a#egg=a", "a @ git+https://h.example/a"),
            ("a==1 --hash=sha256:00", "a==1"),
        ] {
            assert_eq!(listed(line), [expected], "{line}");
        }
    }

    #[test]
    fn commas_that_separate_nothing_are_read_over() {
        for (line, expected) in [
            ("zict >=2.0, <4, ", Some("zict >=2.0,<4")),
            ("zict[a,b]>=2,,<4", Some("zict[a,b]>=2,<4")),
            ("zict==3,; python_version > '3'", Some("zict==3; python_version > '3'")),
            ("zict >=2.0, <4", None),
        ] {
            let mut lines = Lines::default();
            lines.push(line);
            assert_eq!(lines.requirements, [expected.unwrap_or(line)], "{line}");
            assert_eq!(lines.left_out.len(), usize::from(expected.is_some()), "{line}");
        }
    }

    #[test]
    fn hashes_beside_a_name_are_kept_with_it() {
        let read = tree(&[
            ("a.txt", "a==1 \\\n  --hash=sha256:AA \\\n  --hash sha256:bb\nb==2\n-c c.txt\n"),
            ("c.txt", "c==3 ; python_version > '3' --hash=sha256:cc\n"),
        ]);
        let mut lines = Lines::default();
        lines.extend(read_file("a.txt", &read));
        let held: Vec<(&str, Vec<&str>)> = lines
            .hashes
            .iter()
            .map(|(text, hashes)| (text.as_str(), hashes.iter().map(String::as_str).collect()))
            .collect();
        let expected =
            [("a==1", vec!["sha256:aa", "sha256:bb"]), ("c==3 ; python_version > '3'", vec!["sha256:cc"])];
        assert_eq!(held, expected);
        assert_eq!(
            (lines.requirements, lines.constraints.len()),
            (vec!["a==1".to_owned(), "b==2".to_owned()], 1)
        );
    }

    fn tree(files: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn nested_files_constraints_and_the_tree_itself_are_told_apart() {
        let read = tree(&[
            (
                "requirements/test.txt",
                "-r base.in\n-c ../constraints.txt\npytest>=7 # runner\n-e .[async, Web_x]\n",
            ),
            ("requirements/base.in", "attrs \\\n  >=20\n-r test.txt\n"),
            ("constraints.txt", "idna<4\n"),
        ]);
        let lines = read_file("requirements/test.txt", &read);
        assert_eq!(lines.requirements, ["attrs >=20", "pytest>=7"]);
        assert_eq!(lines.constraints, ["idna<4"]);
        assert_eq!(lines.own_extras, ["async", "web-x"]);
        assert!(lines.left_out.is_empty());
    }

    #[test]
    fn hosts_credentials_paths_and_hashes_do_not_get_through() {
        let read = tree(&[(
            "r.txt",
            "--extra-index-url https://me:secret@index.example/simple\n./vendored\nx @ file:///etc/x\n\
             y @ https://me:secret@host.example/y.whl\nz==1 --hash=sha256:00\ngit+https://h.example/a/w#egg=w\n",
        )]);
        let lines = read_file("r.txt", &read);
        assert_eq!(lines.requirements, ["z==1", "w @ git+https://h.example/a/w"]);
        assert_eq!(lines.left_out.len(), 3);
        assert!(!format!("{:?}", lines.left_out).contains("example"));
    }

    #[test]
    fn folders_of_the_tree_are_told_from_names_archives_and_what_leaves_the_tree() {
        let mut lines = Lines::default();
        for entry in ["./packages/a", "-e packages/b[Web_x, y]", "file:./c", "--editable=libs/../libs/d/"] {
            lines.push(entry);
        }
        let folders: Vec<&str> = lines.local.iter().map(|local| local.folder.as_str()).collect();
        assert_eq!(folders, ["packages/a", "packages/b", "c", "libs/d"]);
        assert_eq!(lines.local[1].extras, ["web-x", "y"]);
        for entry in ["../x", "/etc/x", "file:///etc/x", "./x.whl", "./a/../..", "x @ file:///etc/x"] {
            lines.push(entry);
        }
        assert_eq!((lines.local.len(), lines.left_out.len()), (4, 6), "{lines:?}");
        lines.push("name");
        lines.push("zict @ file:///home/conda/feedstock_root/build_artifacts/zict_1/work");
        lines.push("six @ file:///tmp/build/80754af9/six_1644875935023/work");
        assert_eq!(lines.requirements, ["name", "zict", "six"]);
    }

    #[test]
    fn a_file_that_includes_itself_or_leaves_the_tree_ends() {
        let read = tree(&[("r.txt", "-r r.txt\n-r ../../etc/passwd\n-r gone.txt\nx\n")]);
        let lines = read_file("r.txt", &read);
        assert_eq!(lines.requirements, ["x"]);
        assert_eq!(lines.left_out.len(), 2);
    }

    #[test]
    fn what_is_no_requirement_is_named_by_its_place_and_never_quoted() {
        let read = tree(&[
            (
                "requirements.txt",
                "ok\nmachine host login me password hunter2\n-c pins.txt\n-----BEGIN KEY hunter2\n\\\n  root:hunter2:0:0\n--hunter2 x\n",
            ),
            ("pins.txt", "# why\n\nhunter2 hunter2\n"),
        ]);
        let lines = read_file("requirements.txt", &read);
        assert_eq!(lines.requirements, ["ok"]);
        let places = [
            "requirements.txt:2",
            "pins.txt:3",
            "requirements.txt:4",
            "requirements.txt:5",
            "requirements.txt:7",
        ];
        assert_eq!(lines.left_out, places.map(|place| format!("{place}, which is not a requirement")));
        let mut entry = Lines::default();
        entry.push("machine hunter2");
        assert_eq!(entry.left_out, ["an entry, which is not a requirement"]);
    }

    #[test]
    fn lines_keep_the_number_that_they_begin_at() {
        let lines = logical_lines("a \\\r\n  >=1 # x\n\n# no\nb#c\nd \\");
        let expected = [(1, "a    >=1"), (5, "b#c"), (6, "d")];
        assert_eq!(lines, expected.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn names_are_compared_as_the_index_does() {}
}
