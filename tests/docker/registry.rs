//! Images in a registry: Debian's `docker-registry`, on the loopback of this machine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::images::with_built;

/// Why there is no registry here; none when there is one.
pub fn no_registry() -> Option<String> {
    let found = Command::new("docker-registry").arg("--version").stdout(Stdio::null()).status().is_ok();
    (!found).then(|| "there is no program docker-registry (Debian's package of that name)".to_owned())
}

struct Registry {
    child: Child,
    host: String,
    _folder: tempfile::TempDir,
}

impl Registry {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let place = folder.path().display();
        let text = format!(
            "version: 0.1\nstorage:\n  filesystem: {{rootdirectory: {place}}}\n  delete: {{enabled: true}}\nhttp: {{addr: \"{host}\"}}\n"
        );
        let config = folder.path().join("config.yml");
        std::fs::write(&config, text).unwrap();
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&host).is_err() {
            assert!(Instant::now() < deadline, "the registry does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Registry { child, host, _folder: folder }
    }

    /// One request; gives status and body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let kind = "application/vnd.docker.distribution.manifest.v2+json";
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAccept: {kind}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}",
            self.host
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn pushed_images_are_checked() {
    with_built(|bench| {
        let registry = Registry::start();
        let (dataset, prefix) = ("output/trees/1", format!("{}/me", registry.host));
        let dead = bench.run(&["image", "push", dataset, "--registry", "127.0.0.1:1/me"]).with_code(3);
        assert!(dead.stderr.contains("cannot reach the registry 127.0.0.1:1"), "{}", dead.stderr);
        bench.run(&["image", "push", dataset, "--registry", &prefix]).with_code(0);
        let again = bench.run(&["image", "push", dataset, "--registry", &prefix]).with_code(0);
        assert!(again.stdout.contains("already there"), "{}", again.stdout);
        let check = || bench.run(&["image", "check", dataset, "--registry", &prefix, "--format", "json"]);
        let state = |text: &str| -> serde_json::Value {
            let all: serde_json::Value = serde_json::from_str(text).unwrap();
            all["images"][0].clone()
        };
        let found = state(&check().with_code(0).stdout);
        assert_eq!(found["state"], "available");
        let (tag, digest) = (found["tag"].as_str().unwrap(), found["digest"].as_str().unwrap());
        let name = found["image"].as_str().unwrap().split_once('/').unwrap().1;
        let of = |reference: &str| format!("/v2/{name}/manifests/{reference}");
        let (_, manifest) = registry.ask("GET", &of(tag), "");
        assert_eq!(registry.ask("PUT", &of(tag), &format!("{manifest}\n")).0, 201);
        assert_eq!(state(&check().with_code(1).stdout)["state"], "retagged");
        assert_eq!(registry.ask("DELETE", &of(digest), "").0, 202);
        assert_eq!(state(&check().with_code(1).stdout)["state"], "missing");
        bench.run(&["export", dataset, "--to", "swe-agent", "--output", "out"]).with_code(0);
        let rows = std::fs::read_to_string(bench.path().join("out/swe-agent.jsonl")).unwrap();
        assert!(rows.lines().all(|row| row.contains(&format!("{name}@{digest}"))), "{rows}");
        std::fs::remove_file(bench.path().join(dataset).join("images.json")).unwrap();
    });
}
