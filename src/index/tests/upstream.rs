//! A small server that plays an index, and a door to ask it through.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use super::super::*;
use crate::backend::{Connection, Service};

/// What the server says to a path.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

pub(super) fn said(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Said {
    Said { status, headers: vec![("Content-Type", content_type.to_owned())], body: body.into() }
}

pub(super) fn json(body: impl Into<Vec<u8>>) -> Said {
    said(200, "application/vnd.pypi.simple.v1+json", body)
}

pub(super) fn redirect(location: String) -> Said {
    Said { status: 302, headers: vec![("Location", location)], body: Vec::new() }
}

/// A path and the login that came with it.
type Question = (String, Option<String>);

/// A server that lives as long as the program, and what it was asked: path and login.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub address: SocketAddr,
    says: Arc<Mutex<BTreeMap<String, Said>>>,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Server {
    pub(super) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let server = Server { address, says: Arc::default(), asked: Arc::default() };
        let own = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(std::result::Result::ok) {
                let server = own.clone();
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        server
    }

    pub(super) fn says(&self, path: &str, said: Said) {
        self.says.lock().expect("no panic").insert(path.to_owned(), said);
    }

    pub(super) fn asked(&self) -> Vec<Question> {
        self.asked.lock().expect("no panic").clone()
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let lines: Vec<String> = (&mut reader)
                .lines()
                .map_while(std::result::Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else { return };
            let login = lines.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
            });
            self.asked.lock().expect("no panic").push((path.to_owned(), login));
            let missing = || said(404, "text/plain", "s3cret upstream words");
            let said = self.says.lock().expect("no panic").get(path).cloned().unwrap_or_else(missing);
            let mut answer =
                format!("HTTP/1.1 {} Words\r\nContent-Length: {}\r\n", said.status, said.body.len());
            for (name, value) in said.headers {
                answer.extend([name, ": ", &value, "\r\n"]);
            }
            let mut bytes = format!("{answer}X-Upstream: s3cret\r\n\r\n").into_bytes();
            bytes.extend(said.body);
            if (&*stream).write_all(&bytes).is_err() {
                return;
            }
        }
    }
}

/// One file of a JSON page.
pub(super) fn file(filename: &str, url: &str, content: &[u8], more: &str) -> String {
    let hash = sha256(content);
    format!(r#"{{"filename": "{filename}", "url": "{url}", "hashes": {{"sha256": "{hash}"}}{more}}}"#)
}

pub(super) fn page(files: &[String]) -> Said {
    json(format!(r#"{{"files": [{}]}}"#, files.join(",")))
}

/// Indexes of a user with these variables, and the folder that files are stored in.
pub(super) fn index(variables: &[(&str, String)]) -> (tempfile::TempDir, Arc<Index>) {
    let folder = tempfile::tempdir().expect("a folder");
    let index = index_at(variables, folder.path());
    (folder, index)
}

pub(super) fn index_at(variables: &[(&str, String)], folder: &std::path::Path) -> Arc<Index> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let settings = Settings::of(&variables).expect("valid settings");
    Arc::new(Index::new(settings, folder.to_owned()).expect("an index"))
}

/// What a door answers.
#[derive(Debug)]
pub(super) struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Got {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Asks a door over a connection of its own.
pub(super) fn ask(door: &Door, path: &str) -> Got {
    let (here, there) = UnixStream::pair().expect("a pair");
    ask_over(door, here, Connection::Unix(there), path)
}

pub(super) fn ask_over(door: &Door, mut here: impl Read + Write, there: Connection, path: &str) -> Got {
    std::thread::scope(|scope| {
        scope.spawn(|| door.serve(there));
        write!(here, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").expect("asked");
        let mut answer = Vec::new();
        here.read_to_end(&mut answer).expect("answered");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).expect("text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Got { status, head, body: answer[end + 4..].to_vec() }
    })
}
