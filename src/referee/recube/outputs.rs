//! Submissions as the benchmark's authors lay them out: a model's folder with a folder for each repository, in which each target
//! is a file whose name has `_` in the place of `/`. Costs, turns and trajectories are beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::trajectories::{Trajectories, commands};
use crate::beneath::{Folder, Kind};
use crate::dataset::recube::RecubeInstance;
use crate::error::{Error, Fault, Result};
use crate::family::recube::answer::output_names;
use crate::referee::submissions::Submission;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;
const SUMMARY: &str = "inference_summary.json";
const COSTS: &str = "cost_summary.json";

/// What such a folder has.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// By instance ID.
    pub(crate) submissions: BTreeMap<String, Submission>,
    pub(crate) trajectories: Trajectories,
}

/// Reads a folder of that form; none where no file in it has the name of a target.
///
/// # Errors
/// Usage errors, all at once: files that do not belong to a target, folders that could be of several repositories, targets of one name.
pub(crate) fn read(path: &Path, instances: &[RecubeInstance]) -> Result<Option<Outputs>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let folder = Folder::named(path)?;
    let mut files: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for entry in folder.walk()?.into_iter().filter(|entry| entry.kind == Kind::File) {
        let Some(name) = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        let above = entry.path.parent().unwrap_or(Path::new("")).to_owned();
        if above.components().count() <= 1 && name.ends_with(".py") && name != "target.py" {
            files.entry(above).or_default().push(name);
        }
    }
    let mut by_repository: BTreeMap<&str, Vec<&RecubeInstance>> = BTreeMap::new();
    for one in instances {
        by_repository.entry(one.head.slug.as_str()).or_default().push(one);
    }
    let (mut outputs, mut problems, mut is_any) = (Outputs::default(), Vec::new(), false);
    for (place, names) in &files {
        let label = place.to_string_lossy();
        let known = |slug: &&str| {
            let named = slug.replace('/', "__") == label
                || slug.rsplit('/').next() == Some(&label)
                || slug.ends_with(&format!("-{label}"));
            by_repository.len() == 1 || named
        };
        let slugs: Vec<&str> = by_repository.keys().copied().filter(known).collect();
        let [slug] = slugs[..] else {
            problems.push(format!("{label} is the folder of none or several of the dataset's repositories"));
            continue;
        };
        let own = &by_repository[slug];
        let targets = match output_names(own.iter().map(|one| one.target.as_str())) {
            Ok(targets) => targets,
            Err(twice) => {
                let twice: Vec<String> = twice.into_iter().collect();
                problems.push(format!("{slug} has several targets whose file is {}", twice.join(", ")));
                continue;
            }
        };
        let costs = Costs::read(&folder, place, names.len())?;
        for name in names {
            let Some(target) = targets.get(name) else {
                problems.push(format!("{label}/{name} is not the file of a target of {slug}"));
                continue;
            };
            is_any = true;
            let Some(one) = own.iter().find(|one| one.target == *target) else { continue };
            let id = one.head.instance_id.to_string();
            let text = folder.read(&place.join(name), LARGEST).ok();
            let meta = costs.of(target, name);
            if outputs
                .submissions
                .insert(id.clone(), Submission { text, meta, ..Submission::default() })
                .is_some()
            {
                problems.push(format!("two submissions for {id}"));
            }
            let stem = name.strip_suffix(".py").unwrap_or(name);
            if let Some(value) = json_of(&folder, &place.join(format!("{stem}_trajectory.json")))? {
                outputs.trajectories.insert(id, commands(&value));
            }
        }
    }
    match (is_any, problems.is_empty()) {
        (false, _) => Ok(None),
        (true, true) => Ok(Some(outputs)),
        (true, false) => Err(Error::usage(format!("{}: {}", path.display(), problems.join("; ")))
            .with_hint("name a model's folder: <repository>/<target with _ in the place of />, the repository as owner__name")),
    }
}

/// JSON that somebody wrote; another text, a link and what is too large say nothing.
fn json_of(folder: &Folder, place: &Path) -> Result<Option<Value>> {
    let bytes = match folder.read_if_there(place, LARGEST) {
        Err(error) if error.fault() == Fault::Repository => None,
        read => read?,
    };
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// What a folder says of costs and turns.
struct Costs {
    summary: Value,
    /// Of each file, where only the sum is known.
    share: Option<f64>,
}

impl Costs {
    fn read(folder: &Folder, place: &Path, files: usize) -> Result<Self> {
        let total = json_of(folder, &place.join(COSTS))?.and_then(|costs| costs["total_cost"].as_f64());
        let share = total.filter(|_| files > 0).map(|total| total / files as f64);
        Ok(Costs { summary: json_of(folder, &place.join(SUMMARY))?.unwrap_or_default(), share })
    }

    fn of(&self, target: &str, name: &str) -> Value {
        let results = &self.summary["file_results"];
        let own = [target, name].into_iter().map(|key| &results[key]).find(|one| !one.is_null());
        let own = own.unwrap_or(&Value::Null);
        let cost = own["token_usage"]["total_cost"].as_f64().or(self.share);
        json!({ "cost": cost, "turns": own["turns"].as_u64() })
    }
}

/// Instance IDs of a dataset.
pub(crate) fn ids(instances: &[RecubeInstance]) -> BTreeSet<String> {
    instances.iter().map(|one| one.head.instance_id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn the_folders_of_the_authors_are_read_with_costs_turns_and_trajectories() {
        let home = tempfile::tempdir().unwrap();
        crate::testing::write(&home.path().join("d"), &MadeUp::masked(&[5, 5]).input()).unwrap();
        let instances = Dataset::open_any(&home.path().join("d")).unwrap().recube_instances().unwrap();
        let run = home.path().join("model");
        let write = |path: &str, text: &str| {
            let path = run.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        write("up0/src_made_core.py", "x = 1\n");
        write("up0/inference_summary.json", r#"{"file_results": {"src/made/core.py": {"turns": 7}}}"#);
        write("up0/cost_summary.json", r#"{"total_cost": 0.5}"#);
        write(
            "up0/src_made_core_trajectory.json",
            r#"{"trajectory": [{"role": "assistant", "content": "```\ncat a\n```"}]}"#,
        );
        let read = || read(&run, &instances);
        let outputs = read().unwrap().unwrap();
        let (id, one) = outputs.submissions.iter().next().unwrap();
        assert!(id.starts_with("made__up0."), "{id}");
        assert_eq!(one.text.as_deref(), Some(&b"x = 1\n"[..]));
        assert_eq!(one.meta, json!({ "cost": 0.5, "turns": 7 }));
        assert_eq!(outputs.trajectories[id], ["cat a\n"]);
        write("up0/other.py", "");
        write("elsewhere/src_made_core.py", "");
        let error = read().unwrap_err().to_string();
        for words in
            ["up0/other.py is not the file of a target", "elsewhere is the folder of none or several"]
        {
            assert!(error.contains(words), "{error}");
        }
        assert!(super::read(&home.path().join("d"), &instances).unwrap().is_none());
    }
}
