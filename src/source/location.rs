//! Addresses of repositories: parsed into a form without credentials.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::config::is_host_and_port;
use crate::error::{Error, Fault, Result};
use crate::record::id::sha256_hex;
use crate::redact::redact;

/// Where a git repository lies.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// A directory of this machine, from a path or a `file://` address.
    Local(PathBuf),
    Remote(Remote),
}

/// A repository behind a connection. The credentials of its address are kept apart from the address.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Remote {
    /// The address without user and password; its query may still hold a token, see [`Remote::shown`].
    pub url: String,
    pub user: Option<String>,
    pub password: Option<String>,
    /// No login of the user's is offered: the address is not from the user. Nothing is asked there before it was looked
    /// over.
    pub anonymous: bool,
}

impl Remote {
    /// The repository at an address that a repository or a dataset names: without the login in it, and by https where it
    /// names ssh, which gives nothing to whoever has no key.
    pub(super) fn public(self) -> Remote {
        let plain = self.url.split(['?', '#']).next().unwrap_or_default();
        let by_https = |host: &str, path: &str| {
            let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
            let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
            format!("https://{host}/{}", path.trim_start_matches('/'))
        };
        let url = match plain.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ssh") => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                by_https(host, path)
            }
            Some(_) => plain.to_owned(),
            None => plain.split_once(':').map_or(plain.to_owned(), |(host, path)| by_https(host, path)),
        };
        Remote { url, user: None, password: None, anonymous: true }
    }

    /// What the cache's repository for it is called. What was fetched with a login is out of reach without one.
    pub(super) fn cache_name(&self) -> String {
        let kind = if self.anonymous { "anonymous " } else { "" };
        sha256_hex(format!("{kind}{}", self.shown()).as_bytes())
    }

    /// The address as it may be printed and stored.
    pub(super) fn shown(&self) -> String {
        redact(&self.url)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => write!(formatter, "file://{}", path.display()),
            Location::Remote(remote) => formatter.write_str(&remote.shown()),
        }
    }
}

impl Location {
    /// Understands `https://…`, `ssh://…`, `git://…`, `file://…`, `user@host:path` and plain paths.
    ///
    /// # Errors
    /// When the address has no host, or a port that is not a number (a password that is not percent-encoded looks like
    /// that). The message never repeats the address.
    pub(super) fn parse(text: &str) -> Result<Location> {
        if let Some((scheme, rest)) = text.split_once("://") {
            if scheme.eq_ignore_ascii_case("file") {
                let path =
                    rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
                return Ok(Location::Local(percent_decoded_path(path)));
            }
            return parse_url(scheme, rest).map(Location::Remote);
        }
        match text.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                Ok(Location::Remote(parse_scp_like(host, path)))
            }
            _ => Ok(Location::Local(PathBuf::from(text))),
        }
    }

    /// The repository that a submodule's address stands for: `./x` and `../x` are relative to the repository that has it.
    ///
    /// # Errors
    /// The repository's: a host path, which is never read for it, more `..` than the address has parts, and what is not
    /// an address.
    pub(super) fn submodule(&self, text: &str) -> Result<Remote> {
        let is_relative = text.starts_with("./") || text.starts_with("../");
        let found = match self {
            Location::Remote(remote) if is_relative => {
                let url = join_url(&remote.url, text)
                    .ok_or_else(|| Error::repository(format!("`{}` leads out of {self}", redact(text))))?;
                Location::Remote(Remote { url, ..remote.clone() })
            }
            _ => Location::parse(text).map_err(|error| error.blame(Fault::Repository))?,
        };
        match found {
            Location::Remote(remote) => Ok(remote.public()),
            Location::Local(_) => Err(Error::repository(format!("`{}` names a host path", redact(text)))),
        }
    }
}

fn parse_url(scheme: &str, rest: &str) -> Result<Remote> {
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (login, host) =
        authority.rsplit_once('@').map_or((None, authority), |(login, host)| (Some(login), host));
    if !is_host_and_port(host) {
        return Err(Error::usage(format!(
            "an address that starts with `{scheme}://` has no valid host and port"
        ))
        .with_hint("percent-encode the special characters of a password, or use a git credential helper"));
    }
    let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        Some((user, password)) => (Some(percent_decoded(user)), Some(percent_decoded(password))),
        None => (None, None),
    };
    let url = format!("{scheme}://{host}{path}");
    Ok(Remote { url, user: filled(user), password: filled(password), anonymous: false })
}

fn parse_scp_like(host: &str, path: &str) -> Remote {
    let (user, host) =
        host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user.to_owned()), host));
    Remote { url: format!("{host}:{path}"), user, password: None, anonymous: false }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Without the query, which may hold a token.
fn join_url(base: &str, relative: &str) -> Option<String> {
    let base = base.split(['?', '#']).next().unwrap_or_default();
    let mut base = base.trim_end_matches('/').to_owned();
    let mut rest = relative;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            let end = base.rfind(['/', ':'])?;
            if base[..=end].ends_with("//") || base[..end].ends_with(':') {
                return None;
            }
            // The colon of `host:path` is a separator that stays.
            base.truncate(if base.as_bytes()[end] == b':' { end + 1 } else { end });
            rest = after;
        } else {
            let separator = if base.ends_with(':') { "" } else { "/" };
            return Some(format!("{base}{separator}{rest}"));
        }
    }
}

/// A path without `.` and `..`, by its text alone.
pub(super) fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if result.file_name().is_some() => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn percent_decoded_path(text: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decode_str(text).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> Remote {
        match Location::parse(text).unwrap() {
            Location::Remote(remote) => remote,
            Location::Local(path) => panic!("{} is local", path.display()),
        }
    }

    #[test]
    fn credentials_are_taken_out_of_the_address() {
        let found = remote("https://user:p%40ss@host:8080/owner/name.git");
        assert_eq!(found.url, "https://host:8080/owner/name.git");
        assert_eq!((found.user.as_deref(), found.password.as_deref()), (Some("user"), Some("p@ss")));
        let found = remote("https://token@host/x");
        assert_eq!((found.user.as_deref(), found.password), (Some("token"), None));
        let found = remote("git@host:owner/name");
        assert_eq!((found.url.as_str(), found.user.as_deref()), ("host:owner/name", Some("git")));
    }

    #[test]
    fn paths_and_file_addresses_are_local() {
        for (text, path) in [
            ("file:///a%20b/c", "/a b/c"),
            ("file://localhost/x", "/x"),
            ("../x", "../x"),
            ("/a:b", "/a:b"),
            ("./a:b", "./a:b"),
        ] {
            assert!(Location::parse(text).unwrap() == Location::Local(PathBuf::from(path)), "{text}");
        }
    }

    #[test]
    fn a_raw_password_is_refused_without_being_shown() {
        let error = Location::parse("https://user:pa/ss@host/x").err().unwrap();
        assert!(!error.to_string().contains("pa"), "{error}");
        assert!(Location::parse("https://[::1]:80/x").is_ok());
    }

    #[test]
    fn relative_submodules_resolve_against_their_parent() {
        let join =
            |base: &str, text: &str| Location::parse(base).unwrap().submodule(text).map(|remote| remote.url);
        for (base, text, expected) in [
            ("https://u:p@host/a/b.git", "../c.git", "https://host/a/c.git"),
            ("https://host/a/b.git/", "../../x/c", "https://host/x/c"),
            ("https://host/a/b?token=x/y", "../c", "https://host/a/c"),
            ("https://host/a", "https://me:pw@other/x?token=y", "https://other/x"),
            // Without a key ssh gives nothing.
            ("git@host:a/b", "../c", "https://host/a/c"),
            ("git@host:b", "../c", "https://host/c"),
            ("ssh://git@host:2222/a/b", "../c", "https://host/a/c"),
            ("https://host/a", "git@other:x/y.git", "https://other/x/y.git"),
            ("file:///a/b", "SSH://git@other/x", "https://other/x"),
        ] {
            assert_eq!(join(base, text).unwrap(), expected);
        }
        assert!(join("https://host/a", "../../b").is_err());
    }

    #[test]
    fn a_submodule_gets_nothing_of_its_parents_login() {
        for base in ["https://u:p@host/a/b.git?access_token=t", "ssh://u@host/a/b", "u@host:a/b"] {
            for text in ["../c.git", "./c.git", "https://u2:p2@host/a/c", "u2@host:a/c"] {
                let child = Location::parse(base).unwrap().submodule(text).unwrap();
                assert!(child.anonymous && child.user.is_none() && child.password.is_none(), "{base} {text}");
                assert!(!child.url.contains(['@', '?']), "{}", child.url);
            }
        }
    }

    #[test]
    fn a_submodule_never_names_a_host_path() {
        for base in ["file:///a/b", "/a/b", "https://host/a/b", "git@host:a/b"] {
            for text in ["/etc", "file:///etc", "FILE://localhost/etc", "etc", "~/x", "\\etc", ".", ".."] {
                let error = Location::parse(base).unwrap().submodule(text).err().unwrap();
                assert_eq!(error.fault(), Fault::Repository, "{base} {text}");
            }
        }
        for base in ["file:///a/b", "/a/b", "b"] {
            for text in ["../c", "./c", "../../../../etc"] {
                let error = Location::parse(base).unwrap().submodule(text).err().unwrap();
                assert!(error.to_string().contains("names a host path"), "{base} {text}: {error}");
            }
        }
    }
}
