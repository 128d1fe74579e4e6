//! Engines that cannot be used: one clear message each, the way out, exit code 3.

use std::io::{Read, Write};

use crate::common::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    crate::in_containers(&bench, "", "", &["small_and_good"]);
    bench
}

#[track_caller]
fn refused(bench: &Bench, host: &str, said: &str, hint: &str) {
    let mut command = bench.gistmill(&["build", "repos.toml"]);
    command.env("DOCKER_HOST", host);
    let ended = crate::common::Running::start(command).wait().with_code(3);
    assert!(ended.stderr.contains(said), "`{said}` is not in {}", ended.stderr);
    assert!(ended.stderr.contains(hint), "`{hint}` is not in {}", ended.stderr);
    assert!(!bench.path().join("output/trees/1").exists(), "half a dataset was written");
}

pub fn without_an_engine_the_way_out_is_told() {
    let bench = bench();
    let socket = bench.path().join("nothing.sock");
    refused(
        &bench,
        &format!("unix://{}", socket.display()),
        "no Docker engine answers at unix://",
        "hint: DOCKER_HOST names this address",
    );
    refused(&bench, "tcp://127.0.0.1:1", "no Docker engine answers at tcp://127.0.0.1:1", "DOCKER_HOST");
}

pub fn an_engine_that_is_too_old_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let (mut asked, mut buffer) = (Vec::new(), [0; 4096]);
            while !asked.ends_with(b"\r\n\r\n")
                && let Ok(length @ 1..) = stream.read(&mut buffer)
            {
                asked.extend_from_slice(&buffer[..length]);
            }
            let body = r#"{"Version":"1.11.2","ApiVersion":"1.23","MinAPIVersion":"1.12"}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    refused(&bench(), &format!("tcp://{address}"), "is too old: it speaks API 1.23", "update the engine");
}

pub fn a_base_that_is_not_there_is_named() {
    let bench = bench();
    let path = bench.path().join("repos.toml");
    let text = std::fs::read_to_string(&path).expect("was written");
    bench.write_config(&text.replace(&crate::base(), "localhost:1/nobody/has-this:1"));
    let ended = bench.build(&[]).with_code(3);
    assert!(
        ended.stderr.contains("the base image localhost:1/nobody/has-this:1 is not in the engine"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("hint: name another with `base`"), "{}", ended.stderr);
}
