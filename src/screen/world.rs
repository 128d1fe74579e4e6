//! Worlds: fixed sets of ambient conditions, as environment variables. Pure.

use std::collections::BTreeMap;

use crate::backend::Places;
use crate::backend::sandbox::USER;

/// Name of the reference conditions.
pub const BASE: &str = "base";

/// The complete environment of the base world: nothing is inherited from the user.
///
/// Hash seed 0, UTC, the C.UTF-8 locale, 80×24 terminal, a home and user of its own; `extra` comes from the config.
pub fn base_environment(places: &Places, extra: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let venv = places.venv.to_string_lossy();
    let home = places.home.to_string_lossy();
    let fixed = [
        ("PATH", format!("{venv}/bin:/usr/local/bin:/usr/bin:/bin")),
        ("VIRTUAL_ENV", venv.to_string()),
        ("HOME", home.to_string()),
        ("USER", USER.into()),
        ("LOGNAME", USER.into()),
        ("SHELL", "/bin/sh".into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("TERM", "dumb".into()),
        ("COLUMNS", "80".into()),
        ("LINES", "24".into()),
        ("PYTHONHASHSEED", "0".into()),
    ];
    let mut environment: BTreeMap<String, String> =
        fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    environment.extend(extra.clone());
    environment
}
