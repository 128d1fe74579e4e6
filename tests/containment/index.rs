//! A private index with a login, and source distributions that attack what comes after them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::caller::{Caller, Place, finish, write_dated};
use crate::evidence::{Built, files_with};

const USER: &str = "me";
const SETTINGS: &str = "[screen]\nattempts = 2\n";
const POISON: &str = "POISON OF A DEPENDENCY";

/// A server that is killed when this is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containment").join(name)
}

/// The login's password, which stands nowhere but in the address of the index.
fn password(place: &Place) -> String {
    format!("pw-{}", place.mark)
}

/// Every form in which the login could be found.
fn forms(place: &Place) -> Vec<String> {
    let mut encoder = Command::new("base64")
        .arg("-w0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("base64 starts");
    let login = format!("{USER}:{}", password(place));
    std::io::Write::write_all(&mut encoder.stdin.take().expect("a pipe"), login.as_bytes())
        .expect("takes it");
    let encoded = String::from_utf8(encoder.wait_with_output().expect("ends").stdout).expect("is text");
    vec![place.mark.clone(), encoded]
}

/// The folder of the index. Made for a port that the hooks of the distributions try to reach.
fn make_packages(place: &Place, port: u16) -> PathBuf {
    let folder = place.path().join("index");
    std::fs::create_dir_all(&folder).expect("can be made");
    let status = Command::new("python3")
        .arg(script("packages.py"))
        .args([&folder, &place.victim()])
        .args([&place.stays, &port.to_string()])
        .status();
    assert!(status.expect("python3 starts").success());
    folder
}

/// An index that tells when files were uploaded.
fn own_server(place: &Place) -> Server {
    let folder = place.path().join("index");
    std::fs::create_dir_all(&folder).expect("can be made");
    let mut child = Command::new("python3")
        .arg(script("index_server.py"))
        .arg(&folder)
        .args([USER, &password(place)])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the index starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("says its port");
    let server = Server { child, port: line.trim().parse().expect("a port") };
    make_packages(place, server.port);
    server
}

/// Why pypiserver cannot be started; none when it can.
pub fn no_pypiserver() -> Option<String> {
    std::env::var_os("GISTMILL_TEST_PYTHON")
        .is_none()
        .then(|| "GISTMILL_TEST_PYTHON names no Python with pypiserver and passlib".to_owned())
}

/// pypiserver, as people run it.
fn pypiserver(place: &Place) -> Server {
    let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("is set");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port").port();
    let folder = make_packages(place, port);
    let users = place.path().join("htpasswd");
    let write = "import sys; from passlib.apache import HtpasswdFile; f = HtpasswdFile(sys.argv[1], new=True); \
                 f.set_password(sys.argv[2], sys.argv[3]); f.save()";
    let made = Command::new(&python).args(["-c", write]).arg(&users).args([USER, &password(place)]).status();
    assert!(
        made.expect("Python starts").success(),
        "pypiserver's users cannot be written: is passlib there?"
    );
    let child = Command::new(&python)
        .args(["-m", "pypiserver", "run", "--interface", "127.0.0.1", "--port", &port.to_string()])
        .args(["--authenticate", "list,download,update", "--disable-fallback", "--passwords"])
        .args([&users, &folder])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pypiserver starts");
    let mut server = Server { child, port };
    let deadline = Instant::now() + Duration::from_mins(1);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = server.child.try_wait().expect("can be asked");
        assert!(ended.is_none() && Instant::now() < deadline, "pypiserver does not answer: {ended:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    server
}

/// Builds with the index beside the default one. The login is in the environment of gistmill and nowhere else.
fn build(place: Place, server: &Server, limit: Duration) -> Built {
    let mut command = place.gistmill(&["build", "repos.toml"]);
    let address = format!("http://{USER}:{}@127.0.0.1:{}/simple/", password(&place), server.port);
    command.env("UV_EXTRA_INDEX_URL", address);
    let ended = finish(command, limit);
    Built { place, ended }
}

fn repository<'a>(place: &Place, what: &'a str) -> (&'a str, String) {
    place.tree("asks", what, &[("@WHAT@", what)]);
    (
        what,
        format!("path = \"trees/{what}\"\nexclude_newer = \"2026-06-01\"\nrequirements = [\"demo-{what}\"]"),
    )
}

type Once = LazyLock<Mutex<HashMap<Caller, Arc<OnceLock<Arc<Built>>>>>>;

fn once(all: &Once, caller: Caller, make: impl FnOnce() -> Built) -> Arc<Built> {
    let cell = Arc::clone(all.lock().expect("not poisoned").entry(caller).or_default());
    Arc::clone(cell.get_or_init(|| Arc::new(make())))
}

/// Distributions that attack, then one that looks, then a repository that asks the index for nothing.
fn attacked(caller: Caller) -> Arc<Built> {
    static ALL: Once = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let server = own_server(&place);
        let mut repositories: Vec<_> =
            ["thief", "later", "liar", "link", "pipe"].map(|what| repository(&place, what)).into();
        // One after the other in one repository, too: what the first leaves, the second could find.
        place.tree("asks", "both", &[("@WHAT@", "later")]);
        let asks = "requirements = [\"demo-linker\", \"demo-later\"]";
        repositories
            .insert(1, ("both", format!("path = \"trees/both\"\nexclude_newer = \"2026-06-01\"\n{asks}")));
        place.tree("second", "second", &[]);
        repositories.push(("second", "path = \"trees/second\"\nexclude_newer = \"2026-06-01\"".to_owned()));
        place.configure(SETTINGS, &repositories);
        build(place, &server, Duration::from_mins(10))
    })
}

/// Repositories that name hashes of what they require: the right one, a wrong one, and a wrong one of what a guess finds
/// without their list.
fn held(caller: Caller) -> Arc<Built> {
    static ALL: Once = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let server = own_server(&place);
        let wheel =
            std::fs::read(place.path().join("index/demo_wheel-1.0-py3-none-any.whl")).expect("is there");
        let (right, wrong) = (gistmill::record::id::sha256_hex(&wheel), "0".repeat(64));
        let mut repositories = Vec::new();
        for (name, requirement, hash) in [
            ("right", "demo-wheel==1.0", &right),
            ("wrong", "demo-wheel==1.0", &wrong),
            ("guessed", "six==1.17.0", &wrong),
        ] {
            let tree = place.tree("asks", name, &[("@WHAT@", "wheel")]);
            if name == "guessed" {
                write_dated(&tree.join("demo_wheel.py"), "import six\nSEEN = six.__version__\n");
            }
            write_dated(&tree.join("requirements.txt"), &format!("{requirement} --hash=sha256:{hash}\n"));
            repositories.push((name, format!("path = \"trees/{name}\"\nexclude_newer = \"2026-06-01\"")));
        }
        place.configure(SETTINGS, &repositories);
        build(place, &server, Duration::from_mins(6))
    })
}

/// Distributions that only look, from a real index.
fn served(caller: Caller) -> Arc<Built> {
    static ALL: Once = LazyLock::new(Mutex::default);
    once(&ALL, caller, || {
        let place = Place::new(caller);
        let server = pypiserver(&place);
        let repositories = ["wheel", "built"].map(|what| repository(&place, what));
        place.configure(SETTINGS, &repositories);
        build(place, &server, Duration::from_mins(6))
    })
}

#[track_caller]
fn seen(built: &Built, name: &str) -> String {
    built.stdout(name, "tests/test_asks.py::test_what_the_dependency_saw")
}

#[track_caller]
fn assert_offline(seen: &str) {
    for what in ["REACHED THE INDEX", "REACHED THE DOOR", "REACHED A NETWORK"] {
        assert!(!seen.contains(what), "{what}: {seen}");
    }
}

pub fn a_private_index_gives_wheels(caller: Caller) {
    let built = served(caller);
    built.assert_code(0);
    assert_eq!(seen(&built, "wheel").trim(), "nothing");
}

pub fn a_private_index_gives_source_distributions(caller: Caller) {
    let built = served(caller);
    built.assert_code(0);
    assert!(seen(&built, "built").contains("home "), "the hooks did not look");
}

pub fn the_login_of_an_index_is_found_nowhere(caller: Caller) {
    let built = served(caller);
    let forms = forms(&built.place);
    built.assert_tells_nothing_of(&forms.iter().map(String::as_str).collect::<Vec<_>>());
    assert_offline(&seen(&built, "built"));
}

pub fn a_source_distribution_sees_no_login_and_no_network(caller: Caller) {
    let built = attacked(caller);
    let forms = forms(&built.place);
    built.assert_tells_nothing_of(&forms.iter().map(String::as_str).collect::<Vec<_>>());
    assert_offline(&seen(&built, "thief"));
    assert_offline(&seen(&built, "both"));
}

pub fn a_source_distribution_reaches_no_file_of_the_host(caller: Caller) {
    let built = attacked(caller);
    built.place.assert_victims_untouched();
    assert!(seen(&built, "thief").contains("home "), "the hooks did not look");
    for (name, what) in [("both", "later"), ("later", "later")] {
        let seen = seen(&built, name);
        assert!(!seen.contains("secret'"), "{what} of {name} saw the host's home: {seen}");
    }
}

pub fn a_dependency_changes_nothing_that_another_repository_installs(caller: Caller) {
    let built = attacked(caller);
    assert!(seen(&built, "thief").contains("home "), "the hooks did not look");
    let said = built.stdout("second", "tests/test_second.py::test_installed_is_what_the_index_has");
    assert_eq!(said.trim(), "clean clean []");
}

pub fn a_dependency_leaves_nothing_in_the_cache(caller: Caller) {
    let built = attacked(caller);
    assert!(seen(&built, "thief").contains("home "), "the hooks did not look");
    let shared = files_with(&[built.place.path().join("cache/uv")], &[POISON]);
    // What was built of a distribution is its own; nothing of another project may say this.
    let of_others: Vec<_> = shared
        .iter()
        .filter(|path| {
            ["pluggy", "iniconfig", "_pytest"]
                .iter()
                .any(|name| path.components().any(|one| one.as_os_str() == *name))
        })
        .collect();
    assert!(of_others.is_empty(), "{of_others:#?}");
    built.assert_nothing_stays();
}

pub fn a_wheel_of_another_project_is_refused(caller: Caller) {
    let built = attacked(caller);
    built.assert_failed("liar");
    let said = built.stdout("second", "tests/test_second.py::test_installed_is_what_the_index_has");
    assert_eq!(said.trim(), "clean clean []");
}

pub fn a_requirement_gets_the_file_whose_hash_it_names_or_none(caller: Caller) {
    let built = held(caller);
    built.assert_code(1);
    assert_eq!(seen(&built, "right").trim(), "nothing");
    for (name, what) in [("wrong", "demo-wheel==1.0"), ("guessed", "six==1.17.0")] {
        built.assert_failed(name);
        let failure = built.failure(name).expect("failed");
        assert!(failure.contains(&format!("no file of {what}")), "{name}: {failure}");
    }
}

pub fn wheels_that_are_no_files_are_refused(caller: Caller) {
    let built = attacked(caller);
    built.assert_code(1);
    built.assert_failed("link");
    built.assert_failed("pipe");
    built.place.assert_victims_untouched();
}
