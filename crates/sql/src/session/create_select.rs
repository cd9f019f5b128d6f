//! CREATE TABLE ... SELECT: the table, as a definition with all its columns written out, and the rows as those of INSERT ...
//! SELECT, in one transaction (GTID-1): a crash or an error leaves both or neither.

use super::{Call, SqlSession};
use crate::api::{Outcome, Priv};
use crate::catalog::{self, Table, same_name};
use crate::ddl::{Ddl, parse_create};
use crate::dml::{InsertPlan, RowExpressions, WritePlan};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Kind;
use crate::expr::charset;
use crate::expr::types::{BINARY, Family, column_type, family};
use crate::plan::QueryPlan;
use crate::plan::tree::Body;
use omnibus_locks::TableMode;
use omnibus_parser::ast::{ColumnDef, CreateTable, Ident, Query};
use omnibus_value::{ColumnKind, ColumnType};
use std::sync::Arc;

impl SqlSession {
    pub(super) fn create_table_select(
        &mut self,
        tree: &CreateTable,
        query: &Query,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let plan = self.plan_reads(query, call.access, Some(call.params), self.source_lock())?;
        let (full, names) = with_columns_of(tree, &plan)?;
        call.access.check(&self.schema_of(&tree.name)?, Some(&tree.name.name), Priv::Insert)?;
        // What it reads before the lock that all definitions wait for.
        self.trx.locks.lock_views(&plan.views)?;
        for table in &plan.tables {
            self.trx.lock_table(table, TableMode::IntentShared)?;
        }
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql: b"" };
        let created = ddl.create_table_as(&full);
        if created.is_err() {
            self.trx.rollback();
        }
        let Some(table) = created? else { return Ok(Outcome::ok()) };
        let result = self.fill(&table, &names, plan, tree, call);
        if result.is_err() {
            self.trx.rollback();
        }
        result
    }

    /// Inserts the query's rows and commits them with the table.
    fn fill(
        &mut self,
        table: &Arc<Table>,
        names: &[Ident],
        plan: QueryPlan,
        tree: &CreateTable,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let expressions = RowExpressions::bind(table, &self.state, &self.trx.catalog(), None)?;
        let insert = InsertPlan::for_query(table, names, plan, tree.on_duplicate, expressions)?;
        let outcome = self.run_as_rows(&WritePlan::of_insert(insert), call)?;
        self.trx.end_statement()?;
        self.trx.finish_applied()?;
        let wait = self.commit_now()?;
        Ok(Outcome { wait, ..outcome })
    }
}

/// The definition with the query's columns in it, and their names.
pub(super) fn with_columns_of(tree: &CreateTable, plan: &QueryPlan) -> SqlResult<(CreateTable, Vec<Ident>)> {
    let mut full = tree.clone();
    full.query = None;
    let mut names = Vec::with_capacity(plan.columns.len());
    for (at, (column, ty)) in plan.columns.iter().zip(&plan.types).enumerate() {
        names.push(Ident::new(&*column.name));
        if !full.columns.iter().any(|own| same_name(&own.name, &column.name)) {
            full.columns.push(column_def(&column.name, &in_collation(&stored_type(plan, at)), ty.nullable)?);
        }
    }
    Ok((full, names))
}

/// The type of a column that holds a result column. What comes from no table is as narrow as its digits allow; literals and
/// casts vary in length.
fn stored_type(plan: &QueryPlan, at: usize) -> ColumnType {
    let mut ty = plan.types[at].column.clone();
    if plan.types[at].is_null() {
        return column_type(ColumnKind::Binary, false, 0, 0, BINARY);
    }
    let output = match &plan.body {
        Body::Block(block) => block.outputs.get(at).map(|e| &e.kind),
        _ => None,
    };
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

/// A type's text with its character set and collation.
fn in_collation(ty: &ColumnType) -> String {
    let text = catalog::type_text(ty);
    if family(ty.kind) != Family::String || ty.collation == BINARY {
        return text;
    }
    let (set, collation) = (charset::charset_name(ty.collation), charset::collation_name(ty.collation));
    format!("{text} CHARACTER SET {set} COLLATE {collation}")
}

/// A column definition from its type's text.
fn column_def(name: &str, ty: &str, nullable: bool) -> SqlResult<ColumnDef> {
    let null = if nullable { "" } else { " NOT NULL" };
    let text = format!("CREATE TABLE `t` ({} {ty}{null})", catalog::quote_ident(name));
    let tree = parse_create(&text)?;
    tree.columns.into_iter().next().ok_or_else(SqlError::table_must_have_columns)
}
