//! The state of the client's command and of its running statement, and what statements leave for the next one.

use crate::catalog::Catalog;
use crate::memory::{Account, SessionMemory};
use bytes::Bytes;
use omnibus_value::Value;
use std::sync::Arc;

/// A client's command: a packet, with the statements of its text.
pub struct ClientCommand {
    /// The text of the running statement.
    pub text: Bytes,
    /// The attributes of the running statement: names and values, text in utf8mb4.
    pub attributes: Vec<(String, Value)>,
    /// The memory of the command: of its text, tree, plan and parameters.
    pub(crate) account: Account,
    /// The memory of functions until their results are there.
    pub(crate) working: Account,
}

impl ClientCommand {
    /// Of a session with this memory.
    pub(crate) fn new(memory: &Arc<SessionMemory>) -> ClientCommand {
        ClientCommand {
            text: Bytes::new(),
            attributes: Vec::new(),
            account: Account::new(memory),
            working: Account::new(memory),
        }
    }

    /// It is over, and what it was made of is gone.
    pub fn end(&mut self) {
        let ClientCommand { text, attributes, account, working } = self;
        (*text, *attributes) = (Bytes::new(), Vec::new());
        account.clear();
        working.clear();
    }
}

/// The running statement.
#[derive(Default)]
pub struct StatementState {
    /// Its start, microseconds since the epoch (SET TIMESTAMP respected).
    pub now_us: i64,
    /// While it runs: how many conditions the one before left, and how many of them are errors.
    pub conditions_before: Option<(u64, u64)>,
    /// The catalog that SHOW COLUMNS of a temporary table reads instead of the real one.
    pub described: Option<Arc<Catalog>>,
}

/// Facts that a statement leaves for those after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementResults {
    /// LAST_INSERT_ID().
    pub last_insert_id: u64,
    /// Whether `sql_auto_is_null` gives it.
    pub new_insert_id: NewInsertId,
    /// LAST_INSERT_ID(expr) in the running statement.
    pub last_insert_id_set: Option<u64>,
    /// ROW_COUNT() of the last statement; -1 after a result set or an error.
    pub row_count: i64,
    /// FOUND_ROWS() of the last SELECT.
    pub found_rows: u64,
}

/// Under `sql_auto_is_null` the first statement behind an insert that made a number finds its row; no later one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewInsertId {
    /// No number was made since one was asked for.
    #[default]
    None,
    /// A number was made that no statement has asked for.
    Fresh,
    /// The running statement has asked for it.
    Asked,
}
