//! Passwords: what an account keeps of them, which rules it has for them, and passwords that the server makes up.

use omnibus_sql::{SqlError, SqlResult};
use omnibus_wire::auth::{NATIVE, caching_sha2, native};
use std::fmt::Write;

/// An account's own rules for passwords; `None` leaves one to the variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PasswordRules {
    /// PASSWORD HISTORY: so many are not used again.
    pub history: Option<u32>,
    /// PASSWORD REUSE INTERVAL: nor those of so many days.
    pub reuse_days: Option<u32>,
    /// PASSWORD REQUIRE CURRENT, or OPTIONAL.
    pub require_current: Option<bool>,
}

/// The values of `password_history` and its kin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PasswordDefaults {
    /// `password_history`.
    pub history: u32,
    /// `password_reuse_interval`.
    pub reuse_days: u32,
    /// `password_require_current`.
    pub require_current: bool,
    /// Whether rules are asked at all: not those of a replica for what its source has done.
    pub enforced: bool,
}

/// A password that an account had or has.
#[derive(Clone, PartialEq, Eq)]
pub struct OldPassword {
    /// When it was set, microseconds since 1970.
    pub set_us: i64,
    /// Its stored form.
    pub auth: Vec<u8>,
}

impl PasswordRules {
    /// PASSWORD HISTORY and kin, as clauses; with what is the default, too, where `all` of them are shown.
    #[must_use]
    pub fn clauses(&self, all: bool) -> String {
        let mut text = String::new();
        let _ = match self.history {
            Some(count) => write!(text, " PASSWORD HISTORY {count}"),
            None if all => write!(text, " PASSWORD HISTORY DEFAULT"),
            None => Ok(()),
        };
        let _ = match self.reuse_days {
            Some(days) => write!(text, " PASSWORD REUSE INTERVAL {days} DAY"),
            None if all => write!(text, " PASSWORD REUSE INTERVAL DEFAULT"),
            None => Ok(()),
        };
        text.push_str(match self.require_current {
            Some(true) => " PASSWORD REQUIRE CURRENT",
            Some(false) => " PASSWORD REQUIRE CURRENT OPTIONAL",
            None if all => " PASSWORD REQUIRE CURRENT DEFAULT",
            None => "",
        });
        text
    }
}

/// A password for IDENTIFIED BY RANDOM PASSWORD: characters that need no care in a shell's or a statement's quotes.
#[must_use]
pub fn random(len: usize) -> String {
    const CHARACTERS: &[u8] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789(){}[]<>,.;:+-*/=@#%^&|_?!~";
    let mut bytes = vec![0; len * 4];
    crate::random::random_bytes(&mut bytes);
    let pick = |four: &[u8]| {
        let number = four.iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte));
        char::from(CHARACTERS[number % CHARACTERS.len()])
    };
    bytes.chunks_exact(4).map(pick).collect()
}

/// Whether a stored form is this password's; its form tells whose plugin's it is.
pub fn is_password(stored: &[u8], password: &[u8]) -> bool {
    match native::parse_hash(stored) {
        Some(_) => native::hash_text(password).as_bytes() == stored,
        None => caching_sha2::check_full(stored, password),
    }
}

/// The stored form of a clear password.
pub fn stored_form(plugin: &str, password: &[u8]) -> SqlResult<Vec<u8>> {
    if password.len() > caching_sha2::MAX_PASSWORD {
        return Err(SqlError::wrong_arguments("IDENTIFIED BY (password longer than 256 bytes)"));
    }
    Ok(match plugin {
        NATIVE => native::hash_text(password).into_bytes(),
        _ => {
            let mut salt = [0; caching_sha2::SALT_LEN];
            crate::random::random_bytes(&mut salt);
            caching_sha2::hash_text(password, &salt)
        }
    })
}
