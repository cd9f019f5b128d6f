//! Accounts: who may connect, and what they may do.
//!
//! - `credentials` is how an account proves who it is, `grants` what it has; `table` has the account and the immutable table
//!   that every session checks against; a change makes a new one and swaps the `Arc`. - `rights` says what an account may with its roles, `roles`
//!   which roles those are. - `store` is where accounts are kept (the `mysql` schema). - `statements` turns CREATE USER, GRANT and the like into
//!   changes and prints SHOW. - `usage` counts what accounts use up. - `host` has the patterns of hosts,
//!   `attributes` and `system_store` how accounts stand in the `mysql` schema.
//!
//! - ACCOUNT-1 No password, clear or hashed, reaches a log.

mod attributes;
mod credentials;
mod grants;
mod host;
mod rights;
mod roles;
mod statements;
mod store;
mod system_store;
mod table;
#[cfg(test)]
mod tests;
mod usage;

pub use credentials::{PasswordDefaults, random as random_password};
pub use grants::{COLUMN_PRIVILEGES, PRIVILEGES, PrivilegeInfo, Privileges, TABLE_PRIVILEGES};
pub use roles::{AccountName, RoleRules, at_login, available, with_roles};
pub use statements::{
    By, NewPassword, RoleContext, SetPassword, choose, password_hash, plan_users, privilege_rows, resolve,
    role_rows, set_password, show_create_user, show_grants, show_mariadb, system_rows, with_hashes,
    with_own_roles,
};
pub use store::{AccountStore, MemoryStore, Record};
pub use system_store::SystemStore;
pub use table::{AccessTable, Account};
pub use usage::{OwnConnection, Usage};

use omnibus_engine::CommitNo;
use omnibus_sql::{SqlResult, SqlSession};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The accounts of a server: a table that is swapped, and the store behind it.
pub struct Accounts {
    table: RwLock<Arc<AccessTable>>,
    /// Where changes are kept. Changes are made one at a time.
    store: parking_lot::Mutex<Box<dyn AccountStore>>,
    /// Counts swaps of the table.
    generation: AtomicU64,
    /// The variables about roles.
    rules: RwLock<Arc<RoleRules>>,
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("accounts", &self.table().len()).finish_non_exhaustive()
    }
}

impl Accounts {
    /// Loads the table from the store.
    pub fn open(store: Box<dyn AccountStore>) -> SqlResult<Accounts> {
        let table = AccessTable::build(store.load()?, false);
        Ok(Accounts {
            table: RwLock::new(Arc::new(table)),
            store: parking_lot::Mutex::new(store),
            generation: AtomicU64::new(0),
            rules: RwLock::default(),
        })
    }

    /// The table as it is now.
    #[must_use]
    pub fn table(&self) -> Arc<AccessTable> {
        self.table.read().clone()
    }

    /// The variables about roles.
    #[must_use]
    pub fn rules(&self) -> Arc<RoleRules> {
        self.rules.read().clone()
    }

    /// They say so now.
    pub fn set_rules(&self, rules: RoleRules) {
        let partial_revokes = rules.partial_revokes;
        let before = std::mem::replace(&mut *self.rules.write(), Arc::new(rules));
        if before.partial_revokes != partial_revokes {
            // What names of databases mean has changed.
            let _store = self.store.lock();
            let accounts = self.table().all();
            self.swap(accounts.iter().map(|account| Account::clone(account)).collect());
        }
    }

    /// Makes the change that `plan` derives from the present table, durably, then shows it to
    /// sessions. The plan also gives the statement that replicas get. Blocks.
    pub fn change(
        &self,
        plan: impl FnOnce(&AccessTable) -> SqlResult<(Vec<Record>, Vec<u8>)>,
    ) -> SqlResult<()> {
        let store = self.store.lock();
        let (changes, statement) = plan(&self.table())?;
        if changes.is_empty() {
            return Ok(());
        }
        store.apply(&changes, &statement)?;
        self.swap(store.load()?);
        Ok(())
    }

    /// As `change`, through a session of the SQL layer: logged, or not, with that session's settings and identity. Tells
    /// which commit it was, if there was one.
    pub fn change_in(
        &self,
        session: &mut SqlSession,
        plan: impl FnOnce(&AccessTable) -> SqlResult<(Vec<Record>, Vec<u8>)>,
    ) -> SqlResult<Option<CommitNo>> {
        let store = self.store.lock();
        let (changes, statement) = plan(&self.table())?;
        if changes.is_empty() {
            return Ok(None);
        }
        let durable = system_store::change(session, &changes, &statement)?;
        self.swap(store.load()?);
        Ok(durable)
    }

    /// FLUSH PRIVILEGES. Blocks.
    pub fn reload(&self) -> SqlResult<()> {
        let store = self.store.lock();
        self.swap(store.load()?);
        Ok(())
    }

    fn swap(&self, accounts: Vec<Account>) {
        *self.table.write() = Arc::new(AccessTable::build(accounts, self.rules().partial_revokes));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// A number that is another one after every change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}
