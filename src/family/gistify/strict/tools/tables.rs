//! Names: what leads to the tools that run tests, and what makes code of data.

use crate::family::gistify::findings::FindingKind;

/// What a dotted name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Danger {
    Kind(FindingKind),
    /// Something that is allowed where a line of the repository imports this module.
    Module(&'static str),
}

/// Modules, classes and functions that lead to what runs the test; what is below them does as well.
const TOOLS: [&str; 41] = [
    "_pytest",
    "pluggy",
    "gistmill_runner",
    "ctypes",
    "_ctypes",
    "cffi",
    "posix",
    "sys._getframe",
    "sys._getframemodulename",
    "sys._current_frames",
    "sys._current_exceptions",
    "sys.settrace",
    "sys.gettrace",
    "sys.setprofile",
    "sys.getprofile",
    "sys.monitoring",
    "sys.addaudithook",
    "sys.audit",
    "threading.settrace",
    "threading.settrace_all_threads",
    "threading.setprofile",
    "threading.setprofile_all_threads",
    "inspect.stack",
    "inspect.trace",
    "inspect.currentframe",
    "inspect.getouterframes",
    "inspect.getinnerframes",
    "inspect.getframeinfo",
    "traceback.walk_stack",
    "os._exit",
    "os.abort",
    "gc.get_objects",
    "gc.get_referrers",
    "gc.get_referents",
    "gc.callbacks",
    "gc.garbage",
    "bdb",
    "pytest.hookspec",
    "unittest.main",
    "unittest.case",
    "unittest.runner",
];
/// Those of pytest that are no part of how tests are written.
const OF_PYTEST: [&str; 29] = [
    "CallInfo",
    "Class",
    "CollectReport",
    "Collector",
    "Config",
    "Dir",
    "Directory",
    "DoctestItem",
    "File",
    "FixtureDef",
    "Function",
    "HookRecorder",
    "Item",
    "Metafunc",
    "Module",
    "OptionGroup",
    "Package",
    "Parser",
    "PytestPluginManager",
    "Session",
    "Stash",
    "TerminalReporter",
    "TestReport",
    "cmdline",
    "console_main",
    "freeze_includes",
    "main",
    "set_trace",
    "__dict__",
];
const CODE: [&str; 31] = [
    "marshal",
    "zipimport",
    "runpy",
    "imp",
    "codeop",
    "code",
    "_pickle",
    "pickle.loads",
    "pickle.load",
    "pickle.Unpickler",
    "dill",
    "cloudpickle",
    "types.CodeType",
    "types.FunctionType",
    "types.LambdaType",
    "builtins.exec",
    "builtins.eval",
    "builtins.compile",
    "importlib.abc",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "_imp",
    "importlib.util.spec_from_file_location",
    "importlib.util.spec_from_loader",
    "importlib.util.module_from_spec",
    "importlib.util.decache",
    "sys.meta_path",
    "sys.path_hooks",
    "sys.path_importer_cache",
];
/// Types of fixtures, by the names that they had before `pytest` had them, and where they are.
const TYPES: [&str; 7] = [
    "_pytest.capture.CaptureFixture",
    "_pytest.fixtures.FixtureRequest",
    "_pytest.logging.LogCaptureFixture",
    "_pytest.monkeypatch.MonkeyPatch",
    "_pytest.monkeypatch.notset",
    "_pytest.recwarn.WarningsRecorder",
    "_pytest.tmpdir.TempPathFactory",
];
/// Modules that a repository may use for what it does.
const EXCUSED: [&str; 2] = ["atexit", "signal"];
/// Attributes that lead there whatever they are of.
const ATTRIBUTES: [&str; 29] = [
    "__code__",
    "__globals__",
    "__builtins__",
    "__closure__",
    "_getframe",
    "_current_frames",
    "_pyfuncitem",
    "_fixturemanager",
    "_fixtureinfo",
    "_arg2fixturedefs",
    "_callTestMethod",
    "_exit",
    "settrace",
    "f_back",
    "f_builtins",
    "f_code",
    "f_globals",
    "f_locals",
    "f_trace",
    "tb_frame",
    "gi_frame",
    "cr_frame",
    "ag_frame",
    "co_code",
    "co_consts",
    "get_objects",
    "get_referrers",
    "get_referents",
    "ihook",
];
/// Modules that are not handed on, nor asked for computed names.
pub(super) const MODULES: [&str; 15] = [
    "sys",
    "os",
    "gc",
    "builtins",
    "importlib",
    "importlib.util",
    "importlib.machinery",
    "inspect",
    "types",
    "threading",
    "pytest",
    "pickle",
    "signal",
    "atexit",
    "traceback",
];
/// What looks an attribute of its first argument up, by name.
pub(super) const LOOKS_UP_ATTRIBUTES: [&str; 3] = ["getattr", "hasattr", "getattr_static"];
/// What stores to an attribute of its first argument, or to what a text names.
pub(super) const STORES: [&str; 8] =
    ["setattr", "delattr", "__setattr__", "__delattr__", "object", "patch", "multiple", "setitem"];
/// Methods of `sys.modules` that are asked for one module.
pub(super) const PASSED_ON: [&str; 6] = ["get", "pop", "setdefault", "update", "__contains__", "__setitem__"];
/// What pytest hands to fixtures, and what they may ask of it.
pub(super) const MODULES_OF_NODE: [&str; 1] = ["request.node"];
pub(super) const HARMLESS_OF_NODE: [&str; 17] = [
    "name",
    "nodeid",
    "originalname",
    "get_closest_marker",
    "iter_markers",
    "own_markers",
    "add_marker",
    "callspec",
    "addfinalizer",
    "path",
    "fspath",
    "keywords",
    "user_properties",
    "listnames",
    "warn",
    "stash",
    "rep_call",
];
const HOOKS: &str = "pytest_plugins pytest_runtest pytest_pyfunc_call pytest_make pytest_report pytest_collect \
    pytest_collection pytest_collectstart pytest_itemcollected pytest_fixture pytest_configure pytest_unconfigure \
    pytest_session pytest_sessionstart pytest_sessionfinish pytest_assert pytest_assertrepr pytest_assertion pytest_exception \
    pytest_generate_tests pytest_addhooks pytest_addoption pytest_plugin pytest_load pytest_cmdline pytest_pycollect \
    pytest_ignore pytest_deselected pytest_warning pytest_terminal pytest_keyboard pytest_internalerror pytest_enter \
    pytest_leave pytest_markeval pytest_parser pytest_register pytest_unregister";
/// Files of a process that say something of it, and nothing of what is in it.
const PROCESS_FILES: &str = "/proc/self/status /proc/self/stat /proc/self/statm /proc/self/limits /proc/self/cgroup \
    /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/uptime /proc/version /proc/stat /proc/filesystems";

/// What a dotted name leads to.
pub(super) fn danger_of(dotted: &str) -> Option<Danger> {
    let below =
        |root: &&str| dotted.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if dotted == "_pytest.monkeypatch" || TYPES.iter().any(&below) {
        return None;
    }
    if CODE.iter().any(&below) || is_loader(dotted) {
        return Some(Danger::Kind(FindingKind::HiddenCode));
    }
    if dotted == "pytest.hookimpl" || dotted.starts_with("pytest.hookimpl.") {
        return Some(Danger::Kind(FindingKind::RegistersPlugin));
    }
    let of_pytest = dotted.strip_prefix("pytest.").map(|rest| rest.split('.').next().unwrap_or(rest));
    if TOOLS.iter().any(&below) || of_pytest.is_some_and(|name| OF_PYTEST.contains(&name)) {
        return Some(Danger::Kind(FindingKind::ReachesTestTools));
    }
    EXCUSED.into_iter().find(|one| below(one)).map(Danger::Module)
}

fn is_loader(dotted: &str) -> bool {
    let Some(name) = dotted.strip_prefix("importlib.machinery.") else { return false };
    let name = name.split('.').next().unwrap_or(name);
    name.ends_with("Loader") || name.ends_with("Finder") || name.ends_with("Importer") || name == "ModuleSpec"
}

/// What an attribute leads to, whatever it is of.
pub(super) fn danger_of_attribute(name: &str) -> Option<FindingKind> {
    match name {
        "pluginmanager" | "add_hookcall_monitoring" | "subset_hook_caller" => {
            Some(FindingKind::RegistersPlugin)
        }
        "exec_module" | "load_module" => Some(FindingKind::HiddenCode),
        _ => ATTRIBUTES.contains(&name).then_some(FindingKind::ReachesTestTools),
    }
}

/// Whether a dotted name is one of the tools that run tests, or below one.
pub(super) fn is_test_tool(dotted: &str) -> bool {
    let root = dotted.split('.').next().unwrap_or_default();
    matches!(root, "pytest" | "_pytest" | "pluggy" | "unittest" | "gistmill_runner")
}

/// Whether pytest calls something of this name when it is in a plugin.
pub(super) fn is_hook(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("pytest_") else { return false };
    let is_name = rest.chars().all(|one| one == '_' || one.is_ascii_alphanumeric());
    is_name
        && HOOKS
            .split_whitespace()
            .any(|hook| name.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
}

pub(super) fn is_code_builtin(name: &str) -> bool {
    matches!(name, "exec" | "eval" | "compile")
}

pub(super) fn is_harmless_process_file(path: &str) -> bool {
    PROCESS_FILES.split_whitespace().any(|one| one == path)
}
