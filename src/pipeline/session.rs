//! What a command works with: a configuration, a machine, a cache.

use super::{Pipeline, Request};
use crate::config::Config;
use crate::environment::Tools;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::rules::RuleSet;
use crate::store::Cache;

/// Everything that a [`Pipeline`] borrows.
pub struct Session {
    pub config: Config,
    /// The configuration as a dataset publishes it.
    pub public_config: serde_json::Value,
    pub rules: RuleSet,
    pub cache: Cache,
    pub machine: Machine,
    pub tools: Tools,
    pub progress: Progress,
    pub request: Request,
    /// File name of the configuration; none for one that no file has.
    pub config_name: Option<String>,
}

impl Session {
    /// The pipeline that does what was asked for.
    pub fn pipeline(&self) -> Pipeline<'_> {
        self.pipeline_for(&self.request)
    }

    /// The pipeline that does something else.
    pub fn pipeline_for<'a>(&'a self, request: &'a Request) -> Pipeline<'a> {
        Pipeline {
            config: &self.config,
            public_config: self.public_config.clone(),
            rules: &self.rules,
            cache: &self.cache,
            machine: &self.machine,
            tools: &self.tools,
            progress: &self.progress,
            request,
            config_name: self.config_name.as_deref(),
        }
    }
}
