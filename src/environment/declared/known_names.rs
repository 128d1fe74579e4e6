//! Names that everybody knows: the only ones that are asked of an index without anybody's declaring them. Pure.

use crate::requirement::{normalize, parse};

/// What a name is a name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What is imported, perhaps with a dot.
    Import,
    /// An option of pytest (in `addopts`): the distribution is the plugin that knows it.
    Option,
    /// A plugin that is asked for by its own name (`required_plugins`), beside those that options ask for.
    Plugin,
}

/// Kind, name and distribution, one a line.
const NAMES: &str = include_str!("known_names.tsv");

/// The names of a kind, each with its distribution.
pub fn names(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let word = match kind {
        Kind::Import => "import\t",
        Kind::Option => "option\t",
        Kind::Plugin => "plugin\t",
    };
    NAMES.lines().filter_map(move |line| line.strip_prefix(word)?.split_once('\t'))
}

/// Whether this normalized name is one of those that everybody knows.
pub fn is_known(name: &str) -> bool {
    [Kind::Import, Kind::Option, Kind::Plugin]
        .into_iter()
        .flat_map(names)
        .filter_map(|(_, distribution)| parse(distribution))
        .any(|known| normalize(known.name.as_ref()) == name)
}
