//! A Dockerfile that rebuilds an environment with plain tools. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::terminal::one_line;

/// What the file needs to know.
#[derive(Debug, Clone)]
pub(in crate::environment) struct Image<'a> {
    pub title: String,
    /// Full interpreter version.
    pub python: &'a str,
    /// RFC 3339 time of the one commit.
    pub committed_at: &'a str,
    /// Lines of `.git/info/exclude`.
    pub excluded: &'a [String],
    /// Whether the tree is installed as a project, or only put on the path.
    pub installs_project: bool,
    /// Folders of the projects that are installed beside it.
    pub members: Vec<String>,
    /// The folder to put on the path otherwise.
    pub source_root: &'a str,
    /// Variables that the build of the tree had.
    pub build_variables: &'a BTreeMap<String, String>,
    /// Whether some locked entries have no hash.
    pub has_direct: bool,
    /// The image to start from; none takes the official one of that interpreter.
    pub base: Option<&'a str>,
    /// Whether the project, or one that is installed beside it, is compiled from Rust.
    pub compiles_rust: bool,
    /// Packages of the distribution beside those that every image needs.
    pub packages: &'a [String],
}

/// The text of the Dockerfile. Its context holds the recipe's files and the tree as `tree/`.
pub(in crate::environment) fn render(image: &Image<'_>) -> String {
    let tree = tree(image.committed_at, image.excluded);
    [base(image), dependencies(image), tree, project(image), END.to_owned()].concat()
}

/// The text of the Dockerfile of a tree whose environment an image has, with the packages that it got.
pub(in crate::environment) fn bare(
    title: &str,
    (base, packages): (&str, &[String]),
    committed_at: &str,
    excluded: &[String],
) -> String {
    let from = start(title, base);
    let packages = if packages.is_empty() { String::new() } else { install(&packages.join(" ")) };
    let end = "RUN chown -R 1000:1000 /testbed\nENTRYPOINT []\nCMD [\"bash\"]\n";
    let safe = format!("RUN {SAFE}\n\n");
    [from, packages, safe, tree(committed_at, excluded), end.to_owned()].concat()
}

/// Git works in the tree whoever owns it.
const SAFE: &str = "printf '[safe]\\n\\tdirectory = /testbed\\n' > /etc/gitconfig";

fn start(title: &str, base: &str) -> String {
    format!(
        "\
# {}
# Build context: this directory, with the files of the pinned tree in tree/ (the dataset has them in trees/).
ARG BASE={base}
FROM $BASE

",
        one_line(title)
    )
}

fn install(packages: &str) -> String {
    format!(
        "\
RUN apt-get update \\
    && apt-get install -y --no-install-recommends {packages} \\
    && rm -rf /var/lib/apt/lists/*
"
    )
}

const END: &str = "\
RUN (python -m compileall -q /opt/venv/lib /testbed || true) \\
    && pip uninstall -q -y pip && rm -r /opt/recipe \\
    && chown -R 1000:1000 /opt/venv /testbed
ENTRYPOINT []
CMD [\"bash\"]
";

fn base(image: &Image<'_>) -> String {
    let official = format!("python:{}-slim", image.python);
    let base = image.base.unwrap_or(&official);
    let minor = image.python.split('.').take(2).collect::<Vec<_>>().join(".");
    let venv = format!(
        "\
RUN python{minor} -m venv /opt/venv \\
    && printf 'export PATH=/opt/venv/bin:$PATH\\n' > /etc/profile.d/venv.sh \\
    && {SAFE}
ENV PATH=/opt/venv/bin:$PATH

"
    );
    [start(&image.title, base), install(&packages(image)), venv].concat()
}

fn dependencies(image: &Image<'_>) -> String {
    // A commit has no hash that pip could check; its id stands in for one.
    let install = if image.has_direct {
        "\
RUN cd /opt/recipe && grep ' @ git+' requirements.lock > direct.txt \\
    && grep -v ' @ git+' requirements.lock > hashed.txt \\
    && pip install --no-cache-dir --no-deps --require-hashes -r hashed.txt \\
    && pip install --no-cache-dir --no-deps -r direct.txt
"
    } else {
        "RUN pip install --no-cache-dir --no-deps --require-hashes -r /opt/recipe/requirements.lock\n"
    };
    format!("COPY requirements.lock build-constraints.txt /opt/recipe/\n{install}\n")
}

fn tree(date: &str, excludes: &[String]) -> String {
    let mut excluded = String::new();
    for entry in excludes {
        let _ = write!(excluded, " {}", quoted(entry));
    }
    format!(
        "\
COPY tree /testbed
WORKDIR /testbed
RUN git init -q -b main \\
    && printf '%s\\n'{excluded} > .git/info/exclude \\
    && git add -A -f \\
    && GIT_AUTHOR_DATE='{date}' GIT_COMMITTER_DATE='{date}' \\
       git -c user.name=tree -c user.email=tree@localhost commit -q -m 'Pinned tree'
"
    )
}

fn project(image: &Image<'_>) -> String {
    let mut text = String::new();
    if !image.installs_project {
        let _ = write!(
            text,
            "\
RUN python -c \"import sysconfig; print(sysconfig.get_path('purelib'))\" > /tmp/site \\
    && echo {} > \"$(cat /tmp/site)/tree.pth\" && rm /tmp/site
",
            image.source_root
        );
    }
    let own = image.installs_project.then(|| ".".to_owned());
    let members = image.members.iter().map(|folder| quoted(&format!("./{folder}")));
    let folders: Vec<String> = own.into_iter().chain(members).map(|folder| format!(" -e {folder}")).collect();
    if folders.is_empty() {
        return text;
    }
    let mut variables = String::new();
    for (name, value) in image.build_variables {
        let _ = write!(variables, "{name}={} ", quoted(value));
    }
    let _ = write!(
        text,
        "\
RUN PIP_CONSTRAINT=/opt/recipe/build-constraints.txt PIP_BUILD_CONSTRAINT=/opt/recipe/build-constraints.txt \\
    {variables}pip install --no-cache-dir --no-deps{}
",
        folders.concat()
    );
    text
}

/// What every image needs, and what the recipe adds; without a base of its own the tree may need a compiler.
fn packages(image: &Image<'_>) -> String {
    let mut packages: Vec<&str> = vec!["bash", "git", "tar"];
    if image.base.is_none() {
        packages.push("build-essential");
    }
    if image.base.is_none() && image.compiles_rust {
        packages.push("cargo");
    }
    packages.extend(image.packages.iter().map(String::as_str));
    packages.sort_unstable();
    packages.dedup();
    packages.join(" ")
}

/// As one word of a shell, and as part of one line of the file. Names of files stand in here: what a shell, a reader
/// of Dockerfiles or a terminal could take for more than a letter is given as the number of its byte.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " ._-/*?+=:,@%~^".contains(c);
    if text.chars().all(is_plain) {
        return format!("'{text}'");
    }
    let mut escaped = String::new();
    for c in text.chars() {
        if is_plain(c) {
            escaped.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(escaped, "\\0{byte:03o}");
            }
        }
    }
    format!("\"$(printf '%b' '{escaped}')\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_has_one_commit_no_entry_point_and_the_venv_first_in_login_shells() {
        let variables = BTreeMap::from([("SETUPTOOLS_SCM_PRETEND_VERSION".to_owned(), "1.2".to_owned())]);
        let excluded = ["__pycache__/".to_owned(), "it's".to_owned()];
        let text = render(&Image {
            title: "a/b at c".to_owned(),
            python: "3.12.1",
            committed_at: "2026-01-01T00:00:00Z",
            excluded: &excluded,
            installs_project: true,
            members: Vec::new(),
            source_root: "/testbed",
            build_variables: &variables,
            has_direct: false,
            compiles_rust: true,
            base: None,
            packages: &[],
        });
        assert!(text.contains(" bash build-essential cargo git tar "), "{text}");
        assert!(text.contains("ARG BASE=python:3.12.1-slim\nFROM $BASE\n"));
        assert!(text.contains("/etc/profile.d/venv.sh"));
        assert!(text.contains("SETUPTOOLS_SCM_PRETEND_VERSION='1.2' pip install"));
        assert!(text.contains(r#""$(printf '%b' 'it\0047s')""#), "{text}");
        assert_eq!(text.matches("commit -q").count(), 1);
        assert!(text.contains("ENTRYPOINT []") && !text.contains("gistmill") && !text.contains("direct.txt"));
    }

    #[test]
    fn an_image_that_has_the_environment_gets_the_tree_alone() {
        let packages = ["git".to_owned(), "tar".to_owned()];
        let of = |packages| bare("a/b at c\nRUN x", ("image:1", packages), "2026-01-01T00:00:00Z", &[]);
        let text = of(&packages);
        assert!(
            text.contains("ARG BASE=image:1\nFROM $BASE\n")
                && text.contains("install -y --no-install-recommends git tar ")
        );
        assert!(
            text.contains("COPY tree /testbed") && text.contains("safe") && text.contains("ENTRYPOINT []")
        );
        assert!(!text.contains("python") && !text.contains("pip") && !text.contains("\nRUN x"), "{text}");
        assert!(!of(&[]).contains("apt-get"));
    }

    #[test]
    fn no_name_adds_a_line_or_leaves_its_quotes() {
        let names = [
            "/a\nRUN touch /escaped",
            "/b'; touch /escaped; '",
            "/c\\",
            "/d <<EOF",
            "/$(touch /e)`x`",
            "/\u{9b}é\r",
        ]
        .map(str::to_owned);
        let variables = BTreeMap::from([("V".to_owned(), "1\nUSER root'".to_owned())]);
        let render = |excluded: &[String], variables: &BTreeMap<String, String>| {
            render(&Image {
                title: "a/b at c\nRUN x".to_owned(),
                python: "3.12.1",
                committed_at: "2026-01-01T00:00:00Z",
                excluded,
                installs_project: true,
                members: Vec::new(),
                source_root: "/testbed",
                build_variables: variables,
                has_direct: false,
                compiles_rust: false,
                base: None,
                packages: &[],
            })
        };
        let (plain, hostile) = (render(&[], &BTreeMap::new()), render(&names, &variables));
        assert!(plain.contains(" bash build-essential git tar "), "{plain}");
        assert_eq!(plain.lines().count(), hostile.lines().count());
        assert!(
            !hostile.chars().any(|c| c.is_control() && c != '\n') && !hostile.contains("<<"),
            "{hostile}"
        );
        // A shell gets every name as it is.
        let words = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" ");
        let output = std::process::Command::new("sh")
            .args(["-ec", &format!("printf '%s\\0' {words}")])
            .output()
            .unwrap();
        let given: Vec<&[u8]> = output.stdout.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0).collect();
        assert_eq!(given, names.each_ref().map(String::as_bytes));
    }
}
