//! The little of HTTP/1.1 that uv needs of a server: requests without a body, one after the other on a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

/// Bytes of a request that are read at most.
const HEAD_BYTES: u64 = 32 << 10;
const HEADERS: usize = 64;

/// What a job asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Whether only the head of the answer is wanted.
    pub is_head: bool,
    /// As it stands in the request, without a query.
    pub path: String,
}

/// What a job is told.
#[derive(Debug)]
pub(super) struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Body,
    /// Whether the same address will always mean the same content.
    pub is_immutable: bool,
}

#[derive(Debug)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    File(PathBuf),
    /// Not known before somebody wants it: the answer to a request for the head alone.
    Unknown,
}

impl Reply {
    /// Something that this run alone knows: nothing to keep.
    pub(super) fn bytes(status: u16, content_type: &'static str, body: Vec<u8>) -> Reply {
        Reply { status, content_type, body: Body::Bytes(body), is_immutable: false }
    }

    /// A refusal, in words that say nothing about what lies behind the door.
    pub(super) fn refusal(status: u16, words: &str) -> Reply {
        Reply::bytes(status, "text/plain", format!("{words}\n").into_bytes())
    }
}

/// Answers requests until the other side ends the connection, or says something that is no request.
pub(super) fn serve<S>(stream: &S, answer: &dyn Fn(&Request) -> Reply) -> io::Result<()>
where
    for<'a> &'a S: Read + Write,
{
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader)? {
        let mut writer = io::BufWriter::with_capacity(64 << 10, stream);
        let Some((request, goes_on)) = parse(&head) else {
            write_reply(
                &mut writer,
                &Reply::refusal(400, "this request is not answered here"),
                false,
                false,
            )?;
            return writer.flush();
        };
        write_reply(&mut writer, &answer(&request), request.is_head, goes_on)?;
        writer.flush()?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// The lines of a request up to the empty one; none at the end of the connection, or when there are too many.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut bounded = reader.take(HEAD_BYTES);
    loop {
        let before = head.len();
        bounded.read_until(b'\n', &mut head)?;
        match &head[before..] {
            b"\r\n" | b"\n" => return Ok(Some(head)),
            line if line.ends_with(b"\n") => {}
            _ if head.is_empty() => return Ok(None),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A request, and whether another one may follow; none when it is not one that is answered here.
fn parse(head: &[u8]) -> Option<(Request, bool)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).ok()?.is_complete() {
        return None;
    }
    let is_head = match request.method? {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let mut goes_on = request.version? == 1;
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).ok()?.trim();
        match header.name.to_ascii_lowercase().as_str() {
            "connection" if value.eq_ignore_ascii_case("close") => goes_on = false,
            // What follows would be taken for the next request.
            "transfer-encoding" => return None,
            "content-length" if value != "0" => return None,
            _ => {}
        }
    }
    let path = request.path?.split('?').next().unwrap_or_default().to_owned();
    Some((Request { is_head, path }, goes_on))
}

fn write_reply(writer: &mut impl Write, reply: &Reply, is_head: bool, goes_on: bool) -> io::Result<()> {
    let (length, mut file) = match &reply.body {
        Body::Bytes(bytes) => (Some(bytes.len() as u64), None),
        Body::File(path) => {
            let file = fs_err::File::open(path)?;
            (Some(file.metadata()?.len()), Some(file))
        }
        Body::Unknown => (None, None),
    };
    write!(writer, "HTTP/1.1 {} {}\r\n", reply.status, reason(reply.status))?;
    write!(writer, "Content-Type: {}\r\n", reply.content_type)?;
    let caching = if reply.is_immutable { "max-age=31536000, immutable" } else { "no-store" };
    write!(writer, "Cache-Control: {caching}\r\n")?;
    if let Some(length) = length {
        write!(writer, "Content-Length: {length}\r\n")?;
    }
    write!(writer, "Connection: {}\r\n\r\n", if goes_on { "keep-alive" } else { "close" })?;
    if is_head {
        return Ok(());
    }
    if let Body::Bytes(bytes) = &reply.body {
        writer.write_all(bytes)?;
    }
    if let (Some(file), Some(length)) = (&mut file, length)
        && io::copy(&mut file.take(length), writer)? < length
    {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        422 => "Unprocessable Content",
        502 => "Bad Gateway",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What a server answers to some bytes.
    fn talk(said: &[u8]) -> String {
        let (mut here, there) = UnixStream::pair().expect("a pair");
        here.write_all(said).expect("written");
        here.shutdown(std::net::Shutdown::Write).expect("ended");
        let server = std::thread::spawn(move || {
            serve(&there, &|request| Reply::bytes(200, "text/plain", request.path.clone().into_bytes()))
        });
        let mut answer = Vec::new();
        // Whatever it has not read is thrown away with the connection.
        let _ = here.read_to_end(&mut answer);
        let _ = server.join().expect("no panic");
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn requests_are_answered_one_after_the_other() {
        let answer = talk(b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\nHEAD /bc HTTP/1.1\r\n\r\nGET /d HTTP/1.1\r\nConnection: close\r\n\r\nGET /e HTTP/1.1\r\n\r\n");
        let bodies: Vec<&str> = answer.split("\r\n\r\n").collect();
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{answer}");
        assert!(bodies[1].starts_with("/aHTTP/1.1") && bodies[1].ends_with("Connection: keep-alive"));
        assert!(bodies[1].contains("Content-Length: 3"), "the length of `/bc`: {answer}");
        assert!(bodies[3] == "/d" && bodies[2].ends_with("Connection: close"), "{answer}");
    }

    #[test]
    fn what_is_no_request_ends_the_connection() {
        for said in [
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "GET / HTTP/1.1\r\nContent-Length: 24\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            let answer = talk(said.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 "), "{said}: {answer}");
            assert!(!answer.contains("smuggled"), "{said}");
        }
        assert_eq!(talk(b""), "");
        assert_eq!(talk(b"GET / HT"), "");
        assert_eq!(talk("x".repeat(100_000).as_bytes()), "");
    }
}
