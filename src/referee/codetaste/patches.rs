//! Runs of patches: a folder of the authors' layout, a folder with one for each instance, or predictions as harnesses write them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::beneath::{Entry, Folder, Kind};
use crate::error::{Error, Fault, OrWhy, Result};
use crate::family::codetaste::score::cost;
use crate::family::codetaste::submission::{SubmissionPath, TRACKS, agent_folder};
use crate::record::id::Name;
use crate::referee::submissions::{RunOf, Submission};

/// Largest patch and largest description of one that is read, in bytes.
const LARGEST: u64 = 64 << 20;
const LARGEST_META: u64 = 4 << 20;
/// Problems that a message names.
const NAMED: usize = 20;
/// Files beside a patch in which phases say what they cost.
const METAS: [&str; 4] = [
    "inference_metadata.json",
    "plan_metadata.json",
    "multiplan_generation_metadata.json",
    "multiplan_metadata.json",
];

/// An instance, as patches name it.
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) authors_id: String,
}

/// The runs of a folder of the authors' layout, at whatever depth; none where it has no other.
///
/// # Errors
/// Usage errors, all at once: unknown instances, two patches for one, names that no run can have. IO errors.
pub(crate) fn of_authors(path: &Path, known: &[Known]) -> Result<Option<Vec<RunOf>>> {
    let folder = Folder::named(path)?;
    // What is in the folder is below it, but the layout may begin with its own name.
    let own = fs_err::canonicalize(path)?;
    let above = own.to_string_lossy();
    let (mut runs, mut problems): (BTreeMap<String, RunOf>, _) = (BTreeMap::new(), Vec::new());
    let mut is_layout = false;
    for entry in folder.walk()? {
        let Entry { path: relative, kind: Kind::File, .. } = &entry else { continue };
        let text = relative.to_string_lossy();
        let whole = format!("{above}/{text}");
        let Some(place) = SubmissionPath::of(&whole) else { continue };
        is_layout = true;
        // Made-up agents are not scored.
        if TRACKS.contains(&place.track) {
            add(&folder, relative, &place, (known, &mut runs), &mut problems)?;
        }
    }
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(NAMED);
        problems.truncate(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let message = format!("{}: {}{more}", path.display(), problems.join("; "));
        return Err(Error::usage(message).with_hint(
            "name the dataset that these patches were made for; its column `authors_id` has their names",
        ));
    }
    if is_layout && runs.is_empty() {
        return Err(Error::usage(format!("{} has patches of made-up agents alone", path.display())));
    }
    Ok(is_layout.then(|| runs.into_values().collect()))
}

fn add(
    folder: &Folder,
    relative: &Path,
    place: &SubmissionPath<'_>,
    (known, runs): (&[Known], &mut BTreeMap<String, RunOf>),
    problems: &mut Vec<String>,
) -> Result<()> {
    let shown = relative.display();
    let id = crate::family::codetaste::submission::authors_id(place.owner, place.repo, place.hash8);
    let found: Vec<&Known> = known.iter().filter(|one| one.authors_id == id).collect();
    let [instance] = found.as_slice() else {
        problems.push(format!("{shown}: the dataset has no instance {id}"));
        return Ok(());
    };
    let agent = agent_folder(place.agent).unwrap_or_default().replace(' ', "_");
    let name = format!("{agent}.{}.{}", place.track, place.mode);
    let Ok(name) = Name::new(&name) else {
        problems.push(format!("{shown}: no run can be called {name:?}"));
        return Ok(());
    };
    let (mut meta, mut troubles) = (Value::Null, Vec::new());
    let beside = relative.parent().unwrap_or(Path::new(""));
    let mut phases = Vec::new();
    for file in METAS {
        match json_of(folder, &beside.join(file))? {
            Ok(Some(said)) => {
                phases.extend([said["cost_usd"].as_f64(), said["judge_cost_usd"].as_f64()]);
                if file == METAS[0] {
                    meta = said;
                }
            }
            Ok(None) => {}
            Err(why) => troubles.push(why),
        }
    }
    if !meta.is_object() {
        meta = json!({});
    }
    meta["cost"] = json!(cost(phases));
    let mut submission = patch_of(folder, relative)?;
    (submission.meta, submission.troubles) = (meta, [submission.troubles, troubles].concat());
    let run = runs.entry(name.to_string()).or_insert_with(|| RunOf {
        name,
        meta: json!({ "track": place.track, "mode": place.mode, "agent": place.agent }),
        trouble: None,
        submissions: BTreeMap::new(),
        unknown: None,
    });
    if run.submissions.insert(instance.id.clone(), submission).is_some() {
        problems.push(format!("{shown}: {} has two patches of this run", instance.id));
    }
    Ok(())
}

/// A patch, or why it cannot be read.
fn patch_of(folder: &Folder, place: &Path) -> Result<Submission> {
    match folder.read(place, LARGEST) {
        Ok(bytes) => Ok(Submission { text: Some(bytes), ..Submission::default() }),
        Err(error) if error.fault() == Fault::Repository => {
            Ok(Submission { troubles: vec![error.to_string()], ..Submission::default() })
        }
        Err(error) => Err(error),
    }
}

fn json_of(folder: &Folder, place: &Path) -> Result<OrWhy<Option<Value>>> {
    match folder.read_if_there(place, LARGEST_META) {
        Ok(None) => Ok(Ok(None)),
        Ok(Some(bytes)) => Ok(serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| format!("{} is not JSON: {error}", place.display()))),
        Err(error) if error.fault() == Fault::Repository => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// The patch of a submission: a file of that name, or what a harness calls `model_patch`.
pub(crate) fn text_of(submission: &Submission) -> Option<&[u8]> {
    submission.text.as_deref().or(submission.patch.as_deref().map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::codetaste::SUBMISSION;

    fn known() -> Vec<Known> {
        vec![Known { id: "a__b.01234567-0".to_owned(), authors_id: "a__b-01234567".to_owned() }]
    }

    fn put(folder: &Path, place: &str, text: &str) {
        let place = folder.join(place);
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        fs_err::write(place, text).unwrap();
    }

    #[test]
    fn patches_of_the_authors_layout_are_runs_by_agent_track_and_mode() {
        let made = tempfile::tempdir().unwrap();
        let folder = made.path();
        for (track, agent) in [("instructed", "one"), ("open", "one"), ("pseudo_agents", "golden")] {
            put(folder, &format!("out/{track}/plan/A/B/01234567/{agent}/{SUBMISSION}"), "diff");
        }
        let beside = "out/open/plan/A/B/01234567/one";
        put(
            folder,
            &format!("{beside}/inference_metadata.json"),
            r#"{"finish_reason": "timeout", "cost_usd": 1.5}"#,
        );
        put(folder, &format!("{beside}/plan_metadata.json"), r#"{"cost_usd": 0.25}"#);
        let runs = of_authors(folder, &known()).unwrap().unwrap();
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["one.instructed.plan", "one.open.plan"]);
        let open = &runs[1].submissions["a__b.01234567-0"];
        assert_eq!(
            (open.meta["finish_reason"].as_str(), open.meta["cost"].as_f64()),
            (Some("timeout"), Some(1.75))
        );
        assert_eq!(text_of(open), Some(&b"diff"[..]));
        // The folder itself may be a part of the layout.
        assert_eq!(of_authors(&folder.join("out/open/plan"), &known()).unwrap().unwrap().len(), 1);
    }

    #[test]
    fn another_folder_is_none_and_unknown_instances_are_named() {
        let made = tempfile::tempdir().unwrap();
        put(made.path(), &format!("a__b.01234567-0/{SUBMISSION}"), "diff");
        assert_eq!(of_authors(made.path(), &known()).unwrap(), None);
        put(made.path(), &format!("open/direct/a/c/76543210/one/{SUBMISSION}"), "diff");
        let error = of_authors(made.path(), &known()).unwrap_err();
        assert!(error.to_string().contains("no instance a__c-76543210"), "{error}");
    }
}
