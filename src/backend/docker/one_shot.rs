//! A container that only runs programs of its image: no sandbox inside, nothing of a repository in it.

use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::engine::{ContainerLimits, Engine, Purpose, Spec};
use crate::backend::{Finished, Tail};
use crate::error::{Error, Result};

/// What Docker leaves root in a container by itself and a judge may need: other users, files and processes of others.
const USUAL: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SYS_CHROOT"];

/// Runs a script of the shell as root of an image, without a network, and removes the container. `stdin` is what it reads. What
/// takes too long is ended and said to have timed out.
///
/// # Errors
/// The engine's; an interruption.
pub fn script(
    engine: &Engine,
    (image, script): (&str, String),
    stdin: &[u8],
    limits: ContainerLimits,
    limit: Duration,
) -> Result<Finished> {
    let spec = Spec {
        image,
        command: vec!["sh".into(), "-c".into(), script],
        has_network: false,
        root: Some(&USUAL),
        read_only: false,
        tmpfs: Vec::new(),
        limits,
        purpose: Purpose::Judge,
    };
    let (done, id) = attended(engine, &spec, stdin, limit)?;
    engine.remove_container(&id);
    Ok(done)
}

/// Runs a container to its end and removes it.
///
/// # Errors
/// The engine's; an interruption; the time limit.
pub(super) fn run(engine: &Engine, spec: &Spec<'_>, stdin: &[u8], limit: Duration) -> Result<Finished> {
    let (done, id) = run_and_keep(engine, spec, stdin, limit)?;
    engine.remove_container(&id);
    Ok(done)
}

/// Runs a container to its end, as [`run`] does, and keeps it; gives its id.
///
/// # Errors
/// Those of [`run`]; then nothing is left behind.
pub(super) fn run_and_keep(
    engine: &Engine,
    spec: &Spec<'_>,
    stdin: &[u8],
    limit: Duration,
) -> Result<(Finished, String)> {
    let (done, id) = attended(engine, spec, stdin, limit)?;
    if done.timed_out {
        engine.remove_container(&id);
        return Err(Error::harness(format!(
            "a container ({}) takes longer than {} s",
            spec.purpose.as_str(),
            limit.as_secs()
        )));
    }
    Ok((done, id))
}

/// Runs a container to its end or to the limit of time, and keeps it; gives its id. One that is late still runs.
fn attended(engine: &Engine, spec: &Spec<'_>, stdin: &[u8], limit: Duration) -> Result<(Finished, String)> {
    let (id, mut attached) = engine.start(spec)?;
    let (stdout, stderr) = (Tail::default(), Tail::default());
    let talk = async {
        // Whoever does not read all of it has said why.
        let _ = attached.input.write_all(stdin).await;
        let _ = attached.input.shutdown().await;
        while let Some(part) = attached.output.next().await {
            match part? {
                LogOutput::StdErr { message } => stderr.push(&message),
                other => stdout.push(&other.into_bytes()),
            }
        }
        Ok::<_, bollard::errors::Error>(())
    };
    let interrupted = async {
        while !crate::interrupt::requested() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let outcome = engine.wait(async {
        tokio::select! {
            result = tokio::time::timeout(limit, talk) => Some(result),
            () = interrupted => None,
        }
    });
    let result = match outcome {
        None => Err(Error::interrupted()),
        Some(Err(_)) => Ok(None),
        Some(Ok(Err(error))) => {
            Err(engine.explain(&format!("a container ({})", spec.purpose.as_str()), error))
        }
        Some(Ok(Ok(()))) => engine.exit_code(&id).map(Some),
    };
    match result {
        Ok(code) => {
            let timed_out = code.is_none();
            let code = code.and_then(|code| i32::try_from(code).ok());
            Ok((Finished { code, timed_out, stdout: stdout.text(), stderr: stderr.text() }, id))
        }
        Err(error) => {
            engine.remove_container(&id);
            Err(error)
        }
    }
}
