//! `gistmill merge`: goes on where shards ended.

use super::build::{self, BuildArguments, Common};
use super::{Arguments, ConfigArguments};
use crate::error::Result;
use crate::pipeline::Stage;
use crate::pipeline::shards::Shards;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct MergeArguments {
    #[command(flatten)]
    config: ConfigArguments,
    #[command(flatten)]
    common: Common,
    /// How many shards there must be; as many as the finished ones say by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shards: Option<u32>,
}

pub(super) fn run(arguments: &Arguments, merge: &MergeArguments) -> Result<u8> {
    let MergeArguments { config, common, shards } = merge.clone();
    let build = BuildArguments { config, common, until: Stage::Dataset, shard: None };
    build::with(arguments, &build, Shards::Require(shards))
}
