//! Refused logins in the log, as many as somebody may want to read: whoever keeps knocking fills no disk.

use parking_lot::Mutex;

/// So many in so many microseconds are written out; what is more is counted.
const SHOWN: u32 = 20;
const WINDOW_US: i64 = 10_000_000;

/// The window of messages written lately.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began_us: i64,
    shown: u32,
    held_back: u64,
}

/// Whether a refusal is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Yes, and how many were held back before it.
    Yes(u64),
    /// No; it is counted.
    No,
}

impl Refusals {
    /// One more, at `now_us`.
    pub fn note(&self, now_us: i64) -> Shown {
        let mut window = self.0.lock();
        if now_us - window.began_us >= WINDOW_US {
            (window.began_us, window.shown) = (now_us, 0);
        }
        if window.shown >= SHOWN {
            window.held_back += 1;
            return Shown::No;
        }
        window.shown += 1;
        Shown::Yes(std::mem::take(&mut window.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted_and_told_of_later() {
        let refusals = Refusals::default();
        let shown = (0..100).filter(|_| refusals.note(WINDOW_US) != Shown::No).count();
        assert_eq!(shown, SHOWN as usize);
        assert_eq!(refusals.note(2 * WINDOW_US), Shown::Yes(100 - u64::from(SHOWN)));
        assert_eq!(refusals.note(2 * WINDOW_US), Shown::Yes(0));
    }
}
