//! Lines for a shell in README files and documentation. Pure.

/// Languages of blocks that a person types.
const SHELLS: [&str; 8] =
    ["sh", "bash", "shell", "console", "shell-session", "zsh", "text-session", "shellsession"];
/// What a prompt looks like.
const PROMPTS: [&str; 4] = ["$ ", "% ", "> ", "# "];

/// A line that a document shows for a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// 1-based.
    pub(super) at: u32,
    pub(super) text: String,
}

/// Where a reader of a document is.
enum Block {
    Text,
    /// In a fenced block of Markdown that ends with this; whether it is for a shell.
    Fence(String, bool),
    /// In an indented block of reStructuredText below a directive this far to the right.
    Directive(usize),
}

/// The commands that a document shows. Continued lines are joined, prompts taken off; where a block has prompts, its other
/// lines are output.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let (mut found, mut block, mut place) = (Vec::new(), Vec::new(), Block::Text);
    for (at, line) in (1..).zip(text.lines()) {
        let (trimmed, indent) = (line.trim(), line.len() - line.trim_start().len());
        match &place {
            Block::Fence(end, is_shell) => {
                if trimmed.starts_with(end.as_str()) {
                    take(&mut block, &mut found);
                    place = Block::Text;
                } else if *is_shell {
                    block.push((at, trimmed));
                }
                continue;
            }
            Block::Directive(left) if trimmed.is_empty() || indent > *left => {
                let is_option = trimmed.starts_with(':') && block.is_empty();
                if !trimmed.is_empty() && !is_option {
                    block.push((at, trimmed));
                }
                continue;
            }
            Block::Directive(_) => {
                take(&mut block, &mut found);
                place = Block::Text;
            }
            Block::Text => {}
        }
        if let Some(next) = opened(trimmed, indent) {
            place = next;
        } else if indent > 0 && trimmed.starts_with("$ ") {
            block.push((at, trimmed));
        } else if !block.last().is_some_and(|(_, line)| line.ends_with('\\')) {
            take(&mut block, &mut found);
        } else {
            block.push((at, trimmed));
        }
    }
    take(&mut block, &mut found);
    found
}

/// The block that a line opens. One that names no language may be for a shell: its lines say whether they are commands.
fn opened(trimmed: &str, indent: usize) -> Option<Block> {
    let fence: String = trimmed.chars().take_while(|c| *c == '`' || *c == '~').collect();
    if fence.len() >= 3 {
        let language = trimmed[fence.len()..].trim().trim_start_matches(['{', '.']);
        let language = language.split([' ', ',', '}', ':']).next().unwrap_or_default().to_lowercase();
        return Some(Block::Fence(fence, language.is_empty() || SHELLS.contains(&language.as_str())));
    }
    if trimmed.ends_with("::") && !trimmed.starts_with("..") {
        return Some(Block::Directive(indent));
    }
    let directive = trimmed.strip_prefix(".. ")?;
    let (name, language) = directive.split_once("::")?;
    let is_code = matches!(name, "code-block" | "code" | "sourcecode" | "prompt");
    let language = language.trim().split(' ').next().unwrap_or_default();
    (is_code && (language.is_empty() || SHELLS.contains(&language))).then_some(Block::Directive(indent))
}

/// Takes the commands of a block.
fn take(block: &mut Vec<(u32, &str)>, found: &mut Vec<Line>) {
    let prompt = |line: &str| PROMPTS.into_iter().find(|prompt| line.starts_with(prompt));
    let has_prompts = block.iter().any(|(_, line)| matches!(prompt(line), Some("$ " | "% ")));
    let mut open: Option<Line> = None;
    for (at, line) in block.drain(..) {
        if let Some(Line { text, .. }) = open.as_mut().filter(|line| line.text.ends_with('\\')) {
            text.pop();
            text.push_str(line.strip_prefix("> ").unwrap_or(line));
            continue;
        }
        found.extend(open.take());
        let typed = match prompt(line) {
            Some("# ") => continue,
            None if line == ">" => continue,
            Some(prompt) => Some(&line[prompt.len()..]),
            None => (!has_prompts).then_some(line),
        };
        open = typed
            .filter(|text| !text.trim().is_empty())
            .map(|text| Line { at, text: text.trim().to_owned() });
    }
    found.extend(open);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, String)> {
        lines(text).into_iter().map(|line| (line.at, line.text)).collect()
    }

    fn one(at: u32, text: &str) -> (u32, String) {
        (at, text.to_owned())
    }

    #[test]
    fn blocks_of_markdown_that_are_for_a_shell_are_read() {
        let text = "# Shop\n\n```bash\nshop a \\\n  --b c\nshop d  # why\n```\n\n```python\nshop e\n```\n~~~console\n$ shop f\noutput\n~~~\n";
        assert_eq!(found(text), [one(4, "shop a --b c"), one(6, "shop d  # why"), one(13, "shop f")]);
    }

    #[test]
    fn blocks_of_restructured_text_and_prompts_are_read() {
        let text = "Shop\n====\n\n.. code-block:: console\n   :linenos:\n\n   $ shop a\n   out\n\n   $ shop b\n\nText:\n\n    $ shop c\n\n.. code-block:: python\n\n   shop d\n";
        assert_eq!(found(text), [one(7, "shop a"), one(10, "shop b"), one(14, "shop c")]);
    }

    #[test]
    fn a_block_without_a_language_may_be_for_a_shell() {
        let text = "Run::\n\n    shop a\n    shop b\n\nThen\n\n.. code-block::\n\n   shop c\n";
        assert_eq!(found(text), [one(3, "shop a"), one(4, "shop b"), one(10, "shop c")]);
        assert_eq!(found("```\nshop a\n```\nshop b\n"), [one(2, "shop a")]);
    }

    #[test]
    fn a_block_that_does_not_end_ends_with_the_text() {
        assert_eq!(found("```sh\nshop a"), [one(2, "shop a")]);
        assert!(found("```sh\n# shop a\n> \n```\n").is_empty());
        assert!(found("").is_empty());
    }
}
