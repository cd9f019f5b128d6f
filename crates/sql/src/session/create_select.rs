//! CREATE TABLE ... SELECT: the table, as a definition with all its columns written out, and the rows as those of INSERT ...
//! SELECT, in one transaction (GTID-1): a crash or an error leaves both or neither.

use super::{Call, StatementContext, query, statement_log};
use crate::api::{Outcome, Priv};
use crate::catalog::{self, Column, ColumnDefault, Table, same_name};
use crate::ddl::{self, Ddl, parse_create};
use crate::dml::{InsertPlan, RowExpressions, WritePlan};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Kind;
use crate::expr::charset;
use crate::expr::types::{BINARY, Family, column_type, family};
use crate::plan::QueryPlan;
use omnibus_locks::TableMode;
use omnibus_parser::ast::{ColumnDef, CreateTable, Ident, IndexKind, KeyTarget, Query};
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

pub(super) fn create_table_select(
    cx: &mut StatementContext<'_>,
    tree: &CreateTable,
    query: &Query,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let (plan, full, names) = planned(cx, tree, query, call)?;
    call.access.check(&cx.schema_of(&tree.name)?, Some(&tree.name.name), Priv::Insert)?;
    // What it reads before the lock that all definitions wait for.
    cx.trx.locks.lock_views(cx.trx.statement.waits(), &plan.statement.views)?;
    for table in &plan.statement.tables {
        cx.trx.lock_table(table, TableMode::IntentShared)?;
    }
    let mut ddl = Ddl { trx: cx.trx, state: cx.state, access: call.access, sql: b"" };
    let created = ddl::table::create_table_as(&mut ddl, &full);
    if created.is_err() {
        cx.trx.rollback();
    }
    let Some(table) = created? else { return Ok(Outcome::ok()) };
    cx.state.held.creating = Some(table.def.name.clone());
    let result = fill(cx, &table, &names, plan, tree, call);
    cx.state.held.creating = None;
    if result.is_err() {
        cx.trx.rollback();
    }
    result
}

/// The query's plan, and the definition with its columns in it, and their names.
pub(super) fn planned(
    cx: &StatementContext<'_>,
    tree: &CreateTable,
    query: &Query,
    call: &Call<'_>,
) -> SqlResult<(QueryPlan, CreateTable, Vec<Ident>)> {
    let lock = statement_log::source_lock(cx);
    let plan = query::plan_reads(cx, query, call.access, Some(call.params), lock)?;
    let collation = ddl::stated_collation(&tree.options, cx.state.settings.default_collation_for_utf8mb4)?;
    let home = match collation {
        Some(stated) => stated,
        None => cx.trx.catalog().schema(&cx.schema_of(&tree.name)?)?.collation,
    };
    let settings = &cx.state.settings;
    let defaults = match (settings.mariadb, settings.strict() && settings.date_mode().no_zero_date) {
        (true, _) => Defaults::None,
        (false, true) => Defaults::NoDates,
        (false, false) => Defaults::All,
    };
    let (full, names) = with_columns_of(tree, &plan, (cx.state.zone(), home), defaults)?;
    Ok((plan, full, names))
}

/// Inserts the query's rows and commits them with the table.
fn fill(
    cx: &mut StatementContext<'_>,
    table: &Arc<Table>,
    names: &[Ident],
    plan: QueryPlan,
    tree: &CreateTable,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let expressions = RowExpressions::bind(table, cx.state, &cx.trx.catalog(), None)?;
    let insert = InsertPlan::for_query(table, names, plan, tree.on_duplicate, expressions)?;
    let outcome = query::run_as_rows(cx, &WritePlan::of_insert(insert), call)?;
    cx.trx.end_statement()?;
    cx.trx.log.finish_applied(&cx.trx.statement, &mut cx.trx.transaction)?;
    let wait = cx.commit_now()?;
    Ok(Outcome { wait, ..outcome })
}

/// The definition with the query's columns in it, and their names. Columns that only the list has stand first; one that both have is what
/// the list says, where the query has it. `home` is the table's collation.
fn with_columns_of(
    tree: &CreateTable,
    plan: &QueryPlan,
    (zone, home): (Zone, u16),
    defaults: Defaults,
) -> SqlResult<(CreateTable, Vec<Ident>)> {
    let mut full = tree.clone();
    full.query = None;
    let mut names = Vec::with_capacity(plan.columns.len());
    let mut selected = Vec::with_capacity(plan.columns.len());
    for (at, (column, ty)) in plan.columns.iter().zip(&plan.types).enumerate() {
        names.push(Ident::new(&*column.name));
        let own = full.columns.iter().position(|own| same_name(&own.name, &column.name));
        selected.push(match own {
            Some(own) => full.columns.remove(own),
            None => {
                // A column that says its collation goes on saying it.
                let says = base_column(plan, at).is_some_and(|column| column.explicit_collation);
                let stored = stored_type(plan, at, defaults);
                let text = in_collation(&stored, if says { 0 } else { home }, !says);
                let implied = if ty.nullable { None } else { implied_default(&stored, defaults) };
                let nulls = match (ty.nullable, is_in_primary_key(tree, &column.name)) {
                    (true, true) => Nulls::Keyed,
                    (true, false) => Nulls::Taken,
                    (false, _) => Nulls::Refused,
                };
                column_def(&column.name, &text, nulls, base_column(plan, at), implied, zone)?
            }
        });
    }
    full.columns.extend(selected);
    Ok((full, names))
}

/// The columns that get a default of nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Defaults {
    None,
    /// A zero date is no value.
    NoDates,
    All,
}

/// A selected column's way with NULL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// It is nullable, as the query's.
    Taken,
    /// It is not, as the query's.
    Refused,
    /// It is not, because the primary key has it, and so has no DEFAULT NULL either.
    Keyed,
}

/// Whether the statement's own primary key has a column.
fn is_in_primary_key(tree: &CreateTable, column: &str) -> bool {
    let keys = tree.indexes.iter().filter(|key| key.kind == IndexKind::Primary);
    keys.flat_map(|key| &key.parts)
        .any(|part| matches!(&part.target, KeyTarget::Column { name, .. } if same_name(name, column)))
}

/// The table's column that an output is, not by way of a view or a derived table.
fn base_column(plan: &QueryPlan, at: usize) -> Option<&Column> {
    let project = plan.root.project()?;
    let Kind::Column { slot, column, .. } = &project.outputs.get(at)?.kind else { return None };
    let table = project.input.table_of(*slot)?;
    let column = table.columns().get(usize::from(*column))?;
    let (shown, def) = (&plan.columns[at], &table.def);
    (*shown.org_table == *def.name && *shown.schema == *def.db && *shown.org_name == *column.name)
        .then_some(column)
}

/// The type of a column that holds a result column. What comes from no table is as narrow as its digits allow; literals and
/// casts vary in length.
fn stored_type(plan: &QueryPlan, at: usize, defaults: Defaults) -> ColumnType {
    let mut ty = plan.types[at].column.clone();
    let output = plan.root.outputs().get(at).map(|e| &e.kind);
    let is_null = plan.types[at].is_null();
    if defaults != Defaults::None && matches!(output, Some(Kind::UserVariable(_))) {
        return of_variable(&ty, is_null);
    }
    if is_null {
        return column_type(ColumnKind::Binary, false, 0, 0, BINARY);
    }
    let varies = matches!(output, Some(Kind::Const(_) | Kind::Cast(_)));
    ty.kind = match ty.kind {
        ColumnKind::BigInt if plan.columns[at].org_name.is_empty() && (1..10).contains(&ty.length) => {
            ColumnKind::Int
        }
        ColumnKind::Char if varies => ColumnKind::VarChar,
        ColumnKind::Binary if varies => ColumnKind::VarBinary,
        kind => kind,
    };
    ty
}

/// MySQL's type of a column that holds a user variable, which may have any value of its kind.
fn of_variable(ty: &ColumnType, is_null: bool) -> ColumnType {
    match family(ty.kind) {
        _ if is_null => column_type(ColumnKind::LongBlob, false, u32::MAX, 0, BINARY),
        Family::String if ty.collation == BINARY => {
            column_type(ColumnKind::LongBlob, false, u32::MAX, 0, BINARY)
        }
        Family::String => column_type(ColumnKind::LongText, false, u32::MAX, 0, ty.collation),
        Family::Decimal => column_type(ColumnKind::Decimal, false, 65, 30, BINARY),
        _ => ty.clone(),
    }
}

/// A type's text with its character set and collation, where they are not the table's.
fn in_collation(ty: &ColumnType, home: u16, implied: bool) -> String {
    let text = catalog::type_text(ty);
    if family(ty.kind) != Family::String || ty.collation == BINARY || ty.collation == home {
        return text;
    }
    let (set, collation) = (charset::charset_name(ty.collation), charset::collation_name(ty.collation));
    let mark = if implied { catalog::implied() } else { String::new() };
    format!("{text} CHARACTER SET {set} COLLATE {collation}{mark}")
}

/// The default that MySQL gives a column which is never NULL and comes from no table: nothing, as a value of its type.
fn implied_default(ty: &ColumnType, defaults: Defaults) -> Option<String> {
    Some(match ty.kind {
        _ if defaults == Defaults::None => return None,
        ColumnKind::Date | ColumnKind::DateTime | ColumnKind::Timestamp if defaults == Defaults::NoDates => {
            return None;
        }
        ColumnKind::Decimal if ty.decimals > 0 => format!("0.{}", "0".repeat(usize::from(ty.decimals))),
        ColumnKind::Time if ty.decimals > 0 => format!("00:00:00.{}", "0".repeat(usize::from(ty.decimals))),
        ColumnKind::Time => "00:00:00".to_owned(),
        ColumnKind::Date => "0000-00-00".to_owned(),
        ColumnKind::DateTime | ColumnKind::Timestamp if ty.decimals > 0 => {
            format!("0000-00-00 00:00:00.{}", "0".repeat(usize::from(ty.decimals)))
        }
        ColumnKind::DateTime | ColumnKind::Timestamp => "0000-00-00 00:00:00".to_owned(),
        ColumnKind::Char | ColumnKind::VarChar | ColumnKind::VarBinary => String::new(),
        kind if kind != ColumnKind::Bit
            && matches!(family(kind), Family::Integer | Family::Real | Family::Decimal) =>
        {
            "0".to_owned()
        }
        _ => return None,
    })
}

/// A column definition from its type's text, with what else the column of a table has that it comes from.
fn column_def(
    name: &str,
    ty: &str,
    nulls: Nulls,
    base: Option<&Column>,
    implied: Option<String>,
    zone: Zone,
) -> SqlResult<ColumnDef> {
    let null = if nulls == Nulls::Taken { " NULL" } else { " NOT NULL" };
    let rest = match base {
        Some(base) if nulls == Nulls::Keyed && matches!(base.default, ColumnDefault::Value(Value::Null)) => {
            catalog::comment_text(base)
        }
        // The numbers that it has are kept, and no more are made.
        Some(base) if base.auto_increment => format!(" DEFAULT '0'{}", catalog::comment_text(base)),
        Some(base) => catalog::defaults_text(base, zone) + &catalog::comment_text(base),
        None => implied.map_or(String::new(), |value| format!(" DEFAULT '{value}'")),
    };
    let text = format!("CREATE TABLE `t` ({} {ty}{null}{rest})", catalog::quote_ident(name));
    let tree = parse_create(&text)?;
    tree.columns.into_iter().next().ok_or_else(SqlError::table_must_have_columns)
}
