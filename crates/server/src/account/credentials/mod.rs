//! How an account proves who it is, and what it may use up.

mod options;
mod passwords;
mod requirement;

pub use options::{AccountOptions, Lifetime, LoginLock, Resources};
pub use passwords::{OldPassword, PasswordDefaults, PasswordRules, is_password, random, stored_form};
pub use requirement::Requirement;

/// Plugin and secret of a login.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Authentication plugin.
    pub plugin: String,
    /// The plugin's secret; empty is no password.
    pub auth: Vec<u8>,
    /// A second password of the same plugin, which is good as well: RETAIN CURRENT PASSWORD keeps it. Empty is none.
    pub second_auth: Vec<u8>,
    /// Passwords that still count for PASSWORD HISTORY and REUSE INTERVAL, the newest last.
    pub passwords: Vec<OldPassword>,
}

impl Credentials {
    /// Those of an account without a password.
    #[must_use]
    pub fn new(plugin: &str) -> Credentials {
        Credentials {
            plugin: plugin.to_owned(),
            auth: Vec::new(),
            second_auth: Vec::new(),
            passwords: Vec::new(),
        }
    }
}

/// Without what a password could be found by (ACCOUNT-1).
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}
