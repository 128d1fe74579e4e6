//! A container that only runs programs of its image: no sandbox inside, nothing of a repository in it.

use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::engine::{ContainerLimits, Engine, Purpose, Spec};
use crate::backend::{Finished, Tail};
use crate::error::{Error, Result};

/// What Docker leaves root in a container by itself, of which judges need most: other users, files of others.
const USUAL: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SYS_CHROOT"];

/// Runs a script of the shell as root of an image, without a network, and removes the container. `stdin` is what it reads.
///
/// # Errors
/// The engine's; an interruption; the time limit.
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
    run(engine, &spec, stdin, limit)
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
        Some(Err(_)) => Err(Error::harness(format!(
            "a container ({}) takes longer than {} s",
            spec.purpose.as_str(),
            limit.as_secs()
        ))),
        Some(Ok(Err(error))) => {
            Err(engine.explain(&format!("a container ({})", spec.purpose.as_str()), error))
        }
        Some(Ok(Ok(()))) => engine.exit_code(&id),
    };
    match result {
        Ok(code) => {
            let code = i32::try_from(code).ok();
            Ok((Finished { code, timed_out: false, stdout: stdout.text(), stderr: stderr.text() }, id))
        }
        Err(error) => {
            engine.remove_container(&id);
            Err(error)
        }
    }
}
