//! CREATE, DROP, TRUNCATE and RENAME TABLE.

use super::build::{Built, build_table};
use super::exec::{Change, Ddl, ids, spaces};
use super::expressions::{check_expressions, rename_checks};
use super::foreign_keys::{cannot_drop, cannot_truncate, named_parents, rename_own};
use super::keys::warn_of_duplicates;
use super::refused::refuse;
use crate::api::{Outcome, Priv, SessionSettings};
use crate::catalog::sequence::no_option;
use crate::catalog::{Child, Column, ColumnDefault, Table, TableDef, TableState, persist};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::Names;
use crate::store::kept_statistics::histogram_key;
use bytes::Bytes;
use omnibus_parser::ast::{CreateTable, DropTable, ObjectName};
use omnibus_value::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Ddl<'_> {
    /// CREATE TABLE, without AS SELECT's rows.
    pub(crate) fn create_table(&mut self, tree: &CreateTable) -> ExecResult<Outcome> {
        let Some(change) = self.new_table(tree)? else { return Ok(Outcome::ok()) };
        self.commit(change)
    }

    /// CREATE TABLE whose rows follow in the same transaction.
    pub(crate) fn create_table_open(&mut self, tree: &CreateTable) -> ExecResult<Outcome> {
        if let Some(change) = self.new_table(tree)? {
            self.leave_open(change)?;
        }
        Ok(Outcome::ok())
    }

    /// CREATE TABLE ... SELECT: logged as the definition that it amounts to. `None`: it is there and may be.
    pub(crate) fn create_table_as(&mut self, tree: &CreateTable) -> ExecResult<Option<Arc<Table>>> {
        let Some(change) = self.new_table(tree)? else { return Ok(None) };
        let table = change.fresh.last().cloned().ok_or_else(SqlError::unknown_error)?;
        let name = crate::catalog::quote_ident(&table.def.name);
        let full = format!("{}.{name}", crate::catalog::quote_ident(&table.def.db));
        let text = crate::catalog::show_table(&table.def, 0, self.state.zone()).replacen(&name, &full, 1);
        // The event says that it is in the client's character set.
        let text = crate::api::client_text::of_client(text.as_bytes(), self.state.settings.collation_client);
        let mut named = Ddl { trx: &mut *self.trx, state: &mut *self.state, access: self.access, sql: &text };
        named.leave_open(change)?;
        Ok(Some(table))
    }

    /// The change that adds a table; `None` if it is there and may be.
    pub(super) fn new_table(&mut self, tree: &CreateTable) -> ExecResult<Option<Change>> {
        let db = self.schema_of(&tree.name)?;
        let name = tree.name.name.as_str();
        self.check(&db, Some(name), Priv::Create)?;
        if tree.or_replace {
            self.check(&db, Some(name), Priv::Drop)?;
        }
        // A table that is there is of no concern to others, unless it is to go. The tables that it refers to, and those
        // that wait for it, are.
        let mut names: Vec<_> = named_parents(tree.foreign_keys.iter(), &db).collect();
        names.retain(|parent| *parent != (db.clone(), name.to_owned()));
        if tree.or_replace || self.trx.locks.has_locked_tables() {
            names.push((db.clone(), name.to_owned()));
        }
        let mut change = self.begin(Names::Tables(&names))?;
        let schema = change.next.schema(&db)?.clone();
        if let Some(existing) = schema.tables.get(name).filter(|_| tree.or_replace).cloned() {
            self.refuse_to_drop(&change, &existing, |_| false)?;
            self.drop_triggers(&mut change, &existing);
            self.drop_one(&mut change, &existing);
        } else if schema.has(name) && tree.if_not_exists {
            self.state.diagnostics.note(SqlError::table_exists(name));
            self.trx.rollback();
            return Ok(None);
        } else if schema.has(name) {
            let view = self.is_a_view(&change, &db, name).filter(|_| tree.or_replace);
            return Err(view.unwrap_or_else(|| SqlError::table_exists(name)).into());
        }
        let built = match &tree.like {
            Some(source) => self.like(&mut change, source, &db, name)?,
            None => {
                let tree = self.with_hidden_columns(tree, &db, &schema)?;
                let mut context = self.build_context(&db, &schema);
                let built = build_table(&tree, &mut context, &mut ids(&mut change.next))?;
                if !self.state.settings.mariadb {
                    refuse(&built.def, None)?;
                }
                warn_of_duplicates(self.state, &built.def, None);
                built
            }
        };
        self.trx.locks.lock_successor(built.def.id)?;
        let table = self.add_table(&mut change, built);
        check_expressions(&table, self.state, &change.next)?;
        self.check_relations(&mut change, &table, None)?;
        Ok(Some(change))
    }

    /// Puts a new table into the catalog to be.
    pub(super) fn add_table(&mut self, change: &mut Change, built: Built) -> Arc<Table> {
        let writes = self.trx.writes_mut();
        persist::put_table(writes, &built.def);
        if let Some(counter) = built.auto_increment.filter(|counter| *counter > 1) {
            writes.put(persist::counter_key(built.def.id, counter), Bytes::new());
        }
        let table = Arc::new(Table::new(built.def, Arc::new(TableState::default())));
        change.fresh.push(table.clone());
        change.next.put_table(table.clone());
        table
    }

    fn like(&mut self, change: &mut Change, source: &ObjectName, db: &str, name: &str) -> SqlResult<Built> {
        let source = self.table_to_copy(source)?;
        if source.def.is_sequence() {
            return Err(no_option(&source));
        }
        let mut def = source.def.of_new_rows();
        let mut ids = ids(&mut change.next);
        def.id = ids.table();
        for index in &mut def.indexes {
            index.space = ids.space(index.space.slot());
            index.of_foreign_key = false;
        }
        def.db = Arc::from(db);
        def.name = Arc::from(name);
        def.created = (self.state.now_us / 1_000_000) as u64;
        def.foreign_keys.clear();
        rename_checks(&source.def, &mut def);
        if let Some(column) = def.columns.iter().find(|column| has_zero_default(&self.state.settings, column))
        {
            return Err(SqlError::invalid_default(&column.name));
        }
        Ok(Built { def, auto_increment: None })
    }

    /// Removes a table's rows of the catalog space.
    pub(super) fn forget_table(&mut self, table: &Table) {
        let covered = table.state.auto_covered.load(Ordering::Acquire);
        let writes = self.trx.writes_mut();
        persist::delete_table(writes, table.def.id);
        for column in table.state.histograms.read().keys() {
            writes.delete(histogram_key(table.def.id, column));
        }
        if covered != 0 {
            writes.delete(persist::counter_key(table.def.id, covered));
        }
    }

    pub(super) fn refuse_to_drop(
        &self,
        change: &Change,
        table: &Table,
        goes_too: impl Fn(&Child) -> bool,
    ) -> SqlResult<()> {
        match self.refuse_referenced(&change.next, table, goes_too)? {
            Some(child) => Err(cannot_drop(table, &child, self.state.settings.mariadb)),
            None => Ok(()),
        }
    }

    /// Drops a table that is locked.
    fn drop_one(&mut self, change: &mut Change, table: &Arc<Table>) {
        self.forget_table(table);
        change.next.remove_table(&table.def.db, &table.def.name);
        change.dropped.extend(spaces(table));
        change.stale.push(table.clone());
    }

    /// What a DROP names, once the session may drop it.
    pub(super) fn names_to_drop(&self, tree: &DropTable) -> ExecResult<Vec<(String, String)>> {
        let mut names = Vec::with_capacity(tree.tables.len());
        for name in &tree.tables {
            let db = self.schema_of(name)?;
            self.check(&db, Some(&name.name), Priv::Drop)?;
            names.push((db, name.name.to_string()));
        }
        Ok(names)
    }

    /// DROP TABLE: all of them or none.
    pub(crate) fn drop_tables(&mut self, tree: &DropTable) -> ExecResult<Outcome> {
        let names = self.names_to_drop(tree)?;
        let mut change = self.begin(Names::Tables(&names))?;
        let mut missing = Vec::new();
        for (db, name) in &names {
            match change.next.find_table(db, name).cloned() {
                Some(table) => {
                    let goes_too = |child: &Child| {
                        let (db, name) = (&*child.table.def.db, &*child.table.def.name);
                        names.iter().any(|dropped| dropped.0 == db && dropped.1 == name)
                    };
                    self.refuse_to_drop(&change, &table, goes_too)?;
                    self.drop_triggers(&mut change, &table);
                    self.drop_one(&mut change, &table);
                }
                None if change.next.schemas.contains_key(&**db) || tree.if_exists => {
                    match self.is_a_view(&change, db, name) {
                        Some(note) if tree.if_exists => self.state.diagnostics.note(note),
                        Some(error) => return Err(error.into()),
                        None => missing.push(format!("{db}.{name}")),
                    }
                }
                None => return Err(SqlError::bad_db(db).into()),
            }
        }
        if !missing.is_empty() && !tree.if_exists {
            return Err(SqlError::bad_table(missing.join(",")).into());
        }
        self.note_missing(missing);
        if change.stale.is_empty() {
            self.trx.rollback();
            return Ok(Outcome::ok());
        }
        self.commit(change)
    }

    /// What DROP TABLE IF EXISTS says of tables that are not there: of each, or in the mariadb dialect of all at once.
    pub(super) fn note_missing(&mut self, names: Vec<String>) {
        for names in self.told_together(names) {
            self.state.diagnostics.note(SqlError::bad_table(names));
        }
    }

    /// What one note tells of.
    pub(super) fn told_together(&self, names: Vec<String>) -> Vec<String> {
        match self.state.settings.mariadb && !names.is_empty() {
            true => vec![names.join(",")],
            false => names,
        }
    }

    /// TRUNCATE TABLE: the same definition over new spaces.
    pub(crate) fn truncate(&mut self, name: &ObjectName) -> ExecResult<Outcome> {
        let db = self.schema_of(name)?;
        self.check(&db, Some(&name.name), Priv::Drop)?;
        let mut change = self.begin(Names::Tables(&[(db.clone(), name.name.to_string())]))?;
        if change.next.find_view(&db, &name.name).is_some() {
            return Err(SqlError::no_such_table(&db, &name.name).into());
        }
        let table = change.next.table(&db, &name.name)?.clone();
        if table.def.is_sequence() {
            return Err(no_option(&table).into());
        }
        if let Some(child) = self.refuse_referenced(&change.next, &table, |_| false)? {
            return Err(cannot_truncate(&child).into());
        }
        self.drop_one(&mut change, &table);
        let mut def = table.def.of_new_rows();
        let mut ids = ids(&mut change.next);
        def.id = ids.table();
        for index in &mut def.indexes {
            index.space = ids.space(index.space.slot());
        }
        self.trx.locks.lock_successor(def.id)?;
        self.add_table(&mut change, Built { def, auto_increment: None });
        self.commit(change)
    }

    /// RENAME TABLE: from left to right, all or none.
    pub(crate) fn rename_tables(&mut self, pairs: &[(ObjectName, ObjectName)]) -> ExecResult<Outcome> {
        let mut names = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            let from_db = self.schema_of(from)?;
            let to_db = self.schema_of(to)?;
            self.check(&from_db, Some(&from.name), Priv::Alter)?;
            self.check(&from_db, Some(&from.name), Priv::Drop)?;
            self.check(&to_db, Some(&to.name), Priv::Create)?;
            self.check(&to_db, Some(&to.name), Priv::Insert)?;
            names.push((from_db, from.name.to_string(), to_db, to.name.to_string()));
        }
        // The tables before the names that they get: whoever waits for one of them must not get in between.
        let sources = names.iter().map(|(db, name, ..)| (db.clone(), name.clone()));
        let targets = names.iter().map(|(.., db, name)| (db.clone(), name.clone()));
        let locks: Vec<_> = match self.trx.locks.has_locked_tables() {
            true => sources
                .filter(|source| !names.iter().any(|(.., db, name)| (db, name) == (&source.0, &source.1)))
                .collect(),
            false => sources.chain(targets).collect(),
        };
        let mut change = self.begin(Names::Tables(&locks))?;
        for (from_db, from, to_db, to) in names {
            if let Some(view) = change.next.find_view(&from_db, &from).cloned() {
                self.rename_view(&mut change, &view, (&to_db, &to))?;
                continue;
            }
            let table = change.next.table(&from_db, &from)?.clone();
            self.rename(&mut change, &table, &to_db, &to)?;
        }
        self.commit(change)
    }

    /// Moves a table to another name; its contents stay.
    pub(super) fn rename(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        db: &str,
        name: &str,
    ) -> SqlResult<()> {
        super::build::check_name(name)?;
        if change.next.schema(db)?.has(name) {
            return Err(SqlError::table_exists(name));
        }
        let mut def = TableDef { db: Arc::from(db), name: Arc::from(name), ..table.def.clone() };
        rename_own(table, &mut def, &[]);
        rename_checks(&table.def, &mut def);
        self.follow_names(change, table, &def, &[]);
        self.move_triggers(change, table, db, name)?;
        self.replace_def(change, table, def);
        Ok(())
    }

    /// A definition over the same contents takes the place of another.
    pub(crate) fn replace_def(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        def: TableDef,
    ) -> Arc<Table> {
        persist::put_table(self.trx.writes_mut(), &def);
        let new = Arc::new(Table::new(def, table.state.clone()));
        new.valid_from.store(table.valid_from.load(Ordering::Acquire), Ordering::Release);
        change.next.remove_table(&table.def.db, &table.def.name);
        change.next.put_table(new.clone());
        change.stale.push(table.clone());
        new
    }
}

/// Whether the session's sql_mode refuses a column's default: a date of zeros.
fn has_zero_default(settings: &SessionSettings, column: &Column) -> bool {
    settings.strict()
        && settings.date_mode().no_zero_date
        && match &column.default {
            ColumnDefault::Value(Value::Date(date)) => date.is_zero(),
            ColumnDefault::Value(Value::DateTime(at)) => at.is_zero(),
            _ => false,
        }
}
