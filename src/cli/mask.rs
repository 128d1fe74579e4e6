//! `gistmill mask`: one Python file without its imports and the bodies of its functions.

use std::io::Read;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Arguments, Format};
use crate::error::{Error, Result};
use crate::family::recube::mask::{
    Cut, Function, LONGEST, Masked, NotMaskable, mask, published_leak, text_of_target,
};
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct MaskArguments {
    /// The Python file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave imports as they are, and mask the bodies alone
    #[arg(long)]
    keep_imports: bool,
}

/// Prints the mask of a file, byte for byte.
pub(super) fn run(arguments: &Arguments, asked: &MaskArguments) -> Result<u8> {
    let mut bytes = Vec::new();
    // One byte more than is read of any target says that the file is too long.
    fs_err::File::open(&asked.file)?.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    let cut = if asked.keep_imports { Cut::Bodies } else { Cut::All };
    let refused = |why: NotMaskable| refused(asked, &why);
    let text = text_of_target(&bytes).map_err(refused)?;
    let masked = mask(text, cut).map_err(refused)?;
    match arguments.format {
        Format::Json => terminal::json(&described(&masked, text)),
        Format::Human | Format::Csv => terminal::exactly(&masked.text),
    }
    Ok(0)
}

fn refused(asked: &MaskArguments, why: &NotMaskable) -> Error {
    let line = why.line().map(|line| format!(", line {line}")).unwrap_or_default();
    let (file, reason) = (asked.file.display(), why.reason());
    let refused = Error::usage(format!("{file} cannot be masked: {reason}{line}"));
    let refused = match why.detail() {
        Some(detail) => refused.with_detail(detail),
        None => refused,
    };
    refused.with_hint("docs/recube.md says what can be masked")
}

fn described(masked: &Masked, text: &str) -> Value {
    let function = |one: &Function| {
        json!({
            "name": one.name, "line": one.line, "end_line": one.end_line, "trivial": one.is_trivial,
            "docstring": one.docstring, "statements": one.statements,
        })
    };
    json!({
        "functions": masked.functions.iter().map(function).collect::<Vec<_>>(),
        "imports": masked.imports,
        "filled": masked.filled,
        "published_leak": published_leak(text),
        "text": masked.text,
    })
}
