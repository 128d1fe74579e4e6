//! Sample repositories, and what tests share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gistmill::config::{BackendKind, Repo, SourceSpec};
use gistmill::error::Result;
use gistmill::record::id::{CommitSha, RepoSlug};
use gistmill::record::source::Pinned;
use gistmill::source::{IndexTool, pin};
use gistmill::store::Cache;
use git2::{IndexEntry, IndexTime, Oid, Repository, Signature, Time};
use tempfile::TempDir;

/// 2024-01-02T03:04:05Z, written in another time zone.
pub const WHEN: i64 = 1_704_164_645;

/// Login that git's credential helper gives in these tests, to servers that [`keep_login`] names.
pub const HELPER_LOGIN: &str = "helper:helper-secret";

/// What the user keeps for a host that no test asks.
const OTHER_LOGIN: &str = "other:stored-secret@elsewhere.example";

/// A repository under construction; commits go straight into the object store.
pub struct Sample {
    pub repository: Repository,
}

/// Mode, path, content.
pub type File<'a> = (u32, &'a [u8], &'a [u8]);

pub const FILE: u32 = 0o100_644;
pub const EXECUTABLE: u32 = 0o100_755;
pub const LINK: u32 = 0o120_000;
pub const SUBMODULE: u32 = 0o160_000;

impl Sample {
    pub fn bare(path: &Path) -> Sample {
        isolate();
        Sample { repository: Repository::init_bare(path).unwrap() }
    }

    pub fn with_work_tree(path: &Path) -> Sample {
        isolate();
        Sample { repository: Repository::init(path).unwrap() }
    }

    /// Commits exactly these files on `main`; a submodule's content is its commit hash.
    pub fn commit(&self, files: &[File<'_>]) -> String {
        let mut index = git2::Index::new().unwrap();
        for (mode, path, content) in files {
            let id = match *mode {
                SUBMODULE => Oid::from_str(std::str::from_utf8(content).unwrap()).unwrap(),
                _ => self.repository.blob(content).unwrap(),
            };
            index.add(&entry(*mode, path, id)).unwrap();
        }
        let tree = index.write_tree_to(&self.repository).unwrap();
        let tree = self.repository.find_tree(tree).unwrap();
        let signature = Signature::new("A", "a@example.org", &Time::new(WHEN, 90)).unwrap();
        let parent = self.repository.find_reference("refs/heads/main").ok();
        let parent = parent.map(|parent| parent.peel_to_commit().unwrap());
        let parents: Vec<_> = parent.iter().collect();
        let id = self
            .repository
            .commit(Some("refs/heads/main"), &signature, &signature, "message", &tree, &parents)
            .unwrap();
        self.repository.set_head("refs/heads/main").unwrap();
        id.to_string()
    }

    /// Puts the files of `main` into the work tree.
    pub fn check_out(&self) {
        self.repository.checkout_head(Some(git2::build::CheckoutBuilder::new().force())).unwrap();
    }

    /// An annotated tag; gives the tag object's own hash.
    pub fn tag(&self, name: &str, commit: &str) -> String {
        let target = self.repository.find_object(Oid::from_str(commit).unwrap(), None).unwrap();
        let signature = Signature::new("A", "a@example.org", &Time::new(WHEN, 0)).unwrap();
        self.repository.tag(name, &target, &signature, "tagged", false).unwrap().to_string()
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.repository.path().display())
    }
}

fn entry(mode: u32, path: &[u8], id: Oid) -> IndexEntry {
    let zero = IndexTime::new(0, 0);
    IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    }
}

/// Keeps the user's git configuration out of the tests. In its place is one with git's own helper that stores logins,
/// behind a script that writes down what it is asked.
fn isolate() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = tempfile::tempdir().unwrap().keep();
        let place = |name: &str| home.join(name).display().to_string();
        let helper = format!(
            "!f() {{ tee -a {} | git credential-store --file={} \\\"$1\\\"; }}; f",
            place("calls"),
            place("logins")
        );
        std::fs::write(home.join("logins"), format!("http://{OTHER_LOGIN}\nhttps://{OTHER_LOGIN}\n"))
            .unwrap();
        std::fs::write(home.join("calls"), "").unwrap();
        std::fs::write(home.join(".gitconfig"), format!("[credential]\n\thelper = \"{helper}\"\n")).unwrap();
        for level in [git2::ConfigLevel::Global, git2::ConfigLevel::XDG, git2::ConfigLevel::System] {
            let place = if level == git2::ConfigLevel::Global { home.clone() } else { home.join("none") };
            // SAFETY: every test starts with a sample, so nothing else uses libgit2 yet.
            unsafe { git2::opts::set_search_path(level, place).unwrap() };
        }
        home
    })
}

/// Has the helper give [`HELPER_LOGIN`] to a server.
pub fn keep_login(port: u16) {
    let mut file = std::fs::OpenOptions::new().append(true).open(isolate().join("logins")).unwrap();
    file.write_all(format!("http://{HELPER_LOGIN}@localhost:{port}\n").as_bytes()).unwrap();
}

/// What the helper was asked for so far, in all tests: hosts, and `None` where it was told none.
pub fn helper_calls() -> Vec<Option<String>> {
    let text = std::fs::read_to_string(isolate().join("calls")).unwrap();
    let calls = text.split("protocol=").skip(1);
    calls.map(|call| call.lines().find_map(|line| Some(line.strip_prefix("host=")?.to_owned()))).collect()
}

/// A cache of its own for a test, and what was said while pinning.
pub struct Desk {
    pub folder: TempDir,
    pub cache: Cache,
    pub said: RefCell<Vec<String>>,
    /// Files of gistmill's own.
    pub apart: Vec<std::path::PathBuf>,
}

impl Desk {
    pub fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        Desk { folder, cache, said: RefCell::default(), apart: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn pin(&self, source: SourceSpec) -> Result<Pinned> {
        self.pin_with(source, &NoIndex)
    }

    pub fn pin_with(&self, source: SourceSpec, index: &dyn IndexTool) -> Result<Pinned> {
        pin((&repo(source), &self.apart), &self.cache, index, &|text| {
            self.said.borrow_mut().push(text.to_owned());
        })
    }
}

/// Lets git ask every address, so that a test sees what git would do there.
pub struct Everything;

impl IndexTool for Everything {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        panic!("asked the index for {requirement}");
    }

    fn public_address(&self, address: &str) -> Result<String> {
        Ok(address.to_owned())
    }
}

/// For tests that must not ask an index.
struct NoIndex;

impl IndexTool for NoIndex {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        panic!("asked the index for {requirement}");
    }
}

pub fn repo(source: SourceSpec) -> Repo {
    Repo {
        slug: RepoSlug::new("owner/demo").unwrap(),
        source,
        python: None,
        groups: None,
        extras: None,
        requirements: None,
        tests: None,
        env: BTreeMap::new(),
        backend: BackendKind::Local,
        exclude_newer: None,
        base: None,
        system_packages: Vec::new(),
        domain: None,
        targets: Vec::new(),
        scopes: Vec::new(),
        large: false,
        outside: None,
        pair: None,
        entries: gistmill::config::Entries::default(),
        is_scripted: false,
        locked: None,
    }
}

pub fn git_spec(url: &str, commit: &str) -> SourceSpec {
    SourceSpec::Git {
        url: url.to_owned(),
        commit: CommitSha::new(commit).unwrap(),
        submodules: true,
        subdirectory: None,
        anonymous: false,
    }
}

pub fn path_spec(path: &Path, commit: Option<&str>, allow_uncommitted: bool) -> SourceSpec {
    let commit = commit.map(|commit| CommitSha::new(commit).unwrap());
    SourceSpec::Path { path: path.to_owned(), commit, allow_uncommitted }
}

/// Relative paths of all files and links, sorted.
pub fn files(root: &Path) -> Vec<String> {
    let mut found: Vec<String> = walkdir::WalkDir::new(root)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

/// Whether any file below a directory holds a text.
pub fn holds(root: &Path, needle: &str) -> bool {
    walkdir::WalkDir::new(root)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .any(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
        })
}
