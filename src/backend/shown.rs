//! What a sandbox shows of the machine, by name: on this machine as in a container.

use std::fmt::Write as _;

/// Below `/proc`: what is about the machine and the kernel's memory, and reads as empty.
pub(super) const MASKED: [&str; 24] = [
    "cmdline",
    "config.gz",
    "consoles",
    "devices",
    "diskstats",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "partitions",
    "sched_debug",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
];
/// Folders below `/sys`: the number and kind of processors, and how memory is laid out.
pub(super) const SHOWN_OF_SYS: [&str; 3] =
    ["devices/system/cpu", "devices/system/node", "kernel/mm/transparent_hugepage"];
/// Device nodes that are shown.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Folders with the interpreters of a prefix.
pub(super) const LIBRARIES: [&str; 3] = ["lib", "lib64", "lib32"];
/// Beside an interpreter's standard library: what was installed, and the wheels that make a new environment.
pub(super) const PACKAGES: [&str; 3] = ["site-packages", "dist-packages", "ensurepip/_bundled"];
/// Those wheels, where a distribution keeps them for all.
pub(super) const WHEELS: [&str; 2] = ["share/python-wheels", "share/python3-wheels"];

/// The lists as assignments of Python.
pub(super) fn in_python() -> String {
    let lists: [(&str, &[&str]); 6] = [
        ("MASKED", &MASKED),
        ("SHOWN_OF_SYS", &SHOWN_OF_SYS),
        ("DEVICES", &DEVICES),
        ("LIBRARIES", &LIBRARIES),
        ("PACKAGES", &PACKAGES),
        ("WHEELS", &WHEELS),
    ];
    lists.iter().fold(String::new(), |mut text, (name, list)| {
        let _ = writeln!(text, "{name} = {list:?}");
        text
    })
}
