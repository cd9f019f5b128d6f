//! Expressions without tables: SET and its kind, and those of stored programs.

use super::StatementContext;
use crate::api::{AccessCheck, Rights};
use crate::bind::scope::Scope;
use crate::bind::{Binder, Clause};
use crate::error::ExecResult;
use crate::expr::{Context, Kind};
use omnibus_parser::ast;
use omnibus_value::{ColumnType, Value};

/// The value and type of an expression without tables; subqueries read what the open transaction sees. `strict`: bad data is an error if `sql_mode` is strict, as it is where the value goes into something that has a type.
pub(crate) fn value(
    cx: &mut StatementContext<'_>,
    expr: &ast::Expr,
    params: &[Value],
    strict: bool,
    access: &dyn AccessCheck,
) -> ExecResult<(Value, ColumnType)> {
    let catalog = cx.catalog_to_plan();
    let (bound, slots, subqueries) = {
        let mut binder = Binder::new(cx.state, &catalog);
        binder.objects.virtuals = cx.database.virtual_tables();
        binder.params = Some(params);
        binder.author.access = Rights::Session(access);
        binder.open(Scope::default(), Clause::FieldList);
        (binder.expr(expr)?, binder.collected.slots.len(), binder.collected.subqueries)
    };
    if subqueries > 0 {
        cx.trx.floor().see_definitions();
    }
    let mut exec = Context::new(cx.state, cx.trx, params);
    exec.reserve(slots, subqueries);
    exec.strict = strict && exec.session.settings.strict();
    let value = bound.eval(&mut exec)?;
    Ok((value, bound.ty.column))
}

/// Evaluates a member of DO, which may have aggregates and window functions: then it is a query of one row.
pub(super) fn done(
    cx: &mut StatementContext<'_>,
    expr: &ast::Expr,
    params: &[Value],
    access: &dyn AccessCheck,
) -> ExecResult<()> {
    let refused = {
        let catalog = cx.catalog_to_plan();
        let mut binder = Binder::new(cx.state, &catalog);
        binder.objects.virtuals = cx.database.virtual_tables();
        binder.params = Some(params);
        binder.author.access = Rights::Session(access);
        binder.open(Scope::default(), Clause::FieldList);
        binder.expr(expr).err()
    };
    let computes = refused.is_some_and(|error| matches!(error.code, 1111 | 3593));
    if !computes || cx.state.settings.mariadb {
        return value(cx, expr, params, false, access).map(|_| ());
    }
    let query = ast::Expr::Subquery(Box::new(select_of(expr.clone())));
    value(cx, &query, params, false, access).map(|_| ())
}

/// As `value`, if nothing but the session is asked; an expression with subqueries or stored functions is a part of
/// a statement.
pub(crate) fn plain_value(
    cx: &mut StatementContext<'_>,
    expr: &ast::Expr,
    strict: bool,
    access: &dyn AccessCheck,
) -> ExecResult<Option<(Value, ColumnType)>> {
    let catalog = cx.catalog_to_plan();
    let (bound, subqueries) = {
        let mut binder = Binder::new(cx.state, &catalog);
        binder.objects.virtuals = cx.database.virtual_tables();
        binder.author.access = Rights::Session(access);
        binder.open(Scope::default(), Clause::FieldList);
        (binder.expr(expr)?, binder.collected.subqueries)
    };
    let mut stored = false;
    bound.walk(&mut |e| stored |= matches!(e.kind, Kind::Stored(_)));
    if subqueries > 0 || stored {
        return Ok(None);
    }
    let mut exec = Context::new(cx.state, cx.trx, &[]);
    exec.strict = strict && exec.session.settings.strict();
    let value = bound.eval(&mut exec)?;
    Ok(Some((value, bound.ty.column)))
}

/// `SELECT expr`
fn select_of(expr: ast::Expr) -> ast::Query {
    let select = ast::Select {
        options: ast::SelectOptions::default(),
        hints: Vec::new(),
        items: vec![ast::SelectItem::Expr { expr, alias: None, text: bytes::Bytes::new() }],
        from: Vec::new(),
        filter: None,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    };
    ast::Query {
        with: None,
        body: ast::QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: Vec::new(),
        into: None,
    }
}
