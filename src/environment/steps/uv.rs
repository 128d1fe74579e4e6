//! uv: found on the machine or installed into the tool's own cache; its arguments; what its errors mean.
//!
//! The arguments are made by pure functions. Variables of the user that say where and how to download reach the
//! commands that download, and nothing else: no lock, recipe or message ever holds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

use crate::environment::declared::requirements_files::pattern;
use crate::environment::plan::python::Interpreter;
use crate::error::{Error, Result};
use crate::redact::Hosts;

/// A uv that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uv {
    /// The real binary, not a shim.
    pub executable: PathBuf,
    pub version: String,
}

/// The oldest uv with every option that [`compile_arguments`] and [`sync_arguments`] use.
const OLDEST: (u64, u64) = (0, 5);

/// Finds uv on PATH, in the usual user folders, or where an earlier [`install`] put it.
pub fn find(tools: &Path) -> Option<Uv> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| !folder.ends_with("shims")).collect();
    folders.extend([home.join(".local/bin"), home.join(".cargo/bin"), tools.join("uv/bin")]);
    let pyenv = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let versions = fs_err::read_dir(pyenv.join("versions")).into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.iter().find_map(|folder| working(&folder.join("uv")))
}

/// The program at a path, if it is a real uv that is new enough.
fn working(path: &Path) -> Option<Uv> {
    let executable = path.canonicalize().ok().filter(|path| path.is_file())?;
    let output = Command::new(&executable)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let version = parse_version(&String::from_utf8(output.stdout).ok()?)?;
    Some(Uv { executable, version })
}

/// `0.9.1` out of `uv 0.9.1 (…)`; none when older than what is needed.
fn parse_version(text: &str) -> Option<String> {
    let version = text.strip_prefix("uv ")?.split_whitespace().next()?;
    let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
    ((numbers.next()??, numbers.next()??) >= OLDEST).then(|| version.to_owned())
}

/// Installs uv into the tool cache with the first interpreter that can.
///
/// # Errors
/// No interpreter has `venv` and `pip`, or the download fails.
pub fn install(tools: &Path, machine: &[Interpreter], variables: &BTreeMap<String, String>) -> Result<Uv> {
    let hint = "install uv (https://docs.astral.sh/uv) so that it is on PATH, or check the network and proxy settings, and the \
                index in UV_DEFAULT_INDEX or PIP_INDEX_URL";
    let python = machine.first().ok_or_else(|| {
        Error::machine("uv is not on this machine, and no Python to install it with").with_hint(hint)
    })?;
    let folder = tools.join("uv");
    let run = |program: &Path, arguments: &[&str]| -> Result<()> {
        let has_own = std::env::var_os("PIP_INDEX_URL").is_some();
        let index = index_for_pip(variables).filter(|_| !has_own).map(|address| ("PIP_INDEX_URL", address));
        let output = Command::new(program).args(arguments).envs(index).stdin(Stdio::null()).output();
        let output =
            output.map_err(|error| Error::from(error).at(format!("cannot start {}", program.display())))?;
        if output.status.success() {
            return Ok(());
        }
        let detail = hosts_of_user().tail(&String::from_utf8_lossy(&output.stderr));
        Err(Error::machine("uv is not on this machine and cannot be installed")
            .with_detail(detail)
            .with_hint(hint))
    };
    crate::terminal::note("uv is not on this machine: installing it below the cache");
    let place = folder.to_string_lossy().into_owned();
    run(&python.executable, &["-I", "-m", "venv", "--clear", &place])?;
    run(
        &folder.join("bin/python"),
        &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"],
    )?;
    working(&folder.join("bin/uv"))
        .ok_or_else(|| Error::machine("the installed uv does not start").with_hint(hint))
}

/// The index that uv would ask, for pip, which knows none of uv's variables. It may have a login: no command line shows it.
fn index_for_pip(variables: &BTreeMap<String, String>) -> Option<String> {
    let asked = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"].iter().find_map(|name| variables.get(*name))?;
    // `name=address`, where the name has none of an address's signs.
    let address = match asked.split_once('=') {
        Some((name, address)) if !name.contains([':', '/']) => address,
        _ => asked,
    };
    (!address.trim().is_empty()).then(|| address.to_owned())
}

/// The variables of this process. What is not UTF-8 is none that uv could use: such names are left out, and such values
/// have a replacement character, so that uv refuses them by name.
pub fn user_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

/// Variables of the user that commands which download need, and files that they name.
pub fn download_variables(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    const NAMES: [&str; 22] = [
        "ALL_PROXY",
        "CURL_CA_BUNDLE",
        "GISTMILL_ALLOW_PRIVATE_ADDRESSES",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "SSL_CLIENT_CERT",
        "UV_CONCURRENT_DOWNLOADS",
        "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL",
        "UV_HTTP_RETRIES",
        "UV_HTTP_TIMEOUT",
        "UV_INDEX",
        "UV_INDEX_STRATEGY",
        "UV_INDEX_URL",
        "UV_INSECURE_HOST",
        "UV_NATIVE_TLS",
        "UV_REQUEST_TIMEOUT",
        "UV_SYSTEM_CERTS",
    ];
    let all: BTreeMap<String, String> = all.collect();
    let wanted = |name: &str| {
        NAMES.contains(&name.to_uppercase().as_str())
            || (name.starts_with("UV_INDEX_") && !name.ends_with("_STRATEGY"))
    };
    let mut found: BTreeMap<String, String> = all
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // uv does not read pip's variables; who set only those means uv as well.
    for (pip, uv, old) in [
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
        ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX"),
        ("PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_FILE"),
    ] {
        if let Some(value) = all.get(pip).filter(|_| !found.contains_key(uv) && !found.contains_key(old)) {
            found.insert(uv.to_owned(), value.clone());
        }
    }
    found
}

/// What to resolve.
#[derive(Debug, Clone)]
pub struct Compile<'a> {
    pub python: &'a Path,
    pub input: &'a str,
    pub constraints: Option<&'a str>,
    pub overrides: Option<&'a str>,
    pub output: &'a str,
    /// The tree's own distribution, which no lock holds.
    pub without: Vec<&'a str>,
}

/// `uv pip compile …`, so that the output holds versions and hashes only.
pub fn compile_arguments(compile: &Compile<'_>) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["pip", "compile", compile.input, "--quiet", "--no-build", "--python"].map(str::to_owned).into();
    arguments.push(compile.python.to_string_lossy().into_owned());
    for flag in ["--generate-hashes", "--no-header", "--no-annotate"] {
        arguments.push(flag.to_owned());
    }
    arguments.extend(["--output-file".to_owned(), compile.output.to_owned()]);
    if let Some(constraints) = compile.constraints {
        arguments.extend(["--constraints".to_owned(), constraints.to_owned()]);
    }
    if let Some(overrides) = compile.overrides {
        arguments.extend(["--overrides".to_owned(), overrides.to_owned()]);
    }
    for name in &compile.without {
        arguments.extend(["--no-emit-package".to_owned(), (*name).to_owned()]);
    }
    arguments
}

/// `uv pip sync --require-hashes …`: the environment holds exactly what the lock says.
pub fn sync_arguments(venv: &Path, lock: &str) -> Vec<String> {
    let python = venv.join("bin/python").to_string_lossy().into_owned();
    ["pip", "sync", lock, "--quiet", "--no-build", "--python", &python, "--require-hashes"]
        .map(str::to_owned)
        .into()
}

/// Hosts of indexes and proxies that the user configured.
pub fn hosts_of_user() -> Hosts {
    Hosts::of(&download_variables(user_variables()))
}

/// Distributions that the index does not have, not in the version that is asked for, or not for this interpreter, as uv
/// names them.
pub fn unknown_distributions(output: &str) -> Vec<String> {
    static UNKNOWN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?ix)(?:because|and)\s+(?:
                ([a-z0-9._-]+)\s+was\s+not\s+found\s+in\s+the
                | there\s+(?:is\s+no\s+version|are\s+no\s+versions)\s+of\s+([a-z0-9._-]+)
                | ([a-z0-9._-]+?)(?:\s*[=<>!~]=?\S*)?\s+has\s+no\s+(?:usable\s+wheels|wheels\s+with\s+a\s+matching)
            )",
        )
    });
    UNKNOWN
        .captures_iter(output)
        .filter_map(|found| (1..4).find_map(|group| found.get(group)))
        .map(|name| name.as_str().to_owned())
        .collect()
}

/// Whether uv did not find what every index has.
fn lacks_all(output: &str) -> bool {
    let words: Vec<&str> = output.split_whitespace().collect();
    let text = words.join(" ");
    ["pytest", "setuptools"]
        .into_iter()
        .any(|name| text.contains(&format!(" {name} was not found in the package registry")))
}

/// The way out where a source distribution cannot be built.
pub const BUILD_HINT: &str =
    "a dependency has no wheel for this interpreter and needs tools of the system; try another `python`";

/// The way out of a failed resolution or installation.
pub fn hint(output: &str) -> &'static str {
    if lacks_all(output) {
        "the address or the login of the package index may be wrong: `gistmill check` asks each index; docs/private.md says how one \
         is named"
    } else if output.contains("No solution found") || output.contains("unsatisfiable") {
        "set `python`, `groups`, `extras` or `exclude_newer` for this repository"
    } else {
        "set `python`, `groups`, `extras` or `requirements` for this repository"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_checked() {
        assert_eq!(parse_version("uv 0.9.13 (x86_64-unknown-linux-gnu)\n").as_deref(), Some("0.9.13"));
        assert_eq!(parse_version("uv 0.2.1"), None);
        assert_eq!(parse_version("pyenv: uv: command not found"), None);
    }

    #[test]
    fn what_every_index_has_and_this_one_has_not_is_the_index_s_fault() {
        let text = "error: No solution found\n  cause: Because pytest was not found in the\n  package registry and you require pytest";
        assert!(hint(text).contains("the package index may be wrong"));
        assert!(!lacks_all("Because there is no version of pytest>=99 and you require pytest>=99"));
        assert!(!lacks_all("Because my-pytest was not found in the package registry"));
    }

    #[test]
    fn pip_asks_the_index_that_uv_would_ask() {
        let told = |name: &str, value: &str| index_for_pip(&[(name.to_owned(), value.to_owned())].into());
        let address = "https://u:p@mirror.example/simple?a=b";
        assert_eq!(told("UV_DEFAULT_INDEX", address).as_deref(), Some(address));
        assert_eq!(told("UV_DEFAULT_INDEX", &format!("mine={address}")).as_deref(), Some(address));
        assert_eq!(told("UV_INDEX_URL", address).as_deref(), Some(address));
        assert_eq!(told("UV_DEFAULT_INDEX", ""), None);
        assert_eq!(told("UV_INDEX", address), None, "it is asked beside the default one");
    }

    #[test]
    fn only_download_settings_pass_and_pips_stand_in() {
        let variables = [
            ("UV_INDEX_MINE_PASSWORD", "p"),
            ("https_proxy", "http://proxy.example:1"),
            ("PIP_INDEX_URL", "https://u:p@mirror.example/simple"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("UV_PYTHON", "3.8"),
        ];
        let found = download_variables(
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["UV_DEFAULT_INDEX", "UV_INDEX_MINE_PASSWORD", "https_proxy"]);
    }

    #[test]
    fn unknown_distributions_are_named() {
        let text = "  × No solution found\n  ╰─▶ Because nope-x was not found in the package registry and you require nope-x";
        assert_eq!(unknown_distributions(text), ["nope-x"]);
        let text = "  ╰─▶ Because mkl-fft==1.3.1 has no wheels with a matching Python ABI\n      tag (e.g., `cp312`) and there is no \
                    version of\n      six==99, we can conclude that a depends on b";
        assert_eq!(unknown_distributions(text), ["mkl-fft", "six"]);
        let text =
            "Because only a<2 is available and b depends on a>=2, we can conclude that b cannot be used.";
        assert_eq!(unknown_distributions(text), [""; 0]);
    }
}
