//! What the driver itself costs: a build, the same build again with nothing changed, and its peak memory.
//!
//! `cargo bench --profile dev --bench all -- driver [CONFIG]`. The first build is a real one unless the cache (below the
//! target directory) has it already; the time that counts is that of the second.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type AnyError = Box<dyn std::error::Error>;

/// Rebuilds that are timed.
const REBUILDS: usize = 5;

pub fn main() -> Result<(), AnyError> {
    let named = crate::arguments().into_iter().find(|argument| !argument.starts_with("--"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = named.map_or_else(|| root.join("bench/flask.toml"), Into::into);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    let (first, memory) = build(&config, &folder)?;
    println!("build:   {:8.2} s, peak memory of the driver {} MiB", first.as_secs_f64(), memory / 1024);
    let mut times = Vec::new();
    for _ in 0..REBUILDS {
        let (time, memory) = build(&config, &folder)?;
        println!("rebuild: {:8.2} s, peak memory of the driver {} MiB", time.as_secs_f64(), memory / 1024);
        times.push(time);
    }
    times.sort();
    println!(
        "median rebuild {:.2} s, rebuild/build {:.4}",
        times[REBUILDS / 2].as_secs_f64(),
        times[REBUILDS / 2].as_secs_f64() / first.as_secs_f64()
    );
    Ok(())
}

/// One build: wall time and peak resident memory in KiB.
fn build(config: &Path, folder: &Path) -> Result<(Duration, u64), AnyError> {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_gistmill"))
        .arg("build")
        .arg(config)
        .arg("--cache-dir")
        .arg(folder.join("cache"))
        .arg("--output")
        .arg(folder.join("output"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        peak = peak.max(high_water_mark(&status));
        if let Some(status) = child.try_wait()? {
            let code = status.code();
            return if code == Some(0) {
                Ok((started.elapsed(), peak))
            } else {
                Err(format!("exit code {code:?}").into())
            };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `VmHWM` of a process in KiB; 0 when it is gone.
fn high_water_mark(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
