//! Logins at registries, as Docker's own configuration has them: in the file itself, or behind a helper that it names.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use serde_json::Value;

use super::engine::runtime_folder;
use crate::error::{Error, Result};
use crate::record::engine::EngineKind;

/// Largest configuration, and largest answer of a helper.
const LARGEST: u64 = 4 << 20;
/// What the hub is called there.
const HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");
/// The user name of a helper's answer that is a token.
const TOKEN: &str = "<token>";

/// A login, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    Password { user: String, password: String },
    Token(String),
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Login")
    }
}

impl Login {
    /// The login at a registry; none where no configuration has one.
    ///
    /// # Errors
    /// A configuration is not JSON, or its helper fails.
    pub fn at(host: &str, engine: EngineKind) -> Result<Option<Self>> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        for file in files(engine, &variable).iter().filter(|file| file.exists()) {
            if let Some(login) = Self::in_file(file, host)? {
                return Ok(Some(login));
            }
        }
        Ok(None)
    }

    fn in_file(file: &Path, host: &str) -> Result<Option<Self>> {
        let mut text = String::new();
        fs_err::File::open(file)?.take(LARGEST).read_to_string(&mut text)?;
        let not_json = |error| {
            Error::usage(format!("{} is not JSON", file.display()))
                .with_source(error)
                .with_hint("`docker login` writes it; DOCKER_CONFIG names another folder")
        };
        let config: Value = serde_json::from_str(&text).map_err(not_json)?;
        let key = if host == HUB.0 { HUB.1 } else { host };
        let helper = config["credHelpers"][key].as_str().or_else(|| config["credsStore"].as_str());
        if let Some(helper) = helper.filter(|helper| !helper.is_empty())
            && let Some(login) = ask(helper, key)?
        {
            return Ok(Some(login));
        }
        let address = format!("https://{key}");
        let entries = [key, address.as_str()].map(|key| &config["auths"][key]);
        Ok(entries.into_iter().find_map(of_entry))
    }
}

/// Where logins may be: what `podman login` wrote comes first for Podman, which reads Docker's as well.
fn files(engine: EngineKind, variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    let below = |folder: &str| home.as_ref().map(|home| home.join(folder));
    let docker = variable("DOCKER_CONFIG").map(PathBuf::from).or_else(|| below(".docker"));
    let docker = docker.map(|folder| folder.join("config.json"));
    if engine == EngineKind::Docker {
        return docker.into_iter().collect();
    }
    if let Some(file) = variable("REGISTRY_AUTH_FILE") {
        return vec![PathBuf::from(file)];
    }
    let user = nix::unistd::getuid();
    let folder = if user.is_root() { "containers/0" } else { "containers" };
    let session = runtime_folder(variable).join(folder).join("auth.json");
    [Some(session), below(".config/containers/auth.json"), docker].into_iter().flatten().collect()
}

/// A login that is written down.
fn of_entry(entry: &Value) -> Option<Login> {
    let text = |key: &str| entry[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if let Some(token) = text("identitytoken") {
        return Some(Login::Token(token));
    }
    if let (Some(user), Some(password)) = (text("username"), text("password")) {
        return Some(Login::Password { user, password });
    }
    let packed = base64::engine::general_purpose::STANDARD.decode(text("auth")?).ok()?;
    let packed = String::from_utf8(packed).ok()?;
    let (user, password) = packed.trim_end_matches('\0').split_once(':')?;
    Some(Login::Password { user: user.to_owned(), password: password.to_owned() })
}

/// What `docker-credential-<helper>` knows of a registry.
fn ask(helper: &str, key: &str) -> Result<Option<Login>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = format!("docker-credential-{helper}");
    let failed = |why: String| {
        Error::machine(format!("the helper for logins {name} fails")).with_detail(why).with_hint(
            "Docker's configuration names it in `credsStore` or `credHelpers`; `docker login` has to work",
        )
    };
    if !helper.chars().all(is_plain) {
        return Err(failed("its name is not one".to_owned()));
    }
    let io = |error: std::io::Error| failed(error.to_string());
    let mut child = Command::new(&name)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(io)?;
    if let Some(mut input) = child.stdin.take() {
        // One that ends without reading says so by its status.
        let _ = input.write_all(key.as_bytes());
    }
    let mut answer = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(LARGEST).read_to_end(&mut answer).map_err(io)?;
    }
    if !child.wait().map_err(io)?.success() {
        let words = String::from_utf8_lossy(&answer).to_lowercase();
        let is_unknown = words.contains("not found") || words.contains("no credentials");
        return if is_unknown { Ok(None) } else { Err(failed(words.trim().to_owned())) };
    }
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| failed(error.to_string()))?;
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    let (user, secret) = (text("Username"), text("Secret"));
    if secret.is_empty() {
        return Ok(None);
    }
    Ok(Some(if user == TOKEN { Login::Token(secret) } else { Login::Password { user, password: secret } }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(config: &Value, host: &str) -> Result<Option<Login>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs_err::write(&file, config.to_string()).unwrap();
        Login::in_file(&file, host)
    }

    #[test]
    fn a_login_is_found_as_docker_writes_it() {
        let ann = Login::Password { user: "ann".to_owned(), password: "a:b".to_owned() };
        let config = json!({"auths": {
            "h.io:5000": {"auth": "YW5uOmE6Yg=="},
            "https://other.io": {"username": "ann", "password": "a:b"},
            "https://index.docker.io/v1/": {"auth": "", "identitytoken": "t"},
            "empty.io": {},
        }});
        assert_eq!(found(&config, "h.io:5000").unwrap().as_ref(), Some(&ann));
        assert_eq!(found(&config, "other.io").unwrap().as_ref(), Some(&ann));
        assert_eq!(found(&config, "docker.io").unwrap(), Some(Login::Token("t".to_owned())));
        for host in ["h.io", "empty.io", "index.docker.io"] {
            assert_eq!(found(&config, host).unwrap(), None, "{host}");
        }
        assert_eq!(format!("{ann:?}"), "Login");
    }

    #[test]
    fn podman_has_logins_of_its_own_before_those_of_docker() {
        let found = |engine, name: &'static str| {
            let variable = move |one: &str| match one {
                "HOME" => Some("/home/me".to_owned()),
                _ => (one == name).then(|| "/x".to_owned()),
            };
            files(engine, &variable).iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(EngineKind::Docker, ""), ["/home/me/.docker/config.json"]);
        assert_eq!(found(EngineKind::Docker, "DOCKER_CONFIG"), ["/x/config.json"]);
        assert_eq!(found(EngineKind::Podman, "REGISTRY_AUTH_FILE"), ["/x"]);
        let all = found(EngineKind::Podman, "");
        assert!(all[0].ends_with("/auth.json"), "{all:?}");
        assert_eq!(all[1..], ["/home/me/.config/containers/auth.json", "/home/me/.docker/config.json"]);
    }

    #[test]
    fn a_helper_that_fails_is_named() {
        let error = found(&json!({"credsStore": "no-such-helper"}), "h.io").unwrap_err();
        assert!(error.to_string().contains("docker-credential-no-such-helper"), "{error}");
        assert!(found(&json!({"credHelpers": {"h.io": "../x"}}), "h.io").is_err());
        assert_eq!(found(&json!({"credHelpers": {"other.io": "no-such-helper"}}), "h.io").unwrap(), None);
    }
}
