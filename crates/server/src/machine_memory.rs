//! How much memory the process may have: what the machine has, less where a control group or a resource limit says less.
//!
//! Read once at start, from the kernel's text files.

use std::fs::read_to_string;
use std::path::Path;

/// Bytes; `None` where nothing says it.
#[must_use]
pub fn memory() -> Option<u64> {
    let physical = read_to_string("/proc/meminfo").ok().and_then(|text| physical(&text));
    let limits = read_to_string("/proc/self/limits").unwrap_or_default();
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let grouped =
        group_files(&groups).into_iter().filter_map(|file| read_to_string(file).ok()?.trim().parse().ok());
    physical.into_iter().chain(resource_limits(&limits)).chain(grouped).min()
}

fn physical(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The soft limits of address space and data.
fn resource_limits(limits: &str) -> Vec<u64> {
    let names = ["Max address space", "Max data size"];
    let of = |line: &str| {
        names.iter().find_map(|name| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    };
    limits.lines().filter_map(of).collect()
}

/// Where the limits of our control groups are: our own and those around it, of either version.
fn group_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kind), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, limits) = match kind {
            // Above the lower one the kernel makes a process wait.
            "" => ("/sys/fs/cgroup", &["memory.max", "memory.high"][..]),
            kind if kind.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"][..])
            }
            _ => continue,
        };
        for group in Path::new(path).ancestors() {
            let group = group.to_string_lossy();
            let group = group.trim_start_matches('/');
            files.extend(limits.iter().map(|file| format!("{root}/{group}/{file}")));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        assert_eq!(physical("MemTotal:       24545736 kB\nMemFree: 1 kB\n"), Some(24_545_736 * 1024));
        let limits = "Limit   Soft Limit  Hard Limit Units\nMax data size   1000  unlimited  bytes\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(resource_limits(limits), [1000]);
        assert_eq!(group_files("0::/\n"), ["/sys/fs/cgroup//memory.max", "/sys/fs/cgroup//memory.high"]);
        assert_eq!(
            group_files("4:memory:/a/b\n1:cpu:/\n"),
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory//memory.limit_in_bytes"
            ]
        );
        assert!(memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
