//! The same over HTTP: `POST /score`, `GET /healthz`, `GET /metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::LARGEST_REQUEST;
use super::desk::Desk;
use super::fair::Client;
use super::wire::{self, Answer, Asked, One};
use crate::error::{Error, Result};
use crate::interrupt::{self, Waiting};

/// Connections at the same time.
const MOST_CONNECTIONS: usize = 512;
/// What the head of a request may take, and a connection that says nothing.
const HEAD: Duration = Duration::from_mins(1);
/// What the rest of a request may take.
const BODY: Duration = Duration::from_mins(1);
/// Bytes of requests that are being read, of all connections.
const MOST_READ: usize = 256 << 20;
/// Time between two looks whether a stop was asked for.
const LOOK: Duration = Duration::from_millis(100);
/// What connections get to take their last answers.
const LAST: Duration = Duration::from_secs(5);

type Answered = Response<Full<Bytes>>;

/// Room for requests that are being read.
static ROOM: Semaphore = Semaphore::const_new(MOST_READ);

/// Serves until a stop is asked for; `ready` hears of the address.
///
/// # Errors
/// The machine's: the address cannot be used.
pub(super) fn serve(desk: &Arc<Desk>, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Error::from(error).at("cannot serve HTTP"))?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Error::machine(format!("cannot listen at {address}: {error}"))
                .with_hint("name another address with --listen; port 0 takes one that is free")
        })?;
        ready(listener.local_addr().map_err(Error::from)?);
        accept(desk, &listener).await;
        desk.close();
        // Whoever waits hears that the judge ends.
        let until = Instant::now() + LAST;
        while desk.load() != (0, 0, 0) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(LOOK).await;
        Ok(())
    });
    runtime.shutdown_timeout(LAST);
    ended
}

async fn accept(desk: &Arc<Desk>, listener: &TcpListener) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while !interrupt::requested() {
        let Ok(Ok(place)) = tokio::time::timeout(LOOK, Arc::clone(&places).acquire_owned()).await else {
            continue;
        };
        match tokio::time::timeout(LOOK, listener.accept()).await {
            Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!("a connection is not taken: {error}");
                tokio::time::sleep(LOOK).await;
            }
            Ok(Ok((stream, _))) => {
                let desk = Arc::clone(desk);
                tokio::spawn(async move {
                    talk(desk, stream).await;
                    drop(place);
                });
            }
        }
    }
}

/// Answers one client until it leaves.
async fn talk(desk: Arc<Desk>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let address = stream.local_addr().ok();
    let client = desk.client();
    let service = service_fn(|request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(answer(&desk, client, address, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection ended: {error}");
    }
}

async fn answer(
    desk: &Desk,
    client: Client,
    address: Option<SocketAddr>,
    request: Request<Incoming>,
) -> Answered {
    if !desk.settings.is_public && !is_for_here(request.headers(), address) {
        let message = "this judge answers whoever names it by its own address";
        return json_answer(StatusCode::FORBIDDEN, wire::bad(None, message));
    }
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/score") => score(desk, client, request).await,
        (&Method::GET, "/healthz") => health(desk),
        (&Method::GET, "/metrics") => answered(StatusCode::OK, "text/plain; version=0.0.4", desk.metrics()),
        (_, "/score" | "/healthz" | "/metrics") => json_answer(
            StatusCode::METHOD_NOT_ALLOWED,
            wire::bad(None, "POST /score, GET /healthz, GET /metrics"),
        ),
        _ => json_answer(StatusCode::NOT_FOUND, wire::bad(None, "POST /score, GET /healthz, GET /metrics")),
    }
}

/// Whether the request names this machine itself: a page in a browser that was led here names another one.
fn is_for_here(headers: &HeaderMap, address: Option<SocketAddr>) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let own = address.map(|address| address.ip().to_string());
    name.eq_ignore_ascii_case("localhost") || own.as_deref() == Some(name)
}

fn health(desk: &Desk) -> Answered {
    let (waiting, running, _) = desk.load();
    let settings = &desk.settings;
    let is_ending = interrupt::requested();
    let text = json!({
        "status": if is_ending { "stopping" } else { "ok" },
        "dataset": settings.dataset,
        "version": settings.version,
        "instances": settings.instances.len(),
        "waiting": waiting,
        "running": running,
    });
    let code = if is_ending { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    json_answer(code, text.to_string())
}

async fn score(desk: &Desk, client: Client, request: Request<Incoming>) -> Answered {
    let (bytes, room) = match body(request).await {
        Ok(read) => read,
        Err((code, message)) => return json_answer(code, wire::bad(None, message)),
    };
    let asked = wire::read(&bytes);
    drop((bytes, room));
    match asked {
        Ok(Asked::One(one)) => {
            let answer = judged(desk, client, one).await;
            let code = StatusCode::from_u16(answer.kind.code()).unwrap_or(StatusCode::OK);
            json_answer(code, answer.line())
        }
        Ok(Asked::Many(id, all)) => {
            // All of them wait before the first is answered.
            let all: Vec<_> = all.into_iter().map(|one| Asking::new(desk, client, one)).collect();
            let mut answers = Vec::new();
            for asking in all {
                answers.push(asking.answer().await);
            }
            json_answer(StatusCode::OK, wire::many(id.as_ref(), &answers))
        }
        Err((id, message)) => json_answer(StatusCode::BAD_REQUEST, wire::bad(id.as_ref(), &message)),
    }
}

/// Why a request is not read.
type Refused = (StatusCode, &'static str);

const LARGE: Refused = (StatusCode::PAYLOAD_TOO_LARGE, "a request has 16 MiB at most");

/// Reads what was sent, in bounds.
async fn body(
    request: Request<Incoming>,
) -> std::result::Result<(Vec<u8>, Option<SemaphorePermit<'static>>), Refused> {
    let headers = request.headers();
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type has to be application/json"));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > LARGEST_REQUEST as u64) {
        return Err(LARGE);
    }
    tokio::time::timeout(BODY, gathered(request.into_body(), &ROOM))
        .await
        .unwrap_or(Err((StatusCode::REQUEST_TIMEOUT, "the request did not come within a minute")))
}

/// All of a body, and the room that it takes.
async fn gathered<'r, B>(
    body: B,
    room: &'r Semaphore,
) -> std::result::Result<(Vec<u8>, Option<SemaphorePermit<'r>>), Refused>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = Limited::new(body, LARGEST_REQUEST);
    let (mut bytes, mut taken) = (Vec::new(), None::<SemaphorePermit<'r>>);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                LARGE
            } else {
                (StatusCode::BAD_REQUEST, "the request is not whole")
            }
        })?;
        let Ok(data) = frame.into_data() else { continue };
        // Room is taken by what has come: whoever announces much and sends little holds up nobody.
        let more = u32::try_from(data.len()).ok().and_then(|size| room.try_acquire_many(size).ok());
        let more = more.ok_or((
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large requests are being read: hand this one in again in a moment",
        ))?;
        match &mut taken {
            Some(taken) => taken.merge(more),
            None => taken = Some(more),
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, taken))
}

/// A submission that somebody waits for. Whoever leaves drops it, and then it is not judged.
struct Asking {
    waiting: Waiting,
    answer: oneshot::Receiver<Answer>,
}

impl Asking {
    fn new(desk: &Desk, client: Client, one: One) -> Self {
        let (sender, answer) = oneshot::channel();
        let waiting = desk.take(client, one, Box::new(move |answer| drop(sender.send(answer))));
        Asking { waiting, answer }
    }

    async fn answer(mut self) -> Answer {
        // The desk answers whatever it took in.
        (&mut self.answer).await.unwrap_or_else(|_| Answer {
            id: None,
            instance: String::new(),
            took: Duration::ZERO,
            kind: wire::Kind::Stopping,
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.waiting.leave();
    }
}

async fn judged(desk: &Desk, client: Client, one: One) -> Answer {
    Asking::new(desk, client, one).answer().await
}

fn json_answer(code: StatusCode, text: String) -> Answered {
    let mut answer = answered(code, "application/json", text + "\n");
    if code == StatusCode::TOO_MANY_REQUESTS || code == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().insert(RETRY_AFTER, hyper::header::HeaderValue::from_static("1"));
    }
    answer
}

fn answered(code: StatusCode, kind: &'static str, text: String) -> Answered {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_read_at_the_same_time_is_bounded_and_the_room_comes_back() {
        let room = Semaphore::new(10);
        let whole = |text: &'static str| Full::new(Bytes::from_static(text.as_bytes()));
        let (bytes, held) = gathered(whole("12345678"), &room).await.unwrap();
        assert_eq!((bytes.as_slice(), room.available_permits()), (b"12345678".as_slice(), 2));
        assert_eq!(gathered(whole("123"), &room).await.unwrap_err().0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(gathered(whole("12"), &room).await.is_ok());
        drop(held);
        assert!(gathered(whole("123"), &room).await.is_ok() && room.available_permits() == 10);
    }

    #[test]
    fn a_request_has_to_name_this_machine() {
        let at: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let for_here = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            is_for_here(&headers, Some(at))
        };
        for host in ["127.0.0.1:8642", "localhost", "LOCALHOST:1", "127.0.0.1"] {
            assert!(for_here(host), "{host}");
        }
        for host in ["example.org", "example.org:80", "127.0.0.1.example.org:80", "", "10.0.0.1:80"] {
            assert!(!for_here(host), "{host}");
        }
        assert!(!is_for_here(&HeaderMap::new(), Some(at)));
        let mut six = HeaderMap::new();
        six.insert(HOST, "[::1]:80".parse().unwrap());
        assert!(is_for_here(&six, "[::1]:80".parse().ok()));
    }
}
