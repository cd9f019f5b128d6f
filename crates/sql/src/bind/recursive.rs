//! Binds recursive common table expressions, and refuses those whose steps could go on for ever or mean nothing: as MySQL, or as
//! MariaDB in its dialect.

use super::binder::{Binder, CommonDefinition, CommonTable, Recursion, computed_column};
use super::compound::{operand, rename};
use super::query::{bind_query, limit};
use crate::api::ResultColumn;
use crate::error::{SqlError, SqlResult};
use crate::expr::ExprType;
use crate::expr::unify::unify;
use crate::logical;
use crate::logical::{Body, Compound, Recursive};
use omnibus_parser::ast::{self, Query, QueryBody};
use std::sync::Arc;

/// Binds the query of a table of WITH RECURSIVE.
///
/// # Errors
/// 3573 to 3577; 4005 and 4008 in MariaDB's dialect.
pub(super) fn recursive(
    binder: &mut Binder<'_>,
    name: &Arc<str>,
    names: &[ast::Ident],
    query: &Query,
) -> SqlResult<logical::Query> {
    let (first, parts, distinct) = operands(&query.body);
    let id = binder.collected.subqueries;
    binder.collected.subqueries += 1;
    let place = binder.around.common.len();
    let mut own = Recursion {
        columns: None,
        alone: first.is_none(),
        store: id,
        uses: 0,
        depth: binder.blocks.len(),
        sides: binder.around.nullable_sides,
    };
    let definition = CommonDefinition::Recursion(own.clone());
    binder.around.common.push(CommonTable { name: name.clone(), definition });
    let Some(first) = first else {
        let bound = bind_query(binder, query);
        binder.around.common.truncate(place);
        return bound;
    };
    let seed = operand(binder, first, &[])?;
    let mut columns = seed.columns.clone();
    rename(&mut columns, names)?;
    for column in &mut columns {
        column.flags &= !crate::api::flag::NOT_NULL;
    }
    let mut types: Vec<ExprType> = seed.types.iter().cloned().map(|ty| ty.nullable(true)).collect();
    let (mut seeds, mut steps) = (vec![seed], Vec::new());
    for part in parts {
        own.columns = Some(columns.clone().into());
        binder.around.common[place].definition = CommonDefinition::Recursion(own.clone());
        let part = operand(binder, part, &[])?;
        if part.types.len() != types.len() {
            return Err(SqlError::wrong_number_of_columns_in_select());
        }
        if uses(binder, place) > 0 {
            check_step(binder, name, &part)?;
            steps.push(part);
            continue;
        }
        // MariaDB has them in any order; the types are those that the steps were bound with.
        if !steps.is_empty() && binder.session.settings.mariadb {
            seeds.push(part);
            continue;
        }
        if !steps.is_empty() {
            return Err(refused(binder, name, Why::NoSeed));
        }
        for ((ty, other), column) in types.iter_mut().zip(&part.types).zip(&mut columns) {
            *ty = unify(ty, other, "UNION")?.nullable(true);
            *column = computed_column(column.name.clone(), ty);
        }
        seeds.push(part);
    }
    binder.around.common.truncate(place);
    let recursive = Recursive { seeds, steps, distinct, id };
    limited(binder, query, logical::Query::new(Body::Recursive(Box::new(recursive)), columns, types))
}

/// The first operand of a UNION and the others, and whether rows come once. No first one: it is no UNION.
fn operands(body: &QueryBody) -> (Option<&QueryBody>, Vec<&QueryBody>, bool) {
    let (mut parts, mut distinct, mut left) = (Vec::new(), false, body);
    while let QueryBody::SetOperation { op: ast::SetOp::Union, all, left: inner, right } = left {
        distinct |= !all;
        parts.push(&**right);
        left = inner;
    }
    parts.reverse();
    (Some(left).filter(|_| !parts.is_empty()), parts, distinct)
}

/// LIMIT of the whole applies to what the recursion yields.
fn limited(binder: &mut Binder<'_>, query: &Query, bound: logical::Query) -> SqlResult<logical::Query> {
    if query.order_by.is_empty() && query.limit.is_none() {
        return Ok(bound);
    }
    if !query.order_by.is_empty() && !binder.session.settings.mariadb {
        return Err(SqlError::not_supported_yet("ORDER BY over UNION in recursive Common Table Expression"));
    }
    let limit = limit(binder, query.limit.as_ref())?;
    let (columns, types) = (bound.columns.clone(), bound.types.clone());
    let slot = binder.new_slot();
    let compound = Compound { left: bound, rest: Vec::new(), slot, order: Vec::new(), limit };
    Ok(logical::Query::new(Body::Compound(Box::new(compound)), columns, types))
}

/// How often the part that was bound last names the table.
fn uses(binder: &Binder<'_>, place: usize) -> usize {
    match &binder.around.common[place].definition {
        CommonDefinition::Recursion(own) => own.uses,
        _ => 0,
    }
}

/// The columns of a recursive table that FROM names, and where its rows are.
///
/// # Errors
/// It stands where it may not.
pub(super) fn reference(binder: &mut Binder<'_>, at: usize) -> SqlResult<(Arc<[ResultColumn]>, usize)> {
    let (depth, sides) = (binder.blocks.len(), binder.around.nullable_sides);
    let name = binder.around.common[at].name.clone();
    let CommonDefinition::Recursion(own) = &mut binder.around.common[at].definition else {
        return Err(SqlError::unknown_error());
    };
    own.uses += 1;
    let why = match &own.columns {
        None if own.alone => Why::NoUnion,
        None => Why::NoSeed,
        Some(_) if depth != own.depth + 1 || own.uses > 1 => Why::NotOnce,
        Some(_) if sides != own.sides => Why::Nullable,
        Some(columns) => return Ok((columns.clone(), own.store)),
    };
    Err(refused(binder, &name, why))
}

/// What a step may not have.
fn check_step(binder: &Binder<'_>, name: &str, step: &logical::Query) -> SqlResult<()> {
    match &step.body {
        Body::Block(block)
            if !binder.session.settings.mariadb
                && (block.distinct || !block.order.is_empty() || block.limit.count.is_some()) =>
        {
            Err(SqlError::not_supported_yet(
                "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
            ))
        }
        Body::Block(block) if block.grouping.is_some() || block.windows.is_some() => {
            Err(refused(binder, name, Why::Grouped))
        }
        Body::Compound(compound) => {
            check_step(binder, name, &compound.left)?;
            compound.rest.iter().try_for_each(|(_, step)| check_step(binder, name, step))
        }
        _ => Ok(()),
    }
}

/// Why a recursive table is refused.
#[derive(Clone, Copy)]
enum Why {
    NoUnion,
    NoSeed,
    Grouped,
    Nullable,
    NotOnce,
}

fn refused(binder: &Binder<'_>, name: &str, why: Why) -> SqlError {
    if binder.session.settings.mariadb {
        return match why {
            Why::NoUnion | Why::NoSeed => SqlError::recursive_without_anchors(name),
            _ => SqlError::not_standard_compliant_recursive(name),
        };
    }
    match why {
        Why::NoUnion => SqlError::cte_recursive_requires_union(name),
        Why::NoSeed => SqlError::cte_recursive_requires_nonrecursive_first(name),
        Why::Grouped => SqlError::cte_recursive_forbids_aggregation(name),
        Why::Nullable => SqlError::cte_recursive_forbids_join_order(name),
        Why::NotOnce => SqlError::cte_recursive_requires_single_reference(name),
    }
}
