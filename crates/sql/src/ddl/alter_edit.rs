//! The clauses of ALTER TABLE, applied to the tree of the stored definition.
//!
//! All clauses of one statement name columns and indexes as they were before it; only AFTER and the parts of new
//! indexes name them as they are behind it.

use super::copy::ColumnSource;
use crate::catalog::{StoredExpr, Table, charset, same_name};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{
    self, AlterAction, ColumnDef, ColumnPosition, CreateTable, DefaultValue, Ident, KeyTarget, ObjectName,
    TableOption,
};
use omnibus_parser::print;
use std::sync::Arc;

/// The tree being edited, and where each of its columns comes from.
pub(super) struct Edit {
    pub tree: CreateTable,
    pub sources: Vec<ColumnSource>,
    /// The table's columns: their names, and whether a clause has dropped, changed or renamed one.
    pub old: Vec<(Arc<str>, bool)>,
    /// Columns with new names, for the indexes that they are in.
    pub renamed: Vec<(Ident, Ident)>,
    pub added: Added,
    pub dropped_columns: Vec<Ident>,
    pub dropped_indexes: Vec<Ident>,
    pub adds_foreign_keys: bool,
    /// Columns of which SET DEFAULT NULL says what a primary key forbids.
    pub null_defaults: Vec<Ident>,
    pub rename: Option<ObjectName>,
    pub force: bool,
    pub auto_increment: Option<u64>,
}

/// Keys and checks that the statement adds: its other clauses do not see them.
#[derive(Default)]
pub(super) struct Added {
    pub indexes: Vec<ast::IndexDef>,
    pub checks: Vec<ast::Check>,
}

impl Edit {
    /// A new default of the table is for new columns: those that are there keep what they have.
    pub(super) fn keep_collations(&mut self, table: &Table) {
        for (tree, column) in self.tree.columns.iter_mut().zip(&table.def.columns) {
            if charset::is_character(&column.ty) {
                let id = column.ty.collation;
                tree.ty.charset = Some(charset::charset_name(id).into());
                tree.ty.collation = Some(charset::collation_name(id).into());
                tree.ty.implied = !column.explicit_collation;
            }
        }
    }

    /// Where a column of the table is now, unless another clause was about it.
    pub(super) fn find_column(&self, name: &str) -> Option<usize> {
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

    /// The old indexes get the new names of their columns, and lose those that are gone; behind them stand the new ones.
    pub(super) fn finish_indexes(&mut self) {
        for name in std::mem::take(&mut self.dropped_columns) {
            // A new column of the same name takes the place of the old one in its keys, as in MySQL.
            let added =
                self.sources.iter().zip(&self.tree.columns).find(|(source, column)| {
                    **source == ColumnSource::Added && same_name(&column.name, &name)
                });
            for key in &mut self.tree.indexes {
                match added {
                    Some((_, column)) => {
                        let parts = key.parts.iter_mut().filter(|part| part_is(part, &name));
                        parts.for_each(|part| fit_prefix(part, &column.ty));
                    }
                    None => key.parts.retain(|part| !part_is(part, &name)),
                }
            }
            self.dropped_columns.push(name);
        }
        self.tree.indexes.retain(|key| !key.parts.is_empty());
        for part in self.tree.indexes.iter_mut().flat_map(|key| &mut key.parts) {
            if let KeyTarget::Column { name, .. } = &mut part.target
                && let Some((_, new)) = self.renamed.iter().find(|(old, _)| same_name(old, name))
            {
                *name = new.clone();
            }
        }
        for name in self.tree.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
            if let Some((_, new)) = self.renamed.iter().find(|(old, _)| same_name(old, name)) {
                *name = new.clone();
            }
        }
        for key in std::mem::take(&mut self.added.indexes) {
            if key.kind == ast::IndexKind::Primary {
                self.forget_null_defaults(&key);
            }
            self.tree.indexes.push(key);
        }
    }

    /// Adds the new checks, behind everything that asks for old ones by their names.
    pub(super) fn finish_checks(&mut self) {
        self.tree.checks.append(&mut self.added.checks);
    }

    pub(super) fn find_index(&self, name: &str) -> Option<usize> {
        let named = |key: &ast::IndexDef| {
            key.kind != ast::IndexKind::Primary && key.name.as_ref().is_some_and(|own| same_name(own, name))
        };
        self.tree.indexes.iter().position(named)
    }

    fn primary(&self) -> Option<usize> {
        self.tree.indexes.iter().position(|key| key.kind == ast::IndexKind::Primary)
    }

    /// The columns of a new primary key become NOT NULL: a stored DEFAULT NULL goes, one that this statement sets is an error.
    fn forget_null_defaults(&mut self, key: &ast::IndexDef) {
        for column in &mut self.tree.columns {
            let null = DefaultValue::Value(ast::Expr::Literal(ast::Literal::Null));
            if key.parts.iter().any(|part| part_is(part, &column.name))
                && column.default.as_ref() == Some(&null)
                && !self.null_defaults.contains(&column.name)
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

    pub(super) fn apply(&mut self, action: &AlterAction) -> SqlResult<()> {
        match action {
            AlterAction::AddColumn { column, position, .. } => {
                let at = self.place(position, self.tree.columns.len())?;
                let column = self.without_keys(column);
                self.tree.columns.insert(at, column);
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
                if *default == DefaultValue::Value(ast::Expr::Literal(ast::Literal::Null)) {
                    self.null_defaults.push(self.tree.columns[at].name.clone());
                }
                self.tree.columns[at].default = Some(default.clone());
            }
            AlterAction::DropDefault { column } => {
                let at = self.take_column(column)?;
                let column = &mut self.tree.columns[at];
                let takes = column.generated.is_none() && !column.auto_increment;
                column.default = takes.then_some(DefaultValue::Dropped);
            }
            AlterAction::SetColumnVisibility { column, invisible } => {
                let at = self.take_column(column)?;
                self.tree.columns[at].invisible = Some(*invisible);
            }
            AlterAction::DropIndex { name, .. } => {
                let at = self.find_index(name).ok_or_else(|| SqlError::cant_drop_field_or_key(name))?;
                self.drop_index(at);
            }
            AlterAction::DropPrimaryKey => {
                let at = self.primary().ok_or_else(|| SqlError::cant_drop_field_or_key("PRIMARY"))?;
                self.drop_index(at);
            }
            AlterAction::RenameIndex { old, new } => rename_index(self, old, new)?,
            AlterAction::SetIndexVisibility { name, invisible } => {
                let found = if name.is("primary") { self.primary() } else { self.find_index(name) };
                let at = found.ok_or_else(|| SqlError::key_does_not_exist(name, &self.tree.name.name))?;
                self.tree.indexes[at].invisible = *invisible;
            }
            AlterAction::Option(option) => self.set_option(option),
            AlterAction::ConvertCharset { charset, collation } => {
                self.convert(charset.as_ref(), collation.as_ref())
            }
            AlterAction::Force => self.force = true,
            AlterAction::DisableKeys | AlterAction::EnableKeys | AlterAction::OrderBy(_) => {}
            AlterAction::AddForeignKey(key) => {
                self.adds_foreign_keys = true;
                self.tree.foreign_keys.push((**key).clone());
            }
            AlterAction::AddCheck(check) => self.added.checks.push((**check).clone()),
            AlterAction::DropForeignKey { name, if_exists } => {
                if !self.drop_foreign_key(name) && !if_exists {
                    return Err(SqlError::cant_drop_field_or_key(name));
                }
            }
            AlterAction::DropConstraint { name, if_exists } => {
                if self.drop_foreign_key(name) {
                } else if let Some(at) = self.find_check(name) {
                    self.tree.checks.remove(at);
                } else if let Some(at) = self.find_constraint_index(name) {
                    self.drop_index(at);
                } else if !if_exists {
                    return Err(SqlError::cant_drop_field_or_key(name));
                }
            }
            AlterAction::DropCheck { name } => {
                let at = self.find_check(name).ok_or_else(|| no_check(name))?;
                self.tree.checks.remove(at);
            }
            AlterAction::AlterCheck { name, enforced } | AlterAction::AlterConstraint { name, enforced } => {
                let at = self.find_check(name).ok_or_else(|| no_check(name))?;
                self.tree.checks[at].enforced = *enforced;
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

    /// How many constraints of all kinds have a name.
    pub(super) fn constraints_named(&self, name: &str) -> usize {
        let keys = self.tree.foreign_keys.iter();
        let keys = keys.filter(|key| key.constraint.as_ref().is_some_and(|own| same_name(own, name))).count();
        keys + usize::from(self.find_check(name).is_some())
            + usize::from(self.find_constraint_index(name).is_some())
    }

    fn find_constraint_index(&self, name: &str) -> Option<usize> {
        match same_name(name, "PRIMARY") {
            true => self.primary(),
            false => self.find_index(name).filter(|at| self.tree.indexes[*at].kind == ast::IndexKind::Unique),
        }
    }

    fn drop_index(&mut self, at: usize) {
        let key = self.tree.indexes.remove(at);
        self.dropped_indexes.push(key.name.unwrap_or_else(|| "PRIMARY".into()));
    }

    /// Whether a column still has this expression behind the edit.
    pub(super) fn keeps(&self, column: &str, expr: &StoredExpr) -> bool {
        let Some(at) = self.find_column(column) else { return false };
        let column = &self.tree.columns[at];
        let generated = column.generated.as_ref().map(|generated| &generated.expr);
        let default = match &column.default {
            Some(DefaultValue::Expression(expr)) => Some(expr),
            _ => None,
        };
        generated.or(default).is_some_and(|now| print::column_names(now) == print::column_names(&expr.tree))
    }

    pub(super) fn find_check(&self, name: &str) -> Option<usize> {
        let named = |check: &ast::Check| check.name.as_ref().is_some_and(|own| same_name(own, name));
        self.tree.checks.iter().position(named)
    }

    /// Whether there was one of this name.
    fn drop_foreign_key(&mut self, name: &str) -> bool {
        let named = |key: &ast::ForeignKey| key.constraint.as_ref().is_some_and(|own| same_name(own, name));
        let at = self.tree.foreign_keys.iter().position(named);
        at.map(|at| self.tree.foreign_keys.remove(at)).is_some()
    }

    fn set_option(&mut self, option: &TableOption) {
        let other = |old: &TableOption| match (old, option) {
            (TableOption::Other { name: old, .. }, TableOption::Other { name, .. }) => !old.is(name),
            _ => std::mem::discriminant(old) != std::mem::discriminant(option),
        };
        self.tree.options.retain(|old| super::not_built::is_kept(old) || other(old));
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
        let column = self.tree.columns.remove(at);
        self.dropped_columns.push(column.name);
        self.sources.remove(at);
        Ok(())
    }

    /// A column whose UNIQUE or PRIMARY KEY has become a new key, which stands behind those that are there.
    fn without_keys(&mut self, column: &ColumnDef) -> ColumnDef {
        let mut column = column.clone();
        let kinds = [
            (ast::IndexKind::Primary, &mut column.primary_key),
            (ast::IndexKind::Unique, &mut column.unique),
        ];
        for (kind, is_set) in kinds {
            if std::mem::take(is_set) {
                let target = KeyTarget::Column { name: column.name.clone(), prefix: None };
                self.added.indexes.push(ast::IndexDef {
                    kind,
                    if_not_exists: false,
                    constraint: None,
                    name: None,
                    parts: vec![ast::KeyPart { target, descending: false }],
                    algorithm: None,
                    comment: None,
                    invisible: false,
                    key_block_size: None,
                    parser: None,
                    of_foreign_key: false,
                });
            }
        }
        column
    }

    fn change_column(&mut self, old: &Ident, column: &ColumnDef, position: &ColumnPosition) -> SqlResult<()> {
        let at = self.take_column(old)?;
        self.renamed.push((old.clone(), column.name.clone()));
        let source = self.sources.remove(at);
        let before = self.tree.columns.remove(at);
        let is_virtual = |c: &ColumnDef| c.generated.as_ref().is_some_and(|generated| !generated.stored);
        if is_virtual(&before) != is_virtual(column) {
            let message = "'Changing the STORED status' is not supported for generated columns.";
            return Err(SqlError::new(3106, b"HY000", message));
        }
        let to = self.place(position, at)?;
        let parts = self.tree.indexes.iter_mut().flat_map(|key| &mut key.parts);
        parts.filter(|part| part_is(part, old)).for_each(|part| fit_prefix(part, &column.ty));
        let column = self.without_keys(column);
        self.tree.columns.insert(to, column);
        self.sources.insert(to, source);
        Ok(())
    }
}

/// RENAME INDEX: a primary key has no other name, and no other key has its.
fn rename_index(edit: &mut Edit, old: &Ident, new: &Ident) -> SqlResult<()> {
    let is_primary = |name: &Ident| same_name(name, "PRIMARY");
    if is_primary(old) && edit.primary().is_some() {
        return Err(SqlError::wrong_name_for_index(old));
    }
    let found = edit.find_index(old);
    let at = found.ok_or_else(|| SqlError::key_does_not_exist(old, &edit.tree.name.name))?;
    if is_primary(new) {
        return Err(SqlError::wrong_name_for_index(new));
    }
    if edit.find_index(new).is_some_and(|other| other != at) {
        return Err(SqlError::dup_keyname(new));
    }
    edit.tree.indexes[at].name = Some(new.clone());
    edit.tree.indexes[at].of_foreign_key = false;
    Ok(())
}

fn no_check(name: &str) -> SqlError {
    SqlError::new(3821, b"HY000", format!("Check constraint '{name}' is not found in the table."))
}

/// A key takes the whole of a column that is no longer longer than its prefix, or has none.
fn fit_prefix(part: &mut ast::KeyPart, ty: &ast::DataType) {
    use ast::TypeName as T;
    let KeyTarget::Column { prefix: Some(length), .. } = &part.target else { return };
    let fits = match ty.name {
        T::Char | T::VarChar | T::Binary | T::VarBinary => *length < ty.length.unwrap_or(1),
        T::TinyText | T::Text | T::MediumText | T::LongText | T::Json => true,
        T::TinyBlob | T::Blob | T::MediumBlob | T::LongBlob => true,
        _ => false,
    };
    if let (KeyTarget::Column { prefix, .. }, false) = (&mut part.target, fits) {
        *prefix = None;
    }
}

fn part_is(part: &ast::KeyPart, column: &str) -> bool {
    matches!(&part.target, KeyTarget::Column { name, .. } if same_name(name, column))
}
