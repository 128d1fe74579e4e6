//! Image registries: how places in them are named, and what they answer to whoever has no login.

mod ask;

use std::fmt;

pub(crate) use ask::{Answer, Registries, is_digest};

use crate::error::{Error, Result};

/// The registry of names without a host.
const HUB: &str = "docker.io";
/// Longest name.
const LONGEST: usize = 255;

/// A place in a registry: the name of images without tag and digest, or the start of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImagePlace {
    host: String,
    path: String,
}

impl fmt::Display for ImagePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return formatter.write_str(&self.host);
        }
        write!(formatter, "{}/{}", self.host, self.path)
    }
}

impl ImagePlace {
    /// Reads `host[:port]/path`; without a host it is Docker Hub's.
    ///
    /// # Errors
    /// Usage errors that quote it and say the form.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refused = |why: &str| {
            Err(Error::usage(format!("{} is not a place in a registry: {why}", crate::redact::quote(text)))
                .with_hint("write the registry's host and a path, such as `ghcr.io/me/datasets`"))
        };
        if text.contains("://") {
            return refused("it is written without `https://`");
        }
        if text.contains('@') {
            return refused("a login is the business of `docker login`, and a digest is of one image");
        }
        let text = text.trim_end_matches('/');
        let (host, path) = match text.split_once('/') {
            Some((host, path)) if is_host(host) => (host.to_owned(), path),
            None if is_host(text) => (text.to_owned(), ""),
            _ => (HUB.to_owned(), text),
        };
        if text.len() > LONGEST {
            return refused("it is too long");
        }
        if !plain_host(&host) {
            return refused("its host is not one");
        }
        if !path.is_empty() && !path.split('/').all(is_part) {
            return refused("a path has small letters, digits and single `.`, `_`, `-` between");
        }
        Ok(ImagePlace { host, path: path.to_owned() })
    }

    /// A name below it.
    pub(crate) fn below(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) };
        ImagePlace { host: self.host.clone(), path }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Its last part.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is on this machine: spoken to without encryption, as engines do.
    fn is_loopback(&self) -> bool {
        let host = self.host.split(':').next().unwrap_or_default();
        host == "localhost" || host.starts_with("127.")
    }
}

/// What engines take the first part of a name for.
fn is_host(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':'])
}

fn plain_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_name = !name.is_empty()
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// A part of a path: small letters and digits, with `.`, `_`, `__` or hyphens between.
fn is_part(part: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let are_known =
        part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'));
    are_known
        && is_end(part.chars().next())
        && is_end(part.chars().last())
        && !["..", "___", "._", "_.", ".-", "-.", "-_", "_-"].iter().any(|bad| part.contains(bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_host_or_is_at_the_hub() {
        for (text, host, path) in [
            ("ghcr.io/me/sets", "ghcr.io", "me/sets"),
            ("ghcr.io/me/sets/", "ghcr.io", "me/sets"),
            ("127.0.0.1:5000", "127.0.0.1:5000", ""),
            ("localhost/a", "localhost", "a"),
            ("me", "docker.io", "me"),
            ("me/a__b", "docker.io", "me/a__b"),
        ] {
            let place = ImagePlace::parse(text).unwrap();
            assert_eq!((place.host.as_str(), place.path.as_str()), (host, path), "{text}");
        }
        assert_eq!(ImagePlace::parse("h.io").unwrap().below("x").to_string(), "h.io/x");
        assert_eq!(ImagePlace::parse("me").unwrap().below("x").to_string(), "docker.io/me/x");
    }

    #[test]
    fn what_is_not_a_place_is_refused_with_its_form() {
        for text in [
            "https://ghcr.io/me",
            "me@ghcr.io/x",
            "ghcr.io/Me",
            "ghcr.io//x",
            "ghcr.io/a..b",
            "ghcr.io:x/a",
            "ghcr.io:0/a",
            "-h.io/a",
            "ghcr.io/a b",
            "ghcr.io/a;b",
            "ghcr.io/../b",
            "h.io/a___b",
            "a:b:c/d",
        ] {
            let error = ImagePlace::parse(text).expect_err(text);
            assert!(error.hint().is_some_and(|hint| hint.contains("ghcr.io/me/datasets")), "{text}");
        }
    }
}
