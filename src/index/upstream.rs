//! Requests to indexes: logins, redirects, retries. What goes wrong is said in words that hold no address.

use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use ureq::http::{Response, header};
use url::Url;

use super::addresses::NamedBy;
use super::agents::Agents;
use super::file::without_login;
use super::inside::Part;
use super::pace::{Pace, Paced};
use super::page::Answer;
use super::settings::{Settings, Source};
use super::store::{Stored, Unfit};
use crate::error::Result;
use crate::interrupt;

const MOST_REDIRECTS: usize = 10;
/// What git asks of a repository first.
const REFERENCES: &str = "/info/refs";
/// How often a request is made whose failure may pass.
const TRIES: u32 = 4;
/// What pages are wanted as: the newest form first, then what every index has.
const PAGES: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01";

/// Why something cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// The index does not have it.
    Missing,
    /// The index wants another login, or none at all: its status.
    Denied(u16),
    /// Anything else, in words.
    Trouble(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing => formatter.write_str("there is no such file"),
            Problem::Denied(status) => {
                write!(formatter, "the server wants another login (status {status})")
            }
            Problem::Trouble(reason) => formatter.write_str(reason),
        }
    }
}

/// What an attempt came to: some trouble passes.
enum Failed {
    ForGood(Problem),
    ForNow(Problem),
}

/// The servers of the user's indexes.
#[derive(Debug)]
pub(super) struct Upstream {
    agents: Agents,
}

impl Upstream {
    pub(super) fn new(settings: &Settings) -> Result<Upstream> {
        Ok(Upstream { agents: Agents::new(settings)? })
    }

    /// A page of an index, not longer than `limit` bytes.
    pub(super) fn page(&self, source: &Source, url: &Url, limit: u64) -> Result<Answer, Problem> {
        again(Pace::PAGE, |start| {
            let (mut response, url) = self.open(Some(source), url, PAGES, "gzip", None)?;
            let content_type = response.headers().get(header::CONTENT_TYPE);
            let content_type =
                content_type.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            let mut body = Vec::new();
            let paced = Paced::new(response.body_mut().as_reader(), Pace::PAGE, start);
            let mut reader = paced.take(limit + 1);
            reader.read_to_end(&mut body).map_err(|error| Failed::ForNow(transport(&error)))?;
            if body.len() as u64 > limit {
                let reason = format!("the index answers with a page of more than {} MiB", limit >> 20);
                return Err(Failed::ForGood(Problem::Trouble(reason)));
            }
            Ok(Answer { url, content_type, body })
        })
    }

    /// Whether there is such a page, asked once.
    pub(super) fn asked_once(&self, source: &Source, url: &Url) -> Result<(), Problem> {
        match self.open(Some(source), url, PAGES, "gzip", None) {
            Ok(_) => Ok(()),
            Err(Failed::ForGood(problem) | Failed::ForNow(problem)) => Err(problem),
        }
    }

    /// Where a program that makes its own connections may ask an address that a repository names: see [`Agents::check`].
    pub(super) fn check(&self, url: &Url) -> Result<Url, String> {
        self.agents.check(url)
    }

    /// Whether what a repository names may be asked there without encryption: see [`Agents::may_be_plain`].
    pub(super) fn may_be_plain(&self, url: &Url) -> bool {
        self.agents.may_be_plain(url)
    }

    /// Where the redirects of a git repository end that a repository names: asked as git asks, without a login.
    pub(super) fn git_repository(&self, url: &Url) -> Result<Url, Problem> {
        let mut asked = url.clone();
        asked.set_path(&format!("{}{REFERENCES}", url.path().trim_end_matches('/')));
        asked.set_query(Some("service=git-upload-pack"));
        let mut found = again(Pace::PAGE, |_| Ok(self.open(None, &asked, "*/*", "identity", None)?.1))?;
        let path = found.path().strip_suffix(REFERENCES).map(str::to_owned);
        let path = path.ok_or_else(|| Problem::Trouble("a redirect leads to no repository".to_owned()))?;
        found.set_path(&path);
        found.set_query(None);
        found.set_fragment(None);
        Ok(found)
    }

    /// A file, handed to whoever saves it as it comes: of an index, with its login when it lies there, or from an address
    /// that a repository names.
    pub(super) fn file(
        &self,
        source: Option<&Source>,
        url: &Url,
        save: &dyn Fn(&mut dyn Read) -> Result<Stored, Unfit>,
    ) -> Result<Stored, Problem> {
        again(Pace::FILE, |start| {
            // A file is wanted as it is: one that is decompressed on the way has another hash.
            let (mut response, _) = self.open(source, url, "*/*", "identity", None)?;
            save(&mut Paced::new(response.body_mut().as_reader(), Pace::FILE, start)).map_err(|unfit| {
                match unfit {
                    Unfit::Torn(error) => Failed::ForNow(transport(&error)),
                    Unfit::Wrong(reason) => Failed::ForGood(Problem::Trouble(reason)),
                }
            })
        })
    }

    /// A part of a file, not longer than `limit` bytes; none when the server hands out no parts.
    pub(super) fn part(
        &self,
        source: &Source,
        url: &Url,
        range: &str,
        limit: u64,
    ) -> Result<Option<Part>, Problem> {
        again(Pace::PAGE, |began| {
            let (mut response, _) = self.open(Some(source), url, "*/*", "identity", Some(range))?;
            let place =
                response.headers().get(header::CONTENT_RANGE).and_then(|value| place(value.to_str().ok()?));
            let Some((start, end, total)) = place.filter(|_| response.status() == 206) else {
                return Ok(None);
            };
            let mut bytes = Vec::new();
            let paced = Paced::new(response.body_mut().as_reader(), Pace::PAGE, began);
            let mut reader = paced.take(limit + 1);
            reader.read_to_end(&mut bytes).map_err(|error| Failed::ForNow(transport(&error)))?;
            let is_whole =
                bytes.len() as u64 <= limit && end.checked_sub(start) == (bytes.len() as u64).checked_sub(1);
            Ok((is_whole && end < total).then_some(Part { start, total, bytes }))
        })
    }

    /// The answer to one request, after all redirects, and where it came from.
    fn open(
        &self,
        source: Option<&Source>,
        url: &Url,
        accept: &str,
        encoding: &str,
        range: Option<&str>,
    ) -> Result<(Response<ureq::Body>, Url), Failed> {
        let by = if source.is_some() { NamedBy::Index } else { NamedBy::Repository };
        let mut url = url.clone();
        url.set_fragment(None);
        for _ in 0..=MOST_REDIRECTS {
            without_login(&mut url);
            let agent =
                self.agents.of(&url, by).map_err(|reason| Failed::ForGood(Problem::Trouble(reason)))?;
            let mut request = agent.get(url.as_str());
            request = request.header(header::ACCEPT, accept).header(header::ACCEPT_ENCODING, encoding);
            if let Some(login) = source.and_then(|source| source.login_for(&url)) {
                request = request.header(header::AUTHORIZATION, basic(&login.user, &login.password));
            }
            if let Some(range) = range {
                request = request.header(header::RANGE, range);
            }
            if url.path().ends_with(REFERENCES) {
                // Some servers tell git by its name.
                request = request.header(
                    header::USER_AGENT,
                    concat!("git/2.0 (gistmill ", env!("CARGO_PKG_VERSION"), ")"),
                );
            }
            let response = request.call().map_err(|error| sorted(&error))?;
            let status = response.status().as_u16();
            match status {
                200 => return Ok((response, url)),
                // That there is no such part is left to the caller, too.
                206 | 416 | 501 if range.is_some() => return Ok((response, url)),
                301 | 302 | 303 | 307 | 308 => url = target(&url, &response).map_err(Failed::ForGood)?,
                404 | 410 => return Err(Failed::ForGood(Problem::Missing)),
                403 if denies_what_is_missing(&url) => return Err(Failed::ForGood(Problem::Missing)),
                401 | 403 | 407 => return Err(Failed::ForGood(Problem::Denied(status))),
                408 | 429 | 500..=599 => return Err(Failed::ForNow(answered(status))),
                _ => return Err(Failed::ForGood(answered(status))),
            }
        }
        Err(Failed::ForGood(Problem::Trouble(format!("there are more than {MOST_REDIRECTS} redirects"))))
    }
}

/// Tries again after a pause what may pass, within the time that all tries have together.
fn again<T>(pace: Pace, attempt: impl Fn(Instant) -> Result<T, Failed>) -> Result<T, Problem> {
    let (start, mut number) = (Instant::now(), 1);
    loop {
        let is_last = |number| number == TRIES || interrupt::requested() || start.elapsed() > pace.total;
        match attempt(start) {
            Ok(value) => return Ok(value),
            Err(Failed::ForGood(problem)) => return Err(problem),
            Err(Failed::ForNow(problem)) if is_last(number) => return Err(problem),
            Err(Failed::ForNow(_)) => std::thread::sleep(Duration::from_millis(250 << number)),
        }
        number += 1;
    }
}

/// Where a redirect leads: to `http://` or `https://` alone, and not from the second to the first.
fn target(url: &Url, response: &Response<ureq::Body>) -> Result<Url, Problem> {
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    let target = location
        .and_then(|location| url.join(location).ok())
        .filter(|target| target.scheme() == "https" || (target.scheme() == "http" && url.scheme() == "http"));
    target.ok_or_else(|| Problem::Trouble("a redirect leads to no address that may be asked".to_owned()))
}

/// uv, too, takes this index to lack what it denies.
fn denies_what_is_missing(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host == "pytorch.org" || host.ends_with(".pytorch.org"))
}

/// First byte, last byte and length of the whole out of `bytes 3-7/20`.
fn place(text: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    Some((start.parse().ok()?, end.parse().ok()?, total.parse().ok()?))
}

fn answered(status: u16) -> Problem {
    Problem::Trouble(format!("the server answers with status {status}"))
}

/// What [`sorted`] says, in words alone.
pub(super) fn words_of(error: &ureq::Error) -> String {
    match sorted(error) {
        Failed::ForGood(problem) | Failed::ForNow(problem) => problem.to_string(),
    }
}

/// Errors of the library name hosts and addresses; their kind is enough.
fn sorted(error: &ureq::Error) -> Failed {
    use ureq::Error as E;
    let trouble = |reason: &str| Problem::Trouble(reason.to_owned());
    match error {
        E::HostNotFound => Failed::ForNow(trouble("the server's name is not known here")),
        E::Timeout(_) => Failed::ForNow(trouble("the server does not answer in time")),
        E::ConnectionFailed => Failed::ForNow(trouble("the server cannot be reached")),
        E::Io(error) => Failed::ForNow(transport(error)),
        E::Tls(_) | E::Rustls(_) | E::Pem(_) => {
            Failed::ForGood(trouble("the server's certificate cannot be trusted"))
        }
        E::ConnectProxyFailed(_) | E::InvalidProxyUrl => Failed::ForGood(trouble("the proxy refuses")),
        E::Other(error) => Failed::ForGood(Problem::Trouble(error.to_string())),
        _ => Failed::ForNow(trouble("the server's answer cannot be read")),
    }
}

pub(super) fn transport(error: &std::io::Error) -> Problem {
    use std::io::ErrorKind as K;
    let text = error.to_string();
    // Certificates that are not trusted come out of the stream in these words.
    if text.contains("certificate") {
        return Problem::Trouble("the server's certificate cannot be trusted".to_owned());
    }
    Problem::Trouble(match error.kind() {
        K::ConnectionRefused => "the server refuses the connection".to_owned(),
        K::TimedOut | K::WouldBlock => "the server does not answer in time".to_owned(),
        K::UnexpectedEof | K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe => {
            "the connection broke off".to_owned()
        }
        kind => format!("the connection failed ({kind})"),
    })
}

/// A login as a request carries it.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |chunk: &[u8], place: usize| {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize])
    };
    let group = |chunk: &[u8]| -> String {
        (0..4).map(|place| if place <= chunk.len() { digit(chunk, place) } else { '=' }).collect()
    };
    bytes.chunks(3).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_says() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("a:b\u{ff}", "YTpiw78=")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn places_of_parts_are_understood() {
        assert_eq!(place("bytes 3-7/20"), Some((3, 7, 20)));
        for text in
            ["bytes */20", "bytes 3-7/*", "3-7/20", "bytes -1-7/20", "bytes 3-99999999999999999999/20"]
        {
            assert_eq!(place(text), None, "{text}");
        }
    }
}
