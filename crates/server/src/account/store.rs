//! Where accounts are kept: `mysql.user` and `mysql.db`, behind a trait.

use super::table::Account;
use omnibus_sql::SqlResult;
use parking_lot::Mutex;

/// One change: the whole account as it shall be, or its end.
#[derive(Clone, Debug)]
pub enum Record {
    /// Create or replace.
    Put(Box<Account>),
    /// Remove, with its database privileges.
    Delete {
        /// Name.
        user: String,
        /// Host part.
        host: String,
    },
}

/// Keeps accounts.
pub trait AccountStore: Send + Sync {
    /// All of them. May block on a read.
    fn load(&self) -> SqlResult<Vec<Account>>;
    /// Makes all changes or none. Durable on return; blocks. `statement` is for the log, with
    /// passwords already in their stored form (ACCOUNT-1).
    fn apply(&self, changes: &[Record], statement: &[u8]) -> SqlResult<()>;
}

/// Accounts in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryStore {
    accounts: Mutex<Vec<Account>>,
}

impl MemoryStore {
    /// With these accounts.
    #[must_use]
    pub fn new(accounts: Vec<Account>) -> MemoryStore {
        MemoryStore { accounts: Mutex::new(accounts) }
    }
}

impl AccountStore for MemoryStore {
    fn load(&self) -> SqlResult<Vec<Account>> {
        Ok(self.accounts.lock().clone())
    }

    fn apply(&self, changes: &[Record], _: &[u8]) -> SqlResult<()> {
        let mut accounts = self.accounts.lock();
        for change in changes {
            let (user, host) = match change {
                Record::Put(account) => (account.user.as_str(), account.host.as_str()),
                Record::Delete { user, host } => (user.as_str(), host.as_str()),
            };
            accounts.retain(|a| !a.is(user, host));
            if let Record::Put(account) = change {
                accounts.push(Account::clone(account));
            }
        }
        Ok(())
    }
}
