//! How submissions are judged, as options.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::family::gistify::Violation;
use crate::referee::gistify::evaluate::Policy;
use crate::referee::gistify::ground::Files;

/// How submissions are judged.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArguments {
    /// What of the repository a submission sees
    #[arg(long, value_enum, default_value = "data")]
    pub(crate) files: Files,
    /// Runs of each submission; all of them have to agree
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: u32,
    /// The folder `hidden` of the dataset's build, where the dataset was published without it
    #[arg(long, value_name = "DIR")]
    pub(crate) hidden: Option<PathBuf>,
    /// Note this violation without counting it as a failure
    #[arg(long, value_name = "ID", value_parser = parse_violation)]
    pub(crate) allow: Vec<Violation>,
    /// What a run of a submission may take, in seconds, up to the group's limit of the build
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
}

impl PolicyArguments {
    /// What a run may take.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// The rules for a file of that name.
    pub(crate) fn policy(&self, file: &'static str) -> Policy {
        Policy { file, allowed: self.allow.iter().copied().collect(), attempts: self.attempts }
    }
}

fn parse_violation(text: &str) -> std::result::Result<Violation, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| {
        let known = Violation::ALL.map(|one| serde_json::to_value(one).unwrap_or_default());
        let known = known.iter().filter_map(Value::as_str).collect::<Vec<_>>();
        format!("give one of {}", known.join(", "))
    })
}
