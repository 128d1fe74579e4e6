//! Forms of git URLs: `https://`, `ssh://`, `file://` and `user@host:path`.

use url::Url;

use crate::document::Problems;
use crate::document::section::Located;
use crate::redact::{quote, redact};

/// Refuses URLs that git2 cannot fetch safely. Whether anything answers there is not asked.
pub(super) fn check(text: Located<&str>, problems: &mut Problems<'_>) {
    if let Err((problem, hint)) = form(text.value) {
        problems.add(text.at, format!("git {} {problem}", quote(text.value)), Some(hint));
    }
}

fn form(url: &str) -> Result<(), (&'static str, String)> {
    if url.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(("is not a URL", "write git = \"https://host/owner/name\"".to_owned()));
    }
    match url.split_once("://") {
        Some((scheme, rest)) => with_scheme(scheme, rest),
        None if is_scp_like(url) => Ok(()),
        None if url.starts_with(['/', '.', '~']) => {
            Err(("is a local path", format!("write path = \"{}\"", redact(url))))
        }
        None if url.split('/').next().is_some_and(|host| host.contains('.')) => {
            Err(("has no scheme", format!("write git = \"https://{}\"", redact(url))))
        }
        None => Err(("is not a URL", "write git = \"https://host/owner/name\"".to_owned())),
    }
}

fn with_scheme(scheme: &str, rest: &str) -> Result<(), (&'static str, String)> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme {
        "https" | "ssh" if host.is_empty() || path.is_empty() => {
            Err(("names no repository", format!("write git = \"{scheme}://host/owner/name\"")))
        }
        "https" | "ssh" if !is_authority(host) => Err((
            "has no valid host and port",
            "percent-encode the special characters of a password, or use a git credential helper".to_owned(),
        )),
        "file" if !host.is_empty() || path.is_empty() => {
            Err(("is not absolute", "write three slashes: git = \"file:///folder/name\"".to_owned()))
        }
        "https" | "ssh" | "file" => Ok(()),
        "http" | "git" => {
            let better = redact(&format!("https://{rest}"));
            Err(("is not encrypted, so anyone on the way can change it", format!("write git = \"{better}\"")))
        }
        _ if scheme.starts_with("git+") => {
            let better = redact(&format!("{}://{rest}", &scheme["git+".len()..]));
            Err(("has a prefix that only pip knows", format!("write git = \"{better}\"")))
        }
        _ => Err(("has an unknown scheme", "use https://, ssh://, file:// or user@host:path".to_owned())),
    }
}

/// `user:password@host:port`; of the host only the form is looked at.
fn is_authority(text: &str) -> bool {
    is_host_and_port(text.rsplit_once('@').map_or(text, |(_, host)| host))
}

/// Whether `host` or `host:port` is one that can be reached; `[…]` has an IPv6 address in it. Only the form counts: the
/// address stays as it is written, which no parser of URLs would leave it.
pub fn is_host_and_port(text: &str) -> bool {
    let is_alone = !text.contains(['/', '?', '#', '@', '\\']);
    let url = Url::parse(&format!("https://{text}/")).ok().filter(|_| is_alone);
    url.is_some_and(|url| url.port() != Some(0))
}

fn is_scp_like(url: &str) -> bool {
    let Some((host, path)) = url.split_once(':') else { return false };
    let Some((user, host)) = host.split_once('@') else { return false };
    !user.is_empty() && !host.is_empty() && !host.contains('/') && !path.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str =
        "percent-encode the special characters of a password, or use a git credential helper";

    #[test]
    fn the_four_forms_are_accepted() {
        for url in [
            "https://host/owner/name",
            "https://user:token@host:8443/owner/name.git",
            "https://[::1]:8443/owner/name",
            "ssh://git@[::1]/owner/name",
            "https://müller.example/owner/name",
            "ssh://git@host/owner/name",
            "file:///srv/git/name.git",
            "git@host:owner/name.git",
        ] {
            assert_eq!(form(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn hosts_and_ports_have_their_form() {
        for text in ["host", "host:8080", "[::1]:80", "müller.example", "localhost", "127.0.0.1:1"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in
            ["", ":80", "host:x", "host:99999", "host:0", "[::1", "[::1]x", "a b", "a@b", "a/b", "a\\b"]
        {
            assert!(!is_host_and_port(text), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused_with_a_better_one() {
        for (url, hint) in [
            ("http://host/a/b", "write git = \"https://host/a/b\""),
            ("http://me:s3cret@host/a/b", "write git = \"https://<redacted>@host/a/b\""),
            ("git://host/a/b", "write git = \"https://host/a/b\""),
            ("git+ssh://git@host/a/b", "write git = \"ssh://git@host/a/b\""),
            ("host.org/a/b", "write git = \"https://host.org/a/b\""),
            ("../local", "write path = \"../local\""),
            ("file://name", "write three slashes: git = \"file:///folder/name\""),
            ("https://host", "write git = \"https://host/owner/name\""),
            ("ftp://host/a", "use https://, ssh://, file:// or user@host:path"),
            ("https://[::1/a/b", PASSWORD),
            ("https://host:99999/a/b", PASSWORD),
            ("https://me:pass/word@host/a/b", PASSWORD),
            ("ssh://git@host:x/a/b", PASSWORD),
            ("owner/name", "write git = \"https://host/owner/name\""),
        ] {
            assert_eq!(form(url).unwrap_err().1, hint, "{url}");
        }
    }
}
