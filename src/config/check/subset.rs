//! `[subset.<name>]`.

use crate::config::Repo;
use crate::config::raw::{NamedSubset, RawRange};
use crate::document::section::{Field, Located};
use crate::document::{Problems, suggest};
use crate::record::entry::KINDS;
use crate::record::id::{Name, RepoSlug};
use crate::redact::quote;
use crate::subset::{FORMER_TOP, Range, Subset, TABLES, TOP};

/// Checks every subset, and gives them by name.
pub(super) fn all(raws: &[NamedSubset<'_>], repos: &[Repo], problems: &mut Problems<'_>) -> Vec<Subset> {
    let known: Vec<&str> = repos.iter().map(|repo| repo.slug.as_str()).collect();
    let mut subsets: Vec<Subset> = raws.iter().map(|raw| one(raw, &known, problems)).collect();
    subsets.sort_by(|a, b| a.name.cmp(&b.name));
    subsets
}

fn one(raw: &NamedSubset<'_>, known: &[&str], problems: &mut Problems<'_>) -> Subset {
    let keys = &raw.keys;
    Subset {
        name: name(raw.name, problems),
        repos: repos(&keys.repos, known, problems),
        tiers: keys.tiers.clone().given().map(|tiers| tiers.value),
        kinds: kinds(&keys.kinds, problems),
        top: keys.top.or(&keys.hard).given().map(|top| top.value),
        ranges: raw
            .ranges
            .iter()
            .filter_map(|(measure, raw)| Some((*measure, range(raw, problems)?)))
            .collect(),
        per_repo: keys.per_repo.value,
        size: keys.size.value,
        seed: keys.seed.value,
    }
}

/// A name; one that cannot be used is among the problems.
fn name(Located { value: name, at }: Located<&str>, problems: &mut Problems<'_>) -> Name {
    let shown = quote(name);
    if name == TOP || name == FORMER_TOP {
        let hint = "every dataset has it: `hard_per_axis` in [dataset] sets its size; name yours otherwise";
        problems.add(at, format!("subset {shown} is built in"), Some(hint.to_owned()));
    } else if TABLES.contains(&name) {
        problems.add(
            at,
            format!("subset {shown} has the name of a table"),
            Some("choose another".to_owned()),
        );
    } else if let Ok(name) = Name::new(name) {
        return name;
    } else {
        let hint = "use letters, digits, `.`, `_` and `-`, a letter or digit first".to_owned();
        problems.add(at, format!("subset {shown} is not safe as a file name"), Some(hint));
    }
    Name::fixed(TOP)
}

fn repos(
    field: &Field<Vec<Located<&str>>>,
    known: &[&str],
    problems: &mut Problems<'_>,
) -> Option<Vec<RepoSlug>> {
    let Field::Given(list) = field else { return None };
    let mut slugs = Vec::new();
    for text in &list.value {
        match RepoSlug::new(text.value) {
            Ok(slug) if known.contains(&text.value) => slugs.push(slug),
            _ => {
                let message = format!("no [[repo]] has the slug {}", quote(text.value));
                problems.add(text.at, message, Some(suggest::hint(text.value, known)));
            }
        }
    }
    Some(slugs)
}

/// Kinds of what is run: tests, and commands.
pub(super) fn kinds(field: &Field<Vec<&str>>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let Located { value: kinds, at } = field.clone().given()?;
    if kinds.is_empty() {
        let hint = format!("name some of {}, or leave it out for all", KINDS.join(", "));
        problems.add(at, "`kinds` names no kind: nothing would be left".to_owned(), Some(hint));
    }
    Some(kinds.into_iter().map(str::to_owned).collect())
}

fn range(raw: &RawRange<'_>, problems: &mut Problems<'_>) -> Option<Range> {
    let bound = |field: &Field<f64>| field.clone().given().map(|number| number.value);
    let (min, max) = (bound(&raw.min), bound(&raw.max));
    if !raw.min.is_present() && !raw.max.is_present() {
        let hint = "write { min = 10, max = 99 }".to_owned();
        problems.add(raw.at, "a range needs `min`, `max` or both", Some(hint));
        return None;
    }
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        problems.add(raw.at, "`min` is above `max`: nothing is in this range", None);
    }
    Some(Range { min, max })
}
