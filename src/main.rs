//! Arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__sandbox") {
        gistmill::backend::sandbox::enter();
    }
    gistmill::cli::main()
}
