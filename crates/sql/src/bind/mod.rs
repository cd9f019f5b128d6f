//! Names, types and rights: from syntax trees to typed expressions over slots, and to queries of [`crate::logical`].
//!
//! A [`Binder`] binds one statement. Expressions: `leaf`, `operators`, `compare`, `calls`, `cast`, `aggregate`, `subquery`. Queries: `query`, `from`, `compound`,
//! `group_by`, `full_group`, `dependencies`, `windows`, `rollup`, `output_name`. How a query will run is chosen in [`crate::plan`], which is asked for the plan of each query expression
//! when its last clause is bound. Nothing here reads a row.

mod aggregate;
mod aliases;
mod binder;
mod block;
mod calls;
mod cast;
mod cast_array;
mod cast_at;
mod compare;
pub(crate) mod compound;
mod computed_columns;
mod dependencies;
mod exists;
mod fixed_args;
mod from;
mod full_group;
mod group_by;
mod join_condition;
mod json_table;
mod json_value;
mod leaf;
pub(crate) mod operators;
mod order;
mod output_name;
pub mod query;
mod recursive;
mod rollup;
pub mod scope;
mod stored;
mod subquery;
mod times_beside;
pub(crate) mod types;
pub mod uses;
mod view;
mod windows;

#[cfg(test)]
mod tests;

pub use binder::Binder;
pub use block::{BlockScope, Clause, OuterReads};
pub(crate) use computed_columns::ComputedColumns;
pub(crate) use from::{missing, use_locked};
pub(crate) use leaf::value_type;
pub use scope::{Scope, ScopeTable};
pub(crate) use view::{Outline, expand, invalid, outline, rights};

use crate::api::{AccessCheck, Rights};
use crate::catalog::Catalog;
use crate::error::SqlResult;
use crate::expr::Kind;
use crate::expr::subquery::SubqueryKind;
use crate::logical::VirtualTables;
use crate::logical::hints::HintPlace;
use crate::plan::QueryPlan;
use crate::state::Inside;
use crate::state::SessionState;
use crate::storage::LockMode;
use omnibus_parser::ast::{Query, QueryBody};
use omnibus_value::{ColumnKind, Value};

/// Compiles a query. `params` are the values of `?`, if they are known: types of result columns
/// that depend on them are exact then. `access` is asked for each table read. `lock` is what plain reads lock (SERIALIZABLE).
///
/// # Errors
/// Whatever is wrong with the query.
pub fn prepare(
    query: &Query,
    session: &SessionState,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
    access: &dyn AccessCheck,
    params: Option<&[Value]>,
    lock: LockMode,
) -> SqlResult<QueryPlan> {
    let mut binder = Binder::new(session, catalog);
    binder.objects.virtuals = virtuals;
    binder.author.access = Rights::Session(access);
    binder.params = params;
    binder.default_lock = lock;
    if session.programs.inside == Inside::Nothing {
        binder.around.hint_place = HintPlace::Query;
    }
    let mut plan = query::query(&mut binder, query)?;
    if !session.settings.mariadb {
        announce_bigints(&mut plan);
    }
    if counts_all(&query.body) && plan.into.is_empty() && plan.outfile.is_none() {
        plan.late_limit = Some(plan.root.take_limit());
    }
    Ok(plan)
}

/// MySQL announces the integers of literals and operators as BIGINT, however few digits they have.
fn announce_bigints(plan: &mut QueryPlan) {
    let mut columns = plan.columns.to_vec();
    for (output, column) in plan.root.outputs().iter().zip(&mut columns) {
        let computed = match &output.kind {
            Kind::Column { .. }
            | Kind::Param(_)
            | Kind::Local(_)
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_)
            | Kind::Stored(_)
            | Kind::Case { .. } => false,
            Kind::Subquery(subquery) => !matches!(subquery.kind, SubqueryKind::Scalar { .. }),
            Kind::Call(def, _) => !CHOOSES.contains(&def.name),
            _ => true,
        };
        let narrow = matches!(
            column.ty.kind,
            ColumnKind::Int | ColumnKind::MediumInt | ColumnKind::SmallInt | ColumnKind::TinyInt
        );
        if computed && narrow {
            column.ty.kind = ColumnKind::BigInt;
        }
    }
    plan.columns = columns.into();
}

/// Functions that give one of their arguments.
const CHOOSES: [&str; 7] = ["IF", "IFNULL", "NULLIF", "COALESCE", "GREATEST", "LEAST", "ANY_VALUE"];

/// SQL_CALC_FOUND_ROWS, which the first SELECT of a query has.
fn counts_all(body: &QueryBody) -> bool {
    match body {
        QueryBody::Select(select) => select.options.calc_found_rows,
        QueryBody::SetOperation { left, .. } => counts_all(left),
        QueryBody::Nested(query) => counts_all(&query.body),
        QueryBody::Table(_) | QueryBody::Values(_) => false,
    }
}
