//! Frames of the messages between the driver and the runner.
//!
//! Requests are a 4-byte big-endian length and JSON. Answers are lines `@gistmill <token> <length> <json>`; everything
//! else that appears on the pipe is noise that repository code scribbled there, and is skipped.

use std::io::{BufRead, Read};

use super::protocol::{Numbered, Request};

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
    /// Its content is no answer, for this reason.
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
        let Some(length) = read_length(pipe)? else { continue };
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
        return Ok(Some(match serde_json::from_slice(&text) {
            Ok(answer) => Frame::Answer(answer),
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

/// Reads decimal digits up to a space; `None` when it is something else (noise that looked like a frame).
fn read_length(pipe: &mut impl BufRead) -> Result<Option<usize>, String> {
    let mut length = 0_usize;
    for _ in 0..12 {
        let mut byte = [0_u8];
        pipe.read_exact(&mut byte).map_err(|error| format!("an answer breaks off: {error}"))?;
        match byte[0] {
            digit @ b'0'..=b'9' => length = length * 10 + usize::from(digit - b'0'),
            b' ' if length > 0 => return Ok(Some(length)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::protocol::Answer;

    fn frame(token: &str, json: &str) -> String {
        format!("\n@gistmill {token} {} {json}\n", json.len())
    }

    #[test]
    fn answers_are_found_between_garbage() {
        let json = r#"{"id":3,"type":"closed"}"#;
        let text = format!("noise@gistmill t 5 {}\n@gistmill wrong 3 abc{}tail", json, frame("t", json));
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
            let text = format!("\n@gistmill t {length} {{\"id\":1");
            let read = read_answer(&mut text.as_bytes(), "t");
            assert!(matches!(read, Err(_) | Ok(None)), "{length}: {read:?}");
        }
    }

    #[test]
    fn a_frame_that_is_no_answer_does_not_hide_the_next() {
        let good = r#"{"id":3,"type":"closed"}"#;
        for bad in [r#"{"id":1,"type":"died"}"#, r#"{"id":1,"type":"closed","x":"\ud800"}"#, "[", "{}"] {
            let text = frame("t", bad) + &frame("t", good);
            let mut pipe = text.as_bytes();
            let read = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(&read, Frame::Unreadable(why) if why.contains("cannot be read")), "{read:?}");
            let next = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(next, Frame::Answer(Numbered { id: 3, .. })), "{next:?}");
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
