//! Credentials out of texts: whatever a user wrote goes through here before it is printed or published.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What is put in the place of a secret.
pub const REDACTED: &str = "<redacted>";

/// Longest piece of a user's text that a message quotes, in characters.
const QUOTED: usize = 100;

/// A user's name or password may have a quote in it.
static URL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"([A-Za-z][A-Za-z0-9+.-]*://)((?:[^\s/@<>]+@)?[^\s"'`<>]*)"#));
/// The scheme of a URL inside another one (a proxy's path, two URLs run together).
static INNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z][A-Za-z0-9+.-]*://"));
static SCP_WITH_SECRET: LazyLock<Regex> = LazyLock::new(|| pattern(r"[^\s/:@]+:[^\s/]*@"));
static SECRET_NAME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)token|secret|passw|credential|auth|cookie|(^|_)(api_?)?keys?($|_)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// A text with user and password of each URL in it replaced; query strings, which also carry tokens, too.
pub fn redact(text: &str) -> String {
    rewrite_urls(text, |scheme, rest| {
        let (user, rest) = split_user(rest);
        let user = match user {
            None => String::new(),
            Some(user) if scheme.contains("ssh") && !user.contains(':') => format!("{user}@"),
            Some(_) => format!("{REDACTED}@"),
        };
        format!("{scheme}{user}{}", redact_query(rest))
    })
}

/// A text with users, passwords and queries cut out of its URLs and local paths reduced to their last segment.
pub fn publish(text: &str) -> String {
    rewrite_urls(text, |scheme, rest| {
        let rest = split_user(rest).1;
        let rest = rest.split('?').next().unwrap_or_default();
        if scheme.to_ascii_lowercase().ends_with("file://") {
            format!("{scheme}/…/{}", last_segment(rest))
        } else {
            format!("{scheme}{rest}")
        }
    })
}

/// A git URL as it may be published: no user, no password, scp-like ones as `ssh://`.
pub fn publish_git_url(url: &str) -> String {
    if url.contains("://") {
        return publish(url);
    }
    let without_user = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
    match without_user.split_once(':') {
        Some((host, path)) => format!("ssh://{host}/{}", path.trim_start_matches('/')),
        None => last_segment(without_user).to_owned(),
    }
}

/// Hosts of the user's own package indexes and proxies, which no message and no record names.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Longest first: one may be a part of another.
    names: Vec<String>,
}

impl Hosts {
    /// Hosts of the addresses in variables.
    pub fn of(variables: &BTreeMap<String, String>) -> Self {
        let addresses = variables.values().flat_map(|value| URL.captures_iter(value));
        let mut names: Vec<String> = addresses
            .map(|address| {
                let rest = split_user(address.get(2).map_or("", |rest| rest.as_str())).1;
                rest.split(['/', ':', '?', '#']).next().unwrap_or_default().to_owned()
            })
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        Hosts { names }
    }

    /// The text without credentials, and without these hosts and their addresses.
    pub fn redact(&self, text: &str) -> String {
        static ADDRESS: LazyLock<Regex> =
            LazyLock::new(|| pattern(r#"https?://(?:<redacted>|[^\s`'")<>])+"#));
        let text = redact(text);
        let text = ADDRESS.replace_all(&text, |found: &Captures<'_>| {
            let is_index = self.names.iter().any(|name| found[0].contains(name.as_str()));
            if is_index { "<index>".to_owned() } else { found[0].to_owned() }
        });
        self.names.iter().fold(text.into_owned(), |text, name| text.replace(name, "<index>"))
    }

    /// The last lines that matter of a tool's output: no blank ones, no colours, none of these hosts.
    pub fn tail(&self, output: &str) -> String {
        const LINES: usize = 30;
        let plain = console::strip_ansi_codes(output);
        let lines: Vec<&str> =
            plain.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        self.redact(&lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }
}

/// Whether a variable of this name is likely to hold a secret.
pub fn is_secret_name(name: &str) -> bool {
    SECRET_NAME.is_match(name)
}

/// A user's text between backticks: redacted, on one line, not too long.
pub fn quote(text: &str) -> String {
    let mut shown = String::new();
    let text = redact(text);
    for (number, character) in text.chars().enumerate() {
        if number == QUOTED {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    format!("`{shown}`")
}

fn rewrite_urls(text: &str, rewrite: impl Fn(&str, &str) -> String) -> String {
    let mut result = String::new();
    let mut end = 0;
    for found in URL.captures_iter(text) {
        let whole = found.get(0).map_or(end..end, |whole| whole.range());
        result.push_str(&redact_scp(&text[end..whole.start]));
        let (mut scheme, mut start, body) = (found[1].to_owned(), 0, &found[2]);
        for place in INNER.find_iter(body) {
            result.push_str(&rewrite(&scheme, &body[start..place.start()]));
            (scheme, start) = (place.as_str().to_owned(), place.end());
        }
        result.push_str(&rewrite(&scheme, &body[start..]));
        end = whole.end;
    }
    result.push_str(&redact_scp(&text[end..]));
    result
}

/// `user:token@` outside of a URL.
fn redact_scp(text: &str) -> String {
    let replaced = |found: &Captures<'_>| {
        let (matched, end) = found.get(0).map_or(("", 0), |all| (all.as_str(), all.end()));
        // The tag of an image and its digest have the same form.
        let is_image = text[end..].starts_with("sha256:");
        if is_image { matched.to_owned() } else { format!("{REDACTED}@") }
    };
    SCP_WITH_SECRET.replace_all(text, replaced).into_owned()
}

/// Splits what follows `://` into user part and the rest; a password with an unescaped `/` or `@` is still found.
fn split_user(rest: &str) -> (Option<&str>, &str) {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@') {
        return (Some(user), &rest[user.len() + 1..]);
    }
    let port_is_plain =
        authority.split_once(':').is_none_or(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    match rest.rsplit_once('@') {
        Some((user, host)) if !port_is_plain => (Some(user), host),
        _ => (None, rest),
    }
}

fn redact_query(rest: &str) -> String {
    match rest.split_once('?') {
        Some((before, query)) if !query.is_empty() => format!("{before}?{REDACTED}"),
        _ => rest.to_owned(),
    }
}

fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_a_credential_survives() {
        for url in [
            "https://user:s3cret@host/x",
            "https://s3cret@host/x",
            "https://user:s3@cret@host/x",
            "https://user:s3cret/part@host/x",
            "git+https://user:s3cret@host/x.git",
            "https://host/x?private_token=s3cret",
            "ssh://user:s3cret@host/x",
            "user:s3cret@host:x/y",
            "https://user:s3'cret@host/x",
            "https://user:s3\"cret@host/x",
            "https://proxy/https://user:s3cret@host/x",
            "https://a@https://s3cret@host/x",
            "https://proxy/x?to=https://user:s3cret@host/x",
            "https://[https://user:s3cret@host/x",
            "two: https://a:s3cret@h/x https://b:s3cret@h/y",
            "pkg @ https://user:s3cret@host/x.zip ; python_version > '3'",
        ] {
            for shown in [redact(url), publish(url), publish_git_url(url), quote(url)] {
                assert!(!shown.contains("s3"), "{url} -> {shown}");
                assert!(!shown.contains("cret"), "{url} -> {shown}");
                assert_eq!(redact(&shown), shown);
            }
        }
    }

    #[test]
    fn harmless_texts_stay_as_they_are() {
        for text in [
            "https://host/x",
            "https://host:8443/x@v1",
            "ssh://git@host/x",
            "git@host:owner/name",
            "tests/test_a.py::TestB",
            "{'a': 1}",
            "write it as python:3.12-slim@sha256:…",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn published_urls_name_no_user_and_no_folder() {
        assert_eq!(publish_git_url("git@host:owner/name.git"), "ssh://host/owner/name.git");
        assert_eq!(publish_git_url("ssh://git@host/owner/name"), "ssh://host/owner/name");
        assert_eq!(publish_git_url("file:///home/me/work/flask"), "file:///…/flask");
        assert_eq!(publish("a @ file:///home/me/a.whl"), "a @ file:///…/a.whl");
    }

    #[test]
    fn hosts_of_indexes_are_nowhere_in_what_tools_print() {
        let value = "https://u:p@mirror.example/simple other=https://u:p/q@index.example:8080/x?t=1";
        let hosts = Hosts::of(&BTreeMap::from([("UV_INDEX".to_owned(), value.to_owned())]));
        assert_eq!(hosts.names, ["mirror.example", "index.example"]);
        for (text, shown) in [
            ("failed at `https://u:p@mirror.example/simple/x/`", "failed at `<index>`"),
            ("lookup of mirror.example", "lookup of <index>"),
            ("at https://index.example:8080/x?token=1 then", "at <index> then"),
            ("at https://u:p/q@index.example/x", "at <index>"),
            ("https://u:t@git.example/r", "https://<redacted>@git.example/r"),
        ] {
            assert_eq!(hosts.redact(text), shown);
        }
        assert_eq!(hosts.tail(&"line\n\n".repeat(100)).lines().count(), 30);
    }

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in ["GITHUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "KEY", "AWS_SECRET_ACCESS_KEY"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["MPLBACKEND", "KEYBOARD", "DJANGO_SETTINGS_MODULE"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quote("a\nb"), "`a\\nb`");
        assert_eq!(quote(&"x".repeat(300)).chars().count(), QUOTED + 3);
    }
}
