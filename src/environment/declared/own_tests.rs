use super::*;

fn own(texts: &[(&str, &str)], asked: &[&str]) -> Vec<(String, String)> {
    let files = Files::from_texts(texts.iter().copied());
    let project = Project::parse(&files).unwrap();
    let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
    distributions(&files, &project, &asked).into_iter().collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect()
}

fn names(texts: &[(&str, &str)]) -> Vec<String> {
    own(texts, &[]).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn members_of_a_workspace_belong_to_the_tree_even_when_they_are_required() {
    let root = "[project]\nname = 'Acme_Root'\ndependencies = ['acme-b', 'requests']\n[tool.uv.workspace]\n\
                members = ['packages/*', './examples/*/']\nexclude = ['examples/old']\n[tool.uv.sources]\n\
                acme-b = {workspace = true}\n";
    let texts = [
        ("pyproject.toml", root),
        ("packages/a/pyproject.toml", "[project]\nname = 'acme.a'\n"),
        ("packages/b/pyproject.toml", "[project]\nname = 'acme-b'\n"),
        ("examples/web/pyproject.toml", "[project]\nname = 'requests'\n"),
        ("examples/old/pyproject.toml", "[project]\nname = 'requests'\n"),
    ];
    let expected = pairs(&[
        ("acme-a", "packages/a/pyproject.toml"),
        ("acme-b", "pyproject.toml"),
        ("acme-root", "pyproject.toml"),
        ("requests", "examples/web/pyproject.toml"),
    ]);
    assert_eq!(own(&texts, &["acme-b"]), expected);
}

#[test]
fn nested_projects_are_read_in_every_form() {
    let texts = [
        ("a/pyproject.toml", "[tool.poetry]\nname = 'a-x'\n"),
        ("b/setup.cfg", "[metadata]\nname = b_x\n"),
        ("c/setup.py", "NAME = 'c.x'\nfrom setuptools import setup\nsetup(name=NAME, version='1')\n"),
        ("deep/er/d/setup.py", "setup(name=\"d-x\")\n"),
        ("e/pyproject.toml", "[tool.ruff]\n"),
        ("e/setup.py", "setup(\n    name='e-x',\n)\n"),
        ("f/pyproject.toml", "[project\n"),
        ("g/setup.py", "setup(name=read('NAME'))\n"),
        ("h/pyproject.toml", "[project]\nname = 'no name'\n"),
    ];
    assert_eq!(names(&texts), ["a-x", "b-x", "c-x", "d-x", "e-x"]);
}

#[test]
fn what_declarations_take_from_a_path_belongs_to_the_tree() {
    let root = "[project]\nname = 'r'\ndependencies = ['in-project @ file:///x', 'far @ https://host/far.whl']\n\
                [tool.hatch.version]\npath = 'r/version.py'\n\
                [tool.uv.sources]\nuv_path = {path = '../x'}\nuv-many = [{index = 'i'}, {path = 'y'}]\nuv-git = {git = 'https://h/x'}\n\
                [tool.poetry.dependencies]\npoetry_path = {path = '../p', develop = true}\nplain = '^1'\n\
                [tool.poetry.group.dev.dependencies]\npoetry-dev = {path = 'q'}\n\
                [tool.pdm.dev-dependencies]\ndev = ['-e file:///${PROJECT_ROOT}/s#egg=pdm-path']\n\
                [tool.hatch.envs.test]\ndependencies = ['hatch-path[x] @ {root:uri}/h']\n";
    let texts = [
        ("pyproject.toml", root),
        ("requirements.txt", "listed @ file:///l\nfrozen @ file:///croot/frozen_1/work\n-e ./sub\nsix\n"),
    ];
    let expected = [
        "hatch-path",
        "in-project",
        "listed",
        "pdm-path",
        "poetry-dev",
        "poetry-path",
        "r",
        "uv-many",
        "uv-path",
    ];
    assert_eq!(names(&texts), expected);
}

#[test]
fn stand_ins_do_not_take_the_names_of_what_is_required_or_known() {
    let stand_ins = [
        ("tests/data/one/setup.py", "setup(name='needed')\n"),
        ("examples/two/pyproject.toml", "[project]\nname = 'acme-example'\n"),
        ("vendored-meson/meson/setup.cfg", "[metadata]\nname = meson\n"),
        ("pkg/_vendor/urllib3/pyproject.toml", "[project]\nname = 'urllib3'\n"),
        ("test_project/pyproject.toml", "[project]\nname = 'asked'\n"),
    ];
    for root in [
        (
            "pyproject.toml",
            "[project]\nname = 'r'\ndependencies = ['Needed[x]>=1']\n[build-system]\nrequires = ['meson']\n",
        ),
        (
            "setup.py",
            "setup(name='r', install_requires=['needed ; python_version > \"3\"'], setup_requires=['meson'])\n",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = r\n[options]\ninstall_requires =\n  needed\nsetup_requires = meson\n",
        ),
    ] {
        let texts: Vec<(&str, &str)> = stand_ins.into_iter().chain([root]).collect();
        let found: Vec<String> = own(&texts, &["asked>=2"]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["acme-example", "r"], "{}", root.0);
    }
    // Outside such folders the name is the tree's own, required or not.
    let texts = [
        ("pyproject.toml", "[project]\nname = 'r'\ndependencies = ['needed']\n"),
        ("packages/needed/pyproject.toml", "[project]\nname = 'needed'\n"),
    ];
    assert_eq!(names(&texts), ["needed", "r"]);
}

#[test]
fn folders_aside_are_told_by_any_part_of_their_path() {
    for folder in
        ["tests/x", "pkg/_vendor/x", "third_party", "a/Docs/b", "vendored-meson/meson", "test_data/x"]
    {
        assert!(is_aside(folder), "{folder}");
    }
    for folder in ["packages/x", "src/pkg", "testify", "database", "latest/x"] {
        assert!(!is_aside(folder), "{folder}");
    }
}
