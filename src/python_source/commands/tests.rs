//! Tests of what is found of commands in Python files.

use super::*;

/// Line, program, words (a file in angle brackets) and input of each invocation.
fn found(text: &str) -> Vec<(u32, String, String, Option<String>)> {
    let invocations = commands(text).invocations.into_iter();
    let row = |one: Invocation| {
        let program = match one.program {
            Program::Object(name) => name,
            Program::Interpreter => "python".to_owned(),
            Program::Named(name) => format!("/{name}"),
            Program::Helper => "?".to_owned(),
        };
        let word = |word: &Argument| match word {
            Argument::Text(text) => text.clone(),
            Argument::File(path) => format!("<{path}>"),
        };
        let words: Vec<String> = one.arguments.iter().map(word).collect();
        (one.line, program, words.join(" "), one.input)
    };
    invocations.map(row).collect()
}

fn one(line: u32, program: &str, words: &str) -> (u32, String, String, Option<String>) {
    (line, program.to_owned(), words.to_owned(), None)
}

#[test]
fn lists_that_tests_pass_to_programs_are_found() {
    let text = r#"
def test_cli():
    CliRunner().invoke(cli.cli, ["tables", "a.db"], input="x")
    runner.invoke(main, args=("b",))
    main(["c", "--d"])
    subprocess.run([sys.executable, "-m", "shop", "e"], check=True)
    shop.main(["f"])
    runner.invoke(cli, ["g", path])
    main(sys.argv)
    main(["h"], 1)
    main(sys.stderr, argv=["i"])
    main(["j"], ["k"])
    subprocess.run(["shop", "-l"], stdin=b"y")
    shutil.copy("a", "b")
    self.run_command("ls", "-f")
    check("--json", "x", code=2)
    parser.add_argument("--json", "-j")
    float("-inf")
"#;
    let typed = |line, program: &str, words: &str, input: &str| {
        (line, program.to_owned(), words.to_owned(), Some(input.to_owned()))
    };
    assert_eq!(
        found(text),
        [
            typed(3, "cli", "tables a.db", "x"),
            one(4, "main", "b"),
            one(5, "main", "c --d"),
            one(6, "python", "-m shop e"),
            one(7, "main", "f"),
            one(10, "main", "h"),
            one(11, "main", "i"),
            typed(13, "/shop", "-l", "y"),
            one(15, "?", "ls -f"),
            one(16, "?", "--json x"),
        ]
    );
    assert_eq!(commands(text).vocabulary.into_iter().collect::<Vec<_>>(), ["--json", "-j"]);
}

#[test]
fn the_status_that_a_test_expects_is_that_of_the_invocation_before() {
    let text = r#"
def test_a():
    result = runner.invoke(cli, ["a", str("x")])
    assert result.exit_code == 1, result.output
    assert result.exit_code == 5
    runner.invoke(cli, ["b"])
    other(unknown)
    assert result.exit_code == 1
    run(["--c"], code=3)
    result = runner.invoke(cli, ["d"])
    self.assertEqual(result.exit_code, 4)
    one = runner.invoke(cli, ["f"])
    two = runner.invoke(cli, ["g"])
    assert one.exit_code == 1
    if two.exit_code == 1:
        return
    assert runner.invoke(cli, ["h"]).exit_code == 3

def test_b():
    assert result.exit_code == 1
    runner.invoke(cli, ["e"])
    assert result.exit_code != 1
    assert result.lines == 1
"#;
    let found: Vec<(Argument, Option<u8>)> =
        commands(text).invocations.into_iter().map(|one| (one.arguments[0].clone(), one.exit)).collect();
    let expected = [
        ("a", Some(1)),
        ("b", None),
        ("--c", Some(3)),
        ("d", Some(4)),
        ("f", None),
        ("g", None),
        ("h", Some(3)),
        ("e", None),
    ];
    assert_eq!(found, expected.map(|(word, exit)| (Argument::Text(word.to_owned()), exit)));
}

#[test]
fn what_is_written_out_elsewhere_is_followed() {
    let text = r#"
SQL = "select 1"
def test_names(tmp_path):
    path = tmp_path / "a.db"
    main(["query", str(path), SQL])
    main("a 'b'".split() + ["c"])
    main([*shlex.split("d e"), f"--x={SQL}", f"{tmp_path}/out.json", fixture("in.csv")])
    main([os.path.join(HERE, "data/in.csv"), path.name])
    SQL = other()
    main([SQL])

@pytest.mark.parametrize("options,n", [(["--a"], 1), pytest.param(["--b"], 2), (made(), 3)])
@pytest.mark.parametrize("word", ["x", "y"])
def test_cases(options, n, word):
    main(["go", word] + options)
    main([SQL])
"#;
    assert_eq!(
        found(text),
        [
            one(5, "main", "query <a.db> select 1"),
            one(6, "main", "a 'b' c"),
            one(7, "main", "d e --x=select 1 <out.json> <in.csv>"),
            one(8, "main", "<data/in.csv> <a.db>"),
            one(15, "main", "go x --a"),
            one(16, "main", "select 1"),
            one(15, "main", "go y --a"),
            one(15, "main", "go x --b"),
            one(15, "main", "go y --b"),
        ]
    );
}

#[test]
fn options_and_subcommands_that_code_declares_are_its_vocabulary() {
    let text = "@cli.command()\ndef buy_all(): pass\n@app.command('go')\n@click.option('--yes/--no', '-y')\ndef x(): pass\nsub = Subcommand('list')\noptions = (('all', {'help': ''}), ('x', 1))\n@property\ndef y(): pass\n";
    let words: Vec<String> = commands(text).vocabulary.into_iter().collect();
    assert_eq!(words, ["--all", "--no", "--yes", "-y", "buy-all", "go", "list", "x"]);
}

#[test]
fn cases_of_cases_end() {
    let many = format!("[{}]", (0..100).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(","));
    let head = format!("@p.parametrize('a', {many})\n@p.parametrize('b', {many})\ndef f(a, b):\n");
    let inner = head.replace('@', "    @").replace("def", "    def");
    let found = found(&format!("{head}{inner}        main([a, b])\n"));
    assert!((1..=CASES.1).contains(&found.len()), "{}", found.len());
}

#[test]
fn a_main_guard_is_one_on_the_level_of_the_module() {
    assert_eq!(commands("x = 1\nif __name__ == '__main__':\n    main()\n").main_guard, Some(2));
    assert_eq!(commands("if '__main__' == __name__: pass\n").main_guard, Some(1));
    for text in
        ["def f():\n    if __name__ == '__main__': pass\n", "if __name__ != '__main__': pass\n", "(", ""]
    {
        assert_eq!(commands(text).main_guard, None, "{text}");
    }
}

#[test]
fn scripts_of_a_setup_file_are_read_where_they_are_literal() {
    let text = "setup(\n  entry_points={'console_scripts': ['a = b:c', 'd=e:f'], 'x': ['y']},\n)\nsetup(entry_points=z)\n";
    assert_eq!(commands(text).scripts, [(2, "a = b:c".to_owned()), (2, "d=e:f".to_owned())]);
}

#[test]
fn texts_that_grow_and_calls_without_end_are_bounded() {
    let grown = format!("A = 'xy'\n{}main(A.split())\nmain(['a', A])\n", "A = A + A\n".repeat(60));
    assert_eq!(found(&grown), []);
    assert_eq!(found(&grown.replace("A + A", "f'{A}{A}'")), []);
    let many: String = (0..MOST + 9).map(|at| format!("main(['{at}'])\n")).collect::<Vec<_>>().concat();
    assert_eq!(found(&many).len(), MOST);
}
