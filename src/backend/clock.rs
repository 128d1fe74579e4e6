//! placeholder until the clock library is merged
use std::path::Path;
use std::time::{Duration, SystemTime};
pub const FILE_NAME: &str = "libgistmill_clock.so";
pub const SHIFT: Duration = Duration::from_secs(400 * 86400 + 7 * 3600 + 11 * 60 + 13);
pub fn library() -> Option<&'static [u8]> {
    None
}
pub fn variables(_library: &Path, _start: SystemTime) -> Vec<(String, String)> {
    Vec::new()
}
