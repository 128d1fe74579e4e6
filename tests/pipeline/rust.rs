//! Trees whose builds compile Rust, with the crate that their `Cargo.lock` pins. They need a Rust toolchain, which whoever
//! runs these tests has, the package index and crates.io.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::common::dataset::text;
use crate::common::{Bench, Running};

const TREE: &str = "compiles_rust";

fn recipe_of(bench: &Bench) -> serde_json::Value {
    let environments = std::fs::read_dir(bench.cache().join("environments")).expect("something was built");
    let recipes = environments.flatten().map(|one| one.path().join("recipe/recipe.json"));
    let mut recipes = recipes.filter(|path| path.is_file());
    let recipe = recipes.next().expect("an environment was built");
    assert_eq!(recipes.next(), None, "one environment was built");
    serde_json::from_slice(&std::fs::read(recipe).expect("it can be read")).expect("a recipe is JSON")
}

#[test]
fn an_extension_is_compiled_offline_with_what_cargo_lock_pins() {
    let bench = Bench::with_downloads_only();
    bench.configure("[screen]\nattempts = 2", &[TREE]);
    bench.build(&[]).with_code(0);
    let rows = bench.dataset().rows("groups");
    let groups: Vec<(&str, bool)> =
        rows.iter().map(|row| (text(&row["group_id"]), row["cause"].is_null())).collect();
    assert_eq!(groups, [("tests/test_digits.py::test_the_crate_was_compiled", true)], "{rows:#?}");
    let recipe = recipe_of(&bench);
    let compiler = text(&recipe["made_with"]["rustc"]).to_owned();
    assert!(compiler.starts_with("rustc 1."), "{compiler}");
    let note = format!("1 crate of rust/Cargo.lock fetched and checked by its hashes; built with {compiler}");
    let notes = recipe["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|one| *one == note.as_str()), "{notes:#?}");
    let added = notes.iter().map(text).find(|one| one.starts_with("the build added")).expect("a module");
    assert!(!added.contains("target"), "what cargo makes on the way is no part of the tree: {added}");
}

/// Serves a source distribution of the tree once for each connection, at an address that it gives.
fn serve_source_distribution(bench: &Bench) -> String {
    let compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(compressed);
    archive.append_dir_all("digits-1", bench.tree(TREE)).expect("it can be packed");
    let bytes = archive.into_inner().and_then(flate2::write::GzEncoder::finish).expect("it can be packed");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = BufReader::new(stream.try_clone().expect("a stream")).lines();
            while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            // Whoever asks may have gone.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
        }
    });
    format!("http://{address}/digits-1.tar.gz")
}

#[test]
fn a_source_distribution_is_compiled_with_its_own_lock() {
    let bench = Bench::with_downloads_only();
    bench.tree("uses_compiled_rust");
    let address = serve_source_distribution(&bench);
    bench.write_config(&format!(
        "[dataset]\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n[mutation]\nmutants = 0\n[[repo]]\nslug = \"trees/uses\"\n\
         path = \"trees/uses_compiled_rust\"\nrequirements = [\"pytest\", \"digits @ {address}\"]\n"
    ));
    let mut gistmill = bench.gistmill(&["build", "repos.toml"]);
    // The server is on this machine.
    gistmill.env("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1");
    Running::start(gistmill).wait().with_code(0);
    let rows = bench.dataset().rows("groups");
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert!(rows[0]["cause"].is_null(), "{rows:#?}");
}

/// The build of the tree after `change`, which must fail; what it prints.
fn refusal(change: impl FnOnce(&Path)) -> String {
    let bench = Bench::with_downloads_only();
    bench.configure("", &[TREE]);
    change(&bench.path().join("trees").join(TREE).join("rust/Cargo.lock"));
    let ended = bench.build(&[]).with_code(1);
    ended.stderr + &ended.stdout
}

#[test]
fn without_a_lock_that_is_what_is_missing() {
    let words = refusal(|lock| std::fs::remove_file(lock).expect("it is there"));
    assert!(words.contains("commit a `Cargo.lock`"), "{words}");
}

#[test]
fn a_crate_that_is_not_what_the_lock_says_is_not_used() {
    let words = refusal(|lock| {
        let text = std::fs::read_to_string(lock).expect("it is there");
        let at = text.find("checksum = \"").expect("it has a hash") + "checksum = \"".len();
        let other = [&text[..at], &"0".repeat(64), &text[at + 64..]].concat();
        std::fs::write(lock, other).expect("it can be changed");
    });
    assert!(words.contains("itoa 1.0.19 cannot be had from crates.io"), "{words}");
    assert!(words.contains(&format!("but it must be {}", "0".repeat(64))), "{words}");
}

#[test]
fn a_crate_from_elsewhere_is_named() {
    let words = refusal(|lock| {
        let text = std::fs::read_to_string(lock).expect("it is there");
        let start = text.find("source = ").expect("it has a source");
        let end = text.find("\n\n[[package]]\nname = \"native\"").expect("it is the first one");
        let git =
            "source = \"git+https://git.example.org/itoa?rev=1#0123456789012345678901234567890123456789\"";
        std::fs::write(lock, [&text[..start], git, &text[end..]].concat()).expect("it can be changed");
    });
    assert!(words.contains("not fetched: itoa 1.0.19, which is not from crates.io"), "{words}");
}
