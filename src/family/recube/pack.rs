//! The context pack: all of a repository that a prompt shows, in one text.

use std::fmt::Write;

use crate::score::text::with_plain_line_ends;

/// A dependency that is installed, as its metadata describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub summary: &'a str,
    pub description: &'a str,
}

/// The text of a pack. `readme` and `files` are pairs of path and text.
pub fn pack(readme: &[(&str, &str)], dependencies: &[Dependency<'_>], files: &[(&str, &str)]) -> String {
    let plain = |text: &str| with_plain_line_ends(text).trim_matches('\n').to_owned();
    let mut pack = "<readme>\n".to_owned();
    for (path, text) in readme {
        let _ = write!(pack, "## {path}\n\n{}\n\n", plain(text));
    }
    pack.push_str("</readme>\n\n<dependencies>\n");
    for Dependency { name, version, summary, description } in dependencies {
        let _ =
            write!(pack, "## {name}\nVersion: =={version}\n{}\n\n{}\n\n", plain(summary), plain(description));
    }
    pack.push_str("</dependencies>\n\n<implementations>\n");
    for (path, text) in files {
        let (fence, text) = (fence_of(text), with_plain_line_ends(text.trim_start_matches('\u{feff}')));
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(pack, "## {path}\n\n{fence}{}\n{text}{end}{fence}\n\n", language(path));
    }
    pack.push_str("</implementations>\n");
    pack
}

/// The language of a file, as fenced blocks name it.
fn language(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with("Dockerfile") {
        return "dockerfile";
    }
    match name.rsplit('.').next().unwrap_or_default() {
        "py" => "python",
        "yml" | "yaml" => "yaml",
        "toml" => "toml",
        "cfg" => "ini",
        "sh" => "bash",
        _ => "",
    }
}

/// Backticks that are longer than any run of them in a text, where it has a fence of three.
pub fn fence_of(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(if longest >= 3 { longest + 1 } else { 3 })
}
