//! The prompts that the benchmark's authors publish: the README, requirements and files of a repository in one text.

use crate::python_source::SourceFile;

/// Ends of one file that are tried: headings that follow, of which some are text of the file.
const MOST_ENDS: usize = 64;

/// What such a prompt has of a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PublishedPrompt {
    /// Pairs of path and text: the README and other prose.
    pub readme: Vec<(String, String)>,
    /// As a requirements file has them.
    pub requirements: Vec<String>,
    /// Pairs of path and text.
    pub files: Vec<(String, String)>,
}

/// Reads a prompt.
///
/// # Errors
/// The sections that it lacks, in words.
pub fn read(text: &str) -> Result<PublishedPrompt, String> {
    let lines: Vec<&str> = text.lines().collect();
    let [readme, dependencies, files] = sections(&lines)?;
    Ok(PublishedPrompt {
        readme: prose(readme),
        requirements: requirements(dependencies),
        files: implementations(files),
    })
}

/// The lines of each section, in the order in which a prompt has them. A tag may be doubled.
fn sections<'a, 't>(lines: &'a [&'t str]) -> Result<[&'a [&'t str]; 3], String> {
    let names = ["readme", "dependencies", "implementations"];
    let (mut starts, mut from) = (Vec::new(), 0);
    for name in names {
        let tag = format!("<{name}>");
        let found = lines[from..].iter().position(|line| line.trim() == tag);
        let at = found.ok_or_else(|| format!("the prompt has no section {tag}"))?;
        from += at + 1;
        starts.push(from);
    }
    let body = |at: usize| {
        let (open, close) = (format!("<{}>", names[at]), format!("</{}>", names[at]));
        let part = &lines[starts[at]..starts.get(at + 1).map_or(lines.len(), |next| next - 1)];
        let end = part.iter().rposition(|line| line.trim() == close).unwrap_or(part.len());
        let part = &part[..end];
        let begin = part.iter().take_while(|line| line.trim() == open || line.trim().is_empty()).count();
        let last = part.iter().rposition(|line| line.trim() != close && !line.trim().is_empty());
        &part[begin..last.map_or(begin, |last| last + 1)]
    };
    Ok([body(0), body(1), body(2)])
}

fn heading<'t>(line: &&'t str) -> Option<&'t str> {
    line.strip_prefix("## ").map(str::trim).filter(|path| !path.is_empty())
}

/// Texts below `## path`, where the path is one of prose.
fn prose(lines: &[&str]) -> Vec<(String, String)> {
    let is_path = |path: &&str| {
        let ends = [".md", ".rst", ".txt"].iter().any(|ending| path.to_lowercase().ends_with(ending));
        ends && !path.contains(' ')
    };
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        match (heading(line).filter(is_path), texts.last_mut()) {
            (Some(path), _) => texts.push((path.to_owned(), Vec::new())),
            (None, Some((_, text))) => text.push(line),
            (None, None) => {}
        }
    }
    let plain = |text: Vec<&str>| format!("{}\n", text.join("\n").trim_matches('\n'));
    texts.into_iter().map(|(path, text)| (path, plain(text))).collect()
}

/// `## name` with `Version: spec` in the next line; a version that is not one to compare with says nothing.
fn requirements(lines: &[&str]) -> Vec<String> {
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let one = |pair: &[&str]| {
        let name = heading(&pair[0]).filter(is_name)?;
        let version = pair[1].strip_prefix("Version:")?.trim();
        let compares = version.starts_with(['=', '<', '>', '~', '!']);
        Some(if compares { format!("{name}{version}") } else { name.to_owned() })
    };
    lines.windows(2).filter_map(one).collect()
}

/// Files below `## path`, each in a block. One ends at the last fence before the next heading with which a Python file parses.
fn implementations(lines: &[&str]) -> Vec<(String, String)> {
    let mut starts: Vec<(usize, usize, &str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(path) = heading(line) else { continue };
        let blank = lines[at + 1..].iter().take_while(|line| line.trim().is_empty()).count();
        let fence = at + 1 + blank;
        if lines.get(fence).is_some_and(|line| line.starts_with("```")) {
            starts.push((at, fence, path));
        }
    }
    let (mut files, mut from): (Vec<(String, String)>, usize) = (Vec::new(), 0);
    for (at, (heading, fence, path)) in starts.iter().enumerate() {
        if *heading < from || files.iter().any(|(known, _)| known == path) {
            continue;
        }
        let ends = starts[at + 1..].iter().map(|(next, ..)| *next).chain([lines.len()]);
        let mut texts = ends.filter_map(|end| Some((end, block(lines, *fence, end)?))).take(MOST_ENDS);
        let is_whole =
            |(_, text): &(usize, String)| !path.ends_with(".py") || SourceFile::parse(path, text).is_some();
        let Some(first) = texts.next() else { continue };
        let (end, text) = if is_whole(&first) { first } else { texts.find(is_whole).unwrap_or(first) };
        files.push(((*path).to_owned(), text));
        from = end;
    }
    files
}

/// The text between the fence in a line and the last one of its kind before `end`.
fn block(lines: &[&str], fence: usize, end: usize) -> Option<String> {
    let mark: String = lines[fence].chars().take_while(|c| *c == '`').collect();
    let inside = &lines[fence + 1..end];
    let last = inside.iter().rposition(|line| line.trim_end() == mark)?;
    Some(inside[..last].iter().flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_taken_apart_where_its_files_parse() {
        let text = "Write it.\n<readme>\n## README.md\n\n# Hello\n\n## Use\n\nit\n\n</readme>\n\n<dependencies>\n<dependencies>\n## click\n\
                    Version: >=8,<9\n\n## six\nVersion: any\n\n## a b\nVersion: ==1\n</dependencies>\n</dependencies>\n\n<implementations>\n\
                    ## a/b.py\n\n```python\nX = '''\n## a/no.py\n\n```python\nnot a file\n```\n'''\n```\n\n## a/c.py\n\n```python\n```\n\n\
                    ## pyproject.toml\n\n```toml\n[project]\n```\n\n</implementations>\n";
        let pair = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let expected = PublishedPrompt {
            readme: vec![pair("README.md", "# Hello\n\n## Use\n\nit\n")],
            requirements: vec!["click>=8,<9".to_owned(), "six".to_owned()],
            files: vec![
                pair("a/b.py", "X = '''\n## a/no.py\n\n```python\nnot a file\n```\n'''\n"),
                pair("a/c.py", ""),
                pair("pyproject.toml", "[project]\n"),
            ],
        };
        assert_eq!(read(text).unwrap(), expected);
        assert!(read("<readme>\n</readme>\n").unwrap_err().contains("<dependencies>"));
    }
}
