//! Arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(argument) if argument == "__sandbox" => gistmill::backend::sandbox::enter(),
        Some(argument) if argument == gistmill::attempt::contention::COMMAND => {
            gistmill::attempt::contention::busy();
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    gistmill::cli::main()
}
