//! Paths and names of the authors' layout of submissions.

/// Which description an agent was given.
pub const TRACKS: [&str; 2] = ["instructed", "open"];
/// How it came to its patch.
pub const MODES: [&str; 3] = ["direct", "plan", "multiplan"];
/// Made-up agents have a folder in the place of a track.
const PSEUDO_AGENTS: &str = "pseudo_agents";

/// What `<track>/<mode>/<owner>/<repo>/<hash8>/<agent>/prediction.diff` says of a submission.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SubmissionPath<'a> {
    pub track: &'a str,
    pub mode: &'a str,
    pub owner: &'a str,
    pub repo: &'a str,
    /// The first digits of the base commit.
    pub hash8: &'a str,
    pub agent: &'a str,
}

impl<'a> SubmissionPath<'a> {
    /// Of a path at any depth; none of another path.
    pub fn of(path: &'a str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        let mut next = || parts.next();
        let (file, agent, hash8, repo) = (next()?, next()?, next()?, next()?);
        let (owner, mode, track) = (next()?, next()?, next()?);
        let is_digits =
            hash8.len() == 8 && hash8.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_known = (TRACKS.contains(&track) || track == PSEUDO_AGENTS) && MODES.contains(&mode);
        (file == "prediction.diff" && is_digits && is_known).then_some(SubmissionPath {
            track,
            mode,
            owner,
            repo,
            hash8,
            agent,
        })
    }
}

/// An agent's ID as the name of a folder; none where nothing of it is left.
pub fn agent_folder(agent: &str) -> Option<String> {
    let (mut name, mut after_space) = (String::new(), false);
    for c in agent.chars() {
        match c {
            c if c.is_whitespace() => name.push_str(if after_space { "" } else { "_" }),
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => name.push('_'),
            c => name.push(c),
        }
        after_space = c.is_whitespace();
    }
    let name = name.trim_matches(['.', ' ']);
    (!agent.trim().is_empty() && !name.is_empty()).then(|| name.to_owned())
}

/// The authors' name of an instance, by the commit that it starts from.
pub fn authors_id(owner: &str, repo: &str, base: &str) -> String {
    let digits: String = base.chars().take(8).collect();
    format!("{owner}__{repo}-{digits}").to_lowercase()
}
