//! The contract of an image, and what is kept of images.

use crate::common::Bench;
use crate::common::dataset::text;
use crate::docker;

const SETTINGS: &str = "[screen]\nattempts = 2";

fn built() -> Bench {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, &["small_and_good"]);
    bench.build(&[]).with_code(0);
    bench
}

fn image(bench: &Bench) -> (String, String) {
    let instance = bench.dataset().instances().remove(0);
    (text(&instance["image"]).to_owned(), text(&instance["image_id"]).to_owned())
}

pub fn an_image_keeps_the_contract() {
    let bench = built();
    let (tag, id) = image(&bench);
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
    // The same files give the same image.
    docker(&["rmi", "--force", &tag]);
    bench.build(&[]).with_code(0);
    assert_eq!(image(&bench), (tag, id));
}

pub fn a_saved_image_is_loaded_with_the_same_id() {
    let bench = built();
    let (tag, id) = image(&bench);
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

pub fn the_budget_evicts_what_was_used_longest_ago() {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, &["small_and_good", "slow_enough_to_interrupt"]);
    let path = bench.path().join("repos.toml");
    let text = std::fs::read_to_string(&path).expect("was written");
    bench.write_config(&text.replace("[docker]\n", "[docker]\ndisk_budget = \"1MiB\"\n"));
    let ended = bench.build(&["--until", "collect"]).with_code(0);
    assert!(ended.stderr.contains("removed the image gistmill/trees__small_and_good"), "{}", ended.stderr);
    let listed = bench.run(&["image", "list"]).with_code(0);
    assert!(!listed.stdout.contains("small_and_good"), "{}", listed.stdout);
    // It is made again for whoever needs it.
    bench.build(&["--only", "trees/small_and_good"]).with_code(0);
    assert_eq!(bench.dataset().instances().len(), 3);
}
