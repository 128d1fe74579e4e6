//! The builds that the tests judge, each made once for a caller: few builds, many attacks.

use std::collections::HashMap;
use std::hash::Hash;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use crate::caller::{Caller, Place, write_dated};
use crate::evidence::Built;
use crate::keyring;

/// Limits that a busy machine does not reach by accident, short enough for what never ends.
const SETTINGS: &str = "[screen]\nattempts = 2\ncase_timeout = \"12s\"\ngroup_timeout = \"24s\"\n";
/// What one test may hold.
const MEMORY: &str = "[limits]\nmemory = \"768MiB\"\n";

/// Values that are made once for each key, whoever asks first.
type Once<K, T> = LazyLock<Mutex<HashMap<K, Arc<OnceLock<T>>>>>;

fn once<K: Hash + Eq, T>(all: &Once<K, Arc<T>>, key: K, make: impl FnOnce() -> T) -> Arc<T> {
    let cell = Arc::clone(all.lock().expect("not poisoned").entry(key).or_default());
    Arc::clone(cell.get_or_init(|| Arc::new(make())))
}

fn path_of(name: &str) -> String {
    format!("path = \"trees/{name}\"")
}

fn neighbour(place: &Place) -> (&'static str, String) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees/small_and_good");
    for name in ["tally.py", "tests/test_tally.py"] {
        let text = std::fs::read_to_string(source.join(name)).expect("is there");
        write_dated(&place.path().join("trees/neighbour").join(name), &text);
    }
    ("neighbour", path_of("neighbour"))
}

fn built(place: Place, limit: Duration) -> Built {
    let ended = place.build(limit);
    Built { place, ended }
}

/// A build backend that tries everything, declarations that name files of the host, and a requirements file that is
/// not there.
pub fn hooks(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        place.tree("backend", "backend", &[("@MODE@", "leave")]);
        place.tree("backend", "changes", &[("@MODE@", "change")]);
        let links = place.tree("links", "links", &[]);
        for (name, target) in
            [("lib", ""), ("LICENSE", "links/secret"), ("requirements-dev.txt", "links/secret")]
        {
            place.link(&links, name, target);
        }
        let commit = committed(&links);
        let links_at = format!("git = \"file://{}\"\ncommit = \"{commit}\"", links.display());
        place.tree("broken", "confused", &[("@MODE@", "none")]);
        let repositories = [
            ("backend", path_of("backend")),
            ("changes", path_of("changes")),
            ("confused", format!("{}\nrequirements = [\"requirements.txt\"]", path_of("confused"))),
            ("links", path_of("links")),
            ("links_in_git", links_at),
            neighbour(&place),
        ];
        place.configure(SETTINGS, &repositories);
        built(place, Duration::from_mins(10))
    })
}

/// Ways to answer that must end the repository, and nothing else.
pub const REFUSED: [&str; 5] =
    ["answer_is_a_link", "wheel_is_a_link", "wheel_name_leaves", "wheel_name_has_lines", "name_has_lines"];
/// Ways to answer that may be refused or do no harm.
pub const HARMLESS: [&str; 5] = [
    "name_with_controls",
    "name_with_dots",
    "extras_with_lines",
    "paths_that_leave",
    "scripts_over_the_interpreter",
];
/// Ways to answer that keep a careless reader busy for ever, or fill its memory.
pub const ENDLESS: [&str; 6] = [
    "answer_is_a_pipe",
    "answer_is_huge",
    "answer_is_deep",
    "wheel_is_a_pipe",
    "wheel_is_a_device",
    "wheel_is_huge",
];

fn answers_of(caller: Caller, modes: &[&'static str], limit: Duration) -> Built {
    let place = Place::new(caller);
    let mut repositories: Vec<(&str, String)> = Vec::new();
    for mode in modes {
        place.tree("broken", mode, &[("@MODE@", mode)]);
        repositories.push((mode, path_of(mode)));
    }
    repositories.push(neighbour(&place));
    place.configure(SETTINGS, &repositories);
    built(place, limit)
}

/// Build backends with answers and wheels of another kind.
pub fn answers(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || answers_of(caller, &[REFUSED, HARMLESS].concat(), Duration::from_mins(8)))
}

/// Build backends whose answers and wheels have no end.
pub fn endless_answers(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || answers_of(caller, &ENDLESS, Duration::from_mins(8)))
}

/// Conftest files and tests that attack what is around them, and names that nobody expects. The caller's session has
/// a key.
pub fn runs(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let names = ["gate", "running", "names", "raises"];
        for name in names {
            place.tree(name, name, &[]);
        }
        let mut repositories: Vec<(&str, String)> = names.map(|name| (name, path_of(name))).into();
        repositories.push(neighbour(&place));
        place.configure(&format!("{SETTINGS}{MEMORY}"), &repositories);
        let mut command = place.gistmill(&["build", "repos.toml"]);
        keyring::give(&mut command, &place.mark_in_keyring());
        let ended = crate::caller::finish(command, Duration::from_mins(10));
        Built { place, ended }
    })
}

/// Tests that stop their parent, spoil their report, and bear names that are no text.
pub fn unruly(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let tree = place.tree("unruly", "unruly", &[]);
        let odd = tree.join("tests").join(std::ffi::OsStr::from_bytes(b"helper_\xff.py"));
        write_dated(&odd, "def value():\n    return 'odd'\n");
        place.configure(SETTINGS, &[("unruly", path_of("unruly")), neighbour(&place)]);
        built(place, Duration::from_mins(6))
    })
}

/// Tests that put calls into the record of their trace.
pub fn forged_traces(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        place.tree("forged", "forged", &[]);
        place.configure(SETTINGS, &[("forged", path_of("forged")), neighbour(&place)]);
        built(place, Duration::from_mins(5))
    })
}

/// A repository that attacks nobody.
pub fn quiet(caller: Caller) -> Place {
    let place = Place::new(caller);
    place.configure(SETTINGS, &[neighbour(&place)]);
    place
}

/// Pins a work tree that says that it lies elsewhere, with its changes and without.
pub fn elsewhere(caller: Caller) -> Arc<Built> {
    static ALL: Once<Caller, Arc<Built>> = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let mut repositories = Vec::new();
        for (name, lines) in [("elsewhere", ""), ("changed_elsewhere", "\nallow_uncommitted = true")] {
            let tree = place.tree("second", name, &[]);
            committed(&tree);
            let folder = place.victim().join("names");
            let settings =
                format!("[core]\n\trepositoryformatversion = 0\n\tworktree = {}\n", folder.display());
            std::fs::write(tree.join(".git/config"), settings).expect("can be written");
            repositories.push((name, format!("{}{lines}", path_of(name))));
        }
        repositories.push(neighbour(&place));
        place.configure(SETTINGS, &repositories);
        let command = place.gistmill(&["build", "repos.toml", "--until", "source"]);
        let ended = crate::caller::finish(command, Duration::from_mins(2));
        Built { place, ended }
    })
}

/// Makes a repository of a tree, with one commit; gives its id.
fn committed(tree: &Path) -> String {
    let script = "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm one && \
                  git rev-parse HEAD";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(tree).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("sh starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a hash").trim().to_owned()
}
