//! Requests and answers as JSON. Pure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

/// Submissions of one request.
const MOST_AT_ONCE: usize = 1000;
/// Longest `id` of a request, as JSON.
const LONGEST_ID: usize = 200;
/// Longest deadline that may be asked for, in seconds.
const LONGEST_DEADLINE: f64 = 24.0 * 3600.0;

/// One submission as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct One {
    /// What the client calls it.
    pub(super) id: Option<Value>,
    pub(super) instance: String,
    pub(super) text: String,
    pub(super) evidence: bool,
    pub(super) deadline: Option<Duration>,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    One(One),
    Many(Option<Value>, Vec<One>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    instance_id: Option<String>,
    #[serde(default)]
    submission: Option<String>,
    #[serde(default)]
    submissions: Option<Vec<Request>>,
    #[serde(default)]
    evidence: bool,
    #[serde(default)]
    deadline_seconds: Option<f64>,
}

/// Reads a request; gives what is wrong with it, and its `id` where that could be read.
pub(super) fn read(bytes: &[u8]) -> Result<Asked, (Option<Value>, String)> {
    let request: Request = serde_json::from_slice(bytes)
        .map_err(|error| (id_alone(bytes), format!("not a request: {error}")))?;
    let id = request.id.clone().filter(is_id);
    let wrong = |what: String| (id.clone(), what);
    let Some(all) = request.submissions else { return request.one().map(Asked::One).map_err(wrong) };
    if request.instance_id.is_some() || request.submission.is_some() {
        return Err(wrong("give either `submissions` or `instance_id` and `submission`".to_owned()));
    }
    if all.len() > MOST_AT_ONCE {
        return Err(wrong(format!("`submissions` has {} entries; {MOST_AT_ONCE} are the most", all.len())));
    }
    let read = |(at, one): (usize, Request)| {
        let one = Request {
            evidence: one.evidence || request.evidence,
            deadline_seconds: one.deadline_seconds.or(request.deadline_seconds),
            ..one
        };
        one.one().map_err(|what| wrong(format!("`submissions`, entry {}: {what}", at + 1)))
    };
    let all = all.into_iter().enumerate().map(read).collect::<Result<Vec<One>, _>>()?;
    if request.id.is_some() && id.is_none() {
        return Err((None, BAD_ID.to_owned()));
    }
    Ok(Asked::Many(id, all))
}

/// The `id` of what is not a request otherwise, so that whoever asked can find the answer.
fn id_alone(bytes: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Named {
        id: Value,
    }
    serde_json::from_slice::<Named>(bytes).ok().map(|named| named.id).filter(is_id)
}

const BAD_ID: &str = "`id` has to be a short text or a number";

fn is_id(id: &Value) -> bool {
    (id.is_string() || id.is_number()) && id.to_string().len() <= LONGEST_ID
}

impl Request {
    fn one(self) -> Result<One, String> {
        if self.submissions.is_some() {
            return Err("`submissions` within `submissions`".to_owned());
        }
        if self.id.as_ref().is_some_and(|id| !is_id(id)) {
            return Err(BAD_ID.to_owned());
        }
        let deadline = match self.deadline_seconds {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_DEADLINE => {
                Some(Duration::from_secs_f64(seconds))
            }
            Some(_) => return Err("`deadline_seconds` has to be above 0 and at most a day".to_owned()),
            None => None,
        };
        let missing = |key: &str| format!("`{key}` is missing");
        Ok(One {
            id: self.id,
            instance: self.instance_id.ok_or_else(|| missing("instance_id"))?,
            text: self.submission.ok_or_else(|| missing("submission"))?,
            evidence: self.evidence,
            deadline,
        })
    }
}

/// An answer to one submission.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) id: Option<Value>,
    pub(super) instance: String,
    pub(super) took: Duration,
    pub(super) kind: Kind,
}

/// What the answer is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Judged {
        row: String,
        evidence: Option<String>,
        known: bool,
    },
    /// Too much waits.
    Busy {
        waiting: usize,
    },
    /// The deadline came first.
    Late,
    /// This machine could not judge it.
    Lost {
        reason: String,
    },
    /// The judge ends.
    Stopping,
    /// The dataset has no such instance.
    Unknown,
}

impl Kind {
    /// The one spelling.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Kind::Judged { .. } => "judged",
            Kind::Busy { .. } => "busy",
            Kind::Late => "late",
            Kind::Lost { .. } => "lost",
            Kind::Stopping => "stopping",
            Kind::Unknown => "unknown-instance",
        }
    }

    /// The status of HTTP.
    pub(super) fn code(&self) -> u16 {
        match self {
            Kind::Judged { .. } => 200,
            Kind::Busy { .. } => 429,
            Kind::Late => 504,
            Kind::Lost { .. } => 500,
            Kind::Stopping => 503,
            Kind::Unknown => 404,
        }
    }

    /// What it means, and what to do.
    fn message(&self) -> Option<String> {
        Some(match self {
            Kind::Judged { .. } => return None,
            Kind::Busy { waiting } => {
                format!("{waiting} submissions wait already: hand this one in again once some are answered")
            }
            Kind::Late => {
                "not judged before its deadline: give a longer `deadline_seconds`, or hand in less at once"
                    .to_owned()
            }
            Kind::Lost { reason } => {
                format!(
                    "this machine could not judge it, and nothing is said about it; hand it in again: {reason}"
                )
            }
            Kind::Stopping => "the judge ends: hand it in again when it is back".to_owned(),
            Kind::Unknown => {
                "the dataset has no such instance, or none that a submission is judged for".to_owned()
            }
        })
    }
}

impl Answer {
    /// The answer as a line of JSON, without its end. The row is as it is in `scores.jsonl`, to the byte.
    pub(super) fn line(&self) -> String {
        let mut head = json!({
            "id": self.id,
            "instance_id": self.instance,
            "status": self.kind.status(),
            "milliseconds": self.took.as_millis() as u64,
        });
        if let Some(message) = self.kind.message() {
            head["message"] = message.into();
        }
        let Kind::Judged { row, evidence, known } = &self.kind else { return head.to_string() };
        head["known"] = (*known).into();
        let head = head.to_string();
        let evidence = evidence.as_ref().map(|text| format!(",\"evidence\":{text}")).unwrap_or_default();
        format!("{},\"score\":{row}{evidence}}}", head.strip_suffix('}').unwrap_or(&head))
    }
}

/// The answer to what is not a request.
pub(super) fn bad(id: Option<&Value>, message: &str) -> String {
    json!({ "id": id, "status": "bad-request", "message": message }).to_string()
}

/// The answers to a request with several submissions, as one.
pub(super) fn many(id: Option<&Value>, answers: &[Answer]) -> String {
    let lines: Vec<String> = answers.iter().map(Answer::line).collect();
    format!("{{\"id\":{},\"answers\":[{}]}}", json!(id), lines.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().1
    }

    #[test]
    fn a_request_is_one_submission_or_several() {
        let text = r#"{"id": 7, "instance_id": "a", "submission": "x", "deadline_seconds": 1.5}"#;
        let one = One {
            id: Some(7.into()),
            instance: "a".into(),
            text: "x".into(),
            evidence: false,
            deadline: Some(Duration::from_millis(1500)),
        };
        assert_eq!(read(text.as_bytes()), Ok(Asked::One(one.clone())));
        let text = r#"{"id": "b", "evidence": true, "deadline_seconds": 9,
            "submissions": [{"id": 7, "instance_id": "a", "submission": "x", "deadline_seconds": 1.5}]}"#;
        let many = Asked::Many(Some("b".into()), vec![One { evidence: true, ..one }]);
        assert_eq!(read(text.as_bytes()), Ok(many));
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        assert!(wrong("{").starts_with("not a request: "));
        assert!(
            wrong(r#"{"instance_id": "a", "submission": "x", "path": "/etc/passwd"}"#).contains("`path`")
        );
        assert_eq!(wrong(r#"{"instance_id": "a"}"#), "`submission` is missing");
        assert_eq!(wrong(r#"{"submission": "a"}"#), "`instance_id` is missing");
        assert_eq!(wrong(r#"{"id": [], "instance_id": "a", "submission": "x"}"#), BAD_ID);
        assert_eq!(wrong(r#"{"id": [], "submissions": []}"#), BAD_ID);
        for seconds in ["0", "-1", "1e300"] {
            let text = format!(r#"{{"instance_id": "a", "submission": "x", "deadline_seconds": {seconds}}}"#);
            assert!(wrong(&text).contains("deadline_seconds"), "{seconds}");
        }
        assert!(wrong(r#"{"submissions": [], "submission": "x"}"#).contains("either"));
        assert!(wrong(r#"{"submissions": [{"submissions": []}]}"#).contains("entry 1: `submissions` within"));
        let many = format!(r#"{{"submissions": [{}]}}"#, vec!["{}"; 1001].join(","));
        assert!(wrong(&many).contains("1001 entries"));
        let deep = "[".repeat(100_000);
        assert!(wrong(&deep).starts_with("not a request: "));
        let (id, _) = read(br#"{"id": "mine"}"#).unwrap_err();
        assert_eq!(id, Some("mine".into()), "who asked can find the answer");
        for text in
            [r#""instance_id": 7"#, r#""submission": "\ud800""#, r#""deadline_seconds": 1e999"#, r#""x": 1"#]
        {
            let (id, message) = read(format!("{{{text}, \"id\": 7}}").as_bytes()).unwrap_err();
            assert_eq!(id, Some(7.into()), "{text}: {message}");
        }
    }

    #[test]
    fn a_row_comes_through_to_the_byte() {
        let row = r#"{"b":1,"a":0.30000000000000004}"#;
        let kind = Kind::Judged { row: row.into(), evidence: Some("{\"c\":2}".into()), known: false };
        let answer =
            Answer { id: Some(1.into()), instance: "a".into(), took: Duration::from_millis(5), kind };
        let line = answer.line();
        assert!(line.ends_with(&format!(",\"score\":{row},\"evidence\":{{\"c\":2}}}}")), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["status"], &value["id"]), (&json!("judged"), &json!(1)));
        let all = many(None, &[answer.clone(), answer]);
        let value: Value = serde_json::from_str(&all).unwrap();
        assert_eq!(value["answers"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn whoever_gets_no_judgement_is_told_what_to_do() {
        let kinds = [
            Kind::Busy { waiting: 3 },
            Kind::Late,
            Kind::Lost { reason: "no memory".into() },
            Kind::Stopping,
            Kind::Unknown,
        ];
        for kind in kinds {
            let code = kind.code();
            let answer = Answer { id: None, instance: "a".into(), took: Duration::ZERO, kind };
            let value: Value = serde_json::from_str(&answer.line()).unwrap();
            assert!(code >= 400 && value["message"].is_string() && value["score"].is_null(), "{value}");
        }
    }
}
