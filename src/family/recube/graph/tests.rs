use super::*;
use crate::family::recube::mask::{Cut, mask};

const TARGET: &str = "src/shop/core.py";
const CORE: &str = "\
from .base import Base
from . import tools


class Core(Base):
    def run(self):
        total = tools.double(secret_helper(7))
        return super().run() + total

    def own(self):
        return self.run()


def make():
    return Core()
";
const FILES: [(&str, &str); 6] = [
    ("src/shop/__init__.py", "from .core import Core, make as create\nfrom .tools import *\n"),
    (
        "src/shop/base.py",
        "class Base:\n    def run(self):\n        return self.ready()\n\n    @property\n    def ready(self):\n        return 1\n\n    \
         @ready.setter\n    def ready(self, value):\n        pass\n",
    ),
    ("src/shop/tools.py", "def double(x):\n    return 2 * x\n"),
    (
        "src/shop/app.py",
        "import shop.core\nfrom shop import Core, create, double, tools\nfrom shop.core import LIMIT\n\n\nclass App(Core):\n    def go(self, \
         double):\n        self.own()\n        self.run()\n        self.ready()\n        double(1)\n        def inner():\n            \
         return tools.double(2)\n        return shop.core.make(), unknown.thing()\n\n    def run(self):\n        return super().run()\n\n\n\
         app = create()\ndouble(3)\n",
    ),
    ("src/shop/broken.py", "def run(:\n"),
    ("lone.py", "from src.shop.base import Base\nBase()\nBase()\n"),
];

fn sample() -> Graph {
    let masked = mask(CORE, Cut::All).unwrap().text;
    let mut texts: BTreeMap<&str, &str> = FILES.into();
    texts.insert(TARGET, &masked);
    graph(TARGET, &texts)
}

fn edges(graph: &Graph, kind: EdgeKind) -> Vec<String> {
    let of_kind = graph.edges.iter().filter(|edge| edge.kind == kind);
    of_kind.map(|edge| format!("{} {} {}", edge.from, edge.to, edge.count).replace("src/shop/", "")).collect()
}

#[test]
fn imports_are_followed_to_what_they_name() {
    assert_eq!(
        edges(&sample(), EdgeKind::Imports),
        [
            "lone.py base.py:Base 1",
            "__init__.py core.py:Core 1",
            "__init__.py core.py:make 1",
            "__init__.py tools.py 1",
            // A module, a re-export, a re-export under another name, one by `*`, a module below, a name that is no definition.
            "app.py core.py 2",
            "app.py core.py:Core 1",
            "app.py core.py:make 1",
            "app.py tools.py 1",
            "app.py tools.py:double 1",
        ]
    );
}

#[test]
fn calls_are_found_by_imports_self_and_bases_and_the_rest_is_left_out() {
    let sample = sample();
    assert_eq!(
        edges(&sample, EdgeKind::Invokes),
        [
            "lone.py base.py:Base 2",
            "app.py core.py:make 1",
            "app.py tools.py:double 1",
            "app.py:App.go app.py:App.run 1",
            // Its parameter `double` is not the function; `ready` is of no class that the mask shows.
            "app.py:App.go core.py:Core.own 1",
            "app.py:App.go core.py:make 1",
            "app.py:App.go tools.py:double 1",
            "app.py:App.run core.py:Core.run 1",
            "base.py:Base.run base.py:Base.ready 1",
        ]
    );
    assert_eq!(edges(&sample, EdgeKind::Inherits), ["app.py:App core.py:Core 1"]);
}

#[test]
fn nothing_goes_out_of_the_target_and_its_bodies_are_nowhere() {
    let sample = sample();
    let out: Vec<&Edge> = sample.edges.iter().filter(|edge| edge.from.starts_with(TARGET)).collect();
    assert!(out.iter().all(|edge| edge.kind == EdgeKind::Contains), "{out:?}");
    let json = serde_json::to_string(&sample).unwrap();
    for line in CORE.lines().filter(|line| line.starts_with("        ")) {
        assert!(!json.contains(line.trim()), "{line}");
    }
    assert!(!json.contains("secret_helper"));
    let core = sample.nodes.iter().find(|node| node.id == format!("{TARGET}:Core")).unwrap();
    assert_eq!((core.kind, &core.bases[..]), (NodeKind::Class, &["Base".to_owned()][..]));
}

#[test]
fn nodes_are_folders_files_and_definitions_once() {
    let sample = sample();
    let ids: Vec<&str> = sample.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids[..3], ["/", "src", "src/shop"]);
    assert!(ids.contains(&"src/shop/broken.py") && ids.contains(&"src/shop/app.py:App.go"), "{ids:?}");
    assert!(!ids.iter().any(|id| id.contains("inner")), "{ids:?}");
    let unique: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    let go = sample.nodes.iter().find(|node| node.id == "src/shop/app.py:App.go").unwrap();
    assert_eq!((go.lines, &go.text), (Some((7, 14)), &None));
    assert!(edges(&sample, EdgeKind::Contains).contains(&"/ lone.py 1".to_owned()));
}

#[test]
fn circles_of_imports_and_of_bases_end() {
    let texts = [
        (
            "a.py",
            "from b import X, Y\nfrom b import *\nclass C(D): pass\nclass D(C):\n    def f(self): self.g()\n",
        ),
        ("b.py", "from a import X, Z\nfrom a import *\nX()\nother()\n"),
    ];
    let graph = graph("b.py", &texts.into());
    assert!(edges(&graph, EdgeKind::Invokes).is_empty());
}

#[test]
fn files_that_import_everything_of_each_other_end() {
    let names: Vec<String> = (0..30).map(|number| format!("m{number}")).collect();
    let stars: String = names.iter().map(|name| format!("from {name} import *\n")).collect();
    let files: Vec<String> = names.iter().map(|name| format!("{name}.py")).collect();
    let text = format!("{stars}missing()\nclass A(missing): pass\n");
    let texts: BTreeMap<&str, &str> = files.iter().map(|file| (file.as_str(), text.as_str())).collect();
    let graph = graph("m0.py", &texts);
    assert_eq!(edges(&graph, EdgeKind::Imports).len(), 30 * 30);
    assert!(edges(&graph, EdgeKind::Invokes).is_empty());
}
