//! Statements that define temporary tables, as a session runs them.
//!
//! CREATE and DROP TEMPORARY TABLE belong to the open transaction and end none; other definitions end it
//! even when their table is a temporary one.

use super::{Call, SqlSession};
use crate::api::Outcome;
use crate::catalog::Table;
use crate::ddl::Ddl;
use crate::dml::{InsertPlan, RowExpressions, WritePlan};
use crate::error::{ExecResult, SqlError};
use omnibus_parser::ast::{AlterAction, CreateTable, ObjectName, OnlineOptions, Query, Statement};
use std::sync::Arc;

impl SqlSession {
    /// Runs a definition that is about temporary tables only. `None`: it is not.
    pub(super) fn define_temporary(
        &mut self,
        statement: &Statement,
        call: &mut Call<'_>,
    ) -> Option<ExecResult<Outcome>> {
        let named = |session: &SqlSession, name: &ObjectName| {
            let db = session.schema_of(name).ok()?;
            session.trx.temp.table(&db, &name.name)
        };
        let defines = match statement {
            Statement::CreateTable(tree) => tree.temporary,
            Statement::DropTable(tree) => tree.temporary,
            _ => false,
        };
        let reads =
            if self.trx.is_open() { self.trx.characteristics().1 } else { self.state.settings.read_only };
        if defines && reads {
            return Some(Err(SqlError::cant_execute_in_read_only_transaction().into()));
        }
        match statement {
            Statement::CreateTable(tree) if tree.temporary => Some(self.create_temporary(tree, call)),
            Statement::DropTable(tree) if tree.temporary => {
                let done = self.temporary_ddl(call).drop_temporary(tree);
                Some(done.map(|()| Outcome::ok()).map_err(Into::into))
            }
            _ if !self.trx.temp.has_tables() => None,
            Statement::Truncate(name) => {
                let table = named(self, name)?;
                Some(self.change_temporary(call, |ddl| {
                    ddl.truncate_temporary(&table)?;
                    Ok(0)
                }))
            }
            Statement::AlterTable(tree) => {
                let table = named(self, &tree.table)?;
                Some(self.alter_temporary(&table, &tree.actions, &tree.online, call))
            }
            Statement::CreateIndex(tree) => {
                let table = named(self, &tree.table)?;
                let action = AlterAction::AddIndex(Box::new(tree.index.clone()));
                Some(self.alter_temporary(&table, &[action], &tree.online, call))
            }
            Statement::DropIndex(tree) => {
                let table = named(self, &tree.table)?;
                let action = match tree.name.is("primary") {
                    true => AlterAction::DropPrimaryKey,
                    false => AlterAction::DropIndex { name: tree.name.clone(), if_exists: tree.if_exists },
                };
                Some(self.alter_temporary(&table, &[action], &tree.online, call))
            }
            _ => None,
        }
    }

    fn temporary_ddl<'s>(&'s mut self, call: &'s Call<'_>) -> Ddl<'s> {
        Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql: b"" }
    }

    fn alter_temporary(
        &mut self,
        table: &Arc<Table>,
        actions: &[AlterAction],
        online: &OnlineOptions,
        call: &Call<'_>,
    ) -> ExecResult<Outcome> {
        self.change_temporary(call, |ddl| ddl.alter_temporary(table, actions, online))
    }

    /// Commits what is open, then what `change` does.
    fn change_temporary(
        &mut self,
        call: &Call<'_>,
        change: impl FnOnce(&mut Ddl<'_>) -> ExecResult<u64>,
    ) -> ExecResult<Outcome> {
        self.commit_before_definition()?;
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql: b"" };
        let result = change(&mut ddl).map(|affected| Outcome { affected, ..Outcome::ok() });
        let outcome = self.end_definition(result)?;
        let wait = self.commit_now()?;
        Ok(Outcome { wait, ..outcome })
    }

    fn create_temporary(&mut self, tree: &CreateTable, call: &mut Call<'_>) -> ExecResult<Outcome> {
        match &tree.query {
            Some(query) => self.create_temporary_select(tree, query, call),
            None => {
                self.temporary_ddl(call).create_temporary(tree)?;
                Ok(Outcome::ok())
            }
        }
    }

    /// The query is planned before the table is there: it may read the table that this one hides.
    fn create_temporary_select(
        &mut self,
        tree: &CreateTable,
        query: &Query,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let plan = self.plan_reads(query, call.access, Some(call.params), self.source_lock())?;
        let (full, names) = super::create_select::with_columns_of(
            tree,
            &plan,
            self.state.zone(),
            self.state.settings.mariadb,
        )?;
        let Some(table) = self.temporary_ddl(call).create_temporary(&full)? else {
            return Ok(Outcome::ok());
        };
        let expressions = RowExpressions::bind(&table, &self.state, &self.trx.catalog(), None);
        let result = expressions
            .and_then(|expressions| {
                InsertPlan::for_query(&table, &names, plan, tree.on_duplicate, expressions)
            })
            .map_err(Into::into)
            .and_then(|plan| {
                self.enter();
                self.run_as_rows(&WritePlan::of_insert(plan), call)
            });
        if result.is_err() {
            self.trx.temp.drop_table(&table.def.db, &table.def.name);
        }
        result
    }
}
