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
use crate::logical::{Body, Compound, Limit, Recursive, SetOperation};
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
    let (first, parts) = operands(&query.body);
    let id = binder.collected.subqueries;
    binder.collected.subqueries += 1;
    let place = binder.around.common.len();
    let mut own = Recursion {
        columns: None,
        alone: first.is_none(),
        store: id,
        uses: 0,
        depth: binder.blocks.len(),
        sides: binder.around.barred_sides,
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
    let (mut seeds, mut steps, mut distinct) = (vec![seed], Vec::new(), Distinct::default());
    for (all, part) in parts {
        own.columns = Some(columns.clone().into());
        binder.around.common[place].definition = CommonDefinition::Recursion(own.clone());
        let part = operand(binder, part, &[])?;
        if part.types.len() != types.len() {
            return Err(SqlError::wrong_number_of_columns_in_select());
        }
        if uses(binder, place) > 0 {
            check_step(binder, name, &part)?;
            distinct.step(binder, all)?;
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
        distinct.seeds.push(if all { SetOperation::UnionAll } else { SetOperation::Union });
        seeds.push(part);
    }
    binder.around.common.truncate(place);
    let (seeds, distinct) = distinct.settle(binder, seeds, &columns, &types);
    let recursive = Recursive { seeds, steps, distinct, id };
    limited(binder, query, logical::Query::new(Body::Recursive(Box::new(recursive)), columns, types))
}

/// The operations that have rows come once.
#[derive(Default)]
struct Distinct {
    /// The operations between the seeds.
    seeds: Vec<SetOperation>,
    /// Those of the steps, and with them all.
    steps: bool,
}

impl Distinct {
    /// A step with ALL or without.
    fn step(&mut self, binder: &Binder<'_>, all: bool) -> SqlResult<()> {
        if self.steps && all && !binder.session.settings.mariadb {
            return Err(SqlError::not_supported_yet(
                "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression",
            ));
        }
        self.steps |= !all;
        Ok(())
    }

    /// The seeds, and whether all rows come once: in MariaDB's dialect they do if any do.
    fn settle(
        self,
        binder: &mut Binder<'_>,
        seeds: Vec<logical::Query>,
        columns: &[ResultColumn],
        types: &[ExprType],
    ) -> (Vec<logical::Query>, bool) {
        let once = self.seeds.contains(&SetOperation::Union);
        let all = self.steps || once && binder.session.settings.mariadb;
        match once && !all {
            true => (vec![one_seed(binder, seeds, self.seeds, columns, types)], all),
            false => (seeds, all),
        }
    }
}

/// The first operand of a UNION and the others, each with whether it has ALL. No first one: it is no UNION.
fn operands(body: &QueryBody) -> (Option<&QueryBody>, Vec<(bool, &QueryBody)>) {
    let (mut parts, mut left) = (Vec::new(), body);
    while let QueryBody::SetOperation { op: ast::SetOp::Union, all, left: inner, right } = left {
        parts.push((*all, &**right));
        left = inner;
    }
    parts.reverse();
    (Some(left).filter(|_| !parts.is_empty()), parts)
}

/// Seeds as one query, some of whose rows come once.
fn one_seed(
    binder: &mut Binder<'_>,
    seeds: Vec<logical::Query>,
    operations: Vec<SetOperation>,
    columns: &[ResultColumn],
    types: &[ExprType],
) -> logical::Query {
    let mut seeds = seeds.into_iter();
    let Some(left) = seeds.next() else {
        return logical::Query::new(Body::Values(Vec::new()), Vec::new(), Vec::new());
    };
    let rest = operations.into_iter().zip(seeds).collect();
    let slot = binder.new_slot();
    let compound = Compound { left, rest, slot, order: Vec::new(), limit: Limit::default() };
    logical::Query::new(Body::Compound(Box::new(compound)), columns.to_vec(), types.to_vec())
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
    let (depth, sides) = (binder.blocks.len(), binder.around.barred_sides);
    let name = binder.around.common[at].name.clone();
    let CommonDefinition::Recursion(own) = &mut binder.around.common[at].definition else {
        return Err(SqlError::unknown_error());
    };
    own.uses += 1;
    let why = match &own.columns {
        None if own.alone => Why::NoUnion,
        None => Why::NoSeed,
        Some(_) if depth != own.depth + 1 || own.uses > 1 => Why::NotOnce,
        Some(_) if sides != own.sides => Why::Barred,
        Some(columns) => return Ok((columns.clone(), own.store)),
    };
    Err(refused(binder, &name, why))
}

/// Fails if a step has what it may not have.
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
    Barred,
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
        Why::Barred => SqlError::cte_recursive_forbids_join_order(name),
        Why::NotOnce => SqlError::cte_recursive_requires_single_reference(name),
    }
}
