//! Binds queries: WITH, ORDER BY and LIMIT, and one SELECT block's clauses in the
//! order in which their names become visible. FROM is in `from`, queries made of queries in `compound`.

use super::aliases::aliases;
use super::binder::{Binder, CommonDefinition, CommonTable};
use super::block::{BlockScope, Clause, OuterReads};
use super::compound::{compound, locked, select_all};
use super::computed_columns::use_computed_columns;
use super::dependencies::BlockFacts;
use super::from::From;
use super::group_by::group_keys;
use super::scope::ScopeTable;
use super::windows;
use super::{exists, full_group, order, output_name, rollup};
use crate::api::ResultColumn;
use crate::catalog::{first_again, first_double};
use crate::error::{SqlError, SqlResult};
use crate::expr::types::{Family, NOT_FIXED};
use crate::expr::{Expr, ExprType, Kind, SlotSet, functions};
use crate::logical::hints::{HintPlace, name_indexes};
use crate::logical::nest::Nest;
use crate::logical::{self, Block, Body, Grouping, Limit};
use crate::plan::physical::OfStatement;
use crate::plan::{Planning, QueryPlan, Reader, physical_plan};
use omnibus_parser::ast::{self, Query, QueryBody, Select, SelectItem};
use std::sync::Arc;

/// Binds a whole statement's query.
///
/// # Errors
/// Unknown names, wrong column counts, what is not supported.
pub fn query(binder: &mut Binder<'_>, query: &Query) -> SqlResult<QueryPlan> {
    let query = bind_query(binder, query)?;
    whole(binder, query)
}

/// Says what a statement changes of the tables that it has bound, and reads of them.
pub(crate) type Choose<'c> = dyn FnMut(&mut Binder<'_>, &mut Nest, &mut Vec<Expr>) -> SqlResult<()> + 'c;

/// Binds a SELECT whose rows are to be changed. `choose` may lock what it reads and change what it gives, before it is planned.
///
/// # Errors
/// As `query`, and those of `choose`.
pub(crate) fn changing(
    binder: &mut Binder<'_>,
    with: Option<&ast::With>,
    select: &Select,
    choose: &mut Choose<'_>,
) -> SqlResult<QueryPlan> {
    let query = Query {
        with: None,
        body: QueryBody::Values(Vec::new()),
        order_by: Vec::new(),
        limit: None,
        locking: Vec::new(),
        into: None,
    };
    with_clause(binder, with, 0)?;
    binder.blocks.push(BlockScope::default());
    binder.around.hint_place = HintPlace::Change;
    let mut clauses = clauses(binder, select, &query, From::new(&[]))?;
    choose(binder, &mut clauses.nest, &mut clauses.outputs)?;
    clauses.names.resize(clauses.outputs.len(), Arc::from(""));
    let block = binder.blocks.pop().unwrap_or_default();
    let query = finish_block(binder, (select, &query.order_by), clauses, block)?;
    whole(binder, query)
}

/// IF and CASE show a DECIMAL with the decimals of the branch that they take, as in MySQL: where nothing keeps or computes with it, as groups do with
/// what has no aggregate.
fn with_decimals_of_branches(e: &mut Expr) {
    if e.ty.family() != Family::Decimal {
        return;
    }
    let branches = functions::branches_mut(e);
    if branches.is_empty() {
        return;
    }
    branches.into_iter().for_each(with_decimals_of_branches);
    e.ty.column.decimals = NOT_FIXED;
}

/// Plans a whole statement's query.
fn whole(binder: &mut Binder<'_>, mut query: logical::Query) -> SqlResult<QueryPlan> {
    if let Body::Block(block) = &mut query.body
        && !block.distinct
        && binder.blocks.is_empty()
        && !binder.session.settings.mariadb
    {
        let slot = block.grouping.as_ref().filter(|grouping| !grouping.keys.is_empty()).map(|g| g.slot);
        let kept = |e: &Expr| slot.is_some_and(|slot| !slot.is_some_and(|slot| e.slots().contains(slot)));
        block.outputs.iter_mut().filter(|e| !kept(e)).for_each(with_decimals_of_branches);
    }
    let untyped_params = binder.collected.untyped_params && depends_on_params(&query);
    let reader = if binder.blocks.is_empty() { Reader::Statement } else { Reader::Query };
    let mut plan = planned(binder, query, reader)?;
    let none = binder.limits.copies.like();
    plan.statement = OfStatement {
        slots: binder.collected.slots.len(),
        subqueries: binder.collected.subqueries,
        tables: std::mem::take(&mut binder.collected.tables),
        views: std::mem::take(&mut binder.collected.views),
        warnings: std::mem::take(&mut binder.collected.warnings),
        untyped_params,
        stars: Some(std::mem::replace(&mut binder.limits.copies, none)),
    };
    Ok(plan)
}

/// Whether a result column's type may follow from a parameter's.
fn depends_on_params(query: &logical::Query) -> bool {
    let outputs: Vec<&Expr> = match &query.body {
        Body::Block(block) => block.outputs.iter().collect(),
        Body::Values(rows) => rows.iter().flatten().collect(),
        _ => return true,
    };
    let mut found = false;
    for e in outputs {
        e.walk(&mut |e| found |= matches!(e.kind, Kind::Param(_) | Kind::Subquery(_)));
    }
    if let Body::Block(block) = &query.body
        && let Some(grouping) = &block.grouping
    {
        for e in grouping.aggregates.iter().flat_map(|a| &a.args) {
            e.walk(&mut |e| found |= matches!(e.kind, Kind::Param(_)));
        }
    }
    found
}

/// Plans a query inside of another one; also says what it reads of outer blocks.
pub(super) fn subquery(binder: &mut Binder<'_>, query: &Query) -> SqlResult<(QueryPlan, OuterReads)> {
    let (query, outer) = bind_subquery(binder, query)?;
    Ok((planned(binder, query, Reader::Query)?, outer))
}

/// Binds a query inside of another one; also says what it reads of outer blocks.
pub(super) fn bind_subquery(
    binder: &mut Binder<'_>,
    query: &Query,
) -> SqlResult<(logical::Query, OuterReads)> {
    // A marker block gathers what is read from outside of this query.
    binder.blocks.push(BlockScope::default());
    binder.around.subqueries += 1;
    let query = bind_query(binder, query);
    binder.around.subqueries -= 1;
    let outer = binder.blocks.pop().map_or_else(OuterReads::default, |block| block.outer);
    Ok((query?, outer))
}

pub(super) fn bind_query(binder: &mut Binder<'_>, query: &Query) -> SqlResult<logical::Query> {
    binder.descend()?;
    // Each clause by its name, here and in `query_body`: one that nobody reads does not compile.
    let Query { with, body: _, order_by: _, limit: _, locking: _, into } = query;
    let visible = binder.around.common.len();
    let outer = binder.blocks.len();
    let bound = with_clause(binder, with.as_deref(), outer).and_then(|()| query_body(binder, query));
    binder.around.common.truncate(visible);
    let mut bound = bound?;
    if let Some(into) = into {
        match &**into {
            ast::Into::Variables(names) => {
                if names.len() != bound.types.len() {
                    return Err(SqlError::wrong_number_of_columns_in_select());
                }
                bound.into = names.clone();
            }
            file => {
                binder.author.access.check_files()?;
                let escapes = crate::api::sql_mode::NO_BACKSLASH_ESCAPES;
                let no_escapes = binder.session.settings.sql_mode & escapes != 0;
                bound.outfile = crate::text_file::Outfile::new(file, no_escapes)?.map(Box::new);
            }
        }
    }
    Ok(bound)
}

/// Brings the tables of a WITH in sight; they see the outermost `outer` blocks.
pub(crate) fn with_clause(binder: &mut Binder<'_>, with: Option<&ast::With>, outer: usize) -> SqlResult<()> {
    let Some(with) = with else { return Ok(()) };
    let names = with.tables.iter().map(|table| &*table.name);
    let double = if binder.session.settings.mariadb { first_double(names) } else { first_again(names) };
    for (at, table) in with.tables.iter().enumerate() {
        if double == Some(at) {
            return Err(SqlError::nonuniq_table(&*table.name));
        }
        let definition = CommonDefinition::Query {
            query: table.query.clone(),
            columns: table.columns.clone().into(),
            outer,
            recursive: with.recursive,
        };
        binder.around.common.push(CommonTable { name: Arc::from(&*table.name), definition });
    }
    Ok(())
}

fn query_body(binder: &mut Binder<'_>, query: &Query) -> SqlResult<logical::Query> {
    let Query { with: _, body, order_by, limit, locking, into: _ } = query;
    let bare = order_by.is_empty() && limit.is_none();
    match body {
        QueryBody::Select(select) => block(binder, select, query),
        QueryBody::Table(name) => block(binder, &select_all(name), query),
        // One row goes out as it is; several need a common type.
        QueryBody::Values(rows) if rows.len() == 1 && bare => super::compound::values(binder, rows),
        QueryBody::Nested(inner) if bare => bind_query(binder, &locked(inner, locking)),
        // Parentheses around a SELECT alone say nothing: what is behind them is its own.
        QueryBody::Nested(inner) if let Some(select) = alone(inner) => block(binder, select, query),
        body => {
            if let Some(around) = binder.blocks.last_mut() {
                around.facts = BlockFacts::Unwanted;
            }
            compound(binder, body, query)
        }
    }
}

/// The SELECT of a query that is nothing else.
fn alone(query: &Query) -> Option<&Select> {
    let Query { with: None, body: QueryBody::Select(select), order_by, limit: None, locking, into: None } =
        query
    else {
        return None;
    };
    (order_by.is_empty() && locking.is_empty()).then_some(&**select)
}

/// The output column that a bare integer in ORDER BY or GROUP BY names.
pub(crate) fn position(e: &ast::Expr, outputs: usize, clause: &str) -> SqlResult<Option<usize>> {
    let ast::Expr::Literal(ast::Literal::Int(n)) = e else { return Ok(None) };
    match usize::try_from(*n) {
        Ok(at) if at >= 1 && at <= outputs => Ok(Some(at - 1)),
        _ => Err(SqlError::bad_field(n, clause)),
    }
}

pub(super) fn limit(binder: &mut Binder<'_>, limit: Option<&ast::Limit>) -> SqlResult<Limit> {
    let Some(limit) = limit else { return Ok(Limit::default()) };
    // A parameter here is a number whatever else is known of it.
    let untyped = binder.collected.untyped_params;
    let bound = Limit {
        count: Some(binder.expr(&limit.count)?),
        offset: limit.offset.as_ref().map(|e| binder.expr(e)).transpose()?,
    };
    binder.collected.untyped_params = untyped;
    Ok(bound)
}

/// The clauses of a SELECT block, bound.
pub(super) struct Clauses {
    pub nest: Nest,
    pub outputs: Vec<Expr>,
    pub names: Vec<Arc<str>>,
    pub group: Vec<Expr>,
    /// Returns for each of them the output that it names, if it is one.
    pub grouped_outputs: Vec<Option<usize>>,
    /// The slot that WITH ROLLUP gives the keys of a group.
    pub rolled_up: Option<u16>,
    pub having: Option<Expr>,
    pub order: Vec<(Expr, bool)>,
    pub limit: Limit,
}

pub(super) fn block(binder: &mut Binder<'_>, select: &Select, query: &Query) -> SqlResult<logical::Query> {
    let unordered = std::mem::take(&mut binder.around.unordered);
    binder.blocks.push(BlockScope::default());
    let from = From::of_block(&query.locking, &select.options);
    let clauses = clauses(binder, select, query, from);
    let block = binder.blocks.pop().unwrap_or_default();
    let mut clauses = clauses?;
    let order_by = if unordered { &[] } else { &query.order_by[..] };
    clauses.order.retain(|_| !unordered);
    exists::seek(binder, select, &clauses, &block);
    BlockFacts::tell(binder, select, &clauses, &block);
    finish_block(binder, (select, order_by), clauses, block)
}

pub(super) fn clauses(
    binder: &mut Binder<'_>,
    select: &Select,
    query: &Query,
    mut from: From<'_>,
) -> SqlResult<Clauses> {
    let place = std::mem::take(&mut binder.around.hint_place);
    let (mut nest, star) = from.bind(binder, &select.from)?;
    name_indexes(&mut nest, &select.hints, place).into_iter().for_each(|warning| binder.warn(warning));
    windows::name_windows(binder, &select.windows)?;
    if let Some(filter) = &select.filter {
        binder.set_clause(Clause::Where);
        let condition = binder.expr(filter)?;
        let condition = super::operators::with_zero_dates(binder, condition)?;
        crate::logical::conjuncts::conjuncts(condition, &mut nest.conditions);
    }
    set_aggregates(binder, true);
    windows::allow_windows(binder, true);
    binder.set_clause(Clause::FieldList);
    let (mut outputs, names) = select_list(binder, &select.items, &star)?;
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.aliases = aliases(&select.items, &names, &outputs);
    }
    set_aggregates(binder, false);
    windows::allow_windows(binder, false);
    binder.set_clause(Clause::Group);
    let (group, grouped_outputs) = group_keys(binder, select, &outputs, &names)?;
    let rolled_up = select.with_rollup.then(|| binder.new_slot());
    if let (Some(slot), Some(block)) = (rolled_up, binder.blocks.last_mut()) {
        rollup::read_constants(&mut block.scope, &mut outputs, &names, &grouped_outputs, slot);
    }
    set_aggregates(binder, true);
    binder.set_clause(Clause::Having);
    if let (Some(block), Some(_)) = (binder.blocks.last_mut(), &select.having) {
        block.grouped = group.len();
        block.having = group.iter().chain(&outputs).cloned().collect();
    }
    let having = select.having.as_ref().map(|e| binder.expr(e)).transpose()?;
    group.iter().chain(&having).try_for_each(|e| windows::refuse_windowed(binder, e))?;
    let mut order = order::order_by(binder, query, &outputs, !group.is_empty())?;
    if order.is_empty() && keeps_order(binder, select) {
        order = std::mem::take(&mut nest.views.order);
    }
    let limit = limit(binder, query.limit.as_ref())?;
    let plain = group.is_empty() && !select.options.distinct && having.is_none();
    use_computed_columns(binder, &mut nest, if plain { &mut order[..] } else { &mut [] })?;
    Ok(Clauses { nest, outputs, names, group, grouped_outputs, rolled_up, having, order, limit })
}

/// Whether the rows come as the one view says that they are read from.
fn keeps_order(binder: &Binder<'_>, select: &Select) -> bool {
    matches!(select.from[..], [ast::TableRef::Table(_)])
        && select.group_by.is_empty()
        && select.having.is_none()
        && !select.options.distinct
        && binder.blocks.last().is_some_and(|block| block.aggregates.is_empty())
}

pub(super) fn set_aggregates(binder: &mut Binder<'_>, allowed: bool) {
    if let Some(block) = binder.blocks.last_mut() {
        block.aggregates_allowed = allowed;
    }
}

/// A select list over the tables in sight, without groups or windows.
pub(crate) fn returning(
    binder: &mut Binder<'_>,
    items: &[SelectItem],
) -> SqlResult<(Vec<Expr>, Vec<ResultColumn>)> {
    let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
    let visible = |t: &ScopeTable| {
        let shown: Vec<_> = (0..t.width()).filter(|at| !t.is_invisible(*at)).collect();
        shown.into_iter().map(|at| (t.slot, at)).collect::<Vec<_>>()
    };
    let star: Vec<_> = tables.iter().filter(|table| !table.is_inner()).flat_map(visible).collect();
    binder.set_clause(Clause::FieldList);
    let (outputs, names) = select_list(binder, items, &star)?;
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.aliases.clear();
    }
    let columns = outputs.iter().zip(names).map(|(e, name)| binder.result_column(e, name)).collect();
    Ok((outputs, columns))
}

/// Bytes of a column that `*` stands for: of its expression, its type, its names.
const STAR: usize = 768;

fn select_list(
    binder: &mut Binder<'_>,
    items: &[SelectItem],
    star: &[(u16, usize)],
) -> SqlResult<(Vec<Expr>, Vec<Arc<str>>)> {
    let (mut outputs, mut names) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    if let Some(block) = binder.blocks.last_mut() {
        let written = |item: &SelectItem| match item {
            SelectItem::Expr { alias: Some(alias), .. } => Some(Arc::from(&**alias)),
            _ => None,
        };
        block.forthcoming = items.iter().rev().filter_map(written).collect();
    }
    for item in items {
        let first = names.len();
        match item {
            SelectItem::Wildcard => {
                if star.is_empty() {
                    if !exists::is_asked(binder) {
                        return Err(SqlError::no_tables_used());
                    }
                    names.push(Arc::from("1"));
                    outputs.push(Expr::integer(1));
                }
                let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
                tables.iter().filter(|table| !table.is_inner()).try_for_each(|table| table.may_read_all())?;
                binder.limits.copies.grow(STAR * star.len(), &binder.session.settings)?;
                for (slot, column) in star {
                    let Some(Some(table)) = binder.collected.slots.get(usize::from(*slot)) else { continue };
                    names.push(table.column_name(*column).clone());
                    outputs.push(table.expr(*column));
                }
            }
            SelectItem::TableWildcard(wanted) => {
                let tables = binder.blocks.last().map_or(Vec::new(), |b| b.scope.tables.clone());
                let table = tables.iter().find(|t| {
                    !t.is_inner()
                        && *t.alias == *wanted.name
                        && wanted.schema.as_ref().is_none_or(|s| t.schema.is_empty() || *t.schema == **s)
                });
                let Some(table) = table else { return Err(SqlError::bad_table(&wanted.name)) };
                table.may_read_all()?;
                binder.limits.copies.grow(STAR * table.width(), &binder.session.settings)?;
                for at in (0..table.width()).filter(|at| !table.is_invisible(*at)) {
                    names.push(table.column_name(at).clone());
                    outputs.push(table.expr(at));
                }
            }
            SelectItem::Expr { expr, alias, text } => {
                let e = binder.expr(expr)?;
                if let Some(alias) = alias {
                    settle_alias(binder, alias, &e);
                }
                names.push(match (alias, expr) {
                    (Some(alias), _) => Arc::from(&**alias),
                    (None, ast::Expr::Column(column)) => output_name::of_column(binder, column),
                    (None, _) => output_name::of(expr, text, binder.session.settings.mariadb),
                });
                outputs.push(e);
            }
        }
        if binder.notes.meaning.is_some() {
            mean_item(binder, item, star, &names[first..], first);
        }
    }
    Ok((outputs, names))
}

/// Notes what a member of a select list gives, under names that a view's columns may have.
fn mean_item(
    binder: &Binder<'_>,
    item: &SelectItem,
    star: &[(u16, usize)],
    names: &[Arc<str>],
    first: usize,
) {
    let full: Vec<Option<ast::ColumnRef>> = match item {
        SelectItem::Wildcard => star.iter().map(|(slot, column)| binder.full_name(*slot, *column)).collect(),
        SelectItem::TableWildcard(wanted) => {
            let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
            let table = tables.iter().find(|t| !t.is_inner() && *t.alias == *wanted.name);
            let visible = |t: &ScopeTable| (0..t.width()).filter(|at| !t.is_invisible(*at)).collect();
            let columns: Vec<usize> = table.map_or_else(Vec::new, visible);
            columns.into_iter().filter_map(|at| Some(Some(table?.full_name(at)))).collect()
        }
        SelectItem::Expr { .. } => vec![None],
    };
    let written = matches!(item, SelectItem::Expr { alias: Some(_), .. });
    let name = |(at, name): (usize, &Arc<str>)| {
        let fits = !name.is_empty() && name.chars().count() <= 64 && !name.ends_with(' ');
        match written || fits {
            true => ast::Ident::new(&**name),
            false => ast::Ident::new(format!("Name_exp_{}", first + at + 1)),
        }
    };
    let names = names.iter().enumerate().map(name);
    binder.mean(|meaning| meaning.set_item(item, full.into_iter().zip(names).collect()));
}

/// A bound member of the select list: subqueries behind it may use its alias.
fn settle_alias(binder: &mut Binder<'_>, alias: &str, e: &Expr) {
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.aliases.push((Arc::from(alias), e.clone()));
        if let Some(at) = block.forthcoming.iter().rposition(|name| **name == *alias) {
            block.forthcoming.remove(at);
        }
    }
}

fn finish_block(
    binder: &mut Binder<'_>,
    (select, order_by): (&Select, &[ast::OrderItem]),
    clauses: Clauses,
    mut scope: BlockScope,
) -> SqlResult<logical::Query> {
    let Clauses { nest, mut outputs, names, group, grouped_outputs, rolled_up, mut having, mut order, limit } =
        clauses;
    rollup::make_nullable(select, &group, &grouped_outputs, &mut outputs);
    let slots: Vec<u16> = scope.scope.tables.iter().filter(|t| t.has_rows()).map(|t| t.slot).collect();
    let columns: Vec<ResultColumn> =
        outputs.iter().zip(names).map(|(e, name)| binder.result_column(e, name)).collect();
    let types: Vec<ExprType> = outputs.iter().map(|e| e.ty.clone()).collect();
    let grouped = !group.is_empty() || !scope.aggregates.is_empty();
    let aggregates = scope.aggregate_slot.filter(|_| grouped);
    let mut windows = scope.windows.plan(|| slots.iter().copied().chain(aggregates).collect());
    if !binder.session.settings.mariadb {
        let told = outputs.iter_mut().chain(&mut having).chain(order.iter_mut().map(|(e, _)| e));
        rollup::check_groupings(told, windows.as_mut(), &group, rolled_up)?;
    }
    let only_full = binder.session.settings.sql_mode & crate::api::sql_mode::ONLY_FULL_GROUP_BY != 0;
    // Groups that are told apart by what is selected are distinct already.
    let is_selected = |key: &Expr| outputs.iter().any(|output| output.same(key));
    let distinct = grouped && !select.with_rollup && group.iter().all(is_selected);
    if select.options.distinct && only_full && !distinct {
        full_group::check_distinct(&scope, &outputs, &order, order_by)?;
    }
    if grouped && only_full {
        let group = full_group::Group::of(&scope, &group, &nest, select.with_rollup);
        group.check(&outputs, &order)?;
        if let Some(windows) = &windows {
            group.check_windows(&outputs, windows)?;
        }
    }
    if let Some(slot) = rolled_up {
        let own: SlotSet = slots.iter().copied().collect();
        let mut put = |e: &mut Expr| rollup::replace(e, &group, slot, &own);
        rollup::replace_outputs(&mut outputs, &grouped_outputs, slot, &mut put)?;
        having.iter_mut().try_for_each(&mut put)?;
        order.iter_mut().try_for_each(|(e, _)| put(e))?;
        if let Some(windows) = &mut windows {
            windows.row_slots.push(slot);
            windows.try_visit_mut(&mut put)?;
        }
    }
    let sorted = order.into_iter().filter(|(e, _)| e.as_const().is_none());
    let order = sorted.map(|(e, descending)| order::sort_key(binder, e, descending, &outputs));
    let order = order.collect::<SqlResult<_>>()?;
    binder.last_scope = scope.scope;
    let (keys, aggregates, slot) = (group, scope.aggregates, scope.aggregate_slot);
    let grouping = grouped.then(|| Grouping { keys, aggregates, slot, rollup: rolled_up });
    let block = Block {
        nest,
        slots,
        grouping,
        having,
        windows,
        outputs,
        distinct: select.options.distinct,
        order,
        limit,
        straight: select.options.straight_join,
        hints: select.hints.clone(),
    };
    Ok(logical::Query::new(Body::Block(Box::new(block)), columns, types))
}

/// Plans a query that has been bound.
pub(super) fn planned(
    binder: &mut Binder<'_>,
    query: logical::Query,
    reader: Reader,
) -> SqlResult<QueryPlan> {
    physical_plan(
        query,
        &mut Planning { session: binder.session, subqueries: &mut binder.collected.subqueries, reader },
    )
}
