//! `ReCUBE`: one file of a repository is masked, and written again from the rest.

pub mod answer;
pub mod choose;
pub mod docstring;
pub mod kinds;
pub mod mask;
pub mod pack;
pub mod score;
pub mod similar;
pub mod surface;
pub mod viewed;

#[cfg(test)]
mod tests;
