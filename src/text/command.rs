//! A command line taken apart as a POSIX shell would, as far as it is one plain command. Pure.

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// What a shell would do something with: `|`, `<`, `&&`.
    Operator(String),
}

/// Longest line that is read, in bytes.
const LONGEST: usize = 4096;

/// Words and operators of a line; a comment ends it.
///
/// # Errors
/// What only a shell could expand, and what does not end, in words.
pub(crate) fn tokens(line: &str) -> Result<Vec<Token>, String> {
    if line.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let mut read = Reader { rest: line, tokens: Vec::new(), word: None };
    while let Some(character) = read.next() {
        read.take(character)?;
    }
    read.end_word();
    Ok(read.tokens)
}

/// The words of a line that is one plain command.
///
/// # Errors
/// What only a shell could do, in words.
pub(crate) fn words(line: &str) -> Result<Vec<String>, String> {
    let of = |token| match token {
        Token::Word(word) => Ok(word),
        Token::Operator(operator) => Err(format!("`{operator}` is for a shell")),
    };
    let words: Vec<String> = tokens(line)?.into_iter().map(of).collect::<Result<_, _>>()?;
    if let Some(first) = words.first().filter(|first| is_assignment(first)) {
        return Err(format!("`{first}` sets a variable, which is for a shell"));
    }
    Ok(words)
}

/// Whether a word in front of a command would set a variable.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

struct Reader<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    word: Option<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(Token::Word));
    }

    fn take(&mut self, character: char) -> Result<(), String> {
        match character {
            ' ' | '\t' | '\n' => self.end_word(),
            '#' if self.word.is_none() => self.rest = "",
            '\'' => self.single()?,
            '"' => self.double()?,
            '\\' => {
                let next = self.next().ok_or("it ends with a backslash")?;
                self.push(next);
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' => self.operator(character),
            '$' | '`' => return Err(format!("`{character}` is for a shell to expand")),
            '*' | '?' | '[' => {
                return Err(format!("`{character}` is a glob, which is for a shell to expand"));
            }
            '{' if self.rest.split('}').next().is_some_and(|inside| inside.contains([',', '.'])) => {
                return Err("braces are for a shell to expand".to_owned());
            }
            '~' if self.word.is_none() => return Err("`~` is for a shell to expand".to_owned()),
            other if other.is_control() => return Err("it has a control character".to_owned()),
            other => self.push(other),
        }
        Ok(())
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn single(&mut self) -> Result<(), String> {
        let (inside, rest) = self.rest.split_once('\'').ok_or("a quote does not end")?;
        self.word.get_or_insert_default().push_str(inside);
        self.rest = rest;
        Ok(())
    }

    fn double(&mut self) -> Result<(), String> {
        self.word.get_or_insert_default();
        loop {
            match self.next().ok_or("a quote does not end")? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or("a quote does not end")? {
                    '\n' => {}
                    special @ ('"' | '\\' | '$' | '`') => self.push(special),
                    other => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                expanded @ ('$' | '`') => return Err(format!("`{expanded}` is for a shell to expand")),
                other => self.push(other),
            }
        }
    }

    fn operator(&mut self, first: char) {
        // A number in front of a redirection is the descriptor that it is about.
        let descriptor = self
            .word
            .take_if(|word| matches!(first, '<' | '>') && word.bytes().all(|byte| byte.is_ascii_digit()));
        self.end_word();
        let mut operator = descriptor.unwrap_or_default();
        operator.push(first);
        while let Some(next) =
            self.rest.chars().next().filter(|next| matches!(next, '|' | '&' | ';' | '<' | '>'))
        {
            operator.push(next);
            self.next();
        }
        self.tokens.push(Token::Operator(operator));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_taken_apart_as_a_shell_does() {
        for (line, expected) in [
            ("shop export --json out.json", vec!["shop", "export", "--json", "out.json"]),
            (r#"shop say "it's \"so\"" 'a b'c\ d"#, vec!["shop", "say", "it's \"so\"", "a bc d"]),
            ("shop a#b '' # what it does", vec!["shop", "a#b", ""]),
            (r#"shop "a\n" '*' '$x'"#, vec!["shop", "a\\n", "*", "$x"]),
            ("shop {} {a} a=b ~", vec![]),
        ] {
            match words(line) {
                Ok(words) => assert_eq!(words, expected, "{line}"),
                Err(reason) => assert!(expected.is_empty() && reason.contains('~'), "{line}: {reason}"),
            }
        }
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused_with_its_sign() {
        for (line, sign) in [
            ("shop a && shop b", "&&"),
            ("shop a | wc", "|"),
            ("shop a > out", ">"),
            ("shop a 2>&1", "2>&"),
            ("shop < in", "<"),
            ("shop *.txt", "*"),
            ("shop $HOME", "$"),
            ("shop \"$HOME\"", "$"),
            ("shop `date`", "`"),
            ("shop {a,b}", "braces"),
            ("shop a; shop b", ";"),
            ("shop 'a", "quote"),
            ("shop a\\", "backslash"),
            ("A=1 shop", "A=1"),
            ("shop \u{1b}[2J", "control"),
        ] {
            let reason = words(line).unwrap_err();
            assert!(reason.contains(sign), "{line}: {reason}");
        }
    }

    #[test]
    fn operators_stay_where_they_are() {
        let word = |text: &str| Token::Word(text.to_owned());
        let found = tokens("shop stats < data/in.txt").unwrap();
        assert_eq!(found, [word("shop"), word("stats"), Token::Operator("<".into()), word("data/in.txt")]);
    }
}
