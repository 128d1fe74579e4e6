//! Compiles the clock library (see `src/backend/clock.rs`), which travels inside the program.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/backend/clock/shim.rs";
/// Architectures whose layouts and system calls the source knows.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(clock_library)");
    let supported = variable("CARGO_CFG_TARGET_OS") == "linux"
        && ARCHITECTURES.contains(&variable("CARGO_CFG_TARGET_ARCH").as_str())
        && variable("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if supported {
        compile(&PathBuf::from(variable("OUT_DIR")).join("clock.so"));
        println!("cargo::rustc-cfg=clock_library");
    }
}

fn compile(output: &Path) {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["--crate-name", "gistmill_clock", "--crate-type", "cdylib", "--edition", "2024"])
        .args(["--target", &variable("TARGET")])
        .args(["-C", "panic=abort", "-C", "opt-level=s", "-C", "codegen-units=1", "-C", "lto=fat"])
        .args(["-C", "debuginfo=0", "-C", "strip=symbols", "-C", "overflow-checks=off"])
        // Nothing but the library itself: no start files, no list of needed libraries.
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles"]);
    if variable("CARGO_CFG_TARGET_ENV") == "musl" {
        rustc.args(["-C", "target-feature=-crt-static", "-C", "link-self-contained=no"]);
    }
    if variable("CARGO_CFG_TARGET_ARCH") == "aarch64" {
        // Otherwise atomics ask libc for what the processor has.
        rustc.args(["-C", "target-feature=-outline-atomics"]);
    }
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    rustc.arg("-o").arg(output).arg(SOURCE);
    let result = rustc.output();
    let trouble = match &result {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    panic!("the clock library cannot be built from {SOURCE}\n{rustc:?}\n{trouble}");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
