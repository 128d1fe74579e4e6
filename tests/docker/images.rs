//! The contract of an image, and what is kept of images.

use std::sync::{Mutex, PoisonError};

use crate::common::Bench;
use crate::common::dataset::text;
use crate::docker;

const SETTINGS: &str = "[screen]\nattempts = 2";

/// A dataset and its image, which the tests of images share: they run one after the other.
static BUILT: Mutex<Option<Bench>> = Mutex::new(None);

pub fn with_built(test: impl FnOnce(&Bench)) {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = built.get_or_insert_with(|| {
        let bench = Bench::new();
        crate::in_containers(&bench, SETTINGS, "", &["small_and_good"]);
        bench
    });
    // Made in the first test, and again where one took the image away.
    bench.build(&[]).with_code(0);
    test(bench);
}

/// Removes what the tests share.
pub fn clean_up() {
    *BUILT.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn image(bench: &Bench) -> (String, String) {
    let instance = bench.dataset().instances().remove(0);
    (text(&instance["image"]).to_owned(), text(&instance["image_id"]).to_owned())
}

pub fn an_image_keeps_the_contract() {
    with_built(contract);
}

fn contract(bench: &Bench) {
    let (tag, id) = image(bench);
    // Trees with the same files share an image.
    let second = format!("gistmill/also-{}", tag.trim_start_matches("gistmill/"));
    docker(&["tag", &tag, &second]);
    // The label is on whatever somebody makes of an image, too.
    let theirs = format!("somebody/{}", tag.trim_start_matches("gistmill/"));
    docker(&["tag", &tag, &theirs]);
    let told = bench.run(&["clean", "--dry-run"]).with_code(0);
    let listed = bench.run(&["image", "list"]).with_code(0);
    docker(&["rmi", &second, &theirs]);
    for text in [&told.stdout, &listed.stdout] {
        assert!(text.contains(&tag) && !text.contains("somebody"), "{text}");
    }
    for name in [&tag, &second] {
        assert!(told.stdout.contains(&format!("would remove {name}\n")), "{}", told.stdout);
    }
    assert_eq!(docker(&["inspect", "--format", "{{.Id}}", &tag]), id);
    let run = |user: &str, words: &[&str]| {
        let start = ["run", "--rm", "--network", "none", "--user", user, &tag];
        docker(&[&start, words].concat())
    };
    for shell in ["-c", "-lc"] {
        assert_eq!(run("0", &["bash", shell, "command -v python"]), "/opt/venv/bin/python");
    }
    assert_eq!(
        run("0", &["bash", "-c", "git -C /testbed rev-list --all | wc -l; git -C /testbed remote; pwd"]),
        "1\n/testbed"
    );
    assert_eq!(run("1000:1000", &["git", "-C", "/testbed", "status", "--short"]), "");
    assert_eq!(run("0", &["bash", "-c", "command -v bash git tar | wc -l"]), "3");
    for instance in bench.dataset().instances() {
        let command = format!("cd /testbed && {}", text(&instance["entry_command"]));
        for user in ["0", "1000:1000", "4321:4321"] {
            run(user, &["bash", "-lc", &command]);
        }
    }
    // Nothing of the host, and nothing of gistmill.
    let config = docker(&["inspect", "--format", "{{json .Config}}", &tag]);
    let config: serde_json::Value = serde_json::from_str(&config).expect("is JSON");
    assert_eq!(config["Entrypoint"], serde_json::Value::Null);
    let environment = config["Env"].to_string().to_lowercase();
    for word in ["proxy", "ssl_cert", "index", "uv_"] {
        assert!(!environment.contains(word), "{environment}");
    }
    let found = run(
        "0",
        &["bash", "-c", "find / -xdev -iname '*gistmill*' -not -path '/proc/*' -not -path '/sys/*'"],
    );
    assert_eq!(found, "");
    pays_only_solutions(bench);
}

/// An export's judge says in the image what it pays.
fn pays_only_solutions(bench: &Bench) {
    bench.run(&["witness", "output/trees/1", "--containers"]).with_code(0);
    let export = |more: &[&str]| {
        let words =
            ["export", "output/trees/1", "--to", "harbor", "--output", "exported", "--format", "json"];
        let words = [&words[..], &["--receipt"], more].concat();
        bench.run(&words).with_code(0)
    };
    let told = export(&[]);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("is JSON");
    let (receipt, tasks) = (&told["receipt"], told["tasks"].as_u64().expect("is counted"));
    let file = std::fs::read(bench.path().join("exported/receipt.json")).expect("is written");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&file).expect("is JSON"), *receipt);
    assert_eq!(receipt["is_right"], true, "{receipt:#}");
    let of = receipt["tasks"].as_object().expect("has tasks");
    assert_eq!(of.len() as u64, tasks);
    let solutions = of.values().filter(|task| !task["paid"]["gold"].is_null()).count() as u64;
    assert!(solutions > 0 && Some(solutions) == told["solutions"].as_u64(), "{told:#}");
    for task in of.values() {
        let paid = task["paid"].as_object().expect("is a mapping");
        assert!(paid.len() >= 10, "{paid:?}");
        for (kind, one) in paid {
            assert_eq!(one["reward"], f64::from(kind == "gold"), "{kind}: {one}");
        }
    }
}

/// What the settings of the host hold, and no image may.
const MARK: &str = "only-the-host-knows-this";

pub fn an_image_has_nothing_of_the_host() {
    with_built(|bench| nothing_of_the_host(&image(bench)));
}

fn nothing_of_the_host(expected: &(String, String)) {
    docker(&["rmi", "--force", &expected.0]);
    // From nothing but downloads, so that the environment is built with those settings.
    let bench = Bench::with_downloads_only();
    crate::in_containers(&bench, SETTINGS, "", &["small_and_good"]);
    let variable = |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok());
    let certificates = variable(&["SSL_CERT_FILE", "PIP_CERT"])
        .unwrap_or_else(|| "/etc/ssl/certs/ca-certificates.crt".to_owned());
    let certificates = std::fs::read_to_string(certificates).expect("the host has certificates");
    let bundle = bench.path().join(format!("{MARK}.crt"));
    std::fs::write(&bundle, format!("{certificates}\n# {MARK}\n")).expect("can be written");
    let direct = variable(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let mut command = bench.gistmill(&["build", "repos.toml"]);
    command.env("SSL_CERT_FILE", &bundle).env("NO_PROXY", format!("{MARK}.example,{direct}"));
    command.env_remove("no_proxy");
    crate::common::Running::start(command).wait().with_code(0);
    // Built at another time and place, it is the same to the last bit.
    assert_eq!(&image(&bench), expected);
    let (tag, _) = expected;
    let search =
        format!("grep -r -l -F {MARK} / --exclude-dir=proc --exclude-dir=sys; find / -xdev -name '*{MARK}*'");
    assert_eq!(docker(&["run", "--rm", "--network", "none", "--user", "0", tag, "bash", "-c", &search]), "");
    for command in ["inspect", "history"] {
        assert!(!docker(&["image", command, tag]).contains(MARK), "docker image {command}");
    }
}

pub fn a_saved_image_is_loaded_with_the_same_id() {
    with_built(save_and_load);
}

fn save_and_load(bench: &Bench) {
    let (tag, id) = image(bench);
    bench.run(&["image", "save", &tag, "--output", "image.tar.gz"]).with_code(0);
    docker(&["rmi", "--force", &tag]);
    let loaded = bench.run(&["image", "load", "image.tar.gz"]).with_code(0);
    assert!(loaded.stdout.contains(&format!("{tag} {id}")), "{}", loaded.stdout);
    assert_eq!(docker(&["inspect", "--format", "{{.Id}}", &tag]), id);
    let listed = bench.run(&["image", "list"]).with_code(0);
    assert!(listed.stdout.contains(&tag), "{}", listed.stdout);
    std::fs::write(bench.path().join("none.tar.gz"), "nothing").expect("can be written");
    let refused = bench.run(&["image", "load", "none.tar.gz"]).with_code(2);
    assert!(refused.stderr.contains("none.tar.gz"), "{}", refused.stderr);
}
