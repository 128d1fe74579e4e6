//! Secrets planted everywhere: in addresses, variables, the configuration, the user's home, a credential helper.
//! Nothing that a build leaves or shows holds one.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::GzDecoder;

use crate::common::dataset::Dataset;
use crate::common::{Bench, Ended, Running};

/// Every secret has this in it.
const MARK: &str = "s3cr3tmark";
/// The password of the login server: a credential helper and addresses carry it.
const PASSWORD: &str = "s3cr3tmark-of-the-server";
const USER: &str = "me";
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Forms in which a secret could be left.
fn forms() -> Vec<Vec<u8>> {
    let login = format!("{USER}:{PASSWORD}");
    let encoded = Command::new("base64").arg("-w0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut encoder = encoded.expect("base64 starts");
    std::io::Write::write_all(&mut encoder.stdin.take().expect("a pipe"), login.as_bytes())
        .expect("takes it");
    let output = encoder.wait_with_output().expect("ends").stdout;
    vec![MARK.as_bytes().to_vec(), output]
}

fn holds(text: &[u8], forms: &[Vec<u8>]) -> bool {
    forms.iter().any(|form| text.windows(form.len()).any(|window| window == form))
}

/// Files below a folder that hold a secret, by name or content; compressed ones are looked into.
fn files_with_secrets(folder: &Path, forms: &[Vec<u8>]) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter();
    entries
        .map(|entry| entry.expect("can be listed").into_path())
        .filter(|path| {
            let name = path.as_os_str().as_encoded_bytes();
            holds(name, forms) || path.is_file() && holds(&plain(path), forms)
        })
        .collect()
}

fn plain(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("can be read");
    let mut text = Vec::new();
    match path.extension().and_then(|end| end.to_str()) {
        Some("gz") if GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).is_ok() => text,
        Some("parquet") => {
            let table = path.file_stem().expect("has a name").to_string_lossy().into_owned();
            let rows = Dataset::at(path.parent().expect("has a folder")).rows(&table);
            serde_json::to_vec(&rows).expect("is JSON")
        }
        _ => bytes,
    }
}

/// The server behind a login. It ends with this value.
struct Login {
    child: Child,
    port: u16,
}

impl Login {
    fn start(bench: &Bench) -> Self {
        let folder = bench.path();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.pem"])
            .current_dir(folder)
            .stderr(Stdio::null())
            .status();
        assert!(made.expect("openssl starts").success());
        let own = std::fs::read(folder.join("server.pem")).expect("is there");
        let place = std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| CERTIFICATES.to_owned());
        let mut all = std::fs::read(place).expect("the machine's certificates can be read");
        all.extend(own);
        std::fs::write(folder.join("certificates.pem"), all).expect("can be written");
        let index = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]
            .iter()
            .find_map(|name| std::env::var(name).ok());
        let index = index.unwrap_or_else(|| "https://pypi.org/simple/".to_owned());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipeline/login_server.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["served", "server.pem", "server.key", USER, PASSWORD, &index])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("says its port");
        Login { child, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tree as a bare repository that the server serves; gives its commit.
fn serve(bench: &Bench) -> String {
    let tree = bench.tree("looks_for_secrets");
    let script = "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm one && \
                  mkdir -p ../../served && git clone -q --bare . ../../served/demo.git && git rev-parse HEAD";
    let output = Command::new("sh").args(["-ec", script]).current_dir(&tree).output().expect("sh starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(&tree).expect("can be removed");
    String::from_utf8(output.stdout).expect("a hash").trim().to_owned()
}

/// A home in which every file that tools look for holds a secret.
fn home(bench: &Bench, has_helper: bool) -> PathBuf {
    let home = bench.path().join("home");
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
        std::fs::write(path, text).expect("can be written");
    };
    let calls = bench.path().join("helper-calls");
    let helper =
        format!("!f() {{ cat >> {}; echo username={USER}; echo password={PASSWORD}; }}; f", calls.display());
    let helper = if has_helper { format!("[credential]\n\thelper = \"{helper}\"\n") } else { String::new() };
    write(".gitconfig", &helper);
    write(".netrc", &format!("machine example.org login me password {MARK}-netrc\n"));
    write(".pypirc", &format!("[pypi]\npassword = {MARK}-pypirc\n"));
    write(".ssh/id_ed25519", &format!("{MARK}-key\n"));
    write(".aws/credentials", &format!("aws_secret_access_key = {MARK}-aws\n"));
    home
}

/// gistmill with the home and the certificates of [`build`].
fn at_home(bench: &Bench, has_helper: bool, arguments: &[&str]) -> Command {
    let mut command = bench.gistmill(arguments);
    let user_home = std::env::var("HOME").expect("HOME is set");
    if std::env::var_os("PYENV_ROOT").is_none() {
        command.env("PYENV_ROOT", Path::new(&user_home).join(".pyenv"));
    }
    command.env("HOME", home(bench, has_helper)).env("SSL_CERT_FILE", bench.path().join("certificates.pem"));
    command
}

/// Starts a build with secrets in its environment; watches the command lines of all processes until it ends.
fn build(bench: &Bench, login: &Login, config: &str, has_helper: bool, forms: &[Vec<u8>]) -> Ended {
    bench.write_config(config);
    let mut command = at_home(bench, has_helper, &["build", "repos.toml"]);
    for name in ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PASSWORD", "UV_INDEX_PRIVATE_PASSWORD", "HF_TOKEN"]
    {
        command.env(name, format!("{MARK}-of-{name}"));
    }
    for name in ["PIP_INDEX_URL", "UV_INDEX_URL", "PIP_FIND_LINKS"] {
        command.env_remove(name);
    }
    command.env("UV_DEFAULT_INDEX", format!("https://{USER}:{PASSWORD}@localhost:{}/simple/", login.port));
    let running = Running::start(command);
    let over = Arc::new(AtomicBool::new(false));
    let watch = std::thread::spawn({
        let (over, forms) = (Arc::clone(&over), forms.to_vec());
        move || {
            let mut seen = Vec::new();
            while !over.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir("/proc").expect("/proc is there").flatten() {
                    let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                    let server = text.windows(15).any(|window| window == b"login_server.py");
                    if !server && holds(&text, &forms) {
                        seen.push(String::from_utf8_lossy(&text).into_owned());
                    }
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            seen
        }
    });
    let ended = running.wait();
    over.store(true, Ordering::Relaxed);
    let seen = watch.join().expect("the watch ends");
    // The shell of git's credential helper is the user's own line, run by git's library.
    let seen: Vec<&String> = seen.iter().filter(|line| !line.contains("echo password=")).collect();
    assert!(seen.is_empty(), "command lines with secrets: {seen:#?}");
    ended
}

#[track_caller]
fn assert_left_no_secret(bench: &Bench, ended: &Ended, forms: &[Vec<u8>]) {
    for folder in [bench.cache(), bench.path().join("output")] {
        if folder.exists() {
            let found = files_with_secrets(&folder, forms);
            assert!(found.is_empty(), "secrets are in {found:#?}");
        }
    }
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!holds(text.as_bytes(), forms), "a secret was printed:\n{text}");
    }
}

const DATASET: &str =
    "[dataset]\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n[mutation]\nmutants = 2\n";

#[test]
fn no_secret_is_left_by_a_build_that_needs_them() {
    let bench = Bench::with_empty_cache();
    let commit = serve(&bench);
    let login = Login::start(&bench);
    let forms = forms();
    let port = login.port;
    for (number, user) in [format!("{USER}:{PASSWORD}@"), String::new()].iter().enumerate() {
        let config = format!(
            "{DATASET}[[repo]]\nslug = \"trees/spy\"\ngit = \"https://{user}localhost:{port}/git/demo.git\"\n\
             commit = \"{commit}\"\nenv = {{ SERVICE_TOKEN = \"{MARK}-of-the-service\" }}\n"
        );
        let ended = build(&bench, &login, &config, true, &forms).with_code(0);
        assert_left_no_secret(&bench, &ended, &forms);
        assert_eq!(bench.dataset().rows("groups").len(), 3);
        let has = bench.dataset().group("tests/test_spy.py::test_has_what_the_configuration_gives");
        assert_eq!(has["kept"], true, "{has:#}");
        let show = bench.run(&["show", "test_spy"]);
        assert!(!holds(show.stdout.as_bytes(), &forms), "{}", show.stdout);
        if number == 0 {
            std::fs::remove_dir_all(bench.cache().join("sources")).expect("can be removed");
            std::fs::remove_dir_all(bench.cache().join("git")).expect("can be removed");
        }
    }
}

#[test]
fn no_secret_is_in_a_message_about_what_did_not_work() {
    let bench = Bench::with_empty_cache();
    let commit = serve(&bench);
    let login = Login::start(&bench);
    let forms = forms();
    let port = login.port;
    let missing = "0".repeat(40);
    let repos = [
        ("no-commit", format!("https://{USER}:{PASSWORD}@localhost:{port}/git/demo.git"), missing.as_str()),
        (
            "no-access",
            format!("https://{USER}:{MARK}-wrong@localhost:{port}/git/demo.git?token={MARK}"),
            commit.as_str(),
        ),
        ("no-server", format!("https://{MARK}@localhost:1/git/demo.git"), commit.as_str()),
        (
            "no-repository",
            format!("https://{USER}:{PASSWORD}@localhost:{port}/git/none.git"),
            commit.as_str(),
        ),
    ];
    let tables: Vec<String> = repos
        .iter()
        .map(|(name, url, commit)| {
            format!("[[repo]]\nslug = \"bad/{name}\"\ngit = \"{url}\"\ncommit = \"{commit}\"\n")
        })
        .collect();
    let index = format!(
        "[[repo]]\nslug = \"bad/index\"\npypi = \"no-such-project-at-all==1.0\"\nsha256 = \"{}\"\n",
        "0".repeat(64)
    );
    let ended =
        build(&bench, &login, &format!("{DATASET}{}{index}", tables.concat()), false, &forms).with_code(1);
    assert_left_no_secret(&bench, &ended, &forms);
    let failed = ended.stdout.lines().filter(|line| line.starts_with("failed bad/")).count();
    assert_eq!(failed, repos.len() + 1, "{}", ended.stdout);
    let branch = format!(
        "{DATASET}[[repo]]\nslug = \"bad/branch\"\ngit = \"https://{USER}:{PASSWORD}@localhost:{port}/git/demo.git\"\n\
         commit = \"main\"\nenv = {{ A = 1, TOKEN = \"{MARK}\" }}\n"
    );
    let ended = build(&bench, &login, &branch, false, &forms).with_code(2);
    assert_left_no_secret(&bench, &ended, &forms);
}

/// Requests of the server for a repository: how many, and whether any came with a login.
fn asked(bench: &Bench, name: &str) -> (usize, bool) {
    let text = std::fs::read_to_string(bench.path().join("asked")).unwrap_or_default();
    let start = format!("/git/{name}/");
    let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&start)).collect();
    (own.len(), own.iter().any(|line| !line.ends_with(" -")))
}

/// A served repository whose submodule, at some address, is a commit of the private one; gives its commit.
fn serve_stranger(bench: &Bench, name: &str, url: &str, commit: &str) -> String {
    let script = format!(
        "git init -q {name} && cd {name} && git config -f .gitmodules submodule.m.path lib && \
         git config -f .gitmodules submodule.m.url '{url}' && git add .gitmodules && \
         git update-index --add --cacheinfo 160000,{commit},lib && \
         git -c user.name=a -c user.email=a@example.org commit -qm one && \
         git clone -q --bare . ../served/{name}.git && git rev-parse HEAD"
    );
    let output =
        Command::new("sh").args(["-ec", &script]).current_dir(bench.path()).output().expect("sh starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a hash").trim().to_owned()
}

/// Each repository fails, at the private one; the server saw no login for that, and the helper was asked for nothing but
/// what the configuration names.
#[test]
fn what_a_repository_names_gets_no_login() {
    let bench = Bench::with_empty_cache();
    let commit = serve(&bench);
    let login = Login::start(&bench);
    let port = login.port;
    let urls = [
        format!("https://localhost:{port}/git/demo.git"),
        format!("https://127.0.0.1:{port}/git/demo.git"),
        "../demo.git".to_owned(),
        format!("git@localhost:{port}/git/demo.git"),
    ];
    let repos = urls.iter().enumerate().map(|(number, url)| {
        let commit = serve_stranger(&bench, &format!("evil{number}"), url, &commit);
        format!(
            "[[repo]]\nslug = \"evil/number{number}\"\n\
             git = \"https://localhost:{port}/git/evil{number}.git\"\ncommit = \"{commit}\"\n"
        )
    });
    bench.write_config(&format!("{DATASET}{}", repos.collect::<String>()));
    for allowed in ["0", "1"] {
        let mut command = at_home(&bench, true, &["build", "repos.toml"]);
        command.env("GISTMILL_ALLOW_PRIVATE_ADDRESSES", allowed);
        let ended = Running::start(command).wait().with_code(1);
        let words = if allowed == "1" { "wants another login (status 401)" } else { "of a private network" };
        assert!(ended.stdout.matches(words).count() >= 2, "{}", ended.stdout);
        let (count, has_login) = asked(&bench, "demo.git");
        assert!(!has_login && (count > 0) == (allowed == "1"), "{count} requests");
        for number in 0..urls.len() {
            assert!(
                asked(&bench, &format!("evil{number}.git")).1,
                "what the configuration names has its login"
            );
        }
        let _ = std::fs::remove_dir_all(bench.path().join("output"));
    }
    let calls = std::fs::read_to_string(bench.path().join("helper-calls")).expect("it was asked");
    let without_host =
        calls.split("protocol=").skip(1).filter(|call| !call.contains("host=localhost")).count();
    assert_eq!(without_host, 0, "{calls}");
}

#[test]
fn what_a_dataset_names_gets_no_login() {
    let bench = Bench::with_empty_cache();
    let commit = serve(&bench);
    let login = Login::start(&bench);
    bench.configure("[screen]\nattempts = 2", &["small_and_good"]);
    bench.build(&["--no-trees"]).with_code(0);
    let path = bench.dataset().folder.join("manifest.json");
    let mut manifest = bench.dataset().manifest();
    let repo = manifest["config"]["repos"][0].as_object_mut().expect("is a table");
    repo.remove("path");
    repo.remove("allow_uncommitted");
    repo.insert("commit".to_owned(), commit.into());
    repo.insert("git".to_owned(), format!("https://localhost:{}/git/demo.git", login.port).into());
    std::fs::write(&path, serde_json::to_vec(&manifest).expect("is JSON")).expect("can be written");
    for allowed in ["0", "1"] {
        let mut command = at_home(&bench, true, &["verify", "output/trees/1"]);
        command.env("GISTMILL_ALLOW_PRIVATE_ADDRESSES", allowed);
        let ended = Running::start(command).wait();
        assert!(!matches!(ended.code(), Some(0 | 4)), "{}", ended.stderr);
        let words = if allowed == "1" { "wants another login (status 401)" } else { "of a private network" };
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(words), "{said}");
        let (count, has_login) = asked(&bench, "demo.git");
        assert!(!has_login && (count > 0) == (allowed == "1"), "{count} requests");
    }
    assert!(!bench.path().join("helper-calls").exists(), "the helper was asked");
}
