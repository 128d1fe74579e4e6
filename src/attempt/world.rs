//! Worlds as settings: what differs in each dimension, as environment variables, places, mounts and steps of the
//! runner. Pure, but for [`relocated`], which reads and writes the path files of an environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::capabilities::Capabilities;
use super::normalize::Normalizer;
use crate::backend::sandbox::USER;
use crate::backend::{Mount, Places, clock};
use crate::error::Result;
use crate::record::limits::Timeouts;
use crate::record::verdict::Dimension;
use crate::record::world::{PROBE, World};
use crate::runner::Setting;

const OTHER_USER: &str = "somebody-else";
const OTHER_HOME: &str = "/srv/people/somebody-else";
const OTHER_TMP: &str = "/var/scratch/temporary-files";
const OTHER_ROOT: &str = "/srv/checkouts/of-somebody-else/a/longer/and/deeper/path/to/the-tree";
const ELSEWHERE: &str = "/srv/elsewhere";
const OTHER_HASH_SEED: u32 = 271_828_182;
const OTHER_COLUMNS: &str = "133";
const OTHER_LINES: &str = "43";
/// Where the locale and the clock of other worlds are shown inside.
const LOCALES: &str = "/opt/world/locales";
const CLOCK: &str = "/opt/world/clock";
/// Largest path file of an environment that is looked at, in bytes.
const LARGEST_PATH_FILE: u64 = 16 << 20;
/// What contention may cost: limits are that much longer while it lasts.
const LOAD_FACTOR: u32 = 4;

/// The complete environment of the base world: nothing is inherited from the user.
///
/// Hash seed 0, UTC, the C.UTF-8 locale, 80×24 terminal, a home and user of its own; `extra` comes from the config.
pub fn base_environment(places: &Places, extra: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let venv = places.venv.to_string_lossy();
    let home = places.home.to_string_lossy();
    let fixed = [
        ("PATH", format!("{venv}/bin:/usr/local/bin:/usr/bin:/bin")),
        ("VIRTUAL_ENV", venv.to_string()),
        ("HOME", home.to_string()),
        ("USER", USER.into()),
        ("LOGNAME", USER.into()),
        ("SHELL", "/bin/sh".into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("TERM", "dumb".into()),
        ("COLUMNS", "80".into()),
        ("LINES", "24".into()),
        ("PYTHONHASHSEED", "0".into()),
    ];
    let mut environment: BTreeMap<String, String> =
        fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    environment.extend(extra.clone());
    environment
}

/// A world that tests can be run in.
#[derive(Debug, Clone)]
pub struct WorldSetting {
    pub world: World,
    pub setting: Setting,
    pub normalizer: Normalizer,
    /// Whether attempts run under contention.
    pub loaded: bool,
}

impl WorldSetting {
    /// The base world.
    pub fn base(setting: &Setting) -> Self {
        WorldSetting {
            world: World::Base,
            setting: setting.clone(),
            normalizer: Normalizer::new(&setting.places, USER, &setting.python_prefix),
            loaded: false,
        }
    }

    /// `base` with the dimensions of `world` changed. `pinned` are the variables that the config sets: they stay.
    /// `folder` takes what has to be written for it.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn new(
        world: &World,
        capabilities: &Capabilities,
        base: &Setting,
        pinned: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<Self> {
        let mut made = WorldSetting { world: world.clone(), ..WorldSetting::base(base) };
        let setting = &mut made.setting;
        let varies = |dimension| world.varies(dimension, &capabilities.covered);
        let user = if varies(Dimension::Home) { OTHER_USER } else { USER };
        if varies(Dimension::Home) {
            setting.places.home = OTHER_HOME.into();
            setting.places.tmp = OTHER_TMP.into();
        }
        if let (true, Some(locale)) = (varies(Dimension::Locale), &capabilities.locale)
            && let Some(host) = &locale.folder
        {
            setting.more_mounts.push(Mount::ReadOnly { host: host.clone(), inside: LOCALES.into() });
        }
        if let (true, Some(host)) = (varies(Dimension::Clock), &capabilities.clock) {
            setting.more_mounts.push(Mount::ReadOnly { host: host.clone(), inside: CLOCK.into() });
        }
        if varies(Dimension::WorkingDirectory) {
            setting.more_writable.push(ELSEWHERE.into());
            setting.world.elsewhere = Some(ELSEWHERE.to_owned());
        }
        if varies(Dimension::TestFileLocation) {
            setting.world.probe = Some(PROBE.to_owned());
        }
        if varies(Dimension::CheckoutPath) {
            setting.places.root = OTHER_ROOT.into();
            setting.world.moved = true;
            setting.more_mounts.extend(relocated(base, Path::new(OTHER_ROOT), folder)?);
        }
        let variables = variables(world, capabilities, folder);
        setting.env.extend(variables.into_iter().filter(|(name, _)| !pinned.contains_key(name)));
        made.loaded = varies(Dimension::Load);
        made.normalizer = Normalizer::new(&made.setting.places, user, &made.setting.python_prefix);
        Ok(made)
    }

    /// The limits of a case and of a group in this world.
    pub fn timeouts(&self, base: Timeouts) -> Timeouts {
        let factor = if self.loaded { LOAD_FACTOR } else { 1 };
        Timeouts { case: base.case * factor, group: base.group * factor }
    }
}

/// Environment variables in which a world differs from the base world.
fn variables(world: &World, capabilities: &Capabilities, folder: &Path) -> Vec<(String, String)> {
    let varies = |dimension| world.varies(dimension, &capabilities.covered);
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
    if varies(Dimension::HashSeed) {
        set("PYTHONHASHSEED", &hash_seed(world));
    }
    if varies(Dimension::TimeZone) {
        set("TZ", &capabilities.time_zone);
    }
    if varies(Dimension::Terminal) {
        set("COLUMNS", OTHER_COLUMNS);
        set("LINES", OTHER_LINES);
    }
    if varies(Dimension::Home) {
        for (name, value) in
            [("HOME", OTHER_HOME), ("USER", OTHER_USER), ("LOGNAME", OTHER_USER), ("TMPDIR", OTHER_TMP)]
        {
            set(name, value);
        }
    }
    if let (true, Some(locale)) = (varies(Dimension::Locale), &capabilities.locale) {
        set("LANG", &locale.name);
        set("LC_ALL", &locale.name);
        if locale.folder.is_some() {
            set("LOCPATH", &format!("{LOCALES}:/usr/lib/locale"));
        }
    }
    if varies(Dimension::Clock) && capabilities.clock.is_some() {
        let library = Path::new(CLOCK).join(clock::FILE_NAME);
        variables.extend(clock::variables(&library, start_of(folder)));
    }
    variables
}

/// When the runs of a repository begin, the same for all attempts: after its tree, environment and byte code were made.
fn start_of(folder: &Path) -> SystemTime {
    let collected = fs_err::metadata(folder.join("collected.json")).and_then(|data| data.modified());
    collected.unwrap_or_else(|_| SystemTime::now())
}

/// A seed that no other world has.
fn hash_seed(world: &World) -> String {
    match world {
        World::Seed(number) => OTHER_HASH_SEED.wrapping_add(*number).to_string(),
        _ => OTHER_HASH_SEED.to_string(),
    }
}

/// What the worlds are like, in words for people: dimension → (base, other).
pub fn describe(capabilities: &Capabilities) -> BTreeMap<&'static str, [String; 2]> {
    let other = |dimension: Dimension| match dimension {
        Dimension::HashSeed => ["PYTHONHASHSEED=0".to_owned(), format!("PYTHONHASHSEED={OTHER_HASH_SEED}")],
        Dimension::TimeZone => ["UTC".to_owned(), capabilities.time_zone.clone()],
        Dimension::Locale => [
            "C.UTF-8".to_owned(),
            capabilities.locale.as_ref().map(|locale| locale.name.clone()).unwrap_or_default(),
        ],
        Dimension::Clock => {
            ["the machine's".to_owned(), format!("{} s later, wall clock only", clock::SHIFT.as_secs())]
        }
        Dimension::Home => [
            format!("user {USER}, /home/{USER}, /tmp"),
            format!("user {OTHER_USER}, {OTHER_HOME}, {OTHER_TMP}"),
        ],
        Dimension::Terminal => ["80×24".to_owned(), format!("{OTHER_COLUMNS}×{OTHER_LINES}")],
        Dimension::Load => ["as it is".to_owned(), "two others compute for each core".to_owned()],
        Dimension::CheckoutPath => ["/testbed".to_owned(), OTHER_ROOT.to_owned()],
        Dimension::WorkingDirectory => ["the root of the tree".to_owned(), ELSEWHERE.to_owned()],
        Dimension::TestFileLocation => ["its own".to_owned(), format!("{PROBE} in the root of the tree")],
    };
    capabilities.covered.iter().map(|dimension| (dimension.as_str(), other(*dimension))).collect()
}

/// Copies of the environment's path files that name another root, as mounts over the originals.
fn relocated(base: &Setting, root: &Path, folder: &Path) -> Result<Vec<Mount>> {
    let (old, new) = (base.places.root.to_string_lossy(), root.to_string_lossy());
    let mut mounts = Vec::new();
    for path in path_files(&base.venv)? {
        let Ok(text) = fs_err::read_to_string(&path) else { continue };
        if !text.contains(old.as_ref()) {
            continue;
        }
        let relative = path.strip_prefix(&base.venv).unwrap_or(&path);
        let copy = folder.join("moved").join(relative);
        if let Some(parent) = copy.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let text = text.replace(old.as_ref(), new.as_ref());
        // Another shard may have it mounted.
        if fs_err::read(&copy).ok().as_deref() != Some(text.as_bytes()) {
            crate::store::write_atomic(&copy, text.as_bytes())?;
        }
        mounts.push(Mount::ReadOnly { host: copy, inside: base.places.venv.join(relative) });
    }
    Ok(mounts)
}

/// Files beside the installed packages that say where an editable installation lies.
fn path_files(venv: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let libraries = venv.join("lib");
    for library in fs_err::read_dir(&libraries)? {
        let packages = library?.path().join("site-packages");
        if !packages.is_dir() {
            continue;
        }
        for entry in fs_err::read_dir(&packages)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name.ends_with(".dist-info") {
                found.push(path.join("direct_url.json"));
            } else if [".pth", ".egg-link", ".py"].iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.retain(|path| path.metadata().is_ok_and(|data| data.is_file() && data.len() <= LARGEST_PATH_FILE));
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn setting(venv: &Path, extra: &BTreeMap<String, String>) -> Setting {
        let limits = crate::record::limits::Limits { memory: 0, processes: 0, file_size: 0, output: 1 };
        let env = base_environment(&Places::in_sandbox(), extra);
        Setting::for_tree(
            &Places::in_sandbox(),
            Path::new("/usr"),
            venv,
            Path::new("/tree"),
            env,
            Path::new("/r"),
            &limits,
        )
    }

    fn capabilities() -> Capabilities {
        let covered: BTreeSet<Dimension> = Dimension::ALL
            .into_iter()
            .filter(|one| !matches!(one, Dimension::Clock | Dimension::Locale))
            .collect();
        Capabilities {
            covered,
            not_covered: BTreeMap::new(),
            time_zone: "Pacific/Chatham".into(),
            locale: None,
            clock: None,
        }
    }

    fn made(world: &World, extra: &BTreeMap<String, String>) -> WorldSetting {
        let folder = tempfile::tempdir().expect("temp dir");
        let packages = folder.path().join("venv/lib/python3.12/site-packages");
        std::fs::create_dir_all(&packages).expect("makes");
        std::fs::write(packages.join("a.pth"), "/testbed/src\n").expect("writes");
        std::fs::write(packages.join("b.pth"), "/elsewhere\n").expect("writes");
        let base = setting(&folder.path().join("venv"), extra);
        WorldSetting::new(world, &capabilities(), &base, extra, folder.path()).expect("a world")
    }

    #[test]
    fn one_dimension_changes_nothing_of_the_others() {
        let base = base_environment(&Places::in_sandbox(), &BTreeMap::new());
        for (dimension, variable) in [
            (Dimension::HashSeed, "PYTHONHASHSEED"),
            (Dimension::TimeZone, "TZ"),
            (Dimension::Terminal, "COLUMNS"),
        ] {
            let world = made(&World::one(dimension), &BTreeMap::new());
            let changed: Vec<&String> = world
                .setting
                .env
                .iter()
                .filter(|(name, value)| base.get(*name) != Some(value))
                .map(|(name, _)| name)
                .collect();
            assert!(changed.iter().any(|name| *name == variable), "{dimension:?}: {changed:?}");
            assert!(
                changed.iter().all(|name| *name == variable || *name == "LINES"),
                "{dimension:?}: {changed:?}"
            );
            assert_eq!(world.setting.places, Places::in_sandbox());
        }
    }

    #[test]
    fn the_base_world_is_the_base_setting() {
        let world = made(&World::Base, &BTreeMap::new());
        assert_eq!(world.setting.env, base_environment(&Places::in_sandbox(), &BTreeMap::new()));
        assert!(world.setting.more_mounts.is_empty() && !world.loaded);
    }

    #[test]
    fn what_the_config_sets_stays_in_every_world() {
        let extra: BTreeMap<String, String> = [("TZ".to_owned(), "Asia/Tokyo".to_owned())].into();
        assert_eq!(made(&World::Everything, &extra).setting.env["TZ"], "Asia/Tokyo");
    }

    #[test]
    fn another_checkout_path_is_known_to_the_path_files_that_name_it() {
        let world = made(&World::one(Dimension::CheckoutPath), &BTreeMap::new());
        assert_eq!(world.setting.places.root, Path::new(OTHER_ROOT));
        let mounts = &world.setting.more_mounts;
        let [Mount::ReadOnly { inside, .. }] = mounts.as_slice() else { panic!("{mounts:?}") };
        assert!(inside.ends_with("site-packages/a.pth"), "{inside:?}");
    }

    #[test]
    fn contention_stretches_the_limits() {
        let limits = Timeouts { case: Duration::from_secs(1), group: Duration::from_secs(2) };
        let loaded = made(&World::one(Dimension::Load), &BTreeMap::new()).timeouts(limits);
        assert_eq!(loaded.case, Duration::from_secs(4));
        assert_eq!(made(&World::one(Dimension::Home), &BTreeMap::new()).timeouts(limits), limits);
    }
}
