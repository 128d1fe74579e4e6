//! What the user wants of an export's files, beside its tasks.

use std::net::IpAddr;
use std::time::Duration;

use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::record::engine::EngineKind;
use crate::record::id::hash_parts;

/// How often a run may take what the slowest attempt took, and what every run may take, in seconds.
const MARGIN: u32 = 20;
const LEAST: u64 = 120;
/// Bytes of one.
pub(crate) const MEBIBYTE: u64 = 1 << 20;
/// How often everything in a container may have what the largest process of an attempt had, and what there is for the judge and
/// the agent beside it, in mebibytes. No task asks for less than [`LEAST_MEMORY`].
const MEMORY_MARGIN: u64 = 4;
const MEMORY_BESIDE: u64 = 1024;
const LEAST_MEMORY: u64 = 4096;
/// What a cold start may take beside what a group may, in seconds, as in screening.
const START_UP: u64 = 60;

/// The settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Whose tasks they are; else the dataset's name.
    pub(crate) org: Option<String>,
    pub(crate) authors: Vec<Author>,
    /// What the agent and the judge reach; else what the harness does by itself.
    pub(crate) agent_network: Option<Network>,
    pub(crate) verifier_network: Option<Network>,
    /// Who the agent is; else the image's user, which is root.
    pub(crate) agent_user: Option<String>,
    /// Whether instructions begin with a line that says that they are not for training.
    pub(crate) has_canary: bool,
    pub(crate) without_solutions: bool,
    /// The folder of images for clusters without an engine.
    pub(crate) sif: Option<String>,
    /// What scripts call where `ENGINE` does not say it; else Docker.
    pub(crate) engine: Option<EngineKind>,
}

impl Settings {
    /// The line of a script that chooses the engine.
    pub(super) fn engine_line(&self) -> String {
        format!("engine=${{ENGINE:-{}}}\n", self.program())
    }

    /// The program of the engine.
    pub(super) fn program(&self) -> &'static str {
        self.engine.unwrap_or(EngineKind::Docker).program()
    }

    /// Whether tasks ask for less than the whole network, which not every runner can give.
    pub(super) fn bounds_network(&self) -> bool {
        let of = [&self.agent_network, &self.verifier_network];
        of.into_iter().flatten().any(|network| *network != Network::Public)
    }

    /// The other one.
    pub(super) fn other_program(&self) -> &'static str {
        match self.engine {
            Some(EngineKind::Podman) => EngineKind::Docker.program(),
            Some(EngineKind::Docker) | None => EngineKind::Podman.program(),
        }
    }
}

/// Somebody who made the tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    name: String,
    email: Option<String>,
}

impl std::str::FromStr for Author {
    type Err = String;

    /// `Ann` or `Ann <ann@example.org>`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, email) = match text.split_once('<') {
            Some((name, rest)) => (name, Some(rest.strip_suffix('>').ok_or("the address ends in `>`")?)),
            None => (text, None),
        };
        if name.trim().is_empty() || email.is_some_and(|email| !email.contains('@')) {
            return Err("write `Ann` or `Ann <ann@example.org>`".to_owned());
        }
        Ok(Author { name: name.trim().to_owned(), email: email.map(str::to_owned) })
    }
}

impl Author {
    pub(super) fn value(&self) -> Value {
        let mut table = Table::from_iter([("name".to_owned(), Value::String(self.name.clone()))]);
        table.extend(self.email.iter().map(|email| ("email".to_owned(), Value::String(email.clone()))));
        Value::Table(table)
    }
}

/// What a container reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Network {
    Public,
    Nothing,
    Hosts(Vec<String>),
}

impl std::str::FromStr for Network {
    type Err = String;

    /// `public`, `no-network` or `allowlist:HOST,HOST`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("allowlist:")) {
            ("public", _) => Ok(Network::Public),
            ("no-network", _) => Ok(Network::Nothing),
            (_, Some(hosts)) if hosts.split(',').all(is_host) => {
                Ok(Network::Hosts(hosts.split(',').map(str::to_owned).collect()))
            }
            _ => Err("write `public`, `no-network` or `allowlist:HOST,HOST`; a host is a name, `*.` and a name, an \
                      address or a network, without a port"
                .to_owned()),
        }
    }
}

/// Whether Harbor takes it: a name, the names below one, an address, a network.
fn is_host(host: &str) -> bool {
    let (address, bits) = host.split_once('/').unwrap_or((host, "0"));
    if let Ok(address) = address.parse::<IpAddr>() {
        return bits.parse::<u8>().is_ok_and(|bits| bits <= if address.is_ipv4() { 32 } else { 128 });
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

impl Network {
    /// Keys of `task.toml`.
    pub(super) fn entries(&self) -> Vec<(&'static str, Value)> {
        let mode = |text: &str| ("network_mode", Value::String(text.to_owned()));
        match self {
            Network::Public => vec![mode("public")],
            Network::Nothing => vec![mode("no-network")],
            Network::Hosts(hosts) => {
                let hosts = hosts.iter().map(|host| Value::String(host.clone())).collect();
                vec![mode("allowlist"), ("allowed_hosts", Value::Array(hosts))]
            }
        }
    }
}

/// The line that marks texts of a dataset: the same in all of its exports, so that it can be searched for. Readers of tasks take it
/// away before an agent sees it.
pub(super) fn canary(name: &str, version: &str) -> String {
    let hash = hash_parts(&["canary", name, version]);
    let parts = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..32]];
    format!(
        "<!-- canary {}: a task of {name} {version}, which does not belong into training data -->\n",
        parts.join("-")
    )
}

/// What a run may take: several times what the slowest attempt took, and no more than what screening gave a cold run, unless that
/// is less than three times as long.
pub(super) fn limit(most: Duration, slowest: Option<Duration>) -> Duration {
    let Some(slowest) = slowest else { return most };
    let times = |factor: u32| Duration::from_secs(slowest.saturating_mul(factor).as_secs().saturating_add(1));
    let most = most.saturating_add(Duration::from_secs(START_UP));
    times(MARGIN).max(Duration::from_secs(LEAST)).min(most).max(times(3).min(most.saturating_mul(3)))
}

/// What a container of a task may have, in mebibytes: several times what was measured, in whole gibibytes.
pub(crate) fn memory_mb(peak: Option<u64>) -> u64 {
    let peak = peak.unwrap_or_default().div_ceil(MEBIBYTE);
    let wanted = peak.saturating_mul(MEMORY_MARGIN).saturating_add(MEMORY_BESIDE);
    wanted.div_ceil(1024).saturating_mul(1024).max(LEAST_MEMORY)
}

/// Whose tasks they are.
///
/// # Errors
/// A usage error that says the form.
pub(crate) fn checked_org(org: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_one = org.starts_with(|c: char| c.is_ascii_alphanumeric())
        && org.chars().all(is_plain)
        && !org.contains("..");
    if !is_one {
        return Err(Error::usage(format!(
            "{} is not the name of an organization",
            crate::redact::quote(org)
        ))
        .with_hint("it has letters, digits, `.`, `_` and `-`, as in `--org my-lab`"));
    }
    Ok(org.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn options_are_read_or_refused_with_their_form() {
        let author = |text: &str| text.parse::<Author>();
        let ann = Author { name: "Ann".to_owned(), email: Some("a@b.org".to_owned()) };
        assert_eq!(author("Ann <a@b.org>"), Ok(ann));
        assert!(author("Ann").is_ok_and(|author| author.email.is_none()));
        assert!(author("<a@b.org>").is_err() && author("Ann <a>").is_err() && author("Ann <a@b").is_err());
        let hosts = |text: &str| text.parse::<Network>();
        assert_eq!(hosts("no-network"), Ok(Network::Nothing));
        let two = Network::Hosts(vec!["a.org".to_owned(), "*.b.org".to_owned()]);
        assert_eq!(hosts("allowlist:a.org,*.b.org"), Ok(two));
        assert!(hosts("allowlist:").is_err() && hosts("none").is_err() && hosts("allowlist:a b").is_err());
        assert!(checked_org("my-lab").is_ok());
        for bad in ["", "a/b", ".a", "a..b"] {
            assert!(checked_org(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_follows_the_slowest_attempt_within_bounds() {
        let of = |slowest: Option<u64>| {
            limit(Duration::from_mins(5), slowest.map(Duration::from_millis)).as_secs()
        };
        assert_eq!([of(None), of(Some(2)), of(Some(8_000)), of(Some(60_000))], [300, 120, 161, 360]);
        assert_eq!(of(Some(250_000)), 751, "three times what was seen to be needed");
        assert_eq!(limit(Duration::from_secs(30), Some(Duration::from_secs(9))).as_secs(), 90);
        assert!(limit(Duration::MAX, Some(Duration::MAX)) > Duration::from_secs(30));
    }

    #[test]
    fn memory_follows_what_was_measured_and_has_a_floor() {
        let of = |mebibytes: u64| memory_mb(Some(mebibytes * MEBIBYTE));
        assert_eq!([memory_mb(None), of(40), of(768), of(769), of(3000)], [4096, 4096, 4096, 5120, 13_312]);
        assert!(memory_mb(Some(u64::MAX)) > of(3000));
    }

    #[test]
    fn a_canary_is_one_line_that_readers_of_tasks_know() {
        let line = canary("mine", "1");
        assert!(line.starts_with("<!-- canary ") && line.ends_with(" -->\n") && line.lines().count() == 1);
        assert_eq!(line, canary("mine", "1"));
        assert_ne!(line, canary("mine", "2"));
    }
}
