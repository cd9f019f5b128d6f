//! CREATE TABLE ... SELECT: the table first, as a definition with all its columns written out, then
//! the rows as an ordinary INSERT ... SELECT. If the rows cannot be inserted, the table goes again.

use super::session::{Call, SqlSession};
use crate::api::{Mode, Outcome};
use crate::catalog::same_name;
use crate::ddl::{self, Ddl};
use crate::dml::{InsertPlan, WritePlan};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::select::QueryPlan;
use omnibus_parser::ast::{
    ColumnDef, CreateTable, DropTable, Ident, Insert, InsertSource, OnDuplicate, Priority, Query, Statement,
};

impl SqlSession {
    pub(super) fn create_table_select(
        &mut self,
        tree: &CreateTable,
        query: &Query,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let existed = {
            let db = self.schema_of(&tree.name)?;
            self.database.catalog().find_table(&db, &tree.name.name).is_some() && tree.if_not_exists
        };
        let plan = self.plan_query(query, call.access, Some(call.params))?;
        let (full, names) = with_columns_of(tree, &plan)?;
        let mut text = Vec::new();
        // A replica's position goes with the rows: without them the table is made again.
        let applied = if existed { None } else { self.trx.take_applied() };
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql: b"" };
        let created = ddl.create_table_as(&full, &mut text);
        let created = self.end_definition(created)?;
        if existed {
            return Ok(created);
        }
        self.finish_commit(created.wait)?;
        if let Some(applied) = applied {
            self.trx.set_applied(applied);
        }
        let db = self.schema_of(&tree.name)?;
        if self.trx.temporary_table(&db, &tree.name.name).is_some() {
            // The name means the temporary table; the rows are for the one that it hides.
            let table = self.database.catalog().table(&db, &tree.name.name)?.clone();
            let insert = InsertPlan::for_query(&table, &names, plan, tree.on_duplicate)?;
            let result = self.run_as_rows(&WritePlan::of_insert(insert), call);
            return self.finish_create_select(result, tree, call);
        }
        let insert = Statement::Insert(Box::new(Insert {
            replace: tree.on_duplicate == OnDuplicate::Replace,
            priority: Priority::Normal,
            ignore: tree.on_duplicate == OnDuplicate::Ignore,
            table: tree.name.clone(),
            partitions: Vec::new(),
            columns: names,
            source: InsertSource::Query(Box::new(query.clone())),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
        }));
        let result = self.write_rows(&insert, call);
        self.finish_create_select(result, tree, call)
    }

    /// Commits the rows, or removes the table that has none.
    fn finish_create_select(
        &mut self,
        result: ExecResult<Outcome>,
        tree: &CreateTable,
        call: &Call<'_>,
    ) -> ExecResult<Outcome> {
        let result = result.and_then(|outcome| {
            self.trx.end_statement()?;
            self.trx.finish_applied()?;
            let ticket = self.commit_now()?;
            Ok(Outcome { wait: ticket, ..outcome })
        });
        if result.is_err() {
            self.trx.rollback();
            self.drop_again(tree, call)?;
        }
        result
    }

    fn drop_again(&mut self, tree: &CreateTable, call: &Call<'_>) -> ExecResult<()> {
        let text = format!("DROP TABLE IF EXISTS {}", ddl::quote_ident(&tree.name.name));
        let drop = DropTable { temporary: false, if_exists: true, tables: vec![tree.name.clone()] };
        debug_assert_eq!(call.mode, Mode::Blocking, "definitions run in blocking mode");
        let mut ddl =
            Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql: text.as_bytes() };
        let dropped = ddl.drop_tables(&drop);
        let ticket = self.end_definition(dropped)?.wait;
        self.finish_commit(ticket)
    }
}

/// The definition with the query's columns in it, and their names.
pub(super) fn with_columns_of(tree: &CreateTable, plan: &QueryPlan) -> SqlResult<(CreateTable, Vec<Ident>)> {
    let mut full = tree.clone();
    full.query = None;
    let mut names = Vec::with_capacity(plan.columns.len());
    for (column, ty) in plan.columns.iter().zip(&plan.types) {
        names.push(Ident::new(&*column.name));
        if !full.columns.iter().any(|own| same_name(&own.name, &column.name)) {
            full.columns.push(column_def(&column.name, &ddl::type_text(&ty.column), ty.nullable)?);
        }
    }
    Ok((full, names))
}

/// A column definition from its type's text.
fn column_def(name: &str, ty: &str, nullable: bool) -> SqlResult<ColumnDef> {
    let null = if nullable { "" } else { " NOT NULL" };
    let text = format!("CREATE TABLE `t` ({} {ty}{null})", ddl::quote_ident(name));
    let tree = ddl::parse_create(&text)?;
    tree.columns.into_iter().next().ok_or_else(SqlError::table_must_have_columns)
}
