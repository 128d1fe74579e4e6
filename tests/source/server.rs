//! HTTP servers on the loopback: git's own CGI program behind an optional login, or plain files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A server that runs until the test process ends.
pub struct Server {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A path and the login that came with it.
pub type Asked = (String, Option<String>);

struct Request {
    method: String,
    path: String,
    query: String,
    authorization: Option<String>,
    content_type: String,
    body: Vec<u8>,
}

impl Server {
    /// Serves the repositories below a directory; `login` is `user:password`. Needs the git program.
    pub fn git(root: &Path, login: Option<&str>) -> Server {
        let git = Command::new("git").arg("--version").stdout(Stdio::null()).status();
        assert!(git.is_ok_and(|status| status.success()), "this test needs the git program as a server");
        let root = root.to_owned();
        let expected = login.map(|login| format!("Basic {}", base64(login)));
        Server::start(move |request| match &expected {
            Some(expected) if request.authorization.as_ref() != Some(expected) => {
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\
                  Connection: close\r\n\r\n"
                    .to_vec()
            }
            _ => backend(&root, request),
        })
    }

    /// Sends whoever asks to the same path of another address.
    pub fn redirecting(to: String) -> Server {
        Server::start(move |request| {
            let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
            let location = format!("Location: {to}{}{query}\r\n", request.path.trim_start_matches('/'));
            answer("302 Found", &location, b"")
        })
    }

    /// Serves the files of a directory.
    pub fn files(root: &Path) -> Server {
        let root = root.to_owned();
        Server::start(move |request| match std::fs::read(root.join(request.path.trim_start_matches('/'))) {
            Ok(content) => answer("200 OK", "", &content),
            Err(_) => answer("404 Not Found", "", b"nothing here"),
        })
    }

    fn start(handle: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(request) = read_request(&stream) {
                    log.lock().unwrap().push((request.path.clone(), request.authorization.clone()));
                    let _ = stream.write_all(&handle(&request));
                }
            }
        });
        Server { port, asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn url_with(&self, login: &str, path: &str) -> String {
        format!("http://{login}@127.0.0.1:{}/{path}", self.port)
    }

    /// The same by a name, which credential helpers know.
    pub fn named(&self, path: &str) -> String {
        format!("http://localhost:{}/{path}", self.port)
    }

    /// How many requests there were so far.
    pub fn connections(&self) -> usize {
        self.asked().len()
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let (mut authorization, mut content_type, mut length) = (None, String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-type" => value.clone_into(&mut content_type),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, query, authorization, content_type, body })
}

fn backend(root: &PathBuf, request: &Request) -> Vec<u8> {
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", &request.content_type)
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&request.body).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let headers: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status:")).collect();
    let headers = headers.iter().fold(String::new(), |text, line| text + line + "\r\n");
    answer(&status, &headers, &output[(end + 4).min(output.len())..])
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut answer =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n")
            .into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = text.bytes().fold(String::new(), |bits, byte| bits + &format!("{byte:08b}"));
    let digit = |chunk: &[u8]| {
        let padded = format!("{:0<6}", std::str::from_utf8(chunk).unwrap());
        char::from(DIGITS[usize::from_str_radix(&padded, 2).unwrap()])
    };
    let mut encoded: String = bits.as_bytes().chunks(6).map(digit).collect();
    while !encoded.len().is_multiple_of(4) {
        encoded.push('=');
    }
    encoded
}
