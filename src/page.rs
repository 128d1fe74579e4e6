//! What the pages share: style, script, the sign in a browser's tab, and data that cannot end a script element.
//!
//! A page is one HTML file that loads nothing. What comes from a dataset is in it as JSON, and the script puts it on the
//! page as text, never as markup.

mod dictionary;

use serde::Serialize;

use crate::error::{Error, Result};

pub(crate) use dictionary::Dictionary;

/// Colours, tables, buttons.
pub(crate) const STYLE: &str = include_str!("page/base.css");

/// Texts and buttons, the state in the address, tables that are searched, filtered and sorted, a dialog for one of their rows.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("page/base.js"),
    include_str!("page/address.js"),
    include_str!("page/nearest.js"),
    include_str!("page/table.js"),
    include_str!("page/dialog.js"),
    include_str!("page/keys.js")
);

/// The dialog that the script fills.
pub(crate) const DIALOG: &str = include_str!("page/dialog.html");

/// The sign as an address that holds it: three bars, the longest below.
pub(crate) const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
%3Crect width='16' height='16' rx='3' fill='%230f4c8a'/%3E%3Cpath d='M3 4h4M3 8h7M3 12h10' stroke='%23fff' \
stroke-width='2'/%3E%3C/svg%3E";

/// A value as JSON that cannot end a script element or be taken for markup.
///
/// # Errors
/// Never for what gistmill makes.
pub(crate) fn embedded(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::internal("cannot encode the data of the page").with_source(error))?;
    let mut safe = String::with_capacity(text.len() + text.len() / 50);
    for c in text.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            plain => safe.push(plain),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn embedded_json_reads_back_and_holds_no_markup() {
        let value = json!({ "a": "</script><!-- & \u{2028} \u{2029} é", "b": [1, null] });
        let text = embedded(&value).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn the_script_takes_no_text_for_markup() {
        for sink in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
    }
}
