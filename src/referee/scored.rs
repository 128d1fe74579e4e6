//! A judged submission on its way into tables and pages.

use serde::Serialize;
use serde_json::Value;

use super::gistify::evaluate::Judged;
use crate::record::instance::Instance;

/// A judged submission with what it is of.
pub(crate) struct Scored<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) run: &'a str,
    pub(crate) meta: &'a Value,
    /// What its run says of itself; what the submission says goes before.
    pub(crate) run_meta: &'a Value,
    /// Why it, or what its author says, could not be read.
    pub(crate) troubles: &'a [String],
    pub(crate) judged: Judged,
}

impl Scored<'_> {
    /// What the submission, or else its run, says under a key.
    pub(super) fn said(&self, key: &str) -> &Value {
        let own = &self.meta[key];
        if own.is_null() { &self.run_meta[key] } else { own }
    }
}

/// The one spelling of an enum's value.
pub(crate) fn spelled(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}
