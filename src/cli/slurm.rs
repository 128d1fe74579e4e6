//! `gistmill slurm`: a build as jobs of a Slurm cluster: one that prepares, an array of shards, one that merges.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::session::own_program;
use super::{Arguments, ConfigArguments, Format};
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::store;
use crate::terminal;
use crate::text::shell_quote;

/// Largest array that a Slurm takes whose administrator has not said otherwise.
const MOST_SHARDS: u32 = 1000;
/// How often a shard puts itself back into the queue when its time is up.
const RESTARTS: u32 = 50;
/// Seconds before the limit at which a shard is asked to end.
const NOTICE: u32 = 120;

#[derive(Debug, clap::Args)]
pub(super) struct SlurmArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Into how many parts the groups are split, up to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SHARDS)))]
    shards: u32,
    /// Shards that run at the same time; all by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Processors of each job
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..))]
    processors: u32,
    /// Memory of each job, in Slurm's words
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = plain)]
    memory: String,
    /// Time limit of each job, in Slurm's words; a shard that needs longer goes on in a job of its own
    #[arg(long, value_name = "TIME", default_value = "4:00:00", value_parser = plain)]
    time: String,
    /// Partition of all jobs
    #[arg(long, value_name = "NAME", value_parser = plain)]
    partition: Option<String>,
    /// Account of all jobs
    #[arg(long, value_name = "NAME", value_parser = plain)]
    account: Option<String>,
    /// The folder that the scripts are written to, and that jobs log to
    #[arg(long, value_name = "DIR", default_value = "slurm")]
    folder: PathBuf,
    /// Submit the jobs as well
    #[arg(long)]
    submit: bool,
}

/// A word that is safe in a line of directives.
fn plain(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._:,+-".contains(c);
    if !text.is_empty() && text.chars().all(fine) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits and . _ : , + - alone".to_owned())
    }
}

/// One job.
struct Script {
    name: &'static str,
    text: String,
}

pub(super) fn run(arguments: &Arguments, asked: &SlurmArguments) -> Result<u8> {
    fs_err::create_dir_all(asked.folder.join("logs"))?;
    let folder = fs_err::canonicalize(&asked.folder)?;
    if folder.to_str().is_none_or(|path| path.contains(['\n', '%', '"', '\\'])) {
        let odd = Error::usage(format!("{} cannot be in a script of Slurm", folder.display()));
        return Err(odd.with_hint("name a plainer folder with --folder"));
    }
    let command = command(arguments, &asked.config)?;
    let scripts = scripts(asked, &folder, &command);
    scripts.iter().try_for_each(|script| refuse_edited(&folder.join(script.name)))?;
    for script in &scripts {
        let path = folder.join(script.name);
        store::write_atomic(&path, sealed(&script.text).as_bytes())?;
        fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let jobs = if asked.submit { submit(&folder)? } else { Vec::new() };
    match arguments.format {
        Format::Json => terminal::json(&serde_json::json!({ "folder": folder, "jobs": jobs })),
        Format::Human | Format::Csv if asked.submit => {
            terminal::say(&format!("submitted: prepare {}, shards {}, merge {}", jobs[0], jobs[1], jobs[2]));
        }
        Format::Human | Format::Csv => {
            terminal::say(&format!("submit with: {}", folder.join(SUBMIT).display()));
        }
    }
    Ok(0)
}

/// What the last line of a script begins with: the hash of those before it follows.
const SEAL: &str = "# as gistmill wrote it: ";

/// A script with a line that shows later whether somebody changed it.
fn sealed(text: &str) -> String {
    format!("{text}{SEAL}{}\n", sha256_hex(text.as_bytes()))
}

/// Refuses to write over a script that is not as gistmill wrote it.
fn refuse_edited(path: &Path) -> Result<()> {
    let found = match fs_err::read(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let text = String::from_utf8_lossy(&found);
    if text.rfind(SEAL).is_some_and(|at| sealed(&text[..at]) == text) {
        return Ok(());
    }
    Err(Error::usage(format!("{} was changed since gistmill wrote it", path.display())).with_hint(format!(
        "submit the jobs as they are with {}, name another --folder, or remove the script",
        path.with_file_name(SUBMIT).display()
    )))
}

/// The start of every command: this program, the same cache, configuration and output, by absolute paths.
fn command(arguments: &Arguments, config: &ConfigArguments) -> Result<Command> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(Error::from);
    let mut command = Command::new(own_program()?);
    command.arg("--cache-dir").arg(arguments.cache()?.root()).arg("SUBCOMMAND");
    if let Some(path) = config.config.path() {
        command.arg(absolute(path)?);
    }
    if let Some(rules) = &config.rules {
        command.arg("--rules").arg(absolute(rules)?);
    }
    command.arg("--output").arg(absolute(&config.output)?);
    if config.isolation.isolation == crate::backend::local::Strictness::Strict {
        command.args(["--isolation", "strict"]);
    }
    if let Some(engine) = arguments.engine {
        command.args(["--engine", engine.program()]);
    }
    for slug in &config.only {
        command.args(["--only", slug.as_str()]);
    }
    Ok(command)
}

/// The command as a shell takes it, with a subcommand and further words.
fn line(command: &Command, subcommand: &str, more: &str) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let word = |word: &std::ffi::OsStr| match word.to_string_lossy() {
        word if word == "SUBCOMMAND" => subcommand.to_owned(),
        word => shell_quote(&word),
    };
    format!("{} {more}", words.map(word).collect::<Vec<_>>().join(" "))
}

const SUBMIT: &str = "submit.sh";

fn scripts(asked: &SlurmArguments, folder: &Path, command: &Command) -> [Script; 4] {
    let at_once = asked.at_once.map(|most| format!("%{most}")).unwrap_or_default();
    let array = format!("1-{}{at_once}", asked.shards);
    let head = |name: &str, more: &[String]| head(asked, folder, name, more);
    let jobs = "--jobs \"$SLURM_CPUS_PER_TASK\"";
    let signal = format!("--signal=B:USR1@{NOTICE}");
    let shard = line(command, "build", &format!("{jobs} --shard \"$SLURM_ARRAY_TASK_ID/{}\"", asked.shards));
    let merge = line(command, "merge", &format!("{jobs} --shards {}", asked.shards));
    // A repository that failed (1) keeps no other from being screened.
    let prepare = line(command, "build", &format!("{jobs} --until collect || [ $? = 1 ]"));
    [
        Script { name: "prepare.sh", text: format!("{}{prepare}\n", head("prepare", &[])) },
        Script {
            name: "shard.sh",
            text: head("shard-%a", &[format!("--array={array}"), signal.clone()]) + &restarting(&shard),
        },
        Script { name: "merge.sh", text: head("merge", &[signal]) + &restarting(&merge) },
        Script { name: SUBMIT, text: submit_script() },
    ]
}

/// What comes before the command of a job. A job that was killed with its node, or preempted, starts again.
fn head(asked: &SlurmArguments, folder: &Path, name: &str, more: &[String]) -> String {
    let kind = name.trim_end_matches("-%a");
    let mut options = vec![
        format!("--job-name=gistmill-{kind}"),
        format!("--cpus-per-task={}", asked.processors),
        format!("--mem={}", asked.memory),
        format!("--time={}", asked.time),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--output=\"{}/logs/{name}.log\"", folder.display()),
    ];
    options.extend(asked.partition.iter().map(|partition| format!("--partition={partition}")));
    options.extend(asked.account.iter().map(|account| format!("--account={account}")));
    options.extend_from_slice(more);
    let mut text = "#!/bin/bash\n".to_owned();
    for option in options {
        let _ = writeln!(text, "#SBATCH {option}");
    }
    text + "set -uo pipefail\n"
}

/// Runs a command that goes on where it was. When the time is up it is ended, and the job goes back into the queue.
fn restarting(command: &str) -> String {
    format!(
        "late=\n\
         {command} &\n\
         child=$!\n\
         trap 'late=yes; kill -TERM \"$child\"' USR1\n\
         trap 'kill -TERM \"$child\"' TERM\n\
         # A trap interrupts the first wait; the second one has the exit code.\n\
         wait \"$child\"\n\
         code=$?\n\
         while kill -0 \"$child\" 2>/dev/null; do wait \"$child\"; code=$?; done\n\
         if [ -n \"$late\" ] && [ \"$code\" = 130 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {RESTARTS} ]; then\n\
         \x20   # By its own number an element of an array can mean all of them.\n\
         \x20   scontrol requeue \"${{SLURM_ARRAY_TASK_ID:+${{SLURM_ARRAY_JOB_ID}}_}}${{SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}}\"\n\
         fi\n\
         exit \"$code\"\n"
    )
}

/// Submits all jobs, the later ones behind the earlier ones. Merging starts whatever came of the shards: it says what is
/// missing.
fn submit_script() -> String {
    "#!/bin/bash\n\
     set -euo pipefail\n\
     cd \"$(dirname \"$0\")\"\n\
     prepare=$(sbatch --parsable prepare.sh)\n\
     shards=$(sbatch --parsable --kill-on-invalid-dep=yes --dependency=\"afterok:${prepare%%;*}\" shard.sh)\n\
     merge=$(sbatch --parsable --dependency=\"afterany:${shards%%;*}\" merge.sh)\n\
     echo \"${prepare%%;*} ${shards%%;*} ${merge%%;*}\"\n"
        .to_owned()
}

/// The numbers of the three jobs.
fn submit(folder: &Path) -> Result<Vec<String>> {
    let script = folder.join(SUBMIT);
    let output = Command::new(&script)
        .output()
        .map_err(|error| Error::from(error).at(format!("cannot run {}", script.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let jobs: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if !output.status.success() || jobs.len() != 3 {
        return Err(Error::machine("Slurm does not take the jobs")
            .with_detail(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
            .with_hint(format!("submit them with {} where sbatch works", script.display())));
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigPlace, IsolationArguments};
    use super::*;

    fn asked() -> SlurmArguments {
        SlurmArguments {
            config: ConfigArguments {
                config: ConfigPlace { place: Some("/home/me/my repos.toml".into()), config: None },
                rules: None,
                output: "/data/output".into(),
                isolation: IsolationArguments::default(),
                only: Vec::new(),
            },
            shards: 6,
            at_once: Some(3),
            processors: 2,
            memory: "4G".into(),
            time: "60".into(),
            partition: Some("long".into()),
            account: None,
            folder: "slurm".into(),
            submit: false,
        }
    }

    fn text(name: &str) -> String {
        let mut command = Command::new("/opt/gistmill");
        command.args(["--cache-dir", "/data/cache", "SUBCOMMAND", "/home/me/my repos.toml"]);
        let scripts = scripts(&asked(), Path::new("/data/slurm"), &command);
        scripts.into_iter().find(|script| script.name == name).unwrap().text
    }

    #[test]
    fn every_shard_and_the_merge_know_how_many_there_are() {
        let shard = text("shard.sh");
        for line in
            ["#SBATCH --array=1-6%3", "#SBATCH --requeue", "#SBATCH --partition=long", "#SBATCH --mem=4G"]
        {
            assert!(shard.lines().any(|one| one == line), "{line}: {shard}");
        }
        let command = "/opt/gistmill --cache-dir /data/cache build '/home/me/my repos.toml' --jobs \
                       \"$SLURM_CPUS_PER_TASK\" --shard \"$SLURM_ARRAY_TASK_ID/6\" &";
        assert!(shard.lines().any(|one| one == command), "{shard}");
        assert!(text("merge.sh").contains(" merge '/home/me/my repos.toml'"));
        assert!(text("merge.sh").contains(" --shards 6 &"));
        assert!(text("prepare.sh").ends_with(" --until collect || [ $? = 1 ]\n"));
    }

    /// What a script does whose command waits for its end, and the scheduler it talks to.
    fn ran(signal: &str, array: &[(&str, &str)]) -> (i32, String) {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let scheduler = format!("scontrol() {{ echo \"$@\" > '{}'; }}\n", told.display());
        let wait = "bash -c 'trap \"exit 130\" TERM; touch ready; while :; do sleep 0.01; done'";
        let script = format!("{scheduler}{}", restarting(wait));
        let mut child = Command::new("bash")
            .args(["-c", &script])
            .current_dir(folder.path())
            .env("SLURM_JOB_ID", "7")
            .envs(array.iter().copied())
            .spawn()
            .unwrap();
        while !folder.path().join("ready").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // Signals 10 and 15 are caught.
        let caught = |status: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
            u64::from_str_radix(mask.trim(), 16).unwrap_or_default() & (1 << 9 | 1 << 14)
                == (1 << 9 | 1 << 14)
        };
        while !caught(&fs_err::read_to_string(format!("/proc/{}/status", child.id())).unwrap()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let code = child.wait().unwrap().code().unwrap();
        (code, std::fs::read_to_string(told).unwrap_or_default())
    }

    #[test]
    fn a_job_whose_time_is_up_goes_back_into_the_queue_and_one_that_is_ended_does_not() {
        assert_eq!(ran("-USR1", &[]), (130, "requeue 7\n".to_owned()));
        let element = [("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "3")];
        assert_eq!(ran("-USR1", &element), (130, "requeue 7_3\n".to_owned()), "no other one of the array");
        assert_eq!(ran("-TERM", &[]), (130, String::new()));
    }

    #[test]
    fn a_script_that_somebody_changed_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard.sh");
        refuse_edited(&path).unwrap();
        fs_err::write(&path, sealed("#!/bin/bash\nexit 0\n")).unwrap();
        refuse_edited(&path).unwrap();
        let text = fs_err::read_to_string(&path).unwrap().replace("exit 0", "module load python\nexit 0");
        for changed in [text.as_str(), "#!/bin/bash\nexit 0\n", ""] {
            fs_err::write(&path, changed).unwrap();
            let error = refuse_edited(&path).unwrap_err();
            assert!(error.to_string().ends_with("shard.sh was changed since gistmill wrote it"), "{error}");
            assert!(error.hint().unwrap().contains("submit.sh"), "{error}");
        }
    }

    #[test]
    fn words_of_directives_are_plain() {
        assert!(plain("1-0:00:00").is_ok() && plain("8G").is_ok());
        for bad in ["", "a b", "a\n#SBATCH --wrap=x", "$(id)"] {
            assert!(plain(bad).is_err(), "{bad}");
        }
    }
}
