//! The subcommands that a program's help names: click, Typer, argparse and their like. Pure.

/// Most subcommands of one program.
const MOST: usize = 60;
/// Longest name, in characters.
const LONGEST: usize = 40;

/// A subcommand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subcommand(pub(super) String);

/// Names of subcommands, in the order of the help, each once.
pub(super) fn subcommands(help: &str) -> Vec<Subcommand> {
    let mut names: Vec<String> = in_sections(help);
    names.extend(in_braces(help));
    let mut found: Vec<Subcommand> = Vec::new();
    for name in names {
        let one = Subcommand(name);
        if is_name(&one.0) && !found.contains(&one) && found.len() < MOST {
            found.push(one);
        }
    }
    found
}

/// Whether a usage demands an argument, so that there is nothing to run without one.
pub(super) fn demands(help: &str) -> bool {
    let lower = help.to_lowercase();
    let Some(at) = lower.find("usage:").filter(|at| help.is_char_boundary(*at + 6)) else { return false };
    let usage: Vec<&str> = help.get(at + 6..).unwrap_or_default().lines().collect();
    let first = usage.first().copied().unwrap_or_default();
    let more = usage.iter().skip(1).take_while(|line| line.starts_with("    ") && !line.trim().is_empty());
    let whole = std::iter::once(first).chain(more.copied()).collect::<Vec<_>>().join(" ");
    let mut depth = 0_i32;
    whole.split_whitespace().any(|word| {
        let before = depth;
        for character in word.chars() {
            depth += i32::from(matches!(character, '[' | '(')) - i32::from(matches!(character, ']' | ')'));
        }
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_argument =
            plain.len() > 1 && plain.chars().all(|c| c.is_uppercase() || matches!(c, '_' | '-' | '0'..='9'));
        before == 0 && !word.starts_with(['[', '-']) && (is_argument || word.starts_with(['{', '<']))
    })
}

/// The names of a section such as `Commands:`, one a line, further to the right.
fn in_sections(help: &str) -> Vec<String> {
    let (mut names, mut section): (Vec<String>, Option<Option<usize>>) = (Vec::new(), None);
    for line in help.lines() {
        let text = line.trim().trim_matches(|c| matches!(c, '│' | '╭' | '╮' | '─' | '|')).trim_end();
        let title = text.trim().trim_end_matches(':').to_lowercase();
        let is_title = line.trim_start().starts_with('╭') || line == line.trim_start() && text.ends_with(':');
        if is_title {
            let is_one = ["commands", "subcommands", "available commands", "available subcommands"];
            section = is_one.contains(&title.as_str()).then_some(None);
            continue;
        }
        let Some(left) = &mut section else { continue };
        let is_boxed = line.starts_with('│');
        let indent = if is_boxed { 1 } else { line.len() - line.trim_start().len() };
        if text.trim().is_empty() || line.starts_with('╰') {
            continue;
        }
        if indent == 0 {
            section = None;
            continue;
        }
        if is_boxed && text.starts_with("   ") {
            continue;
        }
        // What is further to the right goes on with a description.
        if *left.get_or_insert(indent) == indent {
            names.extend(
                text.split_whitespace().next().map(|word| word.trim_end_matches([',', '*']).to_owned()),
            );
        }
    }
    names
}

/// The names of `{a,b} ...`, as argparse writes them.
fn in_braces(help: &str) -> Vec<String> {
    let usage = help.split("\n\n").find(|part| part.to_lowercase().contains("usage:")).unwrap_or_default();
    let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = usage.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { break };
        if behind.trim_start().starts_with("...") {
            return inside.split(',').map(|name| name.trim().to_owned()).collect();
        }
        rest = behind;
    }
    Vec::new()
}

fn is_name(word: &str) -> bool {
    word.len() <= LONGEST
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        && word != "help"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(help: &str) -> Vec<String> {
        subcommands(help).into_iter().map(|one| one.0).collect()
    }

    #[test]
    fn each_kind_of_help_gives_its_subcommands() {
        let click = "Usage: shop [OPTIONS] COMMAND [ARGS]...\n\n  A shop.\n\nOptions:\n  --help  Show this.\n\nCommands:\n  query*      Ask\n  buy-all     Buy what there is,\n              and more\n  help        This\n";
        assert_eq!(names(click), ["query", "buy-all"]);
        let argparse = "usage: shop [-h] [--json {a,b}]\n            {tables,buy} ...\n\npositional arguments:\n  {tables,buy}\n    tables  List\n\noptions:\n  -h\n";
        assert_eq!(names(argparse), ["tables", "buy"]);
        let typer = "\n Usage: shop [OPTIONS] COMMAND [ARGS]...\n\n╭─ Options ───╮\n│ --help   x  │\n╰─────────────╯\n╭─ Commands ──╮\n│ init   Make │\n│        more │\n│ go     Run  │\n╰─────────────╯\n";
        assert_eq!(names(typer), ["init", "go"]);
        let other = "Usage:\n  beet COMMAND [ARGS...]\n\nCommands:\n  list (ls)   query\n  stats       show\n\nUse it.\n";
        assert_eq!(names(other), ["list", "stats"]);
        assert!(names("usage: sort [-h] {a,b} FILE\n\nSorts.\n").is_empty() && names("").is_empty());
    }

    #[test]
    fn a_usage_says_whether_there_is_something_to_name() {
        for (usage, expected) in [
            ("Usage: shop tables [OPTIONS] PATH", true),
            ("Usage: shop tables [OPTIONS] [PATH]", false),
            ("usage: shop sum [-h] [--out OUT] FILE [FILE ...]\n\nx", true),
            ("usage: shop sum [-h] [--out OUT]\n                [--in IN]\n\nPATH", false),
            ("usage: shop sum [-h] {a,b}", true),
            ("usage: shop get <name>", true),
            ("Usage: shop [OPTIONS]\n\n  Shows ALL.\n", false),
            ("no such thing", false),
        ] {
            assert_eq!(demands(usage), expected, "{usage}");
        }
    }
}
