//! A lab whose tests are played by a [`FakeBackend`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::backend::{FakeBackend, PACKAGE};
use super::made_up;
use crate::attempt::capabilities::Capabilities;
use crate::attempt::lab::Lab;
use crate::attempt::pool::Admission;
use crate::attempt::world::base_environment;
use crate::backend::Places;
use crate::record::environment::Built;
use crate::record::id::RepoSlug;
use crate::record::limits::Limits;
use crate::record::limits::Timeouts;
use crate::record::verdict::Dimension;
use crate::runner::Setting;

/// Dimensions that the labs of tests vary: none that needs anything of the machine.
pub(crate) const COVERED: [Dimension; 2] = [Dimension::HashSeed, Dimension::TimeZone];

/// The files of the script, with a function for every group, and the one that they call.
fn write_tree(backend: &FakeBackend, tree: &Path) {
    let mut texts: BTreeMap<String, String> =
        [(PACKAGE.to_owned(), "def work():\n    pass\n".to_owned())].into();
    for group in backend.groups() {
        let text = format!("def {}():\n    made.work()\n", group.function);
        texts.entry(group.file).or_default().push_str(&text);
    }
    for (file, text) in texts {
        let path = tree.join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

/// A lab in `folder`, with one worker. Its tree has the files of the script.
pub(crate) fn lab(backend: &FakeBackend, folder: &Path) -> Lab {
    let tree = folder.join("tree");
    write_tree(backend, &tree);
    let slug = RepoSlug::new("made/up").unwrap();
    let built = Built { tree: tree.clone(), env: BTreeMap::new(), ..made_up::built(&slug, folder) };
    let places = Places::in_sandbox();
    let limits = Limits { memory: 0, processes: 0, file_size: 0, output: 1 << 20 };
    let setting = Setting::for_tree(
        &places,
        &built.python_prefix,
        &built.venv,
        &tree,
        base_environment(&places, &built.env),
        &folder.join("runner"),
        &limits,
    );
    Lab {
        backend: Arc::new(backend.clone()),
        options: built.quiet_options(),
        built,
        setting,
        capabilities: Capabilities { covered: COVERED.into(), ..Capabilities::none() },
        folder: folder.join("screen"),
        timeouts: Timeouts { case: Duration::from_secs(1), group: Duration::from_secs(2) },
        admission: Arc::new(Admission::shared(1)),
        compare: crate::record::outcome::Compare::default(),
    }
}
