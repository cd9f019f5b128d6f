//! The running statement as expressions see it: rows in their slots, parameters, session, storage.
//!
//! Every table instance of a statement, at any depth, has its own slot, given when the statement is
//! bound; a correlated subquery simply reads the slots that the query around it has filled. One
//! `Context` per execution, on the session's thread.

use super::charset;
use super::profile::Profile;
use crate::api::sql_mode;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError};
use crate::expr::Expr;
use crate::expr::subquery::SubqueryState;
pub use crate::rows::Row;
use crate::rows::Running;
use crate::state::SessionState;
use crate::storage::Storage;
use bytes::Bytes;
use omnibus_value::pace::Pace;
use omnibus_value::temporal::{DateTime, Zone};
use omnibus_value::{ColumnType, Value, stack};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A table instance's place in the frame.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// Decodes images; `None` for computed tables.
    pub table: Option<Arc<Table>>,
    /// The current row.
    pub row: Row,
}

impl Slot {
    #[inline]
    fn stored(&self, image: &Bytes, column: u16) -> ExecResult<Value> {
        match &self.table {
            Some(table) => Ok(table.decode_column(image, usize::from(column))?),
            None => Ok(Value::Null),
        }
    }

    /// The clustered key of the row, if it is there.
    fn key(&self) -> Value {
        match &self.row {
            Row::Keyed(row) => Value::Bytes(row.0.clone()),
            _ => Value::Null,
        }
    }
}

/// Whether strict mode makes an error of a warning: of text that is no number or time, of numbers, texts and groups that are cut.
fn is_bad_data(code: u16) -> bool {
    matches!(code, 1260 | 1264 | 1292 | 1301 | 1411 | 1441 | 3155 | 3156)
}

/// The facts that hold for the whole of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryFacts {
    /// Correlated subqueries keep results: nothing that they read changes while the statement runs.
    pub keeps_results: bool,
    /// Bad data is an error in what it selects, for that is stored in variables of a program.
    pub strict_outputs: bool,
}

/// The slots of a statement's table instances: most statements have one.
pub type Frame = SmallVec<[Slot; 1]>;

/// A running statement.
pub struct Context<'a> {
    /// Session state: variables, settings, diagnostics.
    pub session: &'a mut SessionState,
    /// Rows.
    pub storage: &'a mut dyn Storage,
    /// Values of `?`.
    pub params: &'a [Value],
    /// Slots of all table instances.
    pub frame: Frame,
    /// Caches of subqueries, by number.
    pub subqueries: Vec<SubqueryState>,
    /// Sequences of RAND(n), by the place of the call.
    pub rand_seeds: HashMap<usize, (u64, u64)>,
    /// Rows that the query now running left out by OFFSET: FOUND_ROWS() counts them.
    pub skipped: u64,
    /// Whether bad data in expressions is an error (a statement that writes, in strict mode)
    /// rather than a warning.
    pub strict: bool,
    /// Counts the rows that groups take up: what `Kind::Once` keeps is of one of them.
    pub(crate) grouped_rows: u64,
    /// The facts that hold for the whole of a query.
    pub query: QueryFacts,
    /// The profile of the plan's parts, if somebody wants to know.
    pub profile: Option<Box<Profile>>,
    /// A buffer for the key that a join looks up.
    pub(crate) key: Vec<u8>,
    /// Below which address of the stack recursion ends.
    floor: usize,
    /// The first such error, until the expression that met it is evaluated.
    bad_data: Option<Box<SqlError>>,
    /// Bytes that functions have compared and not yet counted.
    compared: usize,
}

/// Bytes that are compared before they are counted.
const COMPARED_MAX: usize = 1 << 16;

impl Running for Context<'_> {
    fn session(&self) -> &SessionState {
        self.session
    }

    fn need_blocking(&mut self) -> ExecResult<()> {
        self.storage.need_blocking()
    }
}

impl<'a> Context<'a> {
    /// A statement about to run; `slots` and `subqueries` as the binder counted them.
    pub fn new(
        session: &'a mut SessionState,
        storage: &'a mut dyn Storage,
        params: &'a [Value],
    ) -> Context<'a> {
        Context {
            session,
            storage,
            params,
            frame: Frame::new(),
            subqueries: Vec::new(),
            rand_seeds: HashMap::new(),
            skipped: 0,
            strict: false,
            grouped_rows: 0,
            query: QueryFacts::default(),
            profile: None,
            key: Vec::new(),
            floor: stack::floor(),
            bad_data: None,
            compared: 0,
        }
    }

    /// Makes room for the slots and subqueries that the binder counted.
    pub fn reserve(&mut self, slots: usize, subqueries: usize) {
        self.frame.resize_with(slots, Slot::default);
        self.subqueries.resize_with(subqueries, SubqueryState::default);
    }

    /// Fails before a recursion is too deep for the stack.
    ///
    /// # Errors
    /// 1436.
    #[inline]
    pub(crate) fn check_stack(&self) -> ExecResult<()> {
        if stack::here() > self.floor { Ok(()) } else { Err(SqlError::stack_overrun().into()) }
    }

    /// Counts a row, a comparison, a node of an expression in the statement's budget.
    ///
    /// # Errors
    /// 1317, 3024; `NeedBlocking` on an async worker.
    #[inline]
    pub(crate) fn tick(&self) -> ExecResult<()> {
        self.session.budget.tick()
    }

    /// Counts what is done to every byte of a text.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub(crate) fn bytes(&self, bytes: usize) -> ExecResult<()> {
        self.session.budget.bytes(bytes)
    }

    /// Counts the work of a function whose time is no small multiple of its arguments' length.
    ///
    /// # Errors
    /// As `tick`; without a statement around, while constants are computed, that it is too much.
    #[inline]
    pub(crate) fn compared(&mut self, bytes: usize) -> ExecResult<()> {
        self.compared += bytes + 1;
        if self.compared < COMPARED_MAX {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.compared);
        self.bytes(bytes)?;
        self.storage.check_killed()
    }

    /// Runs work on the inside of a value, which ends early when the statement must.
    ///
    /// # Errors
    /// As `tick`.
    pub(crate) fn paced<T>(&self, work: impl FnOnce(&mut Pace<'_>) -> T) -> ExecResult<T> {
        let mut stopped = None;
        let done = work(&mut |steps| match self.session.budget.spend(steps) {
            Ok(()) => true,
            Err(interrupt) => {
                stopped = Some(interrupt);
                false
            }
        });
        stopped.map_or(Ok(done), Err)
    }

    /// Asks for what a function is about to make, or needs until its result is there. It has that until it returns.
    ///
    /// # Errors
    /// 3170: a limit says no.
    #[inline]
    pub(crate) fn ask(&mut self, bytes: usize) -> ExecResult<()> {
        let SessionState { command, settings, .. } = &mut *self.session;
        Ok(command.working.grow(bytes, settings)?)
    }

    /// Makes room for `more` bytes in a text that grows.
    ///
    /// # Errors
    /// As `ask`.
    #[inline]
    pub(crate) fn room(&mut self, text: &mut Vec<u8>, more: usize) -> ExecResult<()> {
        if text.capacity() - text.len() < more {
            let longer = (text.len() + more).max(2 * text.capacity());
            self.ask(longer - text.capacity())?;
            text.reserve_exact(longer - text.len());
        }
        Ok(())
    }

    /// Adds a warning. In a strict write, bad data fails the expression that is being evaluated.
    pub fn warn(&mut self, condition: SqlError) {
        if self.strict && is_bad_data(condition.code) {
            self.bad_data.get_or_insert_with(|| Box::new(condition));
            return;
        }
        self.session.diagnostics.warn(condition);
    }

    /// Fails if the expression just evaluated met bad data.
    ///
    /// # Errors
    /// The first error that strict mode has made of a warning.
    #[inline]
    pub(in crate::expr) fn refuse_bad_data(&mut self) -> ExecResult<()> {
        match self.bad_data.take() {
            None => Ok(()),
            Some(condition) => Err((*condition).into()),
        }
    }

    /// Bad data: an error in a strict write, else a warning.
    ///
    /// # Errors
    /// The condition itself, if strict.
    pub fn complain(&mut self, condition: SqlError) -> ExecResult<()> {
        if self.strict {
            return Err(condition.into());
        }
        self.warn(condition);
        Ok(())
    }

    /// Division by zero, as sql_mode wants it treated.
    ///
    /// # Errors
    /// 1365 in a strict write.
    pub fn division_by_zero(&mut self) -> ExecResult<()> {
        if self.session.settings.sql_mode & sql_mode::ERROR_FOR_DIVISION_BY_ZERO == 0 {
            return Ok(());
        }
        self.complain(SqlError::division_by_zero())
    }

    /// The clustered key of the row in a slot; NULL where an outer join found none.
    #[must_use]
    pub fn row_key(&self, slot: u16) -> Value {
        self.frame[usize::from(slot)].key()
    }

    /// Whether an outer join has found a row for a slot.
    #[must_use]
    pub fn has_row(&self, slot: u16) -> bool {
        !matches!(self.frame[usize::from(slot)].row, Row::Nulls)
    }

    /// A column of the row in a slot.
    ///
    /// # Errors
    /// The stored row is damaged.
    #[inline]
    pub fn column(&self, slot: u16, column: u16, utc: bool) -> ExecResult<Value> {
        let slot = &self.frame[usize::from(slot)];
        let value = match &slot.row {
            Row::Image(image) => slot.stored(image, column)?,
            Row::Keyed(row) => slot.stored(&row.1, column)?,
            Row::Values(values) => values.get(usize::from(column)).cloned().unwrap_or(Value::Null),
            Row::Nulls | Row::Unset => Value::Null,
        };
        if utc
            && !self.session.settings.zone.is_utc()
            && let Value::DateTime(at) = value
        {
            return Ok(Value::DateTime(self.to_local(at)));
        }
        Ok(value)
    }

    /// The value of an expression for the row that groups now take up, computed when it is first asked for.
    pub(super) fn once(&mut self, number: usize, e: &Expr) -> ExecResult<Value> {
        if let SubqueryState::Once(row, value) = &self.subqueries[number]
            && *row == self.grouped_rows
        {
            return Ok(value.clone());
        }
        let value = e.eval(self)?;
        self.subqueries[number] = SubqueryState::Once(self.grouped_rows, value.clone());
        Ok(value)
    }

    /// The value of a CHAR column as `sql_mode` wants it shown: PAD_CHAR_TO_FULL_LENGTH.
    #[must_use]
    pub fn padded(&self, value: Value, ty: &ColumnType) -> Value {
        let Value::Bytes(text) = value else { return value };
        if self.session.settings.sql_mode & sql_mode::PAD_CHAR_TO_FULL_LENGTH == 0 {
            return Value::Bytes(text);
        }
        let missing = (ty.length as usize).saturating_sub(charset::char_count(&text, ty.collation));
        Value::Bytes([&text[..], &b" ".repeat(missing)].concat().into())
    }

    /// The session's time zone.
    #[must_use]
    pub fn zone(&self) -> Zone {
        self.session.settings.zone
    }

    /// UTC fields as the session sees them.
    #[must_use]
    pub fn to_local(&self, at: DateTime) -> DateTime {
        at.utc_to_local(self.zone()).unwrap_or(at)
    }

    /// The statement's start in the session's zone.
    #[must_use]
    pub fn now(&self) -> DateTime {
        unix_us(self.zone().local_us(self.session.statement.now_us))
    }
}

/// Fields of microseconds since 1970.
#[must_use]
pub fn unix_us(us: i64) -> DateTime {
    DateTime::from_unix(us.div_euclid(1_000_000), us.rem_euclid(1_000_000) as u32).unwrap_or_default()
}
