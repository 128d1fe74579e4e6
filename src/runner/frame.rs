//! Frames of the messages between the driver and the runner.
//!
//! Requests are a 4-byte big-endian length and JSON. Answers are lines `@gistmill <token> <request> <kind> <length> <json>`;
//! everything else that appears on the pipe is noise, and is skipped. Token, number and kind are the keeper's word; the JSON
//! may be that of a process that runs foreign code.

use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::protocol::{Answer, Numbered, Request};

/// Longest answer that is read, in bytes: far more than the report of any group, whose memory is bounded.
const LONGEST_ANSWER: usize = 1 << 30;

/// Encodes a request as a frame.
///
/// # Errors
/// When the request cannot be encoded or is longer than 4 GiB.
pub fn encode(id: u64, request: &Request) -> Result<Vec<u8>, String> {
    let mut value = serde_json::to_value(request).map_err(|error| error.to_string())?;
    value["id"] = id.into();
    let text = value.to_string();
    let length = u32::try_from(text.len()).map_err(|_| "the request is too long".to_owned())?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    Ok(frame)
}

/// A frame with the right token.
#[derive(Debug)]
pub enum Frame {
    Answer(Numbered),
    /// Its content is not an answer, for this reason.
    Unreadable(String),
}

/// Reads the next answer with this token, skipping whatever else is on the pipe; `None` at its end.
///
/// # Errors
/// A read error, or a frame that is too long or breaks off.
pub fn read_answer(pipe: &mut impl BufRead, token: &str) -> Result<Option<Frame>, String> {
    let mark = format!("@gistmill {token} ");
    loop {
        if !skip_to_line_starting_with(pipe, mark.as_bytes())? {
            return Ok(None);
        }
        let Some((id, kind, length)) = read_head(pipe)? else { continue };
        if length > LONGEST_ANSWER {
            return Err(format!("an answer of {length} bytes is too long"));
        }
        // Room is made for what arrives, not for what was announced.
        let mut text = Vec::new();
        let read = pipe.by_ref().take(length as u64).read_to_end(&mut text);
        read.map_err(|error| format!("reading an answer: {error}"))?;
        if text.len() < length {
            return Err(format!("an answer breaks off after {} of {length} bytes", text.len()));
        }
        return Ok(Some(match answer_of(&kind, &text) {
            Ok(answer) => Frame::Answer(Numbered { id, answer }),
            Err(error) => Frame::Unreadable(format!("an answer cannot be read: {error}: {}", excerpt(&text))),
        }));
    }
}

fn excerpt(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned()
}

/// Consumes bytes up to and including `mark` at the start of a line.
fn skip_to_line_starting_with(pipe: &mut impl BufRead, mark: &[u8]) -> Result<bool, String> {
    let mut matched = 0;
    let mut at_line_start = true;
    loop {
        let buffer = pipe.fill_buf().map_err(|error| format!("reading answers: {error}"))?;
        if buffer.is_empty() {
            return Ok(false);
        }
        let mut used = 0;
        for &byte in buffer {
            used += 1;
            if at_line_start && byte == mark[matched] {
                matched += 1;
                if matched == mark.len() {
                    pipe.consume(used);
                    return Ok(true);
                }
            } else {
                matched = 0;
                at_line_start = byte == b'\n';
            }
        }
        pipe.consume(used);
    }
}

/// An answer of a kind; what its content says about that counts for nothing.
fn answer_of(kind: &str, text: &[u8]) -> serde_json::Result<Answer> {
    let mut content: Map<String, Value> = serde_json::from_slice(text)?;
    content.insert("type".to_owned(), kind.into());
    serde_json::from_value(Value::Object(content))
}

/// Longest head of a frame behind its token: a number, a kind and a length.
const LONGEST_HEAD: usize = 80;

/// Reads number, kind and length of an answer; `None` when it is something else (noise that looked like a frame).
fn read_head(pipe: &mut impl BufRead) -> Result<Option<(u64, String, usize)>, String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for _ in 0..LONGEST_HEAD {
        let mut byte = [0_u8];
        pipe.read_exact(&mut byte).map_err(|error| format!("an answer breaks off: {error}"))?;
        match byte[0] {
            b' ' if word.is_empty() => return Ok(None),
            b' ' => words.push(std::mem::take(&mut word)),
            letter if letter.is_ascii_alphanumeric() || letter == b'_' => word.push(char::from(letter)),
            _ => return Ok(None),
        }
        if let [id, kind, length] = &words[..] {
            return Ok(id
                .parse()
                .ok()
                .zip(length.parse().ok())
                .map(|(id, length)| (id, kind.clone(), length)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(token: &str, kind: &str, json: &str) -> String {
        format!("\n@gistmill {token} 3 {kind} {} {json}\n", json.len())
    }

    #[test]
    fn answers_are_found_between_garbage() {
        let frame = frame("t", "closed", "{}");
        let text = format!("noise@gistmill t 3 closed 2 {{}}\n@gistmill wrong 3 closed 2 {{}}{frame}tail");
        let mut pipe = text.as_bytes();
        let frame = read_answer(&mut pipe, "t").expect("reads").expect("is there");
        let Frame::Answer(answer) = frame else { panic!("{frame:?}") };
        assert_eq!(answer.id, 3);
        assert!(matches!(answer.answer, Answer::Closed {}));
        assert!(read_answer(&mut pipe, "t").expect("reads").is_none());
    }

    #[test]
    fn a_frame_that_breaks_off_is_an_error_and_not_a_result() {
        for length in ["500", "1073741824", "1073741825", "999999999999", "99999999999999999999"] {
            let text = format!("\n@gistmill t 1 died {length} {{\"level\":1");
            let read = read_answer(&mut text.as_bytes(), "t");
            assert!(matches!(read, Err(_) | Ok(None)), "{length}: {read:?}");
        }
    }

    #[test]
    fn a_frame_that_is_no_answer_does_not_hide_the_next() {
        for (kind, bad) in [
            ("died", "{}"),
            ("no_such_kind", "{}"),
            ("closed", r#"{"x":"\ud800"}"#),
            ("closed", "["),
            ("closed", "[]"),
            ("unreadable", r#"{"reason":"x"}"#),
        ] {
            let text = frame("t", kind, bad) + &frame("t", "closed", "{}");
            let mut pipe = text.as_bytes();
            let read = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(&read, Frame::Unreadable(why) if why.contains("cannot be read")), "{read:?}");
            let next = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(next, Frame::Answer(Numbered { id: 3, .. })), "{next:?}");
        }
    }

    #[test]
    fn what_an_answer_says_about_its_number_and_kind_counts_for_nothing() {
        let json = r#"{"id":9,"type":"closed","level":"file","traceback":"x"}"#;
        let text = frame("t", "broken", json);
        let read = read_answer(&mut text.as_bytes(), "t").expect("reads").expect("is there");
        let Frame::Answer(Numbered { id: 3, answer }) = read else { panic!("{read:?}") };
        assert!(matches!(answer, Answer::Broken { .. }), "{answer:?}");
    }

    #[test]
    fn a_head_that_is_none_is_noise() {
        let noise = [
            "x y 3 ",
            "3  3 ",
            "3 closed -1 ",
            "3 closed ",
            "99999999999999999999999 closed 1 ",
            "3 clo@sed 1 ",
        ];
        for head in noise.map(str::to_owned).into_iter().chain([format!("3 {} 1 ", "x".repeat(200))]) {
            let text = format!("\n@gistmill t {head}\n\n{}", frame("t", "closed", "{}"));
            let read = read_answer(&mut text.as_bytes(), "t").expect("reads").expect("is there");
            assert!(matches!(read, Frame::Answer(Numbered { id: 3, .. })), "{head}: {read:?}");
        }
    }

    #[test]
    fn requests_carry_their_number_and_operation() {
        let frame = encode(7, &Request::Close {}).expect("encodes");
        let value: serde_json::Value = serde_json::from_slice(&frame[4..]).expect("is JSON");
        assert_eq!(value, serde_json::json!({"op": "close", "id": 7}));
        assert_eq!(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize, frame.len() - 4);
    }
}
