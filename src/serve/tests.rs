//! The whole of it over a judge that does what the text says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::desk::Desk;
use super::wire::{Answer, One};
use super::*;
use crate::error::Error;

fn settings(slots: usize, queue: usize) -> Settings {
    Settings {
        dataset: "made-up".to_owned(),
        version: "1".to_owned(),
        instances: ["a", "b"].map(str::to_owned).into(),
        slots,
        queue,
        deadline: Duration::from_secs(20),
        is_public: false,
    }
}

/// `slow` waits until nobody waits for it, `breaks` panics, `lost` is lost; all else is judged.
fn judge(submitted: &Submitted) -> Result<Judgement> {
    match submitted.text.as_str() {
        "slow" => {
            while !submitted.waiting.is_over() {
                std::thread::sleep(Duration::from_millis(5));
            }
            return Err(Error::interrupted());
        }
        "breaks" => panic!("as it was told to"),
        "fails" => return Err(Error::machine("no memory")),
        _ => {}
    }
    let row = json!({ "instance_id": submitted.instance, "text": submitted.text }).to_string();
    let lost = (submitted.text == "lost").then(|| "no runner".to_owned());
    Ok(Judgement { row, evidence: submitted.evidence.then(|| "{}".to_owned()), lost, known: false })
}

/// A desk at which `slots` judge, until it is dropped.
struct Staffed {
    desk: Arc<Desk>,
    staff: Vec<std::thread::JoinHandle<()>>,
}

impl Staffed {
    fn new(slots: usize, queue: usize) -> Self {
        let desk = Arc::new(Desk::new(settings(slots, queue), Box::new(|| vec![("more", "More", 2.5)])));
        let mut staff: Vec<_> = (0..slots)
            .map(|_| {
                let desk = Arc::clone(&desk);
                std::thread::spawn(move || desk.work(&judge))
            })
            .collect();
        let watched = Arc::clone(&desk);
        staff.push(std::thread::spawn(move || watched.watch()));
        Staffed { desk, staff }
    }

    /// Hands texts in for an instance.
    fn ask(&self, client: u64, instance: &str, texts: &[&str], deadline_ms: u64) -> Receiver<Answer> {
        let (sender, answers) = channel();
        for (at, text) in texts.iter().enumerate() {
            let one = One {
                id: Some(at.into()),
                instance: instance.to_owned(),
                text: (*text).to_owned(),
                evidence: false,
                deadline: Some(Duration::from_millis(deadline_ms)),
            };
            let sender = sender.clone();
            self.desk.take(client, one, Box::new(move |answer| drop(sender.send(answer))));
        }
        answers
    }
}

impl Drop for Staffed {
    fn drop(&mut self) {
        self.desk.close();
        for one in self.staff.drain(..) {
            one.join().unwrap();
        }
    }
}

fn statuses(answers: &Receiver<Answer>, number: usize) -> Vec<&'static str> {
    let limit = Duration::from_secs(10);
    let mut all: Vec<Answer> = (0..number).map(|_| answers.recv_timeout(limit).unwrap()).collect();
    all.sort_by_key(|answer| answer.id.as_ref().and_then(Value::as_u64));
    all.iter().map(|answer| answer.kind.status()).collect()
}

#[test]
fn each_submission_has_its_own_answer_whatever_others_do() {
    let staffed = Staffed::new(2, 100);
    let answers = staffed.ask(1, "a", &["x", "breaks", "lost", "fails", "slow"], 2000);
    assert_eq!(statuses(&answers, 5), ["judged", "lost", "lost", "lost", "late"]);
    assert_eq!(statuses(&staffed.ask(1, "a", &["y"], 2000), 1), ["judged"]);
    assert_eq!(statuses(&staffed.ask(1, "c", &["x"], 300), 1), ["unknown-instance"]);
    let text = staffed.desk.metrics();
    for line in [
        "gistmill_answers_total{status=\"judged\"} 2",
        "gistmill_answers_total{status=\"lost\"} 3",
        "gistmill_judgement_seconds_count 2",
        "gistmill_running 0",
        "gistmill_more 2.5",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
}

#[test]
fn neither_one_client_nor_one_instance_stalls_the_others() {
    let staffed = Staffed::new(4, 1000);
    let slow = staffed.ask(1, "a", &["slow"; 50], 5000);
    std::thread::sleep(Duration::from_millis(50));
    let started = Instant::now();
    assert_eq!(statuses(&staffed.ask(2, "b", &["x"; 20], 5000), 20), ["judged"; 20]);
    // Another client of the same instance waits for it; the same client gets nothing more at once either.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(staffed.desk.load().1, 3, "all but one slot, as nobody else waited");
    let more = staffed.ask(3, "a", &["slow"; 50], 5000);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(staffed.desk.load().1, 3, "nor has an instance the last one");
    assert_eq!(statuses(&staffed.ask(3, "b", &["x"], 5000), 1), ["judged"]);
    assert_eq!((statuses(&slow, 50), statuses(&more, 50)), (vec!["late"; 50], vec!["late"; 50]));
}

#[test]
fn a_full_queue_refuses_whoever_filled_it_and_has_a_place_for_others() {
    let staffed = Staffed::new(1, 8);
    let running = staffed.ask(0, "b", &["slow"], 2000);
    std::thread::sleep(Duration::from_millis(100));
    let greedy = staffed.ask(1, "a", &["x"; 20], 2000);
    let other = staffed.ask(2, "a", &["x"], 2000);
    assert_eq!(statuses(&running, 1), ["late"]);
    let greedy = statuses(&greedy, 20);
    assert_eq!(greedy.iter().filter(|status| **status == "busy").count(), 16, "{greedy:?}");
    assert_eq!(statuses(&other, 1), ["judged"]);
}

#[test]
fn one_client_fills_no_more_than_half_of_the_bytes() {
    let desk = Desk::new(settings(1, 1000), Box::new(Vec::new));
    let (sender, answers) = channel();
    let ask = |client: u64| {
        let text = "x".repeat(16 << 20);
        let one = One { id: None, instance: "a".to_owned(), text, evidence: false, deadline: None };
        let sender = sender.clone();
        desk.take(client, one, Box::new(move |answer| drop(sender.send(answer))));
    };
    (0..10).for_each(|_| ask(1));
    (0..4).for_each(|_| ask(2));
    assert_eq!(desk.load().0, 12);
    assert_eq!(statuses(&answers, 2), ["busy"; 2], "the first client alone");
}

#[test]
fn whoever_leaves_is_not_judged_for() {
    let staffed = Staffed::new(1, 8);
    let (sender, answers) = channel();
    let ask = |text: &str| {
        let sender = sender.clone();
        let (instance, text) = ("a".to_owned(), text.to_owned());
        let one = One { id: None, instance, text, evidence: false, deadline: None };
        staffed.desk.take(1, one, Box::new(move |answer| drop(sender.send(answer))))
    };
    let (first, second) = (ask("slow"), ask("x"));
    std::thread::sleep(Duration::from_millis(100));
    second.leave();
    first.leave();
    assert_eq!(statuses(&answers, 2), ["late"; 2]);
    assert_eq!(staffed.desk.load(), (0, 0, 0));
}

/// A server; the thread lives as long as the test program, as only a stop ends it.
fn served() -> SocketAddr {
    let (sender, address) = channel();
    std::thread::spawn(move || {
        let door = Door::Http(
            "127.0.0.1:0".parse().unwrap(),
            Box::new(move |address| sender.send(address).unwrap()),
        );
        serve(settings(2, 100), door, &judge, Box::new(Vec::new)).unwrap();
    });
    address.recv_timeout(Duration::from_secs(10)).unwrap()
}

fn request(address: SocketAddr, head: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let length = if head.contains("content-length") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    stream.write_all(format!("{head}\r\nconnection: close\r\n{length}\r\n").as_bytes()).unwrap();
    let _ = stream.write_all(body);
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
    (code, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

const POST: &str = "POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";

#[test]
fn http_answers_well_meant_and_hostile_requests() {
    let address = served();
    let post = |value: &Value| request(address, POST, value.to_string().as_bytes());
    let (code, text) = post(&json!({ "id": "i", "instance_id": "a", "submission": "x", "evidence": true }));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["score"]["text"], &answer["id"]), (200, &json!("x"), &json!("i")));
    assert!(answer["evidence"].is_object());
    let two = json!([{ "instance_id": "a", "submission": "y" }, { "instance_id": "zz", "submission": "y" }]);
    let (code, text) = post(&json!({ "submissions": two }));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["answers"][1]["status"]), (200, &json!("unknown-instance")));
    assert_eq!(post(&json!({ "instance_id": "../../etc/passwd", "submission": "" })).0, 404);
    assert_eq!(post(&json!({ "instance_id": "a", "submission": "lost" })).0, 500);
    assert_eq!(post(&json!({ "instance_id": "a", "submission": "slow", "deadline_seconds": 0.1 })).0, 504);
    assert_eq!(post(&json!({ "instance_id": "a" })).0, 400);
    assert_eq!(request(address, POST, b"\xff\x00{").0, 400);
    let foreign = POST.replace("localhost", "example.org");
    assert_eq!(request(address, &foreign, b"{}").0, 403);
    assert_eq!(request(address, &POST.replace("application/json", "text/plain"), b"{}").0, 415);
    let huge = format!("{POST}\r\ncontent-length: 99999999999");
    assert_eq!(request(address, &huge, b"").0, 413);
    assert_eq!(request(address, "GET /score HTTP/1.1\r\nhost: localhost", b"").0, 405);
    assert_eq!(request(address, "GET /etc/passwd HTTP/1.1\r\nhost: localhost", b"").0, 404);
    let (code, text) = request(address, "GET /healthz HTTP/1.1\r\nhost: localhost", b"");
    assert_eq!((code, text.contains("\"instances\":2")), (200, true), "{text}");
    let (code, text) = request(address, "GET /metrics HTTP/1.1\r\nhost: localhost", b"");
    assert!(code == 200 && text.contains("gistmill_answers_total{status=\"judged\"} 2"), "{text}");
}

#[test]
fn a_client_that_goes_frees_its_place() {
    let left = Arc::new(AtomicUsize::new(0));
    let (sender, address) = channel();
    let noted = Arc::clone(&left);
    std::thread::spawn(move || {
        let ready = Box::new(move |address| sender.send(address).unwrap());
        let door = Door::Http("127.0.0.1:0".parse().unwrap(), ready);
        let noted = Mutex::new(noted);
        let judge = |submitted: &Submitted| {
            let came = judge(submitted);
            noted.lock().unwrap().fetch_add(usize::from(submitted.waiting.has_left()), Ordering::SeqCst);
            came
        };
        serve(settings(1, 100), door, &judge, Box::new(Vec::new)).unwrap();
    });
    let address = address.recv_timeout(Duration::from_secs(10)).unwrap();
    let body = json!({ "instance_id": "a", "submission": "slow" }).to_string();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("{POST}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    let value = json!({ "instance_id": "a", "submission": "x" }).to_string();
    assert_eq!(request(address, POST, value.as_bytes()).0, 200, "the place is free again");
    assert!(left.load(Ordering::SeqCst) >= 1);
}
