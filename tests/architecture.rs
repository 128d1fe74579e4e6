//! The table of rooms in ARCHITECTURE.md against the source: who names whom, and that nobody names a later room.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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

/// A file of the product by its module path, `["environment", "steps", "install"]`, with its text.
fn modules() -> BTreeMap<Vec<String>, String> {
    let source = root().join("src");
    let mut files = Vec::new();
    source_files(&source, &mut files);
    let mut modules = BTreeMap::new();
    for path in files {
        let place = path.strip_prefix(&source).unwrap().to_string_lossy().into_owned();
        let is_test = place.ends_with("tests.rs") || place.contains("/tests/");
        let parts: Vec<String> = place.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if !is_test && !matches!(parts[0].as_str(), "main" | "lib" | "testing") {
            modules.insert(parts, product(&read(&path)));
        }
    }
    modules
}

/// Paths that a text names: those of `crate::`, `super::` and `self::`, with what is in braces behind them.
fn named_paths(text: &str) -> Vec<String> {
    fn expand(prefix: &str, body: &str, into: &mut Vec<String>) {
        let (mut depth, mut start) = (0, 0);
        let ends = body.char_indices().chain([(body.len(), ',')]);
        for (at, one) in ends {
            match one {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    let piece = body[start..at].trim();
                    start = (at + 1).min(body.len());
                    match piece.split_once('{') {
                        Some((head, tail)) => {
                            let head = head.trim_end_matches("::");
                            expand(&format!("{prefix}::{head}"), tail.trim_end_matches('}'), into);
                        }
                        None if piece.is_empty() => {}
                        None => into.push(format!("{prefix}::{}", piece.split(' ').next().unwrap_or(piece))),
                    }
                }
                _ => {}
            }
        }
    }
    let path = Regex::new(r"\b(?:crate|super|self)(?:::\w+)*(?:::\{)?").unwrap();
    let mut found = Vec::new();
    for one in path.find_iter(text) {
        match one.as_str().strip_suffix("::{") {
            Some(prefix) => {
                let rest = &text[one.end()..];
                let mut depth = 1;
                let end = rest.char_indices().find(|(_, letter)| {
                    depth += match letter {
                        '{' => 1,
                        '}' => -1,
                        _ => 0,
                    };
                    depth == 0
                });
                expand(prefix, &rest[..end.expect("braces are closed").0], &mut found);
            }
            None => found.push(one.as_str().to_owned()),
        }
    }
    found
}

/// For every file the files of its room that it names. A front page (`screen.rs` for what is in `screen/`) holds the nouns
/// of its room, so that files below it may name it; it names them in turn.
fn arrows_of_files() -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let modules = modules();
    let child = Regex::new(r"(?:^|[^:\w])([a-z_]\w*)::").unwrap();
    let mut arrows: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, text) in &modules {
        let mut paths = named_paths(text);
        paths.extend(child.captures_iter(text).map(|found| format!("self::{}", &found[1])));
        for path in paths {
            let mut parts = path.split("::");
            let mut place = match parts.next() {
                Some("crate") => Vec::new(),
                Some("super") => module[..module.len() - 1].to_vec(),
                _ => module.clone(),
            };
            for part in parts {
                if part == "super" {
                    place.pop();
                    continue;
                }
                place.push(part.to_owned());
                if !modules.contains_key(&place) {
                    place.pop();
                    break;
                }
            }
            let is_of_the_room = place.first() == module.first() && modules.contains_key(&place);
            if is_of_the_room && !module.starts_with(&place) {
                arrows.entry(module.clone()).or_default().insert(place);
            }
        }
    }
    arrows
}

/// A way from a file back to itself.
fn circle(arrows: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Option<Vec<Vec<String>>> {
    fn walk(
        file: &Vec<String>,
        arrows: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
        way: &mut Vec<Vec<String>>,
        done: &mut BTreeSet<Vec<String>>,
    ) -> bool {
        if way.contains(file) {
            way.push(file.clone());
            return true;
        }
        if done.contains(file) {
            return false;
        }
        way.push(file.clone());
        if arrows.get(file).into_iter().flatten().any(|next| walk(next, arrows, way, done)) {
            return true;
        }
        way.pop();
        done.insert(file.clone());
        false
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    arrows.keys().any(|file| walk(file, arrows, &mut way, &mut done)).then_some(way)
}

#[test]
fn no_file_leads_back_to_itself() {
    let arrows = arrows_of_files();
    assert!(arrows.len() > 100, "the source has been read");
    let words =
        |way: Vec<Vec<String>>| way.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(" -> ");
    assert_eq!(circle(&arrows).map(words), None);
}

/// The floors of the environment, each of which knows only those before it.
#[test]
fn floors_of_the_environment_are_entered_downwards() {
    let floors = ["declared", "plan", "steps", "making"];
    let floor = |file: &[String]| {
        let name = (file[0] == "environment").then(|| file.get(1))??;
        floors.iter().position(|floor| floor == name)
    };
    for (file, known) in arrows_of_files() {
        for other in known {
            if let (Some(own), Some(named)) = (floor(&file), floor(&other)) {
                assert!(named <= own, "{} names {}", file.join("/"), other.join("/"));
            }
        }
    }
}

/// Files and folders that ARCHITECTURE.md calls pure, and those in them that are not.
const PURE: [(&str, &[&str]); 27] = [
    ("record", &[]),
    ("packed", &[]),
    ("redact", &[]),
    ("requirement", &[]),
    ("text", &[]),
    ("subset", &[]),
    ("family", &[]),
    ("score", &[]),
    ("python_source", &["sources", "definitions"]),
    ("collect/group", &[]),
    ("attempt/normalize", &[]),
    ("attempt/retry", &[]),
    ("screen/attribution", &[]),
    ("screen/considered", &[]),
    ("screen/decide", &[]),
    ("screen/golden", &[]),
    ("screen/ruling", &[]),
    ("screen/verdict", &[]),
    ("rules/matching", &[]),
    ("environment/declared/crates", &[]),
    ("environment/declared/members", &[]),
    ("environment/declared/own", &[]),
    ("environment/declared/sources", &[]),
    ("environment/declared/variables", &[]),
    ("environment/plan/asked", &[]),
    ("environment/plan/missing", &[]),
    ("environment/plan/recipe", &[]),
];

/// What a pure file does not say: disk, clock, process, environment, network.
const IMPURE: &str = r"\b(std::fs|(?:fs_err|walkdir|tempfile|nix::unistd|nix::mount|git2|ureq)::|Timestamp::now|Zoned::now|Instant|SystemTime|std::process|Command::new|std::env|std::net|std::thread|std::os|crate::beneath|crate::store)\b";

#[test]
fn pure_files_see_no_disk_clock_or_process() {
    let impure = Regex::new(IMPURE).unwrap();
    let modules = modules();
    for (place, but) in PURE {
        let parts: Vec<&str> = place.split('/').collect();
        let inside = modules.iter().filter(|(module, _)| module.len() >= parts.len());
        let inside = inside.filter(|(module, _)| module.iter().zip(&parts).all(|(one, part)| one == part));
        let mut seen = 0;
        for (module, text) in inside {
            seen += 1;
            if !but.iter().any(|but| module.last().is_some_and(|name| name == but)) {
                assert_eq!(impure.find(text).map(|found| found.as_str()), None, "{}", module.join("/"));
            }
        }
        assert!(seen > 0, "{place} does not exist");
    }
}

#[test]
fn a_circle_is_found_and_a_triangle_is_not() {
    let file = |name: &str| vec!["room".to_owned(), name.to_owned()];
    let arrow = |from: &str, to: &[&str]| (file(from), to.iter().map(|name| file(name)).collect());
    let triangle = BTreeMap::from([arrow("a", &["b", "c"]), arrow("b", &["c"])]);
    assert_eq!(circle(&triangle), None);
    let back = BTreeMap::from([arrow("a", &["b"]), arrow("b", &["c"]), arrow("c", &["b"])]);
    assert_eq!(circle(&back), Some(vec![file("a"), file("b"), file("c"), file("b")]));
}

#[test]
fn paths_in_braces_are_found() {
    let text = "use super::{a::{B, C}, d};\nuse crate::x::Y;\nlet z = self::w::v();";
    let found = named_paths(text);
    assert_eq!(found, ["super::a::B", "super::a::C", "super::d", "crate::x::Y", "self::w::v"]);
}

#[test]
fn comments_and_tests_are_no_arrows_and_code_is() {
    let text = "use crate::store;\n// crate::cli\n/// [`crate::report`]\nlet x = crate::text::tail();\n#[cfg(test)]\nmod tests {\nuse crate::testing;\n}\n";
    let product = product(text);
    assert!(product.contains("crate::store") && product.contains("crate::text"));
    assert!(!product.contains("cli") && !product.contains("report") && !product.contains("testing"));
}

/// Comments of each room that use words which CONTRIBUTING.md replaces. A number only goes down: who mends a comment writes
/// the smaller one here, and a room without any has no line.
const WORDS_IN_COMMENTS: [(&str, usize); 12] = [
    ("attempt", 25),
    ("backend", 54),
    ("cli", 1),
    ("dataset", 1),
    ("environment", 75),
    ("family", 49),
    ("index", 34),
    ("pipeline", 1),
    ("referee", 13),
    ("report", 21),
    ("score", 14),
    ("source", 47),
];

/// Comments and string literals of a Rust text, in its order; `true` for comments.
fn comments_and_strings(text: &str) -> Vec<(bool, String)> {
    let pieces = r##"(?s)(//[^\n]*)|\br#"(.*?)"#|\br"([^"]*)"|"((?:\\.|[^"\\])*)"|'(?:\\.[^']*|[^\\'])'"##;
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let found = Regex::new(pieces).unwrap();
    let found = found.captures_iter(text).filter_map(|found| {
        let piece = (1..=4).find_map(|index| found.get(index))?;
        Some((found.get(1).is_some(), continued.replace_all(piece.as_str(), "").into_owned()))
    });
    found.collect()
}

/// Words that CONTRIBUTING.md replaces: "X is no Y" (but "there is no Y"), "stands", "lies", "tells", "is there".
static REPLACED_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let is_no = r"there (?:is|are) no(?:ne)?\b|\b(?:is|are) no (?:longer|more)\b|(\b(?:is|are) no(?:ne)?\b";
    let others = r"|\b(?:stands?|lies?|tells?|told|is there|is not there)\b)";
    Regex::new(&format!("(?i-u){is_no}{others}")).unwrap()
});

fn replaced_words(text: &str) -> Vec<&str> {
    REPLACED_WORDS.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())).collect()
}

#[test]
fn words_that_the_style_replaces_are_in_no_string_and_in_ever_fewer_comments() {
    let source = root().join("src");
    let mut files = Vec::new();
    source_files(&source, &mut files);
    let mut in_comments = BTreeMap::new();
    for path in files {
        let place = path.strip_prefix(&source).unwrap().to_string_lossy().into_owned();
        let room = place.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        if place.ends_with("tests.rs") || place.contains("/tests/") || room == "testing" {
            continue;
        }
        let text = read(&path);
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (is_comment, piece) in comments_and_strings(text) {
            let words = replaced_words(&piece);
            assert!(is_comment || words.is_empty(), "{place}: {words:?} in {piece:?}");
            if !words.is_empty() {
                *in_comments.entry(room.clone()).or_default() += words.len();
            }
        }
    }
    let expected = WORDS_IN_COMMENTS.map(|(room, count)| (room.to_owned(), count));
    assert_eq!(in_comments, BTreeMap::from(expected));
}

#[test]
fn replaced_words_are_found_in_strings_and_comments_alone() {
    let text = "let a = 'x'; // it lies there\nlet is_there = b\"is\\\n  no \\\" file\"; f::<'a, '_>('\"', r#\"tell \"him\"\"#);";
    let pieces = comments_and_strings(text);
    let expected = [(true, "// it lies there"), (false, r#"isno \" file"#), (false, "tell \"him\"")];
    assert_eq!(pieces, expected.map(|(is_comment, piece)| (is_comment, piece.to_owned())));
    assert_eq!(
        replaced_words("There is no file; it is no longer told, is no file and is none"),
        ["told", "is no", "is none"]
    );
}
