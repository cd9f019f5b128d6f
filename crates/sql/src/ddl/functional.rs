//! Functional key parts, `KEY ((expression))`: an index over a generated column that only the index names.
//!
//! The column stands behind the others, is stored with the row, and is nobody else's: `*`, INSERT, SHOW COLUMNS and row events leave it
//! out. Its name begins as those of MySQL's hidden columns do (`catalog::Column::is_hidden`). SHOW CREATE TABLE has the expression.

use super::alter_edit::Edit;
use super::build::{BuildContext, Ids, build_table};
use super::copy::ColumnSource;
use super::exec::Ddl;
use super::expressions::{Writer, stored};
use super::parse_create;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Clause};
use crate::catalog::{Column, HIDDEN, Schema, Table, charset, quote_ident, same_name, type_text};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{self, ColumnDef, CreateTable, Ident, IndexKind, KeyTarget};
use omnibus_parser::print;
use omnibus_value::{ColumnKind, ColumnType};
use std::borrow::Cow;
use std::sync::Arc;

/// Whether a key has an expression.
pub(super) fn is_functional(key: &ast::IndexDef) -> bool {
    key.parts.iter().any(|part| matches!(part.target, KeyTarget::Expression(_)))
}

/// The tree with a column for each expression in its keys.
pub(super) fn with_hidden_columns<'t>(
    ddl: &mut Ddl<'_>,
    tree: &'t CreateTable,
    db: &str,
    schema: &Schema,
) -> SqlResult<Cow<'t, CreateTable>> {
    if !ddl.state.settings.mariadb && tree.columns.iter().any(generates_array) {
        return Err(misplaced_array());
    }
    if !tree.indexes.iter().any(is_functional) || passes_over_keys(ddl) {
        return Ok(Cow::Borrowed(tree));
    }
    let mut full = tree.clone();
    hide_columns(ddl, &mut full, db, schema)?;
    Ok(Cow::Owned(full))
}

/// The same of a table that is altered.
pub(super) fn add_hidden_columns(ddl: &mut Ddl<'_>, edit: &mut Edit, table: &Table) -> SqlResult<()> {
    if !edit.tree.indexes.iter().any(is_functional) || passes_over_keys(ddl) {
        return Ok(());
    }
    refuse_gone(edit, table)?;
    let schema = Schema::new(table.def.db.clone(), table.def.collation);
    hide_columns(ddl, &mut edit.tree, &table.def.db, &schema)?;
    let mut old: Vec<(usize, &Column)> =
        table.def.columns.iter().enumerate().filter(|(_, column)| column.is_hidden()).collect();
    for tree in &edit.tree.columns[edit.sources.len()..] {
        let text = tree.generated.as_ref().map(|generated| print::sql(&generated.expr));
        let reads_new =
            tree.generated.as_ref().is_some_and(|generated| reads_gone(edit, &generated.expr).is_some());
        let same = |(_, column): &(usize, &Column)| {
            !reads_new && column.generated.as_ref().map(|generated| print::sql(&generated.expr.tree)) == text
        };
        edit.sources.push(match old.iter().position(same) {
            Some(at) => ColumnSource::Old(old.remove(at).0),
            None => ColumnSource::Added,
        });
    }
    Ok(())
}

/// MariaDB has no such keys: one that reads the log could not follow.
fn passes_over_keys(ddl: &Ddl<'_>) -> bool {
    ddl.state.settings.mariadb && !ddl.state.settings.replicated
}

fn hide_columns(ddl: &mut Ddl<'_>, tree: &mut CreateTable, db: &str, schema: &Schema) -> SqlResult<()> {
    let mut keys = std::mem::take(&mut tree.indexes);
    let shape = shape(ddl, tree, db, schema)?;
    for at in 0..keys.len() {
        if !is_functional(&keys[at]) || matches!(keys[at].kind, IndexKind::FullText | IndexKind::Spatial) {
            continue;
        }
        if keys[at].kind == IndexKind::Primary {
            return Err(SqlError::new(3756, b"HY000", "The primary key cannot be a functional index"));
        }
        check_arrays(&keys[at])?;
        let name = match keys[at].name.clone().or_else(|| keys[at].constraint.clone()) {
            Some(name) => name,
            None => free_name(&keys),
        };
        keys[at].name = Some(name.clone());
        for (number, part) in keys[at].parts.iter_mut().enumerate() {
            let KeyTarget::Expression(expr) = &part.target else { continue };
            let column = hidden_column(ddl, tree, &shape, (&name, number), expr)?;
            part.target = KeyTarget::Column { name: column.name.clone(), prefix: None };
            tree.columns.push(column);
        }
    }
    tree.indexes = keys;
    Ok(())
}

fn generates_array(column: &ColumnDef) -> bool {
    column.generated.as_ref().is_some_and(|generated| print::has_array(&generated.expr))
}

fn misplaced_array() -> SqlError {
    SqlError::not_supported_yet(
        "Use of CAST( .. AS .. ARRAY) outside of functional index in CREATE(non-SELECT)/ALTER TABLE or in general expressions",
    )
}

/// Multi-valued keys are kept and shown, and have no entries of their own: one that is to be unique would let everything pass.
fn check_arrays(key: &ast::IndexDef) -> SqlResult<()> {
    let is_array = |part: &&ast::KeyPart| match &part.target {
        KeyTarget::Expression(ast::Expr::Cast { ty, .. }) => matches!(**ty, ast::CastType::Array(_)),
        _ => false,
    };
    let within = |part: &&ast::KeyPart| match &part.target {
        KeyTarget::Expression(ast::Expr::Cast { expr, .. }) => print::has_array(expr),
        KeyTarget::Expression(expr) => print::has_array(expr),
        KeyTarget::Column { .. } => false,
    };
    if key.parts.iter().any(|part| within(&part)) {
        return Err(misplaced_array());
    }
    match key.parts.iter().filter(is_array).count() {
        0 => Ok(()),
        1 if key.kind == IndexKind::Unique => Err(SqlError::not_supported_yet("UNIQUE multi-valued indexes")),
        1 => Ok(()),
        _ => Err(SqlError::not_supported_yet("more than one multi-valued key part per index")),
    }
}

/// The table without its keys, to bind expressions over.
fn shape(ddl: &mut Ddl<'_>, tree: &CreateTable, db: &str, schema: &Schema) -> SqlResult<Arc<Table>> {
    let mut plain = tree.clone();
    plain.foreign_keys.clear();
    plain.checks.clear();
    for column in &mut plain.columns {
        (column.auto_increment, column.unique, column.references) = (false, false, None);
    }
    let known = ddl.state.diagnostics.conditions().len();
    let (mut table, mut space) = (0, 0);
    let mut context: BuildContext<'_> = ddl.build_context(db, schema);
    let built = build_table(&plain, &mut context, &mut Ids { table: &mut table, space: &mut space });
    ddl.state.diagnostics.truncate(known);
    Ok(Arc::new(Table::new(built?.def, Default::default())))
}

fn hidden_column(
    ddl: &Ddl<'_>,
    tree: &CreateTable,
    shape: &Arc<Table>,
    (index, number): (&Ident, usize),
    expr: &ast::Expr,
) -> SqlResult<ColumnDef> {
    if matches!(expr, ast::Expr::Column(_)) {
        let message =
            "Functional index on a column is not supported. Consider using a regular index instead.";
        return Err(SqlError::new(3762, b"HY000", message));
    }
    let owner = || format!("Expression of functional index '{index}'");
    let settings = &ddl.state.settings;
    let writer = Writer { client: settings.collation_client, told: !settings.mariadb };
    let kept = stored(expr, &tree.name.name, writer, (3758, &owner))?;
    let catalog = ddl.trx.catalog();
    let mut binder = Binder::new(&*ddl.state, &catalog);
    let scope = binder.add_table(shape, None);
    binder.open(Scope::of(scope), Clause::Functional);
    let ty = indexed_type(&binder.expr(&kept.tree)?.ty.column)?;
    let name = (0..)
        .map(|n| format!("{HIDDEN}{index}!{number}!{n}"))
        .find(|name| !tree.columns.iter().any(|column| column.name.is(name)))
        .unwrap_or_default();
    let collation = match charset::is_character(&ty) {
        true => format!(
            " CHARACTER SET {} COLLATE {}",
            charset::charset_name(ty.collation),
            charset::collation_name(ty.collation)
        ),
        false => String::new(),
    };
    let text = format!(
        "CREATE TABLE `t` ({} {}{collation} GENERATED ALWAYS AS ({}) VIRTUAL NULL INVISIBLE)",
        quote_ident(&name),
        type_text(&ty),
        kept.text
    );
    let column = parse_create(&text)?.columns.into_iter().next();
    column.ok_or_else(SqlError::table_must_have_columns)
}

/// The column that an expression reads and the statement drops or renames.
fn reads_gone<'e>(edit: &'e Edit, expr: &ast::Expr) -> Option<&'e Ident> {
    let renamed = edit.renamed.iter().filter(|(from, to)| !same_name(from, to)).map(|(from, _)| from);
    let read = print::column_names(expr);
    edit.dropped_columns.iter().chain(renamed).find(|gone| read.iter().any(|name| same_name(name, gone)))
}

/// Columns that an index's expression reads stay, and keep their names, unless the index goes too. One of the same name may come for it.
fn refuse_gone(edit: &Edit, table: &Table) -> SqlResult<()> {
    let stays = |key: &&ast::IndexDef| {
        let named = |name: &str| key.name.as_ref().is_some_and(|own| own.is(name));
        table.indexes().iter().any(|index| named(&index.name))
            && !edit.dropped_indexes.iter().any(|dropped| named(dropped))
    };
    for part in edit.tree.indexes.iter().filter(stays).flat_map(|key| &key.parts) {
        let KeyTarget::Expression(expr) = &part.target else { continue };
        if let Some(column) = reads_gone(edit, expr) {
            let message = format!(
                "Column '{column}' has a functional index dependency and cannot be dropped or renamed."
            );
            return Err(SqlError::new(3837, b"HY000", message));
        }
    }
    Ok(())
}

/// MySQL's names for keys without one.
fn free_name(keys: &[ast::IndexDef]) -> Ident {
    let taken = |name: &str| keys.iter().any(|key| key.name.as_ref().is_some_and(|own| own.is(name)));
    let first = "functional_index".to_owned();
    let name = match taken(&first) {
        false => first,
        true => (2..).map(|n| format!("{first}_{n}")).find(|name| !taken(name)).unwrap_or(first),
    };
    Ident::new(name)
}

/// The type of the column for an expression of this type.
fn indexed_type(ty: &ColumnType) -> SqlResult<ColumnType> {
    let mut ty = ty.clone();
    ty.kind = match ty.kind {
        ColumnKind::Json | ColumnKind::Geometry => {
            let message =
                "Cannot create a functional index on an expression that returns a JSON or GEOMETRY value.";
            return Err(SqlError::new(3753, b"HY000", message));
        }
        kind if kind.is_lob() => {
            let message = "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.";
            return Err(SqlError::new(3757, b"HY000", message));
        }
        ColumnKind::Char => ColumnKind::VarChar,
        ColumnKind::Binary => ColumnKind::VarBinary,
        kind => kind,
    };
    Ok(ty)
}
