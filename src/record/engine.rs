//! Programs that make and run containers, by name.

/// The one that the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineKind {
    Docker,
    Podman,
}

impl EngineKind {
    /// Its program, as scripts call it.
    pub fn program(self) -> &'static str {
        match self {
            EngineKind::Docker => "docker",
            EngineKind::Podman => "podman",
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Docker => "Docker",
            EngineKind::Podman => "Podman",
        }
    }
}
