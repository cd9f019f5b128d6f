//! Definitions of temporary tables: changes of the session's own list, at once and without a log.
//!
//! Not a transaction of their own as other definitions are: nothing is committed here, and nothing that is
//! done here is undone. ALTER makes a new table, fills it and puts it in the old one's place.

use super::build::build_table;
use super::copy::{self, ColumnSource};
use super::exec::{Change, Ddl};
use super::expressions::{check_dependents, check_expressions, rename_checks};
use super::online::Online;
use crate::api::Priv;
use crate::catalog::{Catalog, Column, Table, TableDef};
use crate::dml::RowExpressions;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits};
use crate::store::{InsertOutcome, duplicate_error};
use omnibus_parser::ast::{AlterAction, CreateTable, DropTable, ObjectName, OnlineOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a definition takes beside its columns.
const DEFINITION: usize = 4 << 10;
/// What a column, an index or a check takes at most.
const COLUMN: usize = 1 << 10;

impl Ddl<'_> {
    /// CREATE TEMPORARY TABLE, without AS SELECT's rows. `None`: it is there and may be.
    pub(crate) fn create_temporary(&mut self, tree: &CreateTable) -> ExecResult<Option<Arc<Table>>> {
        let db = self.schema_of(&tree.name)?;
        let name = tree.name.name.as_str();
        self.check(&db, None, Priv::CreateTemporary)?;
        if !tree.foreign_keys.is_empty() {
            return Err(SqlError::cannot_add_foreign().into());
        }
        let schema = self.trx.catalog().schema(&db)?.clone();
        let existing = self.trx.temp.table(&db, name);
        if existing.is_some() && !tree.or_replace {
            if tree.if_not_exists {
                self.state.diagnostics.note(SqlError::table_exists(name));
                return Ok(None);
            }
            return Err(SqlError::table_exists(name).into());
        }
        let (def, counter) = match &tree.like {
            Some(source) => (self.temporary_like(source, &db, name)?, 1),
            None => {
                let tree = self.with_hidden_columns(tree, &db, &schema)?;
                let mut next = self.temporary_ids();
                let mut context = self.build_context(&db, &schema);
                let built = build_table(&tree, &mut context, &mut super::exec::ids(&mut next))?;
                self.keep_temporary_ids(&next);
                (built.def, built.auto_increment.unwrap_or(1))
            }
        };
        let account = self.account_of(&def)?;
        if existing.is_some() {
            self.trx.temp.drop_table(&db, name);
        }
        let table = Arc::new(Table::temporary(def, counter));
        check_expressions(&table, self.state, &self.trx.catalog())?;
        self.trx.temp.put_table(table.clone(), account);
        Ok(Some(table))
    }

    /// Asks for a definition's memory.
    fn account_of(&self, def: &TableDef) -> SqlResult<Account> {
        let labels = |column: &Column| column.ty.labels.iter().map(|label| label.len() + 64).sum::<usize>();
        let columns: usize =
            def.columns.iter().map(|column| COLUMN + column.comment.len() + labels(column)).sum();
        let others = def.indexes.len() + def.checks.len() + def.options.len();
        let mut account = Account::new(&self.state.memory);
        account
            .grow_exactly(DEFINITION + columns + COLUMN * others, MemoryLimits::of(&self.state.settings))?;
        Ok(account)
    }

    /// The session's next ids, in a catalog, where building takes them from.
    fn temporary_ids(&mut self) -> Catalog {
        let (table, space) = self.trx.temp.ids();
        Catalog { next_table_id: *table, next_space_id: *space, ..Catalog::default() }
    }

    fn keep_temporary_ids(&mut self, used: &Catalog) {
        let (table, space) = self.trx.temp.ids();
        (*table, *space) = (used.next_table_id, used.next_space_id);
    }

    fn temporary_like(&mut self, source: &ObjectName, db: &str, name: &str) -> SqlResult<TableDef> {
        super::build::check_name(name)?;
        let source = self.table_to_copy(source)?;
        let created = (self.state.now_us / 1_000_000) as u64;
        let own = (Arc::from(db), Arc::from(name));
        let mut def = TableDef { db: own.0, name: own.1, created, ..source.def.of_new_rows() };
        def.foreign_keys.clear();
        rename_checks(&source.def, &mut def);
        Ok(self.renumbered(def))
    }

    /// The table of a LIKE clause.
    pub(super) fn table_to_copy(&self, name: &ObjectName) -> SqlResult<Arc<Table>> {
        let db = self.schema_of(name)?;
        if let Some(table) = self.trx.temp.table(&db, &name.name) {
            return Ok(table);
        }
        self.check(&db, Some(&name.name), Priv::Select)?;
        self.trx.catalog().table(&db, &name.name).cloned()
    }

    /// The same definition over new spaces.
    fn renumbered(&mut self, mut def: TableDef) -> TableDef {
        let mut next = self.temporary_ids();
        let mut ids = super::exec::ids(&mut next);
        def.id = ids.table();
        for index in &mut def.indexes {
            index.space = ids.space(index.space.slot());
        }
        self.keep_temporary_ids(&next);
        def
    }

    /// DROP TEMPORARY TABLE: all of them or none.
    pub(crate) fn drop_temporary(&mut self, tree: &DropTable) -> SqlResult<()> {
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for name in &tree.tables {
            let db = self.schema_of(name)?;
            match self.trx.temp.table(&db, &name.name) {
                Some(table) => found.push(table),
                None => missing.push(format!("{db}.{}", name.name)),
            }
        }
        if !missing.is_empty() && !tree.if_exists {
            return Err(SqlError::bad_table(missing.join(",")));
        }
        self.note_missing(missing);
        for table in found {
            self.trx.temp.drop_table(&table.def.db, &table.def.name);
        }
        Ok(())
    }

    /// DROP TABLE: a temporary table goes before the stored one that it hides. What is left to drop.
    pub(crate) fn drop_shadowing(&mut self, tree: &DropTable) -> SqlResult<Option<DropTable>> {
        let mut rest = DropTable { tables: Vec::new(), ..*tree };
        for name in &tree.tables {
            let db = self.schema_of(name)?;
            if self.trx.temp.drop_table(&db, &name.name).is_none() {
                rest.tables.push(name.clone());
            }
        }
        Ok(Some(rest).filter(|rest| !rest.tables.is_empty()))
    }

    /// TRUNCATE of a temporary table.
    ///
    /// # Errors
    /// 3170: there is no memory for a second definition.
    pub(crate) fn truncate_temporary(&mut self, table: &Table) -> SqlResult<()> {
        let def = self.renumbered(table.def.clone());
        let account = self.account_of(&def)?;
        self.trx.temp.drop_table(&table.def.db, &table.def.name);
        self.trx.temp.put_table(Arc::new(Table::temporary(def, 1)), account);
        Ok(())
    }

    /// ALTER TABLE, CREATE INDEX and DROP INDEX of a temporary table; the number of rows.
    pub(crate) fn alter_temporary(
        &mut self,
        table: &Arc<Table>,
        actions: &[AlterAction],
        online: &OnlineOptions,
    ) -> ExecResult<u64> {
        let online = Online::of(online, self.state)?;
        let mut edit = self.edit(table, actions)?;
        check_dependents(&table.def, &mut edit)?;
        edit.finish_checks();
        let mut change = Change { next: self.temporary_ids(), ..Change::default() };
        let mut def = self.rebuild(table, &edit, &mut change)?;
        self.keep_temporary_ids(&change.next);
        def.id = change.next.next_table_id - 1;
        if let Some(name) = &edit.rename {
            super::build::check_name(&name.name)?;
            let db = self.schema_of(name)?;
            self.trx.catalog().schema(&db)?;
            let same = *db == *table.def.db && *name.name == *table.def.name;
            if !same && self.trx.temp.table(&db, &name.name).is_some() {
                return Err(SqlError::table_exists(&name.name).into());
            }
            (def.db, def.name) = (Arc::from(db), Arc::from(name.name.as_str()));
        }
        if actions.iter().all(|action| matches!(action, AlterAction::Rename(_))) {
            let def = TableDef { db: def.db, name: def.name, ..table.def.clone() };
            self.trx.temp.rename_table(table, def);
            return Ok(0);
        }
        online.allow_temporary(table)?;
        let counter = match edit.auto_increment {
            Some(value) => value,
            None => table.state.auto_increment.load(Ordering::Acquire),
        };
        rename_checks(&table.def, &mut def);
        let new = Arc::new(Table::temporary(def, counter));
        check_expressions(&new, self.state, &self.trx.catalog())?;
        let account = self.account_of(&new.def)?;
        let count = self.refill(table, &new, &edit.sources)?;
        self.trx.temp.drop_table(&table.def.db, &table.def.name);
        self.trx.temp.put_table(new, account);
        Ok(count)
    }

    fn refill(&mut self, table: &Arc<Table>, new: &Arc<Table>, sources: &[ColumnSource]) -> ExecResult<u64> {
        let added = copy::added_values(self, &new.def, sources)?;
        let expressions = RowExpressions::bind(new, self.state, &self.trx.catalog(), None)?;
        let mut count = 0;
        for row in self.trx.temp_rows(table)? {
            count += 1;
            let old = table.decode(&row.row)?;
            let mut values = copy::new_values(table, &new.def, sources, &added, &old, count, self.state)?;
            copy::apply_expressions(expressions.as_ref(), sources, &mut values, count, self.state, self.trx)?;
            let row = new.rows.encode(&values)?;
            if let InsertOutcome::Duplicate(duplicate) = self.trx.insert_row(new, &values, row)? {
                return Err(duplicate_error(new, duplicate.index, &values).into());
            }
        }
        Ok(count)
    }
}
