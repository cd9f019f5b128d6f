//! Processor time and context switches of this process, as the operating system counts them.

use std::time::Duration;

/// Totals since the process started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) switches: u64,
}

impl Usage {
    pub(super) fn since(self, before: Usage) -> Usage {
        Usage {
            cpu: self.cpu.saturating_sub(before.cpu),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
pub(super) fn now() -> Usage {
    // SAFETY: `rusage` is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `rusage` of this frame, which the call fills.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
        return Usage::default();
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
    }
}

#[cfg(not(unix))]
pub(super) fn now() -> Usage {
    Usage::default()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn sleeping_switches_and_work_takes_time() {
        let before = now();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let mut work = 0u64;
        while now().since(before).cpu < Duration::from_millis(1) {
            work = std::hint::black_box(work + 1);
        }
        assert!(now().since(before).switches >= 10);
    }
}
