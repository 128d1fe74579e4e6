//! Who starts gistmill, and where: root, an ordinary user, or root with the repositories in containers. Each place has
//! files beside it that foreign code must not reach: the victims.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{Bench, Ended, GISTMILL, Running};

/// The ordinary user that root becomes.
const USER: u32 = 1234;

/// What a test process that is an ordinary user's runs of these tests: the user's half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Caller {
    Root,
    User,
    Docker,
}

impl Caller {
    pub const ALL: [Caller; 3] = [Caller::Root, Caller::User, Caller::Docker];

    /// As the names of tests end.
    pub fn name(self) -> &'static str {
        match self {
            Caller::Root => "as_root",
            Caller::User => "as_a_user",
            Caller::Docker => "in_docker",
        }
    }

    /// Whether the test process becomes another user for this caller.
    fn changes_user(self) -> bool {
        self == Caller::User && nix::unistd::geteuid().is_root()
    }
}

/// A place of its own for some builds: trees, victims, home, cache and output, all of them the caller's.
pub struct Place {
    bench: Bench,
    caller: Caller,
    /// Stands in everything that foreign code must not see.
    pub mark: String,
    /// A word in the command line of every process that an attack leaves behind.
    pub stays: String,
    before: BTreeMap<PathBuf, String>,
}

/// Folders of all places: tests share some to the end of the process.
static PLACES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes what is left of all places.
pub fn clean_up() {
    for folder in PLACES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

impl Place {
    pub fn new(caller: Caller) -> Self {
        // Everybody reaches it, and it lies in no work tree of another user.
        let bench = if caller.changes_user() {
            Bench::below(&std::env::temp_dir())
        } else {
            Bench::with_empty_cache()
        };
        PLACES.lock().unwrap_or_else(PoisonError::into_inner).push(bench.path().to_owned());
        let random =
            tempfile::Builder::new().prefix("").rand_bytes(12).tempfile().expect("a file can be made");
        let random = random.path().file_name().expect("has a name").to_string_lossy().into_owned();
        let (mark, stays) = (format!("HOSTONLY-{random}"), format!("stays-{random}"));
        let mut place = Place { bench, caller, mark, stays, before: BTreeMap::new() };
        for folder in ["home", "tmp", "trees", "output"] {
            std::fs::create_dir(place.path().join(folder)).expect("a folder can be made");
        }
        place.make_victims();
        place.before = place.victims();
        place
    }

    pub fn path(&self) -> &Path {
        self.bench.path()
    }

    pub fn victim(&self) -> PathBuf {
        self.path().join("victim")
    }

    /// Stands in the files that only links of a tree lead to.
    pub fn mark_behind_links(&self) -> String {
        self.mark.replace("HOSTONLY", "BEHINDLINKS")
    }

    /// The secret in the keyring of the caller's session.
    pub fn mark_in_keyring(&self) -> String {
        self.mark.replace("HOSTONLY", "KEYRING")
    }

    fn make_victims(&self) {
        let mark = &self.mark;
        let behind_links = format!("password {}\n", self.mark_behind_links());
        let login = format!("machine example.org login me password {mark}\n");
        let wheel = format!("not a wheel: {mark}\n");
        let answer = format!(
            "{{\"method\": \"editable\", \"wheel\": \"{mark}\", \"name\": \"{mark}\", \"version\": \"1\", \"extras\": []}}"
        );
        for (name, text) in [
            ("home/secret", mark.as_str()),
            ("home/.netrc", &login),
            ("links/.netrc", &behind_links),
            ("links/secret", &behind_links),
            ("dir/authorized_keys", mark),
            ("overwritten.txt", mark),
            ("exclude_target", mark),
            ("objects/kept", mark),
            ("answer.json", &answer),
            ("wheel.whl", &wheel),
            (&format!("names/{mark}"), "x"),
        ] {
            let path = self.victim().join(name);
            std::fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
            std::fs::write(path, text).expect("can be written");
        }
        let pipe = self.victim().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("can be made");
    }

    /// Every file of the victims: kind, mode and content.
    fn victims(&self) -> BTreeMap<PathBuf, String> {
        let entries = walkdir::WalkDir::new(self.victim()).into_iter();
        entries
            .map(|entry| {
                let path = entry.expect("can be listed").into_path();
                let metadata = path.symlink_metadata().expect("is there");
                let content = if metadata.is_file() {
                    String::from_utf8_lossy(&std::fs::read(&path).expect("can be read")).into_owned()
                } else if metadata.is_symlink() {
                    format!("{:?}", std::fs::read_link(&path))
                } else {
                    format!("folder {} pipe {}", metadata.is_dir(), metadata.file_type().is_fifo())
                };
                (path, format!("{:o} {content}", metadata.mode()))
            })
            .collect()
    }

    /// Nothing of the victims was changed, removed or added.
    #[track_caller]
    pub fn assert_victims_untouched(&self) {
        self.assert_untouched("");
    }

    /// Nothing of the victims below this path was.
    #[track_caller]
    pub fn assert_untouched(&self, below: &str) {
        let folder = self.victim().join(below);
        let after = self.victims();
        let all: BTreeSet<&PathBuf> = self.before.keys().chain(after.keys()).collect();
        let shown = |state: Option<&String>| {
            state.map(|text| text.chars().take(80).collect::<String>().escape_debug().to_string())
        };
        let changed: Vec<String> = all
            .into_iter()
            .filter(|path| path.starts_with(&folder) && self.before.get(*path) != after.get(*path))
            .map(|path| {
                let (before, after) = (shown(self.before.get(path)), shown(after.get(path)));
                format!("{}: {before:?} became {after:?}", path.display())
            })
            .collect();
        assert!(changed.is_empty(), "foreign code reached files of the host: {changed:#?}");
    }

    /// Copies a tree of `tests/containment/trees` to `trees/<name>`, with these words replaced in its files beside those
    /// of the victims.
    pub fn tree(&self, template: &str, name: &str, words: &[(&str, &str)]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containment/trees").join(template);
        let target = self.path().join("trees").join(name);
        let victim = self.victim().display().to_string();
        for entry in walkdir::WalkDir::new(&source)
            .into_iter()
            .filter_entry(|entry| entry.file_name() != "__pycache__")
        {
            let entry = entry.expect("can be listed");
            let to = target.join(entry.path().strip_prefix(&source).expect("lies below"));
            if entry.file_type().is_dir() {
                std::fs::create_dir_all(&to).expect("can be made");
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).expect("is text");
            let mut text = text.replace("@VICTIM@", &victim).replace("@STAYS@", &self.stays);
            for (word, value) in words {
                text = text.replace(word, value);
            }
            write_dated(&to, &text);
        }
        target
    }

    /// Links of a tree, which are made as the repository would have them.
    pub fn link(&self, tree: &Path, name: &str, target: &str) {
        symlink(self.victim().join(target), tree.join(name)).expect("a link can be made");
    }

    /// Writes a configuration with these settings and, for each slug, further lines; paths are `trees/<name>`.
    pub fn configure(&self, settings: &str, repositories: &[(&str, String)]) {
        let docker = match self.caller {
            Caller::Docker => format!("[docker]\nbase = \"{}\"\n", base()),
            _ => String::new(),
        };
        let backend = if self.caller == Caller::Docker { "backend = \"docker\"\n" } else { "" };
        let tables: Vec<String> = repositories
            .iter()
            .map(|(name, lines)| format!("[[repo]]\nslug = \"trees/{name}\"\n{backend}{lines}\n"))
            .collect();
        let head = "[dataset]\nname = \"trees\"\nversion = \"1\"\nper_repo = 0\n";
        self.bench.write_config(&format!("{head}{settings}\n{docker}{}", tables.concat()));
    }

    /// gistmill as this caller, with a secret in its environment.
    pub fn gistmill(&self, arguments: &[&str]) -> Command {
        let usual = self.bench.gistmill(arguments);
        let mut environment: BTreeMap<String, String> = usual
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.to_owned())))
            .collect();
        if let Some(home) = environment.get("HOME").cloned() {
            environment.entry("PYENV_ROOT".to_owned()).or_insert_with(|| format!("{home}/.pyenv"));
        }
        let own = |name: &str| self.path().join(name).display().to_string();
        environment.insert("HOME".to_owned(), own("home"));
        environment.insert("TMPDIR".to_owned(), own("tmp"));
        environment.insert("A_TOKEN_OF_THE_USER".to_owned(), self.mark.clone());
        let mut command = if self.caller.changes_user() {
            self.hand_over();
            let path = environment.entry("PATH".to_owned()).or_default();
            *path = format!("{}:{path}", self.path().join("bin").display());
            if environment.get("PYENV_ROOT").is_some_and(|root| !is_reachable(Path::new(root))) {
                environment.remove("PYENV_ROOT");
            }
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).arg("--clear-groups");
            command.arg(self.path().join("bin/gistmill"));
            command
        } else {
            Command::new(GISTMILL)
        };
        command.args(arguments).current_dir(self.path()).env_clear().envs(environment);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Gives the place to the ordinary user, who also needs the programs where they can be reached.
    fn hand_over(&self) {
        let bin = self.path().join("bin");
        if !bin.exists() {
            std::fs::create_dir(&bin).expect("can be made");
            std::fs::copy(GISTMILL, bin.join("gistmill")).expect("can be copied");
            if let Some(uv) = uv() {
                std::fs::copy(uv, bin.join("uv")).expect("can be copied");
            }
        }
        let open = |path: &Path| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("can be opened");
        };
        open(self.path());
        open(&bin);
        let mine = std::fs::read_dir(self.path()).expect("can be listed").flatten();
        let mine = mine.map(|entry| entry.path()).filter(|path| *path != bin);
        let status = Command::new("chown").args(["-hR", &format!("{USER}:{USER}"), "--"]).args(mine).status();
        assert!(status.expect("chown starts").success());
        std::os::unix::fs::chown(self.path(), Some(USER), Some(USER)).expect("can be given");
    }

    /// Builds `repos.toml`; none when it did not end within the limit, and was killed.
    pub fn build(&self, limit: Duration) -> Option<Ended> {
        finish(self.gistmill(&["build", "repos.toml"]), limit)
    }

    /// The dataset directory.
    pub fn output(&self) -> PathBuf {
        self.path().join("output/trees/1")
    }

    /// Every place that foreign code may write to, and where nothing of the host may appear.
    pub fn written(&self) -> [PathBuf; 4] {
        ["cache", "output", "tmp", "home"].map(|name| self.path().join(name))
    }
}

/// Runs a command to its end; none when it did not end within the limit, and was killed.
pub fn finish(command: Command, limit: Duration) -> Option<Ended> {
    let mut running = Running::start(command);
    let deadline = Instant::now() + limit;
    while running.is_alive() {
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(running.wait())
}

/// Writes a file of a tree, with the time that all of them have.
pub fn write_dated(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
    std::fs::write(path, text).expect("can be written");
    crate::common::date(path);
}

/// The image that repositories in containers stand on.
pub fn base() -> String {
    std::env::var("GISTMILL_TEST_BASE").unwrap_or_else(|_| "gistmill-test-base:latest".to_owned())
}

/// Whether everybody can go into this folder.
fn is_reachable(folder: &Path) -> bool {
    folder.ancestors().all(|one| one.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0))
}

/// The real program, not a version manager's shim; none where gistmill has to install it itself.
fn uv() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|one| !one.ends_with("shims")).collect();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    folders.extend([home.join(".local/bin"), home.join(".cargo/bin")]);
    let versions =
        std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from).join("versions");
    let versions = std::fs::read_dir(versions).into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.into_iter().map(|folder| folder.join("uv")).find(|path| path.is_file())
}
