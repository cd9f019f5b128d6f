//! Binds set operations and VALUES: queries made of queries.

use super::binder::{Binder, computed_column};
use super::block::Clause;
use super::query::{bind_query, block, limit, position};
use super::scope::{Scope, ScopeTable, Source};
use crate::api::{Columns, ResultColumn};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::lookup;
use crate::expr::types::Family;
use crate::expr::unify::unify;
use crate::expr::{Expr, ExprType, Kind};
use crate::logical;
use crate::logical::{Body, Compound, SetOperation, SortBy, SortKey};
use omnibus_parser::ast::{self, Query, QueryBody, Select, SelectItem};
use std::borrow::Cow;
use std::sync::Arc;

/// An operand of a set operation that has others.
fn one_of_several(
    binder: &mut Binder<'_>,
    body: &QueryBody,
    locking: &[ast::Locking],
) -> SqlResult<logical::Query> {
    let unordered = match body {
        QueryBody::Nested(query) => {
            let simple = query.with.is_none() && matches!(query.body, QueryBody::Select(_));
            simple && query.limit.is_none()
        }
        _ => false,
    };
    binder.around.unordered = unordered;
    let bound = operand(binder, body, locking);
    binder.around.unordered = false;
    bound
}

/// A body that stands alone: an operand of a set operation, with the locks of its rows.
pub(super) fn operand(
    binder: &mut Binder<'_>,
    body: &QueryBody,
    locking: &[ast::Locking],
) -> SqlResult<logical::Query> {
    let bare = Query {
        with: None,
        body: QueryBody::Values(Vec::new()),
        order_by: Vec::new(),
        limit: None,
        locking: locking.to_vec(),
        into: None,
    };
    match body {
        QueryBody::Select(select) => block(binder, select, &bare),
        QueryBody::Table(name) => block(binder, &select_all(name), &bare),
        QueryBody::Nested(query) => bind_query(binder, &locked(query, locking)),
        QueryBody::Values(rows) => values(binder, rows),
        QueryBody::SetOperation { .. } => compound(binder, body, &bare),
    }
}

pub(super) fn values(binder: &mut Binder<'_>, rows: &[Vec<ast::Expr>]) -> SqlResult<logical::Query> {
    let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
    let mut types: Vec<ExprType> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if row.is_empty() {
            return Err(SqlError::table_value_constructor_must_have_columns());
        }
        if row.iter().any(|e| matches!(e, ast::Expr::Default)) {
            return Err(SqlError::table_value_constructor_cannot_have_default());
        }
        let row = row.iter().map(|e| binder.expr(e)).collect::<SqlResult<Vec<_>>>()?;
        if number > 0 && row.len() != types.len() {
            return Err(SqlError::wrong_value_count_on_row(number + 1));
        }
        for (at, e) in row.iter().enumerate() {
            match types.get_mut(at) {
                Some(ty) => *ty = unify(ty, &e.ty, "VALUES")?,
                None => types.push(e.ty.clone()),
            }
        }
        bound.push(row);
    }
    for row in &mut bound {
        for (e, ty) in row.iter_mut().zip(&types) {
            *e = as_common(binder, std::mem::replace(e, Expr::null()), ty);
        }
    }
    let columns: Vec<ResultColumn> =
        types.iter().enumerate().map(|(at, ty)| computed_column(format!("column_{at}").into(), ty)).collect();
    Ok(logical::Query::new(Body::Values(bound), columns, types))
}

/// A member of VALUES as its column's type, which is that of all rows together.
fn as_common(binder: &mut Binder<'_>, e: Expr, ty: &ExprType) -> Expr {
    match lookup("COALESCE") {
        // Numbers compare as they are, and keep their own decimals.
        Some(choice) if e.ty.column != ty.column && !e.ty.is_null() && ty.family() != Family::Decimal => {
            let ty = ty.clone().nullable(e.ty.nullable);
            binder.fold(Expr { kind: Kind::Call(choice, [e].into()), ty })
        }
        _ => e,
    }
}

pub(super) fn compound(
    binder: &mut Binder<'_>,
    body: &QueryBody,
    query: &Query,
) -> SqlResult<logical::Query> {
    let mut rest = Vec::new();
    let mut left = body;
    while let QueryBody::SetOperation { op, all, left: inner, right } = left {
        let operation = match (op, all) {
            (ast::SetOp::Union, true) => SetOperation::UnionAll,
            (ast::SetOp::Union, false) => SetOperation::Union,
            (ast::SetOp::Intersect, all) => SetOperation::Intersect(*all),
            (ast::SetOp::Except, all) => SetOperation::Except(*all),
        };
        rest.push((operation, &**right));
        left = inner;
    }
    rest.reverse();
    // Locks behind a set operation are those of its last operand.
    let Query { with: _, body: _, order_by: _, limit: _, locking, into: _ } = query;
    let left = match rest.is_empty() {
        true => operand(binder, left, locking)?,
        false => one_of_several(binder, left, &[])?,
    };
    let mut types = left.types.clone();
    let mut bound = Vec::with_capacity(rest.len());
    let last = rest.len();
    for (at, (operation, body)) in rest.into_iter().enumerate() {
        let operand = one_of_several(binder, body, if at + 1 == last { locking } else { &[] })?;
        if operand.types.len() != types.len() {
            return Err(SqlError::wrong_number_of_columns_in_select());
        }
        for (ty, other) in types.iter_mut().zip(&operand.types) {
            *ty = unify(ty, other, "UNION")?;
        }
        bound.push((operation, operand));
    }
    let columns: Vec<ResultColumn> = left
        .columns
        .iter()
        .zip(&types)
        .map(
            |(column, ty)| {
                if bound.is_empty() { column.clone() } else { computed_column(column.name.clone(), ty) }
            },
        )
        .collect();
    let slot = binder.new_slot();
    let scope = Scope::of(ScopeTable {
        slot,
        schema: Arc::from(""),
        alias: Arc::from(""),
        source: Source::Columns(columns.clone().into()),
        nullable: false,
        hidden: Vec::new(),
        inner: None,
        readable: Columns::All,
        names: None,
        facts: None,
    });
    binder.open(scope, Clause::Order);
    let order = compound_order(binder, query, slot, &types);
    binder.blocks.pop();
    let order = order?;
    let limit = limit(binder, query.limit.as_ref())?;
    let compound = Compound { left, rest: bound, slot, order, limit };
    Ok(logical::Query::new(Body::Compound(Box::new(compound)), columns, types))
}

fn compound_order(
    binder: &mut Binder<'_>,
    query: &Query,
    slot: u16,
    types: &[ExprType],
) -> SqlResult<Vec<SortKey>> {
    let mut order = Vec::with_capacity(query.order_by.len());
    for item in &query.order_by {
        if let ast::Expr::Column(column) = &item.expr
            && let Some(table) = column.table()
        {
            let message =
                format!("Table '{table}' from one of the SELECTs cannot be used in global ORDER clause");
            return Err(SqlError::new(1250, b"42000", message));
        }
        let at = match position(&item.expr, types.len(), "order clause")? {
            Some(at) => Some(at),
            None => match binder.expr(&item.expr).map_err(|error| ordered(binder, order.len() + 1, error))? {
                Expr { kind: Kind::Column { slot: s, column, .. }, .. } if s == slot => {
                    Some(usize::from(column))
                }
                e => {
                    let collation = e.ty.column.collation;
                    order.push(SortKey { expr: SortBy::Expr(e), descending: item.descending, collation });
                    None
                }
            },
        };
        if let Some(at) = at {
            let collation = types[at].column.collation;
            order.push(SortKey { expr: SortBy::Output(at), descending: item.descending, collation });
        }
    }
    Ok(order)
}

/// The error of a member of ORDER BY behind a set operation: 3028 for an aggregate or a window function.
fn ordered(binder: &Binder<'_>, number: usize, error: SqlError) -> SqlError {
    match error.code {
        1111 | 3593 if !binder.session.settings.mariadb => SqlError::aggregate_order_for_union(number),
        _ => error,
    }
}

/// Gives columns the names of a column list, `(a, b)` behind an alias.
pub(super) fn rename(columns: &mut [ResultColumn], names: &[ast::Ident]) -> SqlResult<()> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != columns.len() {
        return Err(SqlError::view_wrong_list());
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = Arc::from(&**name);
    }
    Ok(())
}

/// A query in parentheses with the locks that stand behind them.
pub(super) fn locked<'q>(inner: &'q Query, locking: &[ast::Locking]) -> Cow<'q, Query> {
    match locking {
        [] => Cow::Borrowed(inner),
        more => {
            let mut inner = inner.clone();
            inner.locking.extend(more.iter().cloned());
            Cow::Owned(inner)
        }
    }
}

/// `TABLE t` as a SELECT.
pub(crate) fn select_all(name: &ast::ObjectName) -> Select {
    Select {
        options: ast::SelectOptions::default(),
        hints: Vec::new(),
        items: vec![SelectItem::Wildcard],
        from: vec![ast::TableRef::Table(Box::new(ast::TableFactor {
            name: name.clone(),
            alias: None,
            partitions: Vec::new(),
            hints: Vec::new(),
        }))],
        filter: None,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    }
}
