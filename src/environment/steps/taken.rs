//! What jobs of foreign code leave: answers and wheels, checked before they are used.

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::step::Step;
use super::wheel::Wheel;
use crate::beneath::Folder;
use crate::environment::plan::failure::{Failure, StepError, StepResult};
use crate::error::{Error, Result};
use crate::record::id::hash_parts;
use crate::requirement::normalize;

/// What hooks may leave, in bytes.
const LARGEST_ANSWER: u64 = 16 << 20;
const LARGEST_WHEEL: u64 = 4 << 30;

#[derive(Debug, Deserialize)]
struct Described {
    method: String,
    wheel: String,
    name: String,
    version: String,
    extras: Vec<String>,
    metadata: String,
}

/// What a job answered: JSON that foreign code may have written.
pub(in crate::environment) fn answer<T: serde::de::DeserializeOwned>(
    step: &Step,
    stage: &str,
) -> StepResult<T> {
    let text = step.out()?.read(Path::new("answer.json"), LARGEST_ANSWER);
    let text = text.map_err(|error| refused(stage, &error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|error| refused(stage, &format!("the answer cannot be read: {error}")))
}

/// The build's own trouble.
pub(in crate::environment) fn refused(stage: &str, output: &str) -> StepError {
    let hint = "the build left something that a build does not leave; see its output";
    StepError::Recoverable(Failure {
        stage: stage.to_owned(),
        output: output.to_owned(),
        hint,
        unknown: Vec::new(),
        is_refused: true,
    })
}

/// Copies the wheel that a build left into a folder of the driver's, and checks what is said about it.
pub(super) fn take_wheel(step: &Step, folder: &Path, stage: &str) -> StepResult<Wheel> {
    let said: Described = answer(step, stage)?;
    let wrong = |what: &str| refused(stage, &format!("{what} is not one that a wheel can have"));
    if !is_wheel_name(&said.wheel) {
        return Err(wrong(&format!("the file name {:?}", said.wheel)));
    }
    if !is_name(&said.name) {
        return Err(wrong(&format!("the name {:?}", said.name)));
    }
    let Ok(version) = pep440_rs::Version::from_str(&said.version) else {
        return Err(wrong(&format!("the version {:?}", said.version)));
    };
    if !["editable", "path", "wheel"].contains(&said.method.as_str()) {
        return Err(wrong(&format!("the method {:?}", said.method)));
    }
    let out = step.out()?;
    let folder = folder.join(hash_parts(&[&said.wheel, &said.metadata]));
    fs_err::create_dir_all(&folder)?;
    let file = folder.join(&said.wheel);
    let sha256 =
        take(&out, &said.wheel, &file).map_err(|error| refused(stage, &format!("the wheel: {error}")))?;
    Ok(Wheel {
        method: said.method,
        filename: said.wheel,
        file,
        sha256,
        name: normalize(&said.name),
        version: version.to_string(),
        extras: said.extras.into_iter().filter(|extra| is_name(extra)).collect(),
        metadata: said.metadata,
    })
}

/// Copies one regular file out of a hostile folder; gives its hash.
fn take(from: &Folder, name: &str, to: &Path) -> Result<String> {
    let source = from.open_file(Path::new(name))?;
    let too_large = || Error::repository(format!("{name} is larger than {} GiB", LARGEST_WHEEL >> 30));
    if source.metadata()?.len() > LARGEST_WHEEL {
        return Err(too_large());
    }
    let mut source = source.take(LARGEST_WHEEL + 1);
    let mut target = fs_err::File::create(to)?;
    let (mut hasher, mut buffer, mut total) = (Sha256::new(), vec![0; 1 << 16], 0_u64);
    loop {
        crate::interrupt::check()?;
        let length = source.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        total += length as u64;
        if total > LARGEST_WHEEL {
            return Err(too_large());
        }
        hasher.update(&buffer[..length]);
        std::io::Write::write_all(&mut target, &buffer[..length])?;
    }
    Ok(hex::encode(hasher.finalize()))
}

fn is_wheel_name(text: &str) -> bool {
    text.len() <= 200
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(".whl")
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '!'))
        && matches!(text.split('-').count(), 5 | 6)
}

/// A distribution or extra name (PEP 508).
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 200
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["a-1-py3-none-any.whl", "a_b-1.0+x-1-cp312-cp312-linux_x86_64.whl"] {
            assert!(is_wheel_name(name), "{name}");
        }
        for name in [
            "../a-1-py3-none-any.whl",
            "/a-1-py3-none-any.whl",
            "a.whl",
            "-1-py3-none-any.whl",
            "a-1-py3-none-any.whl\n",
        ] {
            assert!(!is_wheel_name(name), "{name}");
        }
        for name in ["", "a b", "a\n", "../x", "-a", "a[b"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("zope.interface") && is_name("a"));
    }
}
