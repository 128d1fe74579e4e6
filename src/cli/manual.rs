//! `gistmill completions` and `gistmill man`: what shells and `man` read, made from the command line's own definition.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use serde_json::json;

use super::{Arguments, Format};
use crate::error::{Error, Result};
use crate::store::write_atomic;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct ManArguments {
    /// The folder to write gistmill.1 and a page for each command into; made when missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Prints the completions for a shell.
#[expect(clippy::unnecessary_wraps, reason = "every command ends in this way")]
pub(super) fn completions(asked: &CompletionsArguments) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut super::command(), "gistmill", &mut script);
    terminal::say(String::from_utf8_lossy(&script).trim_end_matches('\n'));
    Ok(0)
}

/// Writes the pages.
pub(super) fn man(arguments: &Arguments, asked: &ManArguments) -> Result<u8> {
    fs_err::create_dir_all(&asked.output)?;
    let mut written = Vec::new();
    for (name, page) in pages()? {
        let path = asked.output.join(format!("{name}.1"));
        write_atomic(&path, &page)?;
        written.push(path);
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({ "files": written })),
        Format::Human | Format::Csv => {
            terminal::say(&format!("{} in {}", count(written.len(), "page"), asked.output.display()));
        }
    }
    Ok(0)
}

/// Name and text of every page: the program's, and one of each command, `gistmill-cache-prune`.
fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut root = super::command();
    root.build();
    let mut pages = Vec::new();
    let mut waiting = vec![("gistmill".to_owned(), root)];
    while let Some((name, command)) = waiting.pop() {
        let below = command.get_subcommands().filter(|one| one.get_name() != "help");
        waiting.extend(below.map(|one| (format!("{name}-{}", one.get_name()), one.clone())));
        pages.push((name.clone(), page(&name, command)?));
    }
    Ok(pages)
}

fn page(name: &str, command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    // `man` finds a command's page by its whole name.
    clap_mangen::Man::new(command)
        .title(name.to_owned())
        .render(&mut page)
        .map_err(|error| Error::internal(format!("cannot write the page {name}")).with_source(error))?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let pages = pages().unwrap();
        let text = |name: &str| {
            let found = pages.iter().find(|(page, _)| page == name);
            String::from_utf8(found.unwrap_or_else(|| panic!("no page {name}")).1.clone()).unwrap()
        };
        for command in super::super::command().get_subcommands().filter(|one| one.get_name() != "help") {
            text(&format!("gistmill-{}", command.get_name()));
        }
        assert!(text("gistmill-cache-prune").contains("dry\\-run"));
        assert!(text("gistmill").starts_with(".ie") || text("gistmill").contains(".TH gistmill 1"));
    }

    #[test]
    fn completions_know_commands_and_options() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut super::super::command(), "gistmill", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("completions") && script.contains("dry-run"), "{shell}");
        }
    }
}
