//! The storage under a directory: file system, device, and whether the device's report that a write is durable can be
//! believed.
//!
//! Reads `/proc/self/mountinfo` and `/sys/dev/block` and judges measured times; on other systems than Linux nothing is
//! known. Used by the benchmarks, on the main thread; changes nothing.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The operating system's information about the place.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// `ext4`, `xfs`, ...
    pub file_system: Option<String>,
    /// The mounted device.
    pub source: Option<String>,
    /// A disk with moving parts, as the device says.
    rotational: Option<bool>,
    /// `write back` (a volatile cache, flushed on demand) or `write through`.
    write_cache: Option<String>,
}

/// The credibility of acknowledged writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// True if losing power would or may lose acknowledged writes.
    pub doubtful: bool,
    /// `certain`, `likely`, `unknown`.
    pub sure: &'static str,
    /// In words.
    pub text: String,
}

impl Device {
    /// Looks `dir` up. What can not be found out stays empty.
    #[must_use]
    pub fn of(dir: &Path) -> Device {
        let mut device = Device::default();
        let Ok(dir) = dir.canonicalize() else { return device };
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let Some(mount) = best_mount(&mounts, &dir) else { return device };
        device.file_system = Some(mount.file_system.to_owned());
        device.source = Some(mount.source.to_owned());
        let queue = |name: &str| {
            let node = PathBuf::from("/sys/dev/block").join(mount.numbers);
            // A partition's settings are its disk's.
            let places = [node.join("queue"), node.join("../queue")];
            places.iter().find_map(|place| std::fs::read_to_string(place.join(name)).ok())
        };
        // Virtual disks call themselves rotating until told otherwise; that says nothing.
        let is_virtual = ["/dev/vd", "/dev/xvd"].iter().any(|prefix| mount.source.starts_with(prefix));
        device.rotational = queue("rotational").filter(|_| !is_virtual).map(|text| text.trim() == "1");
        device.write_cache = queue("write_cache").map(|text| text.trim().to_owned());
        device
    }

    /// Judges the usual time of a small write that was acknowledged as durable.
    #[must_use]
    pub fn trust(&self, usual: Duration) -> Trust {
        let us = usual.as_micros();
        let trust = |doubtful, sure, text: String| Trust { doubtful, sure, text };
        if matches!(self.file_system.as_deref(), Some("tmpfs" | "ramfs")) {
            return trust(true, "certain", "this is memory: nothing here survives a loss of power".into());
        }
        if us < 5 {
            let text =
                format!("{us} us is faster than any device: the writes do not leave this machine's memory");
            return trust(true, "certain", text);
        }
        if self.rotational == Some(true) && us < 2000 {
            let text = format!(
                "{us} us is less than a turn of a disk: a cache acknowledges; believe it only if it has a battery"
            );
            return trust(true, "likely", text);
        }
        match self.write_cache.as_deref() {
            Some("write through") if us < 100 => trust(
                false,
                "unknown",
                format!(
                    "the device says that it has no volatile cache, so no flush is sent, and acknowledges in {us} us: right \
                     for a device with a power-loss capacitor; in a virtual machine it is the host's word"
                ),
            ),
            Some("write back") if us < 100 => trust(
                true,
                "unknown",
                format!(
                    "the device has a volatile cache and acknowledges a flush in {us} us: a device with a power-loss \
                     capacitor can, others can not; in a virtual machine the host may ignore flushes"
                ),
            ),
            _ => trust(
                false,
                "unknown",
                format!("{us} us is what a device that waits for its medium may take"),
            ),
        }
    }

    /// Describes the device in one line for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
        let kind = match self.rotational {
            Some(true) => ", rotating",
            Some(false) => ", not rotating",
            None => "",
        };
        format!(
            "file system {}, device {}{kind}, write cache: {}",
            word(&self.file_system),
            word(&self.source),
            word(&self.write_cache)
        )
    }

    /// Returns the form for `--json`.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "file_system": self.file_system, "device": self.source, "rotational": self.rotational,
            "write_cache": self.write_cache })
    }
}

struct Mount<'a> {
    numbers: &'a str,
    file_system: &'a str,
    source: &'a str,
}

/// The mount that `dir` is in: the longest mount point above it, the last of equals.
fn best_mount<'a>(mountinfo: &'a str, dir: &Path) -> Option<Mount<'a>> {
    let mut best: Option<(usize, Mount<'a>)> = None;
    for line in mountinfo.lines() {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let back: Vec<&str> = back.split(' ').collect();
        let (Some(numbers), Some(point)) = (front.get(2), front.get(4)) else { continue };
        let (Some(file_system), Some(source)) = (back.first(), back.get(1)) else { continue };
        // Spaces are written in octal.
        let point = point.replace("\\040", " ");
        if dir.starts_with(&point) && best.as_ref().is_none_or(|(length, _)| point.len() >= *length) {
            best = Some((point.len(), Mount { numbers, file_system, source }));
        }
    }
    best.map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /data\\040x rw shared:1 - tmpfs tmpfs rw\n\
                    3 1 8:2 / /data rw - xfs /dev/sdb rw\n";
        let at = |dir: &str| best_mount(text, Path::new(dir)).unwrap().file_system;
        assert_eq!(
            (at("/home"), at("/data/y"), at("/data x/y"), at("/database")),
            ("ext4", "xfs", "tmpfs", "ext4")
        );
    }

    #[test]
    fn only_what_no_device_can_do_is_certain() {
        let us = Duration::from_micros;
        let device = |file_system: &str, rotational, cache: &str| Device {
            file_system: Some(file_system.into()),
            source: None,
            rotational: Some(rotational),
            write_cache: Some(cache.into()),
        };
        let judged = |device: Device, median| {
            let trust = device.trust(us(median));
            (trust.doubtful, trust.sure)
        };
        assert_eq!(judged(device("tmpfs", false, "write back"), 500), (true, "certain"));
        assert_eq!(judged(device("ext4", false, "write back"), 2), (true, "certain"));
        assert_eq!(judged(device("ext4", true, "write back"), 300), (true, "likely"));
        assert_eq!(judged(device("ext4", false, "write back"), 40), (true, "unknown"));
        assert_eq!(judged(device("ext4", false, "write through"), 40), (false, "unknown"));
        assert_eq!(judged(device("ext4", false, "write back"), 900), (false, "unknown"));
        assert_eq!(judged(device("ext4", true, "write back"), 8000), (false, "unknown"));
    }
}
