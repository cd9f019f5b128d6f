//! Rows of the `mysql` schema for the server's account statements.
//!
//! CREATE USER and its kind change rows of system tables and are logged as the statement's own
//! text (with password hashes instead of passwords), not as row events: a replica has its own
//! tables. Recovery gets the changes from the private write set beside it.

use super::run::run;
use super::{Call, SqlSession, StatementContext};
use crate::api::{Mode, Outcome};
use crate::catalog::Table;
use crate::ddl::log_ddl;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::storage::{LockMode, WaitPolicy};
use crate::store::{InsertOutcome, RowAt, RowChange, Trx, by_ref, whole_index};
use bytes::Bytes;
use omnibus_parser::ast::{GrantTarget, ObjectName, Privilege, ProgramKind};
use omnibus_value::Value;
use std::sync::Arc;

/// System tables inside a change.
pub struct SystemTables<'a> {
    trx: &'a mut Trx,
    catalog: Arc<crate::catalog::Catalog>,
}

impl super::Database {
    /// All rows of `mysql.<name>`, as of the newest commit; for building caches of privileges.
    ///
    /// # Errors
    /// 1146, or damage.
    pub fn system_rows(&self, name: &str) -> SqlResult<Vec<Vec<Value>>> {
        let table = self.catalog().table("mysql", name)?.clone();
        let range = whole_index(&table, 0);
        let latest = self.port().latest();
        latest
            .scan(by_ref(&range.from), by_ref(&range.to), false)
            .map(|pair| table.decode(&pair?.1))
            .collect()
    }
}

impl SystemTables<'_> {
    fn table(&self, name: &str) -> SqlResult<Arc<Table>> {
        self.catalog.table("mysql", name).cloned()
    }

    /// All rows of `mysql.<name>`, locked against change.
    ///
    /// # Errors
    /// Lock waits, damage.
    pub fn rows(&mut self, name: &str) -> ExecResult<Vec<Vec<Value>>> {
        let table = self.table(name)?;
        let mut range = whole_index(&table, 0);
        self.trx.begin_scan(&table, &range, LockMode::Exclusive)?;
        let mut found = Vec::new();
        while !self.trx.scan(&table, 0, &mut range, LockMode::Exclusive, WaitPolicy::Wait, 256, &mut found)? {
        }
        found.iter().map(|at| Ok(table.decode(&at.row)?)).collect()
    }

    /// Inserts a row of all columns, or puts it in the place of the one with its primary key.
    ///
    /// # Errors
    /// Lock waits.
    pub fn put(&mut self, name: &str, values: &[Value]) -> ExecResult<()> {
        let table = self.table(name)?;
        self.trx.start_write(&table)?;
        let row = table.rows.encode(values)?;
        let InsertOutcome::Duplicate(duplicate) = self.trx.insert_row(&table, values, row.clone())? else {
            return Ok(());
        };
        let old = table.decode(&duplicate.existing.row)?;
        let at = &duplicate.existing;
        let change =
            RowChange { at, old: &old, new: values, new_row: &row, changed: u64::MAX, following: None };
        self.trx.update_row(&table, &change)?;
        Ok(())
    }

    /// Deletes the row with the primary key of `values`; whether it was there. Only the key's
    /// columns of `values` matter.
    ///
    /// # Errors
    /// Lock waits, damage.
    pub fn delete(&mut self, name: &str, values: &[Value]) -> ExecResult<bool> {
        let table = self.table(name)?;
        self.trx.start_write(&table)?;
        let key = table.keys[0].entry(values, &[]).key;
        let found = self.trx.get_row(&table, &key, LockMode::Exclusive, WaitPolicy::Wait)?;
        let Some(row) = found else { return Ok(false) };
        let old = table.decode(&row)?;
        self.trx.delete_row(&table, &RowAt { key, row }, &old)?;
        Ok(true)
    }
}

impl SqlSession {
    /// Fails unless what a GRANT names is there, with the columns that it names. A table that may be created need not be.
    ///
    /// # Errors
    /// 1146, 1054, 1305.
    pub fn check_grant_target(&mut self, target: &GrantTarget, privileges: &[Privilege]) -> SqlResult<()> {
        let cx = &self.context();
        let catalog = cx.catalog();
        let routine = |kind: ProgramKind, name: &ObjectName| {
            let db = cx.schema_of(name)?;
            match catalog.program(kind, &db, &name.name) {
                Some(_) => Ok(()),
                None => Err(SqlError::sp_does_not_exist(kind.name(), &name.name)),
            }
        };
        match target {
            GrantTarget::Global | GrantTarget::Schema(_) | GrantTarget::CurrentSchema => Ok(()),
            GrantTarget::Procedure(name) => routine(ProgramKind::Procedure, name),
            GrantTarget::Function(name) => routine(ProgramKind::Function, name),
            GrantTarget::Table(name) => {
                let db = cx.schema_of(name)?;
                let computed = || {
                    !db.eq_ignore_ascii_case("information_schema")
                        && cx.database.virtual_tables().find(&db, &name.name).is_some()
                };
                if catalog.find_view(&db, &name.name).is_some() || computed() {
                    return Ok(());
                }
                let creates = privileges.iter().any(|privilege| privilege.name.is("CREATE"));
                let table = match catalog.table(&db, &name.name) {
                    Err(_) if creates => return Ok(()),
                    table => table?,
                };
                let mut columns = privileges.iter().flat_map(|privilege| &privilege.columns);
                match columns.find(|column| table.column_index(column).is_none()) {
                    Some(column) => Err(SqlError::bad_field(column, &name.name)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Changes system tables in a transaction of its own, which commits what is open first and is
    /// logged as `text`. Runs in blocking mode only (`NeedBlocking` otherwise). The reply must wait
    /// for the outcome's ticket; caches of privileges may be loaded again once it is complete.
    ///
    /// # Errors
    /// Those of `change`; nothing is changed then.
    pub fn change_system_tables(
        &mut self,
        text: &Bytes,
        mode: Mode,
        change: impl FnOnce(&mut SystemTables<'_>) -> ExecResult<()>,
    ) -> ExecResult<Outcome> {
        if mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        if self.state.settings.server_read_only {
            return Err(SqlError::option_prevents_statement("--read-only").into());
        }
        self.context().begin(text, false);
        let mut change = Some(change);
        let mut call = Call {
            mode,
            access: &crate::api::AllowAll,
            sink: &mut super::bootstrap::Nowhere,
            text,
            params: &[],
            inner: None,
        };
        run(self, &mut call, |session, call| {
            session.context().commit_before_definition()?;
            super::dispatch::must_write(&session.state)?;
            // A second attempt cannot happen: nothing here asks for another plan.
            let change = change.take().ok_or_else(SqlError::unknown_error)?;
            let result = system_change(&mut session.context(), call.text, change);
            session.context().end_definition(result)
        })
    }
}

fn system_change(
    cx: &mut StatementContext<'_>,
    text: &Bytes,
    change: impl FnOnce(&mut SystemTables<'_>) -> ExecResult<()>,
) -> ExecResult<Outcome> {
    cx.trx.statement.without_row_events();
    change(&mut SystemTables { catalog: cx.database.catalog(), trx: cx.trx })?;
    cx.trx.log.take_along_applied(&cx.trx.statement, &mut cx.trx.transaction)?;
    log_ddl(cx.trx, &cx.state.info(text), &[])?;
    let logged = cx.state.settings.sql_log_bin;
    let ticket = cx.trx.commit_ddl(logged, omnibus_commit::now_us(), Vec::new(), |_| {});
    Ok(Outcome { wait: Some(ticket), ..Outcome::ok() })
}
