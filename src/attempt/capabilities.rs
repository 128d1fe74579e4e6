//! What this machine can vary: asked once for a build, recorded in the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::backend::{Backend, Job, Mount, clock, retry};
use crate::error::{Error, OrWhy, Result};
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::verdict::Dimension;
use crate::store::Cache;

/// A zone with an odd offset, daylight saving time, and a date of its own for half of the day.
const ZONE: &str = "Pacific/Chatham";
/// That zone for a machine without the time zone database.
const ZONE_RULE: &str = "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45";
/// Limit for asking the time.
const LIMIT: Duration = Duration::from_mins(1);
const ZONES: &str = "/usr/share/zoneinfo";
/// Locales that differ in decimal point and collation, in the order in which they are looked for.
const LOCALES: [&str; 8] = ["de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL", "pt_BR", "cs_CZ", "ru_RU"];

/// The file that holds the hash of a compiled locale's others.
const SEAL: &str = "seal";

/// A locale that differs from the base world's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locale {
    /// Value of `LC_ALL`.
    pub name: String,
    /// Folder of the host that holds it; none when the system has it.
    pub folder: Option<PathBuf>,
}

/// Which dimensions can be varied here, and to what.
#[derive(Debug, Clone)]
pub struct Capabilities {
    pub covered: BTreeSet<Dimension>,
    /// Dimensions that stay as they are in every world, and why.
    pub not_covered: BTreeMap<Dimension, String>,
    pub time_zone: String,
    pub locale: Option<Locale>,
    /// Folder of the host that holds the library which shifts the wall clock.
    pub clock: Option<PathBuf>,
}

impl Capabilities {
    /// Looks at the machine. What is made for it (a locale, the clock's library) lies in the cache.
    ///
    /// # Errors
    /// IO errors with action and path; the backend's.
    pub fn find(cache: &Cache, backend: &dyn Backend) -> Result<Self> {
        let mut not_covered = BTreeMap::new();
        let (zone_is_there, found) = if backend.shows_host_system() {
            (Path::new(ZONES).join(ZONE).is_file(), find_locale(&cache.dir("locales")?))
        } else {
            look_in_image(&cache.dir("locales")?, backend)?
        };
        if !backend.shares_processors() {
            let reason = "the containers run on another machine than the busy processes".to_owned();
            not_covered.insert(Dimension::Load, reason);
        }
        let locale = match found {
            Ok(locale) => Some(locale),
            Err(reason) => {
                not_covered.insert(Dimension::Locale, reason);
                None
            }
        };
        let clock = match find_clock(cache, backend)? {
            Ok(folder) => Some(folder),
            Err(reason) => {
                not_covered.insert(Dimension::Clock, reason);
                None
            }
        };
        let zone = if zone_is_there { ZONE } else { ZONE_RULE };
        let covered =
            Dimension::ALL.into_iter().filter(|dimension| !not_covered.contains_key(dimension)).collect();
        Ok(Capabilities { covered, not_covered, time_zone: zone.to_owned(), locale, clock })
    }

    /// Nothing is known: nothing ran.
    pub fn none() -> Self {
        Capabilities {
            covered: BTreeSet::new(),
            not_covered: BTreeMap::new(),
            time_zone: ZONE.to_owned(),
            locale: None,
            clock: None,
        }
    }

    /// Names all of it: attempts in other worlds depend on it. Where the cache lies makes no difference.
    pub fn key(&self) -> String {
        let library = clock::library().map(sha256_hex).unwrap_or_default();
        let locale = self.locale.as_ref().map(|Locale { name, folder }| (name, folder.is_some()));
        hash_parts(&[format!("{:?} {} {locale:?}", self.covered, self.time_zone), library])
    }
}

/// Runs a small program of the system, without the user's environment; its first line on success.
fn ask(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Option<String> {
    let command = || {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        command
    };
    let output = retry::output(command).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// A locale of the system, else one that is compiled from the system's sources.
fn find_locale(folder: &Path) -> Result<Locale, String> {
    let known = ask("locale", &["-a"], &[]).unwrap_or_default();
    for name in LOCALES {
        let installed = known
            .lines()
            .find(|line| line.strip_prefix(name).is_some_and(|rest| matches!(rest, ".utf8" | ".UTF-8")));
        if let Some(installed) = installed
            && has_comma(installed, None)
        {
            return Ok(Locale { name: format!("{name}.UTF-8"), folder: None });
        }
    }
    let name = compiled_locale(folder).ok_or(
        "the machine has no locale with another decimal point, and no sources to make one (Debian: package locales)",
    )?;
    Ok(Locale { name, folder: Some(folder.to_owned()) })
}

/// The full name of a locale in `folder` that is there, or can be compiled there from the system's sources.
fn compiled_locale(folder: &Path) -> Option<String> {
    // Other builds look for the same; without the lock (a folder that cannot be written to) what is there may still do.
    let _lock = crate::store::Lock::wait(&folder.join(".lock"), || {});
    LOCALES.into_iter().find_map(|name| {
        let (full, place) = (format!("{name}.UTF-8"), folder.join(format!("{name}.utf8")));
        let is_good = || is_whole(&place) && has_comma(&full, Some(folder));
        if !is_good() {
            compile(name, &place);
        }
        is_good().then_some(full)
    })
}

/// Whether an image has the zone, and a locale of this machine that works in it: images seldom have one of their own.
fn look_in_image(folder: &Path, backend: &dyn Backend) -> Result<(bool, Result<Locale, String>)> {
    let name = compiled_locale(folder).unwrap_or_else(|| "C.UTF-8".to_owned());
    let inside = "/opt/world/locales";
    let script = format!("test -f {ZONES}/{ZONE} && echo zone; LC_ALL={name} locale decimal_point");
    let mut job = Job::small(["sh", "-c", &script]);
    job.env.insert("LOCPATH".to_owned(), inside.to_owned());
    job.mounts.push(Mount::ReadOnly { host: folder.to_owned(), inside: inside.into() });
    let done = retry::run(backend, &job, LIMIT)?;
    if done.timed_out {
        return Err(Error::harness("looking at the image takes too long"));
    }
    let locale = if done.stdout.lines().any(|line| line == ",") {
        Ok(Locale { name, folder: Some(folder.to_owned()) })
    } else {
        Err("this machine has no locale with another decimal point that works in the image (Debian: package locales)"
            .to_owned())
    };
    Ok((done.stdout.lines().any(|line| line == "zone"), locale))
}

/// Compiles a locale beside its place, and once it is seen to work seals it and moves it there; what lies there is set
/// aside. The compiler's exit code says nothing: it warns about many locales and still writes them, and makes a folder
/// for those that it knows nothing of.
fn compile(name: &str, place: &Path) {
    let Some(Ok(aside)) = place.parent().map(tempfile::tempdir_in) else { return };
    let made = aside.path().join(format!("{name}.utf8"));
    let Some(path) = made.to_str() else { return };
    let _ = ask("localedef", &["--no-archive", "-c", "-i", name, "-f", "UTF-8", path], &[]);
    if !has_comma(&format!("{name}.UTF-8"), Some(aside.path())) {
        return;
    }
    if let Some(hash) = fingerprint(&made)
        && fs_err::write(made.join(SEAL), hash).is_ok()
    {
        let _ = place.symlink_metadata().is_ok().then(|| crate::store::set_aside(place));
        let _ = fs_err::rename(&made, place);
    }
}

/// Whether a compiled locale is as it was written.
fn is_whole(place: &Path) -> bool {
    let seal = fs_err::read_to_string(place.join(SEAL)).ok();
    seal.is_some() && seal == fingerprint(place)
}

/// Hash of the names and contents of a locale's files; none when they cannot be read.
fn fingerprint(place: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for entry in walkdir::WalkDir::new(place).sort_by_file_name() {
        let entry = entry.ok()?;
        if entry.file_type().is_file() && entry.file_name() != SEAL {
            parts.push(entry.path().strip_prefix(place).ok()?.as_os_str().as_encoded_bytes().to_vec());
            parts.push(sha256_hex(&fs_err::read(entry.path()).ok()?).into_bytes());
        }
    }
    Some(hash_parts(&parts))
}

fn has_comma(locale: &str, folder: Option<&Path>) -> bool {
    let mut variables = vec![("LC_ALL", locale)];
    if let Some(folder) = folder.and_then(Path::to_str) {
        variables.push(("LOCPATH", folder));
    }
    ask("locale", &["decimal_point"], &variables).as_deref() == Some(",")
}

/// The folder with the clock's library, once it was seen to work; else why not.
fn find_clock(cache: &Cache, backend: &dyn Backend) -> Result<OrWhy<PathBuf>> {
    let Some(library) = clock::library() else {
        return Ok(Err("there is no clock library for this kind of machine".to_owned()));
    };
    let folder = cache.dir("clock")?.join(&sha256_hex(library)[..16]);
    let path = folder.join(clock::FILE_NAME);
    if !fs_err::read(&path).is_ok_and(|found| found == library) {
        if path.symlink_metadata().is_ok() {
            crate::store::set_aside(&path)?;
        }
        fs_err::create_dir_all(&folder)?;
        crate::store::write_atomic(&path, library)?;
    }
    let inside = PathBuf::from("/opt/clock");
    let start = SystemTime::now();
    let mut job = Job::small(["date", "+%s"]);
    job.env.extend(clock::variables(&inside.join(clock::FILE_NAME), start));
    job.mounts.push(Mount::ReadOnly { host: folder.clone(), inside });
    // Only a program that ran says something about the library; a busy machine does not.
    let finished = retry::run_to_its_end(backend, &job, LIMIT)?;
    if finished.timed_out {
        return Err(Error::harness("asking for the time takes too long in the sandbox"));
    }
    let shifted = |real: SystemTime| {
        real.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() + clock::SHIFT.as_secs()
    };
    let expected = shifted(start) - 30..=shifted(SystemTime::now()) + 30;
    let shown: Option<u64> = finished.stdout.trim().parse().ok();
    Ok(match shown {
        Some(shown) if expected.contains(&shown) => Ok(folder),
        _ => Err(format!("the clock library has no effect here: {}", finished.stderr.trim())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_same_wherever_the_cache_lies() {
        let at = |folder: &str| Capabilities {
            locale: Some(Locale { name: "de_DE.UTF-8".into(), folder: Some(folder.into()) }),
            ..Capabilities::none()
        };
        assert_eq!(at("/a/locales/x").key(), at("/b/locales/x").key());
        assert_ne!(at("/a").key(), Capabilities::none().key());
    }

    #[test]
    #[ignore = "needs the sources of locales (Debian's package locales)"]
    fn a_damaged_locale_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let name = compiled_locale(folder.path()).expect("the machine has sources of locales");
        let place = folder.path().join(name.replace("UTF-8", "utf8"));
        let collation = place.join("LC_COLLATE");
        let whole = fs_err::read(&collation).unwrap();
        fs_err::write(&collation, &whole[..whole.len() / 2]).unwrap();
        assert!(!is_whole(&place));
        assert_eq!(compiled_locale(folder.path()), Some(name));
        assert_eq!(fs_err::read(&collation).unwrap(), whole);
        assert!(place.with_file_name(format!("{}.damaged-1", place.file_name().unwrap().display())).is_dir());
    }

    #[test]
    fn a_locale_that_does_not_work_is_made_again_although_it_is_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(format!("{}.utf8", LOCALES[0]));
        fs_err::create_dir(&place).unwrap();
        fs_err::write(place.join(SEAL), fingerprint(&place).unwrap()).unwrap();
        assert!(is_whole(&place));
        // On a machine without the sources it stays, and no other place is made.
        let found = compiled_locale(folder.path());
        assert_eq!(found.is_some(), place.join("LC_NUMERIC").is_file());
    }

    #[test]
    fn what_the_compiler_knows_nothing_of_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("zz_ZZ.utf8");
        compile("zz_ZZ", &place);
        assert!(!place.exists());
    }
}
