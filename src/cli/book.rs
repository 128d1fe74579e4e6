//! The book and the README against the program: command lines, links, and tables that are made from the code.
//!
//! `GISTMILL_TEST_WRITE_BOOK=1` writes those tables anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{command, explain};
use crate::config;
use crate::dataset::{codetaste, dictionary, recube};
use crate::record::explanation::Explanation;
use crate::rules;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap_or_else(|error| panic!("{error}"))
}

/// README and every page of the book.
fn pages() -> Vec<(PathBuf, String)> {
    let entries = fs_err::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let mut pages: Vec<PathBuf> =
        pages.chain([root().join("README.md"), root().join("CONTRIBUTING.md")]).collect();
    pages.sort_unstable();
    pages.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Lines of a page that begin with `gistmill`, in blocks of code or between backticks.
fn command_lines(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start().trim_start_matches("$ ");
            found.extend(line.strip_prefix("gistmill ").map(|rest| format!("gistmill {rest}")));
        }
    }
    // Between backticks a command may go over the end of a line.
    let text = page.split("```").step_by(2).collect::<Vec<_>>().join(" ").replace('\n', " ");
    let spans = text.split('`').skip(1).step_by(2).map(str::to_owned);
    found.extend(spans.filter(|span| span.starts_with("gistmill ")));
    found
}

/// The words of a line as a shell takes them apart, up to a comment, a redirection or a second command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            ('#' | '>' | '|' | ';' | '&', None) if word.is_none() => break,
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A placeholder of the book is one argument.
fn filled(word: String) -> String {
    match word.as_str() {
        // A world is looked at by its name.
        "WORLD" => "base".to_owned(),
        "N" => "2".to_owned(),
        "SLUG" => "owner/name".to_owned(),
        "SLUG=PLACE" => "owner/name=place".to_owned(),
        _ => word,
    }
}

#[test]
fn words_are_those_of_a_shell() {
    assert_eq!(words("gistmill show 'a b[1]' --x  # why"), ["gistmill", "show", "a b[1]", "--x"]);
    assert_eq!(words("gistmill schema config > a.json"), ["gistmill", "schema", "config"]);
    let page = "x `gistmill a\nb` y\n```sh\n$ gistmill c\n```\n`gistmill` `other`";
    assert_eq!(command_lines(page), ["gistmill c", "gistmill a b"]);
}

/// Whether the program takes a line. Commands that are only named, and lines whose end is left open, need no more words.
fn judged(words: &[String]) -> Result<(), String> {
    let mut below = command();
    let mut left = &words[1..];
    while let Some(found) = left.first().and_then(|word| below.find_subcommand(word)) {
        below = found.clone();
        left = &left[1..];
    }
    if left.is_empty() && below.get_name() != "gistmill" || words.iter().any(|word| word.contains('…')) {
        return Ok(());
    }
    match super::read(words.iter().map(Into::into)) {
        Err(error) if error.use_stderr() => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[test]
fn lines_that_the_program_does_not_take_are_seen() {
    for (line, is_good) in [
        ("gistmill image save", true),
        ("gistmill score …", true),
        ("gistmill help build", true),
        ("gistmill --version", true),
        ("gistmill biuld", false),
        ("gistmill image sav", false),
        ("gistmill show", true),
        ("gistmill show x --al", false),
        ("gistmill diff a b c", false),
    ] {
        assert_eq!(judged(&words(line)).is_ok(), is_good, "{line}");
    }
}

#[test]
fn every_command_line_of_the_book_is_one() {
    let mut seen = BTreeSet::new();
    let mut wrong = String::new();
    for (path, text) in pages() {
        for line in command_lines(&text) {
            let words: Vec<String> = words(&line).into_iter().map(filled).collect();
            if let Err(error) = judged(&words) {
                let _ = writeln!(wrong, "{}: `{line}`: {error}", path.display());
            }
            let subcommand = words.get(1).cloned().unwrap_or_default();
            seen.insert(subcommand);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let names = command().get_subcommands().map(|one| one.get_name().to_owned()).collect::<BTreeSet<_>>();
    let unnamed: Vec<_> = names.difference(&seen).filter(|name| *name != "help").collect();
    assert!(unnamed.is_empty(), "commands that no page names: {unnamed:?}");
}

#[test]
fn every_example_of_the_help_is_a_command_line() {
    for one in command().get_subcommands() {
        let help = one.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.lines().filter_map(|line| line.strip_prefix("  gistmill"));
        for line in examples.map(|rest| format!("gistmill{rest}")) {
            // What follows two blanks is a remark.
            let line = line.split("   ").next().unwrap_or_default();
            let read = super::read(words(line).iter().map(Into::into));
            assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
        }
    }
}

/// The anchor that a heading has, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().replace(' ', "-")
}

fn anchors(page: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let headings = page.lines().filter(|line| {
        in_block ^= line.starts_with("```");
        !in_block && line.starts_with('#')
    });
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_in_the_summary() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut links = 0;
    for (path, text) in pages() {
        let outside: String = text.split("```").step_by(2).collect();
        for target in link.captures_iter(&outside).map(|found| found[1].to_owned()) {
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, part) = target.split_once('#').map_or((target.as_str(), None), |(a, b)| (a, Some(b)));
            let place = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(place.exists(), "{}: {target}", path.display());
            if let Some(part) = part {
                assert!(anchors(&read(&place)).contains(part), "{}: {target}", path.display());
            }
        }
    }
    assert!(links > 30, "{links} links are checked");
    let summary = read(&root().join("docs/SUMMARY.md"));
    for (path, _) in
        pages().iter().filter(|(path, _)| path.parent().is_some_and(|folder| folder.ends_with("docs")))
    {
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "SUMMARY.md lacks {name}");
    }
}

#[test]
fn the_book_starts_containers_as_the_program_says() {
    let options = crate::backend::local::CONTAINER_OPTIONS;
    assert!(read(&root().join("docs/ci.md")).contains(&format!("docker run {options} ")), "{options}");
}

#[test]
fn the_readme_is_short_and_says_the_two_commands() {
    let readme = read(&root().join("README.md"));
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
    let contributing = read(&root().join("CONTRIBUTING.md"));
    for line in ["cargo run -- build", "cargo test"] {
        assert!(readme.contains(line) && contributing.contains(line), "{line}");
    }
}

/// Holds a part of a page, between two comments, against what the code says.
fn hold(page: &str, part: &str, made: &str) {
    let path = root().join("docs").join(page);
    let text = read(&path);
    let (begin, end) = (format!("<!-- {part}: made from the code -->\n"), format!("<!-- end of {part} -->"));
    let at = text.find(&begin).unwrap_or_else(|| panic!("{page} lacks {begin}")) + begin.len();
    let to = text.find(&end).unwrap_or_else(|| panic!("{page} lacks {end}"));
    if std::env::var_os("GISTMILL_TEST_WRITE_BOOK").is_some() {
        fs_err::write(&path, format!("{}{made}{}", &text[..at], &text[to..])).unwrap();
        return;
    }
    assert!(
        text[at..to] == *made,
        "{page} is not what the code says of {part}; GISTMILL_TEST_WRITE_BOOK=1 writes it"
    );
}

#[test]
fn the_page_of_columns_is_the_dictionary() {
    for (table, entries) in dictionary::TABLES {
        let mut made = "\n| column | meaning |\n| --- | --- |\n".to_owned();
        for (name, meaning) in entries {
            let _ = writeln!(made, "| `{name}` | {meaning} |");
        }
        made.push('\n');
        hold("columns.md", table, &made);
    }
}

#[test]
fn the_page_of_masked_files_has_their_columns() {
    for (table, entries) in recube::DICTIONARY {
        let mut made = "\n| column | meaning |\n| --- | --- |\n".to_owned();
        for (name, meaning) in entries {
            let _ = writeln!(made, "| `{name}` | {meaning} |");
        }
        made.push('\n');
        hold("recube.md", table, &made);
    }
}

#[test]
fn the_page_of_refactorings_has_their_columns() {
    for (table, entries) in codetaste::DICTIONARY {
        let mut made = "\n| column | meaning |\n| --- | --- |\n".to_owned();
        for (name, meaning) in entries {
            let _ = writeln!(made, "| `{name}` | {meaning} |");
        }
        made.push('\n');
        hold("codetaste.md", table, &made);
    }
}

#[test]
fn the_page_of_causes_has_the_words_of_explain() {
    let all = explain::all();
    for (kind, part) in [("cause", "causes"), ("flag", "flags"), ("rule", "built-in rules")] {
        let mut made = String::new();
        for Explanation { name, meaning, origin, remedy, .. } in all.iter().filter(|one| one.kind == kind) {
            let _ =
                write!(made, "\n**`{name}`**: {meaning}.\n\n- *Why:* {origin}\n- *What to do:* {remedy}\n");
        }
        made.push('\n');
        hold("causes.md", part, &made);
    }
}

/// What a schema says of a value, in a word or two.
fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(kinds) = property["oneOf"].as_array() {
        return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match property["type"].as_str() {
        Some("array") if property["items"].get("type").is_none() => "list of strings".to_owned(),
        Some("array") => format!("list of {}s", kind(&property["items"])),
        Some("object") if property["properties"].get("min").is_some() => "`{ min, max }`".to_owned(),
        Some("object") if property.get("properties").is_some() => "table".to_owned(),
        Some("object") => "table of strings".to_owned(),
        Some(other) => other.to_owned(),
        None => "time or date".to_owned(),
    }
}

/// A table of the keys of a section.
fn keys(properties: &Value) -> String {
    let mut made = "\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for (key, property) in properties.as_object().expect("properties are an object") {
        let default = property.get("default").map(|value| format!("`{value}`")).unwrap_or_default();
        let meaning = property["description"].as_str().unwrap_or_default();
        let _ = writeln!(made, "| `{key}` | {} | {default} | {meaning} |", kind(property));
    }
    made.push('\n');
    made
}

#[test]
fn the_page_of_the_configuration_is_the_schema() {
    for (name, section) in config::schema()["properties"].as_object().unwrap() {
        let properties = match name.as_str() {
            "repo" | "pair" => &section["items"]["properties"],
            "subset" => &section["additionalProperties"]["properties"],
            _ => &section["properties"],
        };
        hold("configuration.md", name, &keys(properties));
    }
    let rules: Value = serde_json::from_str(rules::SCHEMA).unwrap();
    let rule = &rules["properties"]["rule"]["items"]["properties"];
    hold("rules.md", "rule", &keys(rule));
    hold("rules.md", "match", &keys(&rule["match"]["properties"]));
}
