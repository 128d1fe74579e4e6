//! Images of the engine to a registry. The engine sends them; what of an image the registry has already is not sent again.

use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::query_parameters::{PushImageOptionsBuilder, TagImageOptionsBuilder};
use futures_util::StreamExt;

use super::engine::Engine;
use super::image::{inspect, remove};
use super::login::Login;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::record::engine::EngineKind;
use crate::redact;

/// How soon an interruption is noticed.
const PULSE: Duration = Duration::from_millis(300);

/// An image of the engine that is to be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub name: String,
    pub id: String,
    /// As images have it: `amd64`, `arm64`.
    pub architecture: String,
}

/// An image by its name; none where the engine has none.
///
/// # Errors
/// The engine's.
pub fn local(engine: &Engine, name: &str) -> Result<Option<Local>> {
    let Some(found) = inspect(engine, name)? else { return Ok(None) };
    Ok(Some(Local {
        name: name.to_owned(),
        id: found.id.unwrap_or_default(),
        architecture: found.architecture.unwrap_or_default(),
    }))
}

/// Where an image is pushed to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub host: &'a str,
    /// Host and path.
    pub repository: &'a str,
    pub tag: &'a str,
    pub login: Option<&'a Login>,
}

impl std::fmt::Display for Target<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.repository, self.tag)
    }
}

/// Pushes an image; gives the digest of its manifest. What is done goes to `say`.
///
/// # Errors
/// The machine's, in words that say what to do: the registry refuses, fails, or cannot be reached. An interruption.
pub fn push(engine: &Engine, image: &Local, to: Target<'_>, say: &dyn Fn(&str)) -> Result<String> {
    let name = to.to_string();
    let was_there = inspect(engine, &name)?.and_then(|found| found.id);
    if was_there.as_ref().is_some_and(|id| *id != image.id) {
        return Err(Error::usage(format!("the engine has another image that is called {name}"))
            .with_hint(format!("`{} rmi {name}` takes that name from it", engine.kind.program())));
    }
    let options = TagImageOptionsBuilder::default().repo(to.repository).tag(to.tag).build();
    engine.ask(&format!("naming {name}"), engine.client().tag_image(&image.name, Some(options)))?;
    let pushed = sent(engine, to, say);
    if was_there.is_none() {
        // The name is for the push alone.
        remove(engine, &name)?;
    }
    pushed
}

fn sent(engine: &Engine, to: Target<'_>, say: &dyn Fn(&str)) -> Result<String> {
    let options = PushImageOptionsBuilder::default().tag(to.tag).build();
    let mut digest = None;
    let mut layers = Layers::default();
    engine.wait(async {
        let login = Some(credentials(to.host, to.login));
        let mut steps = Box::pin(engine.client().push_image(to.repository, Some(options), login));
        loop {
            interrupt::check()?;
            let Ok(step) = tokio::time::timeout(PULSE, steps.next()).await else { continue };
            let Some(step) = step else { return Ok::<(), Error>(()) };
            let step = step.map_err(|error| match error {
                bollard::errors::Error::DockerStreamError { error } => refused(engine.kind, to, &error),
                bollard::errors::Error::DockerResponseServerError { message, .. } => {
                    refused(engine.kind, to, &message)
                }
                other => engine.explain(&format!("pushing {to}"), other),
            })?;
            if let Some(found) = step.status.as_deref().and_then(digest_in) {
                digest = Some(found);
            } else if let Some(words) = step.status.as_deref().and_then(|status| layers.words(status)) {
                say(&words);
            }
        }
    })?;
    digest.ok_or_else(|| Error::harness(format!("the engine pushed {to} and does not say its digest")))
}

fn credentials(host: &str, login: Option<&Login>) -> DockerCredentials {
    let mut credentials =
        DockerCredentials { serveraddress: Some(host.to_owned()), ..DockerCredentials::default() };
    match login {
        Some(Login::Password { user, password }) => {
            credentials.username = Some(user.clone());
            credentials.password = Some(password.clone());
        }
        Some(Login::Token(token)) => credentials.identitytoken = Some(token.clone()),
        None => {}
    }
    credentials
}

/// The digest in the last line of a push: `<tag>: digest: sha256:… size: 1234`.
fn digest_in(status: &str) -> Option<String> {
    let digest = status.split_once("digest: ")?.1.split(' ').next()?;
    let hash = digest.strip_prefix("sha256:")?;
    let is_hash = hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit());
    is_hash.then(|| digest.to_owned())
}

/// The layers of an image, as a push comes across them.
#[derive(Debug, Default)]
struct Layers {
    all: u32,
    done: u32,
}

impl Layers {
    /// How far it is, where a status ends a layer: what the registry has already ends at once.
    fn words(&mut self, status: &str) -> Option<String> {
        self.all += u32::from(status == "Preparing");
        let is_end =
            status == "Pushed" || status == "Layer already exists" || status.starts_with("Mounted from ");
        self.done += u32::from(is_end);
        is_end.then(|| format!("{} of {} layers", self.done, self.all.max(self.done)))
    }
}

/// What the engine says of a push that failed, with the way out.
fn refused(engine: EngineKind, to: Target<'_>, message: &str) -> Error {
    const NO_LOGIN: [&str; 5] =
        ["unauthorized", "authentication required", "denied", "no basic auth", "forbidden"];
    const NO_WAY: [&str; 8] =
        ["refused", "no such host", "timeout", "timed out", "unreachable", "eof", "reset", "dial"];
    const GOES_ON: &str = "the same command goes on where it stopped";
    let (host, words) = (to.host, message.to_lowercase());
    let says = |some: &[&str]| some.iter().any(|word| words.contains(word));
    let (what, way_out) = if says(&NO_LOGIN) {
        let why = if to.login.is_some() { "with the login in" } else { "as there is no login for it in" };
        (
            format!("the registry {host} refuses {to} {why} the configuration of {}", engine.name()),
            format!(
                "`{} login {host}` with an account that may write there, then the same command",
                engine.program()
            ),
        )
    } else if says(&["unexpected http status: 5", "no space left on device"]) {
        (
            format!("the registry {host} fails, and does not take {to}"),
            format!("its log says why, such as a full disk; {GOES_ON}"),
        )
    } else if says(&["http response to https"]) {
        let place = match engine {
            EngineKind::Docker => "`insecure-registries` of the engine's configuration",
            EngineKind::Podman => "registries.conf with `insecure = true`",
        };
        (
            format!("the registry {host}, where {to} should go, does not encrypt"),
            format!("name it in {place}, if you trust the way to it"),
        )
    } else if says(&NO_WAY) {
        (
            format!("the engine cannot reach the registry {host} to push {to}"),
            format!("check that the registry runs, its name and the network; {GOES_ON}"),
        )
    } else {
        (format!("the engine cannot push {to}"), GOES_ON.to_owned())
    };
    Error::machine(what).with_hint(way_out).with_detail(redact::publish(message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_in_the_last_line() {
        let hash = "a".repeat(64);
        assert_eq!(digest_in(&format!("t: digest: sha256:{hash} size: 7")), Some(format!("sha256:{hash}")));
        for line in ["Pushed", "t: digest: sha256:abc size: 7", "digest: md5:x"] {
            assert_eq!(digest_in(line), None, "{line}");
        }
    }

    #[test]
    fn a_push_says_how_many_layers_are_done() {
        let mut layers = Layers::default();
        let all = [
            "Preparing",
            "Preparing",
            "Waiting",
            "Layer already exists",
            "Pushing",
            "Pushed",
            "1: digest: x",
        ];
        let words: Vec<String> = all.iter().filter_map(|status| layers.words(status)).collect();
        assert_eq!(words, ["1 of 2 layers", "2 of 2 layers"]);
    }

    #[test]
    fn a_failed_push_says_what_to_do() {
        let login = Login::Token("t".to_owned());
        let said = |engine, message: &str, login| {
            let error =
                refused(engine, Target { host: "h.io", repository: "h.io/a", tag: "1", login }, message);
            format!("{error} | {}", error.hint().unwrap_or_default())
        };
        for (message, login, words) in [
            ("unauthorized: authentication required", None, ["no login", "docker login h.io"]),
            ("denied: requested access", Some(&login), ["with the login", "docker login h.io"]),
            (
                "dial tcp 1.2.3.4:5000: connect: connection refused",
                None,
                ["cannot reach the registry h.io", "goes on"],
            ),
            ("server gave HTTP response to HTTPS client", None, ["does not encrypt", "insecure-registries"]),
            ("received unexpected HTTP status: 500 Internal Server Error", None, ["h.io fails", "full disk"]),
            ("something new", None, ["cannot push", "goes on"]),
        ] {
            let text = said(EngineKind::Docker, message, login);
            assert!(
                text.contains("h.io/a:1") && words.iter().all(|word| text.contains(word)),
                "{message}: {text}"
            );
        }
        assert!(said(EngineKind::Podman, "unauthorized", None).contains("`podman login h.io`"));
        assert!(said(EngineKind::Podman, "HTTP response to HTTPS", None).contains("registries.conf"));
    }
}
