//! Texts and documents that functions make, counted as long as anybody has them.
//!
//! A row of a hundred long texts, or a hundred calls inside each other, each with a long argument, would otherwise take what
//! no operator asks for. Whoever drops the last reference gives the memory back. Short ones are not counted one by one: what is
//! asked for the tree of the statement (`memory::tree`) covers one for every few words of it.

use crate::error::SqlResult;
use crate::memory::{Account, MemoryLimits};
use crate::state::SessionState;
use bytes::Bytes;

/// Shorter texts come and go without being counted.
pub const LONG: usize = 2 << 10;
/// Bytes of a text that is counted beside its own.
const HEAD: usize = 64;

struct Held {
    text: Bytes,
    _account: Account,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// The same text, counted with the session's memory. One that others share is theirs, or was counted before.
///
/// # Errors
/// 3170: a limit says no.
pub fn hold(text: Bytes, session: &SessionState) -> SqlResult<Bytes> {
    if text.len() < LONG || !text.is_unique() {
        return Ok(text);
    }
    let mut account = Account::new(&session.connection.memory);
    account.grow_exactly(text.len() + HEAD, MemoryLimits::of(&session.settings))?;
    Ok(Bytes::from_owner(Held { text, _account: account }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_counted_until_its_last_reference_goes() {
        let mut session = SessionState::default();
        let long = hold(vec![b'x'; 4 * LONG].into(), &session).unwrap();
        assert!(session.connection.memory.used() >= 4 * LONG as u64);
        let again = hold(long.clone(), &session).unwrap();
        let once = session.connection.memory.used();
        drop(long);
        assert_eq!(session.connection.memory.used(), once, "a second reference is not counted, and keeps it");
        let part = again.slice(1..3);
        drop(again);
        assert_eq!((&part[..], session.connection.memory.used()), (&b"xx"[..], once));
        drop(part);
        assert_eq!(session.connection.memory.used(), 0);
        session.settings.memory_limits.connection = LONG as u64;
        assert_eq!(hold(vec![b'x'; 2 * LONG].into(), &session).unwrap_err().code, 3170);
        assert!(hold(Bytes::from_static(b"short"), &session).is_ok());
    }
}
