//! One request to a server that is not an index, with the user's proxies, certificates and refusals, and without a login of
//! an index.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use ureq::http::header;
use url::Url;

use super::addresses::NamedBy;
use super::agents::Agents;
use super::pace::{Pace, Paced};
use super::settings::Settings;
use super::upstream::{transport, words_of};
use crate::error::Result;
use crate::interrupt;

/// How fast an answer must be.
const PACE: Pace = Pace { total: Duration::from_mins(1), span: Duration::from_secs(30), least: 1 };

/// The way to servers.
#[derive(Debug)]
pub(crate) struct Web {
    agents: Agents,
}

/// What a server answers, whatever its status.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// By name, in small letters; those that are text.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Web {
    /// With the settings of these variables.
    ///
    /// # Errors
    /// A certificate or a proxy of the settings cannot be used.
    pub(crate) fn new(variables: &BTreeMap<String, String>) -> Result<Self> {
        Ok(Web { agents: Agents::new(&Settings::of(variables)?)? })
    }

    /// Asks for an address; no redirect is followed. `is_users`: the user typed its host, which may then be in the user's own
    /// network.
    ///
    /// # Errors
    /// In words: the address is one that is not spoken to, nothing answers, or more than `limit` bytes come.
    pub(crate) fn get(
        &self,
        url: &Url,
        is_users: bool,
        headers: &[(&str, &str)],
        limit: u64,
    ) -> Result<Reply, String> {
        let by = if is_users { NamedBy::Index } else { NamedBy::Repository };
        let agent = self.agents.of(url, by)?;
        let start = Instant::now();
        let mut tries = 0;
        let mut response = loop {
            let mut request = agent.get(url.as_str()).header(header::ACCEPT_ENCODING, "identity");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            tries += 1;
            match request.call() {
                Ok(response) => break response,
                // A connection that was kept may have been closed meanwhile.
                Err(_) if tries < 2 && !interrupt::requested() => {}
                Err(error) => return Err(words_of(&error)),
            }
        };
        let text = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let headers = response.headers().iter().filter_map(text).collect();
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let paced = Paced::new(response.body_mut().as_reader(), PACE, start);
        paced.take(limit + 1).read_to_end(&mut body).map_err(|error| transport(&error).to_string())?;
        if body.len() as u64 > limit {
            return Err(format!("the server answers with more than {limit} bytes"));
        }
        Ok(Reply { status, headers, body })
    }
}
