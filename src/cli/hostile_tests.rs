//! Datasets in which a file is not what it should be, given to what reads datasets: it ends soon, writes nothing elsewhere,
//! never panics, and says what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use polars::prelude::*;
use serde_json::{Value, json};

use crate::config;
use crate::dataset::images::{self, PushedImage};
use crate::dataset::{Dataset, DatasetInput, hidden, query, subsets, witnesses};
use crate::diff;
use crate::error::Result;
use crate::export::{self, Harness};
use crate::publish::{self, About};
use crate::record::id::RepoSlug;
use crate::referee::submissions;
use crate::report;
use crate::testing::made_up::MadeUp;
use crate::verify::{files, tables};

/// What any of the commands may take, however busy the machine is.
const LONGEST: Duration = Duration::from_mins(2);

/// `here/d/1` is the dataset, `here/out` is where commands write, and all else must stay as it is.
struct Bench {
    folder: tempfile::TempDir,
    whole: BTreeMap<PathBuf, Vec<u8>>,
}

impl Bench {
    fn new() -> Self {
        // In memory: what commands write is synced, and there is much of it.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(place).unwrap();
        let made_up = MadeUp::new(&[4]);
        let mut public_config = config::to_public_json(&made_up.config);
        public_config["repos"] = json!([{
            "slug": "made/up0", "git": "https://example.org/made/up0", "submodules": true,
            "commit": "2ac89889f4cc330eabd50f295dcef02828522c69",
        }]);
        let input =
            DatasetInput { tool_version: env!("CARGO_PKG_VERSION"), public_config, ..made_up.input() };
        let bench = Bench { folder, whole: BTreeMap::new() };
        crate::testing::write(&bench.dataset(), &input).unwrap();
        bench.push_an_image();
        fs_err::write(bench.path("victim"), "mine").unwrap();
        fs_err::create_dir_all(bench.path("d/2")).unwrap();
        fs_err::write(bench.path("d/2/instances.jsonl"), "another dataset").unwrap();
        let files = walkdir::WalkDir::new(bench.dataset()).into_iter().flatten();
        let files = files.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path);
        let whole = files.map(|path| {
            let name = path.strip_prefix(bench.dataset()).unwrap().to_owned();
            (name, fs_err::read(&path).unwrap())
        });
        Bench { whole: whole.collect(), ..bench }
    }

    /// As `image push` leaves it.
    fn push_an_image(&self) {
        let dataset = Dataset::open(&self.dataset()).unwrap();
        let slug = dataset.instances().unwrap().remove(0).slug.clone();
        let image = PushedImage {
            architecture: "amd64".to_owned(),
            place: "registry.example.org/me/made".to_owned(),
            tag: "1-amd64".to_owned(),
            digest: format!("sha256:{}", "a".repeat(64)),
            image_id: "sha256:1".to_owned(),
            of: dataset.link(&slug).unwrap(),
        };
        let mut images = dataset.images().unwrap();
        images.add(&slug, image);
        images.save(&dataset.directory).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("a/here").join(name)
    }

    fn dataset(&self) -> PathBuf {
        self.path("d/1")
    }

    /// The dataset as it was built.
    fn restore(&self) {
        let _ = fs_err::remove_dir_all(self.path("d/.1.writing"));
        for place in [self.dataset(), self.path("out")] {
            let _ = fs_err::remove_dir_all(&place);
            fs_err::create_dir_all(&place).unwrap();
        }
        for (name, bytes) in &self.whole {
            let path = self.dataset().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, bytes).unwrap();
        }
    }

    /// Whether a change changed nothing.
    fn is_as_it_was(&self) -> bool {
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
        let same = |(name, bytes): (&PathBuf, &Vec<u8>)| {
            let path = self.dataset().join(name);
            // It may be left out, which `verify` counts among what it did not verify.
            (name == Path::new(hidden::FILE) && path.symlink_metadata().is_err())
                // A registry alone can tell whether a place or a digest is another one.
                || (name == Path::new(images::FILE) && (is_file(&path) || path.symlink_metadata().is_err()))
                || is_file(&path) && fs_err::read(path).is_ok_and(|read| read == *bytes)
        };
        self.whole.iter().all(same)
    }

    /// What is beside the dataset and the output, with the content of files.
    fn outside(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let all = walkdir::WalkDir::new(self.folder.path()).into_iter();
        // A writer that does not come to its end leaves what it wrote beside the place of the dataset.
        let own = [self.dataset(), self.path("out"), self.path("d/.1.writing")];
        let others = all.filter_entry(|entry| own.iter().all(|one| entry.path() != one));
        others.flatten().map(|entry| (entry.path().to_owned(), fs_err::read(entry.path()).ok())).collect()
    }

    fn json(&self, change: &dyn Fn(&mut Value)) {
        let path = self.dataset().join("manifest.json");
        let mut value: Value = serde_json::from_slice(&self.whole[Path::new("manifest.json")]).unwrap();
        change(&mut value);
        fs_err::write(path, value.to_string()).unwrap();
    }

    fn lines(&self, change: &dyn Fn(&mut Value)) {
        let text = String::from_utf8(self.whole[Path::new("instances.jsonl")].clone()).unwrap();
        let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        change(&mut rows[0]);
        let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
        let text = lines.join("\n") + "\n";
        fs_err::write(self.dataset().join("instances.jsonl"), text).unwrap();
    }

    fn frame(&self, table: &str, change: &dyn Fn(DataFrame) -> DataFrame) {
        let path = self.dataset().join(format!("{table}.parquet"));
        let frame = ParquetReader::new(std::fs::File::open(&path).unwrap()).finish().unwrap();
        let mut frame = change(frame);
        let rows = frame.height();
        let writer = ParquetWriter::new(std::fs::File::create(&path).unwrap());
        writer.with_row_group_size(Some(rows)).finish(&mut frame).unwrap();
        self.json(&|manifest| manifest["counts"]["rows"][table] = json!(rows));
    }
}

/// What commands read and write, by their names. `verify` is an error where anything is wrong.
/// The dataset, and where the command writes.
type Read = fn(&Path, &Path) -> Result<()>;

const COMMANDS: [(&str, Read); 11] = [
    ("list", |dataset, _| Dataset::open(dataset).and_then(|dataset| query::all(&dataset)).map(drop)),
    ("show", |dataset, _| query::find(dataset, "test_00001").map(drop)),
    ("verify", |dataset, _| {
        let dataset = Dataset::open(dataset)?;
        let problems =
            files::check(&dataset.folder()?, &dataset.hashes()?, &["manifest.json", images::FILE])?;
        files::inside_trees(&dataset.folder()?, &dataset.manifest.trees, &problems)?;
        let found = tables::compare(&dataset)?;
        let wrong = problems.len() + found.differences.len();
        if wrong == 0 { Ok(()) } else { Err(crate::error::Error::usage(format!("{wrong} problems"))) }
    }),
    ("export", |dataset, out| {
        let dataset = Dataset::open(dataset)?;
        let collection =
            export::read::collection(&dataset, dataset.instances()?, &export::read::Wanted::default())?;
        let harnesses = [Harness::SweBench, Harness::Harbor, Harness::Prompts].into();
        export::write::write(&out.join("export"), &dataset.directory, &collection, &harnesses).map(drop)
    }),
    ("subset", |dataset, out| {
        let dataset = Dataset::open(dataset)?;
        let definitions: Vec<_> =
            dataset.manifest.subsets.values().map(|one| one.definition.clone()).collect();
        let instances = dataset.instances()?;
        subsets::write(&out.join("subsets"), &definitions, &instances)
    }),
    ("score", |dataset, out| {
        let dataset = Dataset::open(dataset)?;
        let known: BTreeSet<String> =
            dataset.instances()?.iter().map(|one| one.instance_id.to_string()).collect();
        // Ids of a dataset are checked when they are read: they name no folder elsewhere.
        if let Some(id) = known.first() {
            let mine = out.join("mine").join(id);
            fs_err::create_dir_all(&mine)?;
            fs_err::write(mine.join("concise.py"), "")?;
            submissions::read(&out.join("mine"), None, "concise.py", &known)?;
        }
        dataset.golden()?;
        let slugs: BTreeSet<RepoSlug> = dataset.manifest.sources.keys().cloned().collect();
        for slug in &slugs {
            dataset.lock(slug)?;
            dataset.archive(slug)?;
            dataset.members("top")?;
        }
        let nowhere = (&BTreeMap::new(), &slugs);
        config::published::from_published(&dataset.manifest.config, &slugs, nowhere, &|_| None).map(drop)
    }),
    ("diff", |dataset, _| diff::places(dataset, &dataset.join("subsets/top.parquet")).map(drop)),
    ("witness", |dataset, _| witnesses::add(&Dataset::open(dataset)?, &BTreeMap::new())),
    ("report", |dataset, _| report::render(dataset)),
    ("publish", |dataset, out| {
        let about = About { with_hidden: true, ..About::default() };
        publish::write(&Dataset::open(dataset)?, &out.join("published"), &about).map(drop)
    }),
    // What they read before they ask a registry.
    ("image push and check", |dataset, _| {
        let dataset = Dataset::open(dataset)?;
        let images = dataset.images()?;
        for one in images.of.values().flatten() {
            one.place()?;
        }
        images.of.keys().try_for_each(|slug| dataset.pushed(&images, slug, Some("amd64")).map(drop))
    }),
];

type Change<'a> = Box<dyn Fn(&Bench) + 'a>;

fn pipe(place: &Path) {
    nix::unistd::mkfifo(place, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// Something else in the place of a file.
fn other_kinds(name: &Path) -> Vec<(String, Change<'_>)> {
    let in_place = |title: &str, make: fn(&Bench, &Path)| -> (String, Change<'_>) {
        (
            format!("{}: {title}", name.display()),
            Box::new(move |bench: &Bench| {
                let path = bench.dataset().join(name);
                fs_err::remove_file(&path).unwrap();
                make(bench, &path);
            }),
        )
    };
    vec![
        in_place("missing", |_, _| {}),
        in_place("empty", |_, path| fs_err::write(path, "").unwrap()),
        in_place("a pipe", |_, path| pipe(path)),
        in_place("a socket", |bench, path| {
            // Their names are short.
            let socket = bench.folder.path().join("s");
            drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
            fs_err::rename(socket, path).unwrap();
        }),
        in_place("a folder", |_, path| fs_err::create_dir(path).unwrap()),
        in_place("a link to a file of the host", |bench, path| symlink(bench.path("victim"), path).unwrap()),
        in_place("a link to nothing", |bench, path| symlink(bench.path("planted"), path).unwrap()),
        in_place("a link to a device without end", |_, path| symlink("/dev/zero", path).unwrap()),
        in_place("a link to a pipe", |bench, path| {
            pipe(&bench.path("out/pipe"));
            symlink(bench.path("out/pipe"), path).unwrap();
        }),
        in_place("much of nothing", |_, path| std::fs::File::create(path).unwrap().set_len(1 << 26).unwrap()),
        in_place("other JSON", |_, path| fs_err::write(path, "[{\"a\": null}, 1e400]\n").unwrap()),
        in_place("JSON without end", |_, path| fs_err::write(path, "{\"a\":[".repeat(100_000)).unwrap()),
    ]
}

/// Bytes that are others, and parts that are missing or there twice.
fn other_bytes(name: &Path) -> Vec<(String, Change<'_>)> {
    let seeds = 0..6_u64;
    let change = |seed: u64| -> (String, Change<'_>) {
        (
            format!("{}: bytes, seed {seed}", name.display()),
            Box::new(move |bench: &Bench| {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut bytes = bench.whole[name].clone();
                let length = bytes.len().max(1);
                match seed {
                    0 => bytes.truncate(length / 2),
                    1 => bytes.extend(vec![b'x'; 1000]),
                    2 => bytes.extend(bytes.clone()),
                    _ => (0..=seed).for_each(|_| {
                        let at = random.usize(0..length);
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte ^= 1 << random.u32(0..8);
                        }
                    }),
                }
                fs_err::write(bench.dataset().join(name), bytes).unwrap();
            }),
        )
    };
    seeds.map(change).collect()
}

/// Names, sizes and numbers of the manifest.
fn manifests() -> Vec<(String, Change<'static>)> {
    let mut all: Vec<(String, Change<'static>)> = Vec::new();
    let mut add = |title: String, change: Box<dyn Fn(&mut Value)>| {
        all.push((format!("manifest: {title}"), Box::new(move |bench: &Bench| bench.json(&*change))));
    };
    for name in ["../../../victim", "/victim", "..", "", "a/b", "\u{1b}[2J"] {
        for key in ["name", "version"] {
            add(format!("{key} {name:?}"), Box::new(move |all| all[key] = json!(name)));
        }
        add(
            format!("a subset defined as {name:?}"),
            Box::new(move |all| all["subsets"]["top"]["definition"]["name"] = json!(name)),
        );
        for map in ["subsets", "trees", "environments", "sources"] {
            add(
                format!("{map} with the key {name:?}"),
                Box::new(move |all| {
                    let first = all[map].as_object().unwrap().values().next().unwrap().clone();
                    all[map][name] = first;
                }),
            );
        }
        add(format!("a tree at {name:?}"), Box::new(move |all| all["trees"]["made/up0"] = json!(name)));
        add(
            format!("an environment at {name:?}"),
            Box::new(move |all| all["environments"]["made/up0"]["directory"] = json!(name)),
        );
        add(format!("a file {name:?}"), Box::new(move |all| all["files"][name] = json!("0")));
    }
    for number in
        [json!(0), json!(-1), json!(1e300), json!(u64::MAX), json!(20_000_000), json!("many"), json!([1])]
    {
        for place in [
            "/format_version",
            "/counts/rows/instances",
            "/counts/rows/attempts",
            "/hard_subset/per_axis",
            "/subsets/top/size",
            "/counts/total/cases",
        ] {
            let number = number.clone();
            add(
                format!("{place} {number}"),
                Box::new(move |all| *all.pointer_mut(place).unwrap() = number.clone()),
            );
        }
    }
    for (place, value) in [
        ("/config/screen/group_timeout", json!("999999999h")),
        ("/config/screen/case_timeout", json!("999999h")),
        ("/config/repos", json!([{ "slug": "made/up0", "git": 7 }])),
        ("/config", json!([])),
    ] {
        add(
            format!("{place} {value}"),
            Box::new(move |all| *all.pointer_mut(place).unwrap() = value.clone()),
        );
    }
    all
}

/// Rows that lead elsewhere, and tables that unpack to more than there is.
fn rows() -> Vec<(String, Change<'static>)> {
    let mut all: Vec<(String, Change<'static>)> = Vec::new();
    for (key, value) in [
        ("place", json!("https://user:word@registry.example.org/x")),
        ("place", json!("../../victim")),
        ("tag", json!("1 --privileged")),
        ("digest", json!("latest")),
        ("architecture", json!("$(touch y)")),
        ("tree_sha256", json!("of another tree")),
    ] {
        all.push((
            format!("images.json: {key} {value}"),
            Box::new(move |bench: &Bench| {
                let mut images: Value =
                    serde_json::from_slice(&bench.whole[Path::new(images::FILE)]).unwrap();
                for image in images["images"].as_object_mut().unwrap().values_mut() {
                    image[0][key] = value.clone();
                }
                fs_err::write(bench.dataset().join(images::FILE), images.to_string()).unwrap();
            }),
        ));
    }
    for (key, value) in [
        ("instance_id", json!("../../2/instances")),
        ("slug", json!("../up")),
        ("slug", json!("made/other")),
        ("group_id", json!("")),
        ("expected", json!(["{"])),
        ("image", json!("x; touch y")),
        ("tier", json!("impossible")),
        ("trace_length", json!(u64::MAX)),
        ("files", json!(vec!["x"; 100_000])),
        ("environment", json!("../../..")),
    ] {
        all.push((
            format!("a row: {key}"),
            Box::new(move |bench: &Bench| bench.lines(&|row| row[key] = value.clone())),
        ));
    }
    for table in ["instances", "groups", "cases", "attempts", "traces"] {
        all.push((
            format!("{table}: many rows at once"),
            Box::new(move |bench: &Bench| {
                bench.frame(table, &|frame| {
                    let times = (1 << 18) / frame.height() + 1;
                    let (name, rows) = (frame.columns()[0].name().clone(), frame.height() * times);
                    StringChunked::full(name, "x", rows).into_series().into_frame()
                });
            }),
        ));
        all.push((
            format!("{table}: one long text often"),
            Box::new(move |bench: &Bench| {
                let long = "x".repeat(100_000);
                bench.frame(table, &|frame| {
                    let columns = frame.columns().iter().map(|column| {
                        if column.dtype() == &DataType::String {
                            StringChunked::full(column.name().clone(), &long, 12_000)
                                .into_series()
                                .into_column()
                        } else {
                            Column::new_empty(column.name().clone(), column.dtype())
                                .extend_constant(AnyValue::Null, 12_000)
                                .unwrap()
                        }
                    });
                    DataFrame::new(12_000, columns.collect()).unwrap()
                });
            }),
        ));
    }
    all
}

#[test]
#[ignore = "takes minutes"]
fn a_hostile_dataset_costs_a_message_and_nothing_else() {
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let number = std::thread::scope(|scope| {
        let worker = |at: usize| scope.spawn(move || a_part_of_them(at, workers));
        let all: Vec<_> = (0..workers).map(worker).collect();
        all.into_iter().map(|one| one.join().unwrap()).max()
    });
    assert!(number >= Some(300), "{number:?}");
}

/// Makes every so many-th change in a dataset of its own; gives how many there are.
fn a_part_of_them(at: usize, workers: usize) -> usize {
    let bench = Bench::new();
    let names: Vec<PathBuf> = bench.whole.keys().cloned().collect();
    let mut changes: Vec<(String, Change<'_>)> = names.iter().flat_map(|name| other_kinds(name)).collect();
    changes.extend(names.iter().flat_map(|name| other_bytes(name)));
    changes.extend(manifests());
    changes.extend(rows());
    bench.restore();
    for (command, run) in COMMANDS {
        run(&bench.dataset(), &bench.path("out")).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
    for (title, change) in changes.iter().skip(at).step_by(workers) {
        bench.restore();
        change(&bench);
        let before = bench.outside();
        let is_as_it_was = bench.is_as_it_was();
        // What is said to be wrong may be a matter of the manifest's own words, which `verify` alone holds against each other.
        let mut is_told = false;
        for (command, run) in COMMANDS {
            let (dataset, out) = (bench.dataset(), bench.path("out"));
            let (sender, receiver) = channel();
            let thread = std::thread::spawn(move || sender.send(run(&dataset, &out)));
            match receiver.recv_timeout(LONGEST) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    assert!(!error.to_string().is_empty(), "{title}: {command} says nothing");
                    is_told = true;
                }
                Err(RecvTimeoutError::Timeout) => panic!("{title}: {command} does not end"),
                Err(RecvTimeoutError::Disconnected) => panic!("{title}: {command} panics"),
            }
            drop(thread.join());
        }
        assert_eq!(before, bench.outside(), "{title}: something else was written");
        assert!(is_told || is_as_it_was, "{title}: nothing is said");
    }
    changes.len()
}
