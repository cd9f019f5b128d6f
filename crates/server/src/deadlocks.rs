//! The last deadlock and the last refusal by a foreign key, as texts: SHOW ENGINE INNODB STATUS has them. Bounded, as the texts are.

use crate::clock::{now_us, utc_text};
use parking_lot::Mutex;
use std::sync::Arc;

/// The kept part of a statement.
const STATEMENT: usize = 1024;
/// The kept part of a deadlock.
const DEADLOCK: usize = 64 * 1024;

/// The texts.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    latest: Mutex<Option<Arc<str>>>,
    foreign_key: Mutex<Option<Arc<str>>>,
}

impl Deadlocks {
    /// The last deadlock.
    pub(crate) fn latest(&self) -> Option<Arc<str>> {
        self.latest.lock().clone()
    }

    /// The last statement that a foreign key refused.
    pub(crate) fn foreign_key_error(&self) -> Option<Arc<str>> {
        self.foreign_key.lock().clone()
    }

    /// Keeps a deadlock's text.
    pub(crate) fn keep(&self, text: &str) {
        let end = text.floor_char_boundary(DEADLOCK);
        *self.latest.lock() = Some(text[..end].into());
    }

    /// Keeps that a foreign key has refused a statement of a connection, which a program looks for by the product's name.
    pub(crate) fn refused(&self, product: &str, connection: u32, statement: &[u8], why: &str) {
        let statement = omnibus_parser::redact(&statement[..statement.len().min(STATEMENT)]);
        let (at, statement) = (utc_text(now_us()), String::from_utf8_lossy(&statement).into_owned());
        let text = format!("{at} 0 {product} thread id {connection}:\n{statement}\n{why}\n");
        *self.foreign_key.lock() = Some(text.into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_are_bounded_and_show_no_password() {
        let kept = Deadlocks::default();
        kept.keep(&"ä".repeat(DEADLOCK));
        assert_eq!(kept.latest().unwrap().len(), DEADLOCK);
        let statement = format!("CREATE USER u IDENTIFIED BY 'geheim' {}", "x".repeat(5000));
        kept.refused("MySQL", 7, statement.as_bytes(), "why");
        let text = kept.foreign_key_error().unwrap();
        assert!(text.len() < 2000 && text.contains("thread id 7") && !text.contains("geheim"), "{text}");
    }
}
