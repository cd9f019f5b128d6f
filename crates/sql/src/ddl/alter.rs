//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! The stored definition's tree is edited and built again, so ALTER knows exactly what CREATE
//! knows. What the two definitions have in common keeps its spaces: new indexes are built, removed
//! ones dropped. Only when rows themselves change are they copied (`copy`).
//!
//! All clauses of one statement name columns and indexes as they were before it; only AFTER and the parts of new
//! indexes name them as they are behind it.

use super::build::{BuildContext, build_table, pick_engine};
use super::copy::{self, ColumnSource};
use super::exec::{Change, Ddl, ids};
use super::{parse_create, show_create_table};
use crate::api::{Outcome, Priv};
use crate::catalog::{Index, Table, TableDef, charset, same_name};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_parser::ast::{
    self, AlterAction, AlterTable, ColumnDef, ColumnPosition, CreateIndex, CreateTable, DefaultValue,
    DropIndex, Ident, KeyTarget, ObjectName, TableOption,
};
use std::sync::Arc;

/// The tree being edited, and where each of its columns comes from.
pub(super) struct Edit {
    tree: CreateTable,
    pub sources: Vec<ColumnSource>,
    /// The table's columns: their names, and whether a clause has dropped, changed or renamed one.
    old: Vec<(Arc<str>, bool)>,
    /// Columns with new names, for the indexes that they are in.
    renamed: Vec<(Ident, Ident)>,
    added_indexes: Vec<ast::IndexDef>,
    pub rename: Option<ObjectName>,
    force: bool,
    /// Convert all character columns to this charset and collation.
    pub auto_increment: Option<u64>,
}

impl Ddl<'_> {
    /// CREATE INDEX.
    pub(crate) fn create_index(&mut self, tree: &CreateIndex) -> ExecResult<Outcome> {
        let actions = [AlterAction::AddIndex(Box::new(tree.index.clone()))];
        self.alter(&tree.table, &actions, Priv::Index, false)
    }

    /// DROP INDEX.
    pub(crate) fn drop_index(&mut self, tree: &DropIndex) -> ExecResult<Outcome> {
        let action = if tree.name.is("primary") {
            AlterAction::DropPrimaryKey
        } else {
            AlterAction::DropIndex { name: tree.name.clone(), if_exists: tree.if_exists }
        };
        self.alter(&tree.table, &[action], Priv::Index, false)
    }

    /// ALTER TABLE.
    pub(crate) fn alter_table(&mut self, tree: &AlterTable) -> ExecResult<Outcome> {
        self.alter(&tree.table, &tree.actions, Priv::Alter, tree.if_exists)
    }

    fn alter(
        &mut self,
        name: &ObjectName,
        actions: &[AlterAction],
        need: Priv,
        if_exists: bool,
    ) -> ExecResult<Outcome> {
        let db = self.schema_of(name)?;
        self.check(&db, Some(&name.name), need)?;
        let mut change = self.begin()?;
        let table = match change.next.table(&db, &name.name) {
            Ok(table) => table.clone(),
            Err(error) if if_exists && error.code == 1146 => {
                self.state.diagnostics.note(error);
                self.trx.rollback();
                return Ok(Outcome::ok());
            }
            Err(error) => return Err(error.into()),
        };
        self.lock(&table)?;
        let edit = self.edit(&table, actions)?;
        let def = self.rebuild(&table, &edit, &mut change)?;
        self.apply(&mut change, &table, def, &edit)?;
        self.commit(change)
    }

    pub(super) fn edit(&mut self, table: &Table, actions: &[AlterAction]) -> SqlResult<Edit> {
        let zone = self.state.zone();
        let mut edit = Edit {
            tree: parse_create(&show_create_table(&table.def, 0, zone))?,
            sources: (0..table.def.columns.len()).map(ColumnSource::Old).collect(),
            old: table.def.columns.iter().map(|column| (Arc::from(&*column.name), false)).collect(),
            renamed: Vec::new(),
            added_indexes: Vec::new(),
            rename: None,
            force: false,
            auto_increment: None,
        };
        let redefines =
            |option: &TableOption| matches!(option, TableOption::Charset(_) | TableOption::Collate(_));
        if actions.iter().any(|action| matches!(action, AlterAction::Option(option) if redefines(option))) {
            edit.keep_collations(table);
        }
        for action in actions {
            self.edit_one(&mut edit, action, table)?;
        }
        edit.finish_indexes();
        if edit.tree.columns.is_empty() {
            return Err(SqlError::cant_remove_all_fields());
        }
        Ok(edit)
    }

    fn edit_one(&mut self, edit: &mut Edit, action: &AlterAction, table: &Table) -> SqlResult<()> {
        match action {
            AlterAction::AddIndex(key) => {
                let name = key.name.as_ref().or(key.constraint.as_ref());
                let exists = name.is_some_and(|name| edit.find_index(name).is_some());
                if exists && key.if_not_exists {
                    self.state.diagnostics.note(SqlError::dup_keyname(name.map_or("", Ident::as_str)));
                    return Ok(());
                }
                edit.added_indexes.push((**key).clone());
                Ok(())
            }
            AlterAction::Rename(name) => {
                edit.rename = Some(name.clone());
                Ok(())
            }
            AlterAction::Option(TableOption::AutoIncrement(value)) => {
                edit.auto_increment = Some(*value);
                Ok(())
            }
            AlterAction::Option(TableOption::Engine(name)) => {
                let schema = crate::catalog::Schema {
                    name: table.def.db.clone(),
                    collation: table.def.collation,
                    tables: Default::default(),
                };
                let mut context = self.build_context(&table.def.db, &schema);
                let (engine, _) = pick_engine(name, &table.def.name, &mut context)?;
                // Rows of another engine are in other spaces: all are copied.
                edit.force |= engine != table.def.engine;
                edit.tree.options.retain(|option| !matches!(option, TableOption::Engine(_)));
                edit.tree.options.push(TableOption::Engine((*engine).into()));
                Ok(())
            }
            AlterAction::DropIndex { name, if_exists: true } if edit.find_index(name).is_none() => {
                self.state.diagnostics.note(SqlError::cant_drop_field_or_key(name));
                Ok(())
            }
            AlterAction::DropColumn { name, if_exists: true } if edit.find_column(name).is_none() => {
                self.state.diagnostics.note(SqlError::cant_drop_field_or_key(name));
                Ok(())
            }
            AlterAction::AddColumn { column, if_not_exists: true, .. }
                if edit.find_column(&column.name).is_some() =>
            {
                self.state.diagnostics.note(SqlError::dup_fieldname(&column.name));
                Ok(())
            }
            action => edit.apply(action),
        }
    }

    /// Builds the edited tree; indexes that stay keep their spaces.
    pub(super) fn rebuild(
        &mut self,
        table: &Arc<Table>,
        edit: &Edit,
        change: &mut Change,
    ) -> SqlResult<TableDef> {
        let mut context = BuildContext {
            created: table.def.created,
            ..self.build_context(
                &table.def.db,
                &crate::catalog::Schema {
                    name: table.def.db.clone(),
                    collation: table.def.collation,
                    tables: Default::default(),
                },
            )
        };
        // The table's own id stays; building hands out one that is not used.
        let mut def = build_table(&edit.tree, &mut context, &mut ids(&mut change.next))?.def;
        def.id = table.def.id;
        Ok(def)
    }

    fn apply(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        mut def: TableDef,
        edit: &Edit,
    ) -> ExecResult<()> {
        let columns_kept = copy::rows_stay(&table.def, &def, &edit.sources);
        let clustered_kept =
            same_index(&table.def, &table.def.indexes[0], &def, &def.indexes[0], &edit.sources);
        if edit.force || !columns_kept || !clustered_kept {
            self.reserve_ids(change)?;
            let rows = copy::copy_rows(self, table, &def, &edit.sources)?;
            change.affected = rows;
            change.dropped.extend(table.def.indexes.iter().map(|index| index.space));
            self.replace_contents(change, table, def, edit)?;
            return Ok(());
        }
        let mut built = Vec::new();
        for at in 0..def.indexes.len() {
            let new = &def.indexes[at];
            let kept =
                table.def.indexes.iter().find(|old| same_index(&table.def, old, &def, new, &edit.sources));
            match kept {
                Some(old) => def.indexes[at].space = old.space,
                None => built.push(at),
            }
        }
        let gone = |old: &&Index| !def.indexes.iter().any(|new| new.space == old.space);
        change.dropped.extend(table.def.indexes.iter().filter(gone).map(|old| old.space));
        if !built.is_empty() {
            self.reserve_ids(change)?;
            for &at in &built {
                copy::build_index(self, table, &def, at)?;
                change.built.push((def.id, def.indexes[at].space));
            }
        }
        let fresh = !built.is_empty();
        let new = self.finish(change, table, def, edit)?;
        if fresh {
            change.fresh.push(new);
        }
        Ok(())
    }

    fn replace_contents(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        def: TableDef,
        edit: &Edit,
    ) -> SqlResult<()> {
        let new = self.finish(change, table, def, edit)?;
        change.fresh.push(new);
        Ok(())
    }

    /// Puts the new definition in place, under a new name if there is one.
    fn finish(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        mut def: TableDef,
        edit: &Edit,
    ) -> SqlResult<Arc<Table>> {
        if let Some(name) = &edit.rename {
            let db = self.schema_of(name)?;
            self.check(&db, Some(&name.name), Priv::Create)?;
            super::build::check_name(&name.name)?;
            change.next.schema(&db)?;
            let same = *db == *table.def.db && *name.name == *table.def.name;
            if !same && change.next.find_table(&db, &name.name).is_some() {
                return Err(SqlError::table_exists(&name.name));
            }
            def.db = Arc::from(db.as_str());
            def.name = Arc::from(name.name.as_str());
        }
        let new = self.replace_def(change, table, def);
        if let Some(value) = edit.auto_increment {
            self.set_auto_increment(change, &new, value)?;
        }
        Ok(new)
    }

    /// AUTO_INCREMENT = value: never below what is in the table.
    fn set_auto_increment(&mut self, change: &mut Change, table: &Arc<Table>, value: u64) -> SqlResult<()> {
        if table.auto_column.is_none() {
            return Ok(());
        }
        let next = value.max(self.trx.least_auto_increment(table)?).max(1);
        self.trx.replace_auto_counter(table, next);
        let state = table.state.clone();
        change.hooks.push(Box::new(move |_| state.reset_auto_increment(next)));
        Ok(())
    }
}

impl Edit {
    /// A new default of the table is for new columns: those that are there keep what they have.
    fn keep_collations(&mut self, table: &Table) {
        for (tree, column) in self.tree.columns.iter_mut().zip(&table.def.columns) {
            if charset::is_character(&column.ty) {
                let id = column.ty.collation;
                tree.ty.charset = Some(charset::charset_name(id).into());
                tree.ty.collation = Some(charset::collation_name(id).into());
            }
        }
    }

    /// Where a column of the table is now, unless another clause was about it.
    fn find_column(&self, name: &str) -> Option<usize> {
        let old = self.old.iter().position(|(old, done)| same_name(old, name) && !done)?;
        self.sources.iter().position(|source| *source == ColumnSource::Old(old))
    }

    /// The same, and no other clause may be about the column.
    fn take_column(&mut self, name: &str) -> SqlResult<usize> {
        let at = self.find_column(name).ok_or_else(|| SqlError::bad_field(name, &self.tree.name.name))?;
        if let ColumnSource::Old(old) = self.sources[at] {
            self.old[old].1 = true;
        }
        Ok(at)
    }

    /// The old indexes get the new names of their columns; behind them stand the new ones.
    fn finish_indexes(&mut self) {
        for part in self.tree.indexes.iter_mut().flat_map(|key| &mut key.parts) {
            if let KeyTarget::Column { name, .. } = &mut part.target
                && let Some((_, new)) = self.renamed.iter().find(|(old, _)| same_name(old, name))
            {
                *name = new.clone();
            }
        }
        for key in std::mem::take(&mut self.added_indexes) {
            if key.kind == ast::IndexKind::Primary {
                self.forget_null_defaults(&key);
            }
            self.tree.indexes.push(key);
        }
    }

    fn find_index(&self, name: &str) -> Option<usize> {
        let named = |key: &ast::IndexDef| {
            key.kind != ast::IndexKind::Primary && key.name.as_ref().is_some_and(|own| same_name(own, name))
        };
        self.tree.indexes.iter().position(named)
    }

    fn primary(&self) -> Option<usize> {
        self.tree.indexes.iter().position(|key| key.kind == ast::IndexKind::Primary)
    }

    /// The columns of a new primary key become NOT NULL: a stored DEFAULT NULL goes.
    fn forget_null_defaults(&mut self, key: &ast::IndexDef) {
        for column in &mut self.tree.columns {
            let null = DefaultValue::Value(ast::Expr::Literal(ast::Literal::Null));
            if key.parts.iter().any(|part| part_is(part, &column.name))
                && column.default.as_ref() == Some(&null)
            {
                column.default = None;
            }
        }
    }

    fn place(&self, position: &ColumnPosition, default: usize) -> SqlResult<usize> {
        match position {
            ColumnPosition::Default => Ok(default),
            ColumnPosition::First => Ok(0),
            ColumnPosition::After(name) => {
                let after = self.tree.columns.iter().position(|column| same_name(&column.name, name));
                Ok(after.ok_or_else(|| SqlError::bad_field(name, &self.tree.name.name))? + 1)
            }
        }
    }

    fn apply(&mut self, action: &AlterAction) -> SqlResult<()> {
        match action {
            AlterAction::AddColumn { column, position, .. } => {
                let at = self.place(position, self.tree.columns.len())?;
                self.tree.columns.insert(at, (**column).clone());
                self.sources.insert(at, ColumnSource::Added);
            }
            AlterAction::DropColumn { name, .. } => self.drop_column(name)?,
            AlterAction::ModifyColumn { column, position, .. } => {
                self.change_column(&column.name.clone(), column, position)?;
            }
            AlterAction::ChangeColumn { old, column, position, .. } => {
                self.change_column(old, column, position)?
            }
            AlterAction::RenameColumn { old, new } => {
                let at = self.take_column(old)?;
                self.renamed.push((old.clone(), new.clone()));
                self.tree.columns[at].name = new.clone();
            }
            AlterAction::SetDefault { column, default } => {
                let at = self.take_column(column)?;
                self.tree.columns[at].default = Some(default.clone());
            }
            AlterAction::DropDefault { column } => {
                let at = self.take_column(column)?;
                self.tree.columns[at].default = None;
            }
            AlterAction::SetColumnVisibility { column, invisible } => {
                let at = self.take_column(column)?;
                self.tree.columns[at].invisible = Some(*invisible);
            }
            AlterAction::DropIndex { name, .. } => {
                let at = self.find_index(name).ok_or_else(|| SqlError::cant_drop_field_or_key(name))?;
                self.tree.indexes.remove(at);
            }
            AlterAction::DropPrimaryKey => {
                let at = self.primary().ok_or_else(|| SqlError::cant_drop_field_or_key("PRIMARY"))?;
                self.tree.indexes.remove(at);
            }
            AlterAction::RenameIndex { old, new } => {
                let at = self
                    .find_index(old)
                    .ok_or_else(|| SqlError::key_does_not_exist(old, &self.tree.name.name))?;
                if self.find_index(new).is_some_and(|other| other != at) {
                    return Err(SqlError::dup_keyname(new));
                }
                self.tree.indexes[at].name = Some(new.clone());
            }
            AlterAction::SetIndexVisibility { name, invisible } => {
                let at = self
                    .find_index(name)
                    .ok_or_else(|| SqlError::key_does_not_exist(name, &self.tree.name.name))?;
                self.tree.indexes[at].invisible = *invisible;
            }
            AlterAction::Option(option) => self.set_option(option),
            AlterAction::ConvertCharset { charset, collation } => {
                self.convert(charset.as_ref(), collation.as_ref())
            }
            AlterAction::Force => self.force = true,
            AlterAction::DisableKeys | AlterAction::EnableKeys | AlterAction::OrderBy(_) => {}
            AlterAction::AddForeignKey(_) => return Err(SqlError::not_supported_yet("ADD FOREIGN KEY")),
            AlterAction::AddCheck(_) => return Err(SqlError::not_supported_yet("ADD CHECK")),
            AlterAction::DropForeignKey { name, if_exists }
            | AlterAction::DropConstraint { name, if_exists } => {
                if let Some(at) = self.find_index(name) {
                    self.tree.indexes.remove(at);
                } else if !if_exists {
                    return Err(SqlError::cant_drop_field_or_key(name));
                }
            }
            AlterAction::DropCheck { name } | AlterAction::AlterCheck { name, .. } => {
                return Err(SqlError::new(
                    3821,
                    b"HY000",
                    format!("Check constraint '{name}' is not found in the table."),
                ));
            }
            AlterAction::Partition(_) => return Err(SqlError::not_supported_yet("partitions")),
            AlterAction::DiscardTablespace | AlterAction::ImportTablespace => {
                return Err(SqlError::not_supported_yet("DISCARD and IMPORT TABLESPACE"));
            }
            // The caller has dealt with these.
            AlterAction::AddIndex(_) | AlterAction::Rename(_) => {}
        }
        Ok(())
    }

    fn set_option(&mut self, option: &TableOption) {
        self.tree.options.retain(|old| std::mem::discriminant(old) != std::mem::discriminant(option));
        // A new character set without COLLATE means that set's default collation.
        if matches!(option, TableOption::Charset(_)) {
            self.tree.options.retain(|old| !matches!(old, TableOption::Collate(_)));
        }
        self.tree.options.push(option.clone());
    }

    fn convert(&mut self, charset: Option<&Ident>, collation: Option<&Ident>) {
        for column in &mut self.tree.columns {
            column.ty.charset = None;
            column.ty.collation = None;
        }
        if let Some(charset) = charset {
            self.set_option(&TableOption::Charset(charset.clone()));
        }
        if let Some(collation) = collation {
            self.set_option(&TableOption::Collate(collation.clone()));
        }
    }

    fn drop_column(&mut self, name: &str) -> SqlResult<()> {
        let at = self.take_column(name).map_err(|_| SqlError::cant_drop_field_or_key(name))?;
        self.tree.columns.remove(at);
        self.sources.remove(at);
        for key in &mut self.tree.indexes {
            key.parts.retain(|part| !part_is(part, name));
        }
        self.tree.indexes.retain(|key| !key.parts.is_empty());
        Ok(())
    }

    fn change_column(&mut self, old: &Ident, column: &ColumnDef, position: &ColumnPosition) -> SqlResult<()> {
        let at = self.take_column(old)?;
        self.renamed.push((old.clone(), column.name.clone()));
        let source = self.sources.remove(at);
        self.tree.columns.remove(at);
        let to = self.place(position, at)?;
        self.tree.columns.insert(to, column.clone());
        self.sources.insert(to, source);
        Ok(())
    }
}

fn part_is(part: &ast::KeyPart, column: &str) -> bool {
    matches!(&part.target, KeyTarget::Column { name, .. } if same_name(name, column))
}

/// Whether two indexes hold the same entries: kind of uniqueness, columns, prefixes, order. Names
/// and visibility do not matter.
fn same_index(
    old_def: &TableDef,
    old: &Index,
    new_def: &TableDef,
    new: &Index,
    sources: &[ColumnSource],
) -> bool {
    let same_part = |(a, b): (&crate::catalog::IndexPart, &crate::catalog::IndexPart)| {
        sources[b.column] == ColumnSource::Old(a.column)
            && a.prefix == b.prefix
            && a.descending == b.descending
            && copy::same_key_encoding(&old_def.columns[a.column], &new_def.columns[b.column])
    };
    old.unique() == new.unique()
        && old.clustered == new.clustered
        && old.parts.len() == new.parts.len()
        && old.parts.iter().zip(&new.parts).all(same_part)
}
