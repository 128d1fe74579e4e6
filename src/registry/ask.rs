//! What a registry answers to whoever has no login. No login goes anywhere from here: hosts come from datasets as well.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;

use super::{HUB, ImagePlace};
use crate::error::Result;
use crate::index::Web;

/// Most bytes of a manifest, and of what a token is in.
const LARGEST: u64 = 4 << 20;
/// Kinds of manifests that engines push.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json, \
                         application/vnd.docker.distribution.manifest.v2+json";

const TYPE_IT: &str =
    "it is on this machine or in a private network, which is asked only where you type it: --registry PREFIX";

/// What became of a question for a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its digest, computed from what came.
    Manifest(String),
    Missing,
    /// Only with a login.
    Private,
    /// In words.
    Trouble(String),
}

/// Registries, asked without a login.
#[derive(Debug)]
pub(crate) struct Registries {
    web: Web,
    /// A host that the user typed, which may be in the user's own network.
    typed: Option<String>,
}

impl Registries {
    /// `typed` is the place that the user named, where one was.
    ///
    /// # Errors
    /// A certificate or a proxy of the variables cannot be used.
    pub(crate) fn new(variables: &BTreeMap<String, String>, typed: Option<&ImagePlace>) -> Result<Self> {
        Ok(Registries { web: Web::new(variables)?, typed: typed.map(|place| place.host.clone()) })
    }

    /// The manifest that a tag or a digest names.
    pub(crate) fn manifest(&self, place: &ImagePlace, reference: &str) -> Answer {
        self.ask(place, reference).unwrap_or_else(|why| {
            let is_private = self.typed.as_ref() != Some(&place.host) && why.contains("private network");
            Answer::Trouble(if is_private { TYPE_IT.to_owned() } else { why })
        })
    }

    fn ask(&self, place: &ImagePlace, reference: &str) -> Result<Answer, String> {
        let url = address(place, reference)?;
        let is_users = self.typed.as_ref() == Some(&place.host);
        let get = |token: Option<&str>| {
            let mut headers = vec![("accept", MANIFESTS)];
            let bearer = token.map(|token| format!("Bearer {token}"));
            headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
            self.web.get(&url, is_users, &headers, LARGEST)
        };
        let mut reply = get(None)?;
        if reply.status == 401
            && let Some(realm) = reply.headers.get("www-authenticate").and_then(|text| challenge(text))
        {
            match self.token(&realm, place)? {
                Some(token) => reply = get(Some(&token))?,
                None => return Ok(Answer::Private),
            }
        }
        Ok(match reply.status {
            200 => {
                let digest = format!("sha256:{}", hex::encode(Sha256::digest(&reply.body)));
                if is_digest(reference) && digest != reference {
                    return Err("the registry answers with another manifest than the digest names".to_owned());
                }
                Answer::Manifest(digest)
            }
            401 | 403 => Answer::Private,
            404 => Answer::Missing,
            status => return Err(format!("the registry answers with status {status}")),
        })
    }

    /// A token for reading that anybody gets; none where nobody does. The registry names the server of tokens.
    fn token(&self, realm: &Realm, place: &ImagePlace) -> Result<Option<String>, String> {
        let mut url = Url::parse(&realm.realm).map_err(|_| "the registry names no server of tokens")?;
        let is_users =
            self.typed.as_ref() == Some(&place.host) && url.host_str() == place.host.split(':').next();
        if url.scheme() != "https" && !(is_users && place.is_loopback()) {
            return Err("the registry names a server of tokens without encryption".to_owned());
        }
        let scope = format!("repository:{}:pull", path_of(place));
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = &realm.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let reply = self.web.get(&url, is_users, &[("accept", "application/json")], LARGEST)?;
        if matches!(reply.status, 401 | 403) {
            return Ok(None);
        }
        let given: Option<Given> = serde_json::from_slice(&reply.body).ok();
        let token = given.and_then(|given| given.token.or(given.access_token));
        let is_plain = |token: &String| token.chars().all(|c| c.is_ascii_graphic());
        match token.filter(is_plain) {
            Some(token) if reply.status == 200 => Ok(Some(token)),
            _ => Err(format!("the server of tokens answers with status {} and no token", reply.status)),
        }
    }
}

#[derive(Deserialize)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
}

/// Whether a text is `sha256:` and a hash.
pub(crate) fn is_digest(text: &str) -> bool {
    let is_hex = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f');
    text.strip_prefix("sha256:").is_some_and(|hash| hash.len() == 64 && hash.chars().all(is_hex))
}

/// The hub keeps what has no owner below `library/`.
fn path_of(place: &ImagePlace) -> String {
    let is_official = place.host == HUB && !place.path.contains('/');
    if is_official { format!("library/{}", place.path) } else { place.path.clone() }
}

fn address(place: &ImagePlace, reference: &str) -> Result<Url, String> {
    let host = if place.host == HUB { "registry-1.docker.io" } else { &place.host };
    let scheme = if place.is_loopback() { "http" } else { "https" };
    Url::parse(&format!("{scheme}://{host}/v2/{}/manifests/{reference}", path_of(place)))
        .map_err(|_| "it has no address".to_owned())
}

/// Where tokens come from.
#[derive(Debug, PartialEq, Eq)]
struct Realm {
    realm: String,
    service: Option<String>,
}

/// `Bearer realm="…",service="…"`; none for another way to log in, which nobody without one can go.
fn challenge(text: &str) -> Option<Realm> {
    let rest = text.trim().strip_prefix("Bearer ")?;
    let value = |name: &str| {
        let start = rest.find(&format!("{name}=\""))? + name.len() + 2;
        Some(rest[start..].split('"').next()?.to_owned())
    };
    Some(Realm { realm: value("realm")?, service: value("service") })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_way_to_a_token_is_read_and_no_other_one() {
        let found = challenge(r#"Bearer realm="https://a.io/token",service="a.io",scope="x""#);
        let expected = Realm { realm: "https://a.io/token".to_owned(), service: Some("a.io".to_owned()) };
        assert_eq!(found, Some(expected));
        assert_eq!(challenge(r#"Basic realm="x""#), None);
        assert_eq!(challenge("Bearer"), None);
    }

    #[test]
    fn addresses_are_those_of_the_distribution_protocol() {
        let of = |text: &str| address(&ImagePlace::parse(text).unwrap(), "1").unwrap().to_string();
        assert_eq!(of("ghcr.io/me/a"), "https://ghcr.io/v2/me/a/manifests/1");
        assert_eq!(of("me/a"), "https://registry-1.docker.io/v2/me/a/manifests/1");
        assert_eq!(of("a"), "https://registry-1.docker.io/v2/library/a/manifests/1");
        assert_eq!(of("127.0.0.1:5000/a"), "http://127.0.0.1:5000/v2/a/manifests/1");
    }

    /// A registry that answers each request with the next of these, and what it was asked.
    fn served(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = std::thread::spawn(move || {
            answers
                .into_iter()
                .map(|answer| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let head: Vec<String> = BufReader::new(stream.try_clone().unwrap().take(4096))
                        .lines()
                        .map_while(std::result::Result::ok)
                        .take_while(|line| !line.is_empty())
                        .collect();
                    stream.write_all(answer.as_bytes()).unwrap();
                    head.join("\n").to_ascii_lowercase()
                })
                .collect()
        });
        (host, asked)
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn asked(answers: Vec<String>, reference: &str) -> (Answer, Vec<String>) {
        let (host, server) = served(answers);
        let place = ImagePlace::parse(&format!("{host}/me/a")).unwrap();
        let registries = Registries::new(&BTreeMap::new(), Some(&place)).unwrap();
        (registries.manifest(&place, reference), server.join().unwrap())
    }

    #[test]
    fn each_answer_is_one_of_four() {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest("{}")));
        let one = |status: &str, reference: &str| asked(vec![answer(status, "", "{}")], reference).0;
        assert_eq!(one("200 OK", "1"), Answer::Manifest(digest.clone()));
        assert_eq!(one("200 OK", &digest), Answer::Manifest(digest.clone()));
        assert_eq!(one("404 Not Answer", "1"), Answer::Missing);
        assert_eq!(one("401 Unauthorized", "1"), Answer::Private);
        let other = digest.replace(&digest[7..10], if &digest[7..10] == "000" { "111" } else { "000" });
        assert!(matches!(one("200 OK", &other), Answer::Trouble(why) if why.contains("another manifest")));
        assert!(matches!(one("307 Moved", "1"), Answer::Trouble(why) if why.contains("307")));
    }

    #[test]
    fn a_token_is_fetched_without_a_login() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let realm = format!("WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n");
        let answers = [
            answer("401 Unauthorized", &realm, ""),
            answer("200 OK", "", r#"{"token":"abc"}"#),
            answer("200 OK", "", "{}"),
        ];
        let server = std::thread::spawn(move || {
            answers.map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8_lossy(&head[..length]).to_ascii_lowercase()
            })
        });
        let place = ImagePlace::parse(&format!("{host}/me/a")).unwrap();
        let registries = Registries::new(&BTreeMap::new(), Some(&place)).unwrap();
        assert!(matches!(registries.manifest(&place, "1"), Answer::Manifest(_)));
        let [first, second, third] = server.join().unwrap();
        assert!(!first.contains("authorization") && !second.contains("authorization"), "{first}{second}");
        assert!(second.starts_with("get /token?scope=repository%3ame%2fa%3apull&service=s"), "{second}");
        assert!(third.contains("authorization: bearer abc"), "{third}");
    }

    #[test]
    fn a_host_that_a_dataset_names_is_not_asked_in_the_users_network() {
        let place = ImagePlace::parse("127.0.0.1:9/me/a").unwrap();
        let registries = Registries::new(&BTreeMap::new(), None).unwrap();
        assert_eq!(registries.manifest(&place, "1"), Answer::Trouble(TYPE_IT.to_owned()));
    }
}
