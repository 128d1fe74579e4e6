//! When things of a source were made, in seconds since 1970. No clock here.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in seconds since 1970.
pub(super) fn seconds(moment: SystemTime) -> i64 {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    }
}
