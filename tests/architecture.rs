//! The table of rooms in ARCHITECTURE.md against the source: who names whom, and that nobody names a later room.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

type Arrows = BTreeMap<String, BTreeMap<String, String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rooms of the table, in its order, with the rooms that each one knows.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text
        .split("## Rooms")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("has a section on rooms");
    let name = Regex::new("`([a-z_]+)`").unwrap();
    let names =
        |cell: &str| name.captures_iter(cell).map(|found| found[1].to_owned()).collect::<BTreeSet<_>>();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 3, "room, what it does, what it knows: {row}");
        let room = names(cells[0]).pop_first().expect("names a room");
        (room, names(cells[2]))
    })
    .collect()
}

fn source_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// What a file of the product says, without comments and tests.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// For every room the rooms that it names, with a file that does.
fn arrows() -> Arrows {
    let source = root().join("src");
    let named = Regex::new(r"\bcrate::(\{|\w+)").unwrap();
    let mut files = Vec::new();
    source_files(&source, &mut files);
    let mut arrows = Arrows::new();
    for path in files {
        let place = path.strip_prefix(&source).unwrap().to_string_lossy().into_owned();
        let room = place.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let is_test = place.ends_with("tests.rs") || place.contains("/tests/") || room == "testing";
        if matches!(room.as_str(), "main" | "lib") || is_test {
            continue;
        }
        let known = arrows.entry(room.clone()).or_default();
        for found in named.captures_iter(&product(&read(&path))) {
            assert_ne!(&found[1], "{", "{place}: one `use crate::` for each room");
            if found[1] != room {
                known.insert(found[1].to_owned(), place.clone());
            }
        }
    }
    arrows
}

#[test]
fn the_table_has_every_room_once() {
    let rooms: Vec<String> = table().into_iter().map(|(room, _)| room).collect();
    let unique: BTreeSet<&String> = rooms.iter().collect();
    assert_eq!(unique.len(), rooms.len(), "{rooms:?}");
    let arrows = arrows();
    assert_eq!(unique, arrows.keys().collect(), "rooms of the table, and modules");
}

#[test]
fn every_room_names_what_the_table_says_and_nothing_else() {
    let arrows = arrows();
    for (room, says) in table() {
        let names = &arrows[&room];
        for (other, file) in names {
            assert!(
                says.contains(other),
                "{file} names `{other}`; ARCHITECTURE.md does not say that `{room}` knows it"
            );
        }
        for other in &says {
            assert!(
                names.contains_key(other),
                "ARCHITECTURE.md says that `{room}` knows `{other}`; it does not"
            );
        }
    }
}

#[test]
fn no_room_knows_one_below_it_in_the_table() {
    let mut above = BTreeSet::new();
    for (room, says) in table() {
        for other in says {
            assert!(above.contains(&other), "`{room}` knows `{other}`, which is not above it");
        }
        above.insert(room);
    }
}

#[test]
fn comments_and_tests_are_no_arrows_and_code_is() {
    let text = "use crate::store;\n// crate::cli\n/// [`crate::report`]\nlet x = crate::text::tail();\n#[cfg(test)]\nmod tests {\nuse crate::testing;\n}\n";
    let product = product(text);
    assert!(product.contains("crate::store") && product.contains("crate::text"));
    assert!(!product.contains("cli") && !product.contains("report") && !product.contains("testing"));
}
