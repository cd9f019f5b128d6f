//! The prepared statements of a connection: their numbers, what has come for their parameters, and how many a server has of them.

use crate::digests::Kept;
use crate::errors;
use crate::parsed::Parsed;
use crate::prepared_place::StatementPlace;
use crate::server::Server;
use foldhash::fast::RandomState;
use omnibus_sql::memory::{Account, MemoryLimits, SessionMemory};
use omnibus_sql::{Prepared, SqlError, SqlResult};
use omnibus_wire::stmt::Bound;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of bound parameters that are not counted: their statement is.
const BOUND: usize = 1024;
/// The bytes of a parameter of long data besides its value.
const PARAMETER: usize = 64;

/// One prepared statement.
pub(super) struct Statement {
    pub(super) parsed: Arc<Parsed>,
    pub(super) handle: Prepared,
    pub(super) params: usize,
    pub(super) bound: Bound,
    bound_memory: Account,
    pub(super) digest: Option<Kept>,
    pub(super) long_data: HashMap<u16, Vec<u8>>,
    long_memory: Account,
    /// Long data went wrong: the next execution reports it, since the command has no reply.
    pub(super) long_data_error: Option<SqlError>,
    _place: StatementPlace,
}

impl Statement {
    pub(super) fn new(
        parsed: Arc<Parsed>,
        handle: Prepared,
        place: StatementPlace,
        memory: &Arc<SessionMemory>,
    ) -> Statement {
        Statement {
            params: parsed.statement.params as usize,
            parsed,
            handle,
            bound: Bound::default(),
            bound_memory: Account::new(memory),
            digest: None,
            long_data: HashMap::new(),
            long_memory: Account::new(memory),
            long_data_error: None,
            _place: place,
        }
    }

    /// A piece of a parameter's value. What is wrong with it is told by the next execution.
    pub(super) fn add_long_data(&mut self, param: u16, data: &[u8], max: usize, limits: MemoryLimits) {
        if self.long_data_error.is_some() {
            return;
        }
        if let Err(error) = self.try_add_long_data(param, data, max, limits) {
            // The execution will fail: none of it is needed.
            self.reset();
            self.long_data_error = Some(error);
        }
    }

    fn try_add_long_data(
        &mut self,
        param: u16,
        data: &[u8],
        max: usize,
        limits: MemoryLimits,
    ) -> SqlResult<()> {
        if usize::from(param) >= self.params {
            return Err(SqlError::wrong_arguments("mysqld_stmt_send_long_data"));
        }
        let (length, capacity) = self.long_data.get(&param).map_or((0, 0), |v| (v.len(), v.capacity()));
        let needed = length + data.len();
        if needed > max {
            return Err(errors::packet_too_large());
        }
        if needed > capacity || capacity == 0 {
            let wanted = needed.max(2 * capacity);
            self.long_memory.grow_within(wanted - capacity + PARAMETER, limits)?;
            self.long_data.entry(param).or_default().reserve_exact(wanted - length);
        }
        self.long_data.entry(param).or_default().extend_from_slice(data);
        Ok(())
    }

    /// Counts what the client has bound, which stays for later executions.
    pub(super) fn keep_bound(&mut self, limits: MemoryLimits) -> SqlResult<()> {
        let bytes = self.bound.memory();
        if bytes <= BOUND && self.bound_memory.used() == 0 {
            return Ok(());
        }
        self.bound_memory.resize(bytes, limits).inspect_err(|_| {
            self.bound = Bound::default();
            self.bound_memory.clear();
        })
    }

    /// It was run: what came for its parameters was used up.
    pub(super) fn executed(&mut self) {
        if self.long_memory.used() > 0 {
            self.long_data = HashMap::new();
            self.long_memory.clear();
        }
    }

    /// COM_STMT_RESET.
    pub(super) fn reset(&mut self) {
        self.executed();
        self.long_data_error = None;
    }
}

/// The prepared statements of a connection.
pub(super) struct Statements {
    server: Arc<Server>,
    by_id: HashMap<u32, Box<Statement>, RandomState>,
    next: u32,
}

impl Statements {
    pub(super) fn new(server: Arc<Server>) -> Statements {
        Statements { server, by_id: HashMap::default(), next: 1 }
    }

    /// A place for one more.
    ///
    /// # Errors
    /// 1461.
    pub(super) fn admit(&self) -> SqlResult<StatementPlace> {
        StatementPlace::take(&self.server)
    }

    /// Keeps one and gives it a number.
    pub(super) fn add(&mut self, statement: Statement) -> u32 {
        let id = loop {
            let id = self.next;
            self.next = self.next.wrapping_add(1).max(1);
            if !self.by_id.contains_key(&id) {
                break id;
            }
        };
        self.by_id.insert(id, Box::new(statement));
        id
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Statement> {
        self.by_id.get_mut(&id).map(|statement| &mut **statement)
    }

    /// Out, while it runs: that needs the whole session. It still counts.
    pub(super) fn take(&mut self, id: u32) -> Option<Box<Statement>> {
        self.by_id.remove(&id)
    }

    pub(super) fn put_back(&mut self, id: u32, statement: Box<Statement>) {
        self.by_id.insert(id, statement);
    }

    pub(super) fn close(&mut self, id: u32) {
        self.by_id.remove(&id);
    }

    pub(super) fn close_all(&mut self) {
        self.by_id.clear();
    }
}
