//! The benchmarks, one program: `cargo bench --profile dev --bench all -- NAME [ARGUMENTS]`.

mod common;
mod containers;
mod dataset;
mod driver;
mod entries;
mod flake_detection;
mod fork_tree;
mod independent_trace;
mod score;
mod screening;
mod speed;
mod witness;
mod r#yield;

use common::AnyError;

/// What follows the name of the benchmark.
fn arguments() -> Vec<String> {
    std::env::args().skip(2).filter(|word| word != "--bench").collect()
}

fn main() -> Result<(), AnyError> {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "containers" => containers::main(),
        "dataset" => dataset::main(),
        "driver" => driver::main(),
        "entries" => entries::main(),
        "flake_detection" => flake_detection::main(),
        "fork_tree" => fork_tree::main(),
        "independent_trace" => independent_trace::main(),
        "score" => score::main(),
        "screening" => screening::main(),
        "speed" => speed::main(),
        "witness" => witness::main(),
        "yield" => r#yield::main(),
        _ => Err(format!("name a benchmark, a file of bench/, not {name:?}").into()),
    }
}
