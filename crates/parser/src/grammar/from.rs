//! FROM: tables, derived tables, joins.

use super::{Parser, Rule, expr, json_table, names, query};
use crate::ast::{
    Derived, Ident, IndexHint, IndexHintKind, IndexHintScope, Join, JoinCondition, JoinKind, ObjectName,
    Query, QueryBody, TableFactor, TableRef,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// The content of a parenthesis in FROM.
enum InParens {
    Query(Query),
    Tables(TableRef),
}

/// A join without its condition yet.
struct Waiting {
    kind: JoinKind,
    table: TableRef,
    /// How many joins were put on top of `table` since: the length of its left edge.
    spine: usize,
}

/// Joins `right` onto the last waiting table, or onto the base when none waits.
fn combine(
    base: &mut TableRef,
    waiting: &mut [Waiting],
    kind: JoinKind,
    natural: bool,
    right: TableRef,
    condition: JoinCondition,
) {
    let target = match waiting.last_mut() {
        Some(join) => {
            join.spine += 1;
            &mut join.table
        }
        None => base,
    };
    let left = std::mem::replace(target, TableRef::Group(Vec::new()));
    *target = TableRef::Join(Box::new(Join { kind, natural, left, right, condition }));
}

/// Joins `base` with the leftmost table of a join that never got a condition.
fn put_leftmost(base: TableRef, join: Waiting) -> TableRef {
    let Waiting { kind, mut table, spine } = join;
    let mut at = &mut table;
    for _ in 0..spine {
        if let TableRef::Join(inner) = at {
            at = &mut inner.left;
        } else {
            break;
        }
    }
    let right = std::mem::replace(at, TableRef::Group(Vec::new()));
    *at = TableRef::Join(Box::new(Join {
        kind,
        natural: false,
        left: base,
        right,
        condition: JoinCondition::None,
    }));
    table
}

/// Everything behind FROM; DUAL is nothing.
pub(super) fn tables_clause(p: &mut Parser<'_>) -> Rule<Vec<TableRef>> {
    if p.eat_kw(Kw::DUAL) {
        return Ok(Vec::new());
    }
    table_refs(p)
}

/// Comma-separated table references.
pub(super) fn table_refs(p: &mut Parser<'_>) -> Rule<Vec<TableRef>> {
    p.comma_list(table_ref)
}

fn table_ref(p: &mut Parser<'_>) -> Rule<TableRef> {
    p.nest(|p| {
        let first = table_factor(p)?;
        joins(p, first)
    })
}

/// Joins onto a table reference.
///
/// An inner join need not have a condition, so whose an ON is shows only later: `a JOIN b JOIN c ON x ON y` is
/// `a JOIN (b JOIN c ON x) ON y`, but `a JOIN b JOIN c ON x` is `(a JOIN b) JOIN c ON x`. Joins wait in a stack
/// for their condition; an ON takes the last; those that never get one are put under what they wait on.
fn joins(p: &mut Parser<'_>, first: TableRef) -> Rule<TableRef> {
    let mut base = first;
    let mut waiting: Vec<Waiting> = Vec::new();
    loop {
        if let Some((kind, natural)) = join_words(p)? {
            let table = table_factor(p)?;
            if natural {
                combine(&mut base, &mut waiting, kind, true, table, JoinCondition::None);
            } else {
                waiting.push(Waiting { kind, table, spine: 0 });
            }
        } else if matches!(p.token.kw, Kw::ON | Kw::USING)
            && let Some(join) = waiting.pop()
        {
            let condition = join_condition(p)?;
            combine(&mut base, &mut waiting, join.kind, false, join.table, condition);
        } else {
            break;
        }
        p.grow()?;
    }
    for join in waiting {
        if matches!(join.kind, JoinKind::Left | JoinKind::Right) {
            return Err(p.error());
        }
        base = put_leftmost(base, join);
    }
    Ok(base)
}

fn at_join(p: &Parser<'_>) -> bool {
    matches!(
        p.token.kw,
        Kw::JOIN | Kw::INNER | Kw::CROSS | Kw::LEFT | Kw::RIGHT | Kw::NATURAL | Kw::STRAIGHT_JOIN
    )
}

/// The words of a join, or nothing.
fn join_words(p: &mut Parser<'_>) -> Rule<Option<(JoinKind, bool)>> {
    if !at_join(p) {
        return Ok(None);
    }
    if p.eat_kw(Kw::STRAIGHT_JOIN) {
        return Ok(Some((JoinKind::Straight, false)));
    }
    let natural = p.eat_kw(Kw::NATURAL);
    let kind = match p.token.kw {
        Kw::LEFT => JoinKind::Left,
        Kw::RIGHT => JoinKind::Right,
        _ => JoinKind::Inner,
    };
    if kind == JoinKind::Inner {
        let _ = p.eat_kw(Kw::INNER) || p.eat_kw(Kw::CROSS);
    } else {
        p.advance();
        p.eat_kw(Kw::OUTER);
    }
    p.expect_kw(Kw::JOIN)?;
    Ok(Some((kind, natural)))
}

fn join_condition(p: &mut Parser<'_>) -> Rule<JoinCondition> {
    if p.eat_kw(Kw::ON) {
        return Ok(JoinCondition::On(expr::expr(p)?));
    }
    if p.eat_kw(Kw::USING) {
        return Ok(JoinCondition::Using(names::ident_list(p)?));
    }
    Ok(JoinCondition::None)
}

fn table_factor(p: &mut Parser<'_>) -> Rule<TableRef> {
    if p.is(Tok::LParen) {
        return match parenthesised(p)? {
            InParens::Query(query) => derived(p, query, false),
            InParens::Tables(tables) => Ok(tables),
        };
    }
    if p.eat_kw(Kw::LATERAL) {
        let query = query::paren_query(p)?;
        return derived(p, query, true);
    }
    if p.is(Tok::LBrace) {
        // ODBC: { OJ table_reference }
        p.advance();
        p.expect(Tok::Word)?;
        let tables = table_ref(p)?;
        p.expect(Tok::RBrace)?;
        return Ok(tables);
    }
    if p.is_kw(Kw::JSON_TABLE) {
        return json_table::json_table(p);
    }
    let name = names::object_name(p)?;
    named_table(p, name)
}

/// A table's name is consumed: partitions, alias, hints.
pub(super) fn named_table(p: &mut Parser<'_>, name: ObjectName) -> Rule<TableRef> {
    let partitions = partitions(p)?;
    let alias = table_alias(p)?;
    let mut hints = Vec::new();
    while let Some(hint) = index_hint(p)? {
        hints.push(hint);
    }
    Ok(TableRef::Table(Box::new(TableFactor { name, alias, partitions, hints })))
}

/// At `(` in FROM: a query, or table references, told apart without trying twice.
fn parenthesised(p: &mut Parser<'_>) -> Rule<InParens> {
    let is_query = query::query_follows_paren(p);
    p.nest(|p| {
        p.expect(Tok::LParen)?;
        let first = if is_query {
            InParens::Query(query::query(p)?)
        } else if p.is(Tok::LParen) {
            match parenthesised(p)? {
                InParens::Query(query) if query::query_goes_on(p) => {
                    InParens::Query(query::query_after(p, QueryBody::Nested(Box::new(query)))?)
                }
                InParens::Query(query) if p.is(Tok::RParen) => InParens::Query(query),
                InParens::Query(query) => InParens::Tables(derived(p, query, false)?),
                tables => tables,
            }
        } else {
            InParens::Tables(table_factor(p)?)
        };
        let result = match first {
            InParens::Tables(table) => {
                let first = joins(p, table)?;
                if p.is(Tok::Comma) {
                    let mut members = vec![first];
                    while p.eat(Tok::Comma) {
                        members.push(table_ref(p)?);
                    }
                    InParens::Tables(TableRef::Group(members))
                } else {
                    InParens::Tables(first)
                }
            }
            query => query,
        };
        p.expect(Tok::RParen)?;
        Ok(result)
    })
}

fn derived(p: &mut Parser<'_>, query: Query, lateral: bool) -> Rule<TableRef> {
    let alias = table_alias(p)?;
    let columns = if alias.is_some() && p.is(Tok::LParen) { names::ident_list(p)? } else { Vec::new() };
    Ok(TableRef::Derived(Box::new(Derived { lateral, query, alias, columns })))
}

/// `[AS] alias` or nothing.
pub(super) fn table_alias(p: &mut Parser<'_>) -> Rule<Option<Ident>> {
    if p.eat_kw(Kw::AS) {
        return names::ident_or_text(p).map(Some);
    }
    if query::is_alias(p) { names::reference(p).map(Some) } else { Ok(None) }
}

/// `PARTITION (p, ...)` or nothing.
pub(super) fn partitions(p: &mut Parser<'_>) -> Rule<Vec<Ident>> {
    if p.eat_kw(Kw::PARTITION) { names::ident_list(p) } else { Ok(Vec::new()) }
}

fn index_hint(p: &mut Parser<'_>) -> Rule<Option<IndexHint>> {
    let kind = match p.token.kw {
        Kw::USE => IndexHintKind::Use,
        Kw::FORCE => IndexHintKind::Force,
        Kw::IGNORE => IndexHintKind::Ignore,
        _ => return Ok(None),
    };
    if !matches!(p.peek().kw, Kw::INDEX | Kw::KEY) {
        return Ok(None);
    }
    p.advance();
    p.advance();
    let scope = if !p.eat_kw(Kw::FOR) {
        IndexHintScope::All
    } else if p.eat_kw(Kw::JOIN) {
        IndexHintScope::Join
    } else if p.eat_kw(Kw::ORDER) {
        p.expect_kw(Kw::BY)?;
        IndexHintScope::OrderBy
    } else {
        p.expect_kw(Kw::GROUP)?;
        p.expect_kw(Kw::BY)?;
        IndexHintScope::GroupBy
    };
    p.expect(Tok::LParen)?;
    let mut indexes = Vec::new();
    // USE of no index is a hint; FORCE and IGNORE name one.
    let may_be_empty = kind == IndexHintKind::Use || p.options.mariadb;
    while (indexes.is_empty() && !may_be_empty) || !p.eat(Tok::RParen) {
        if !indexes.is_empty() {
            p.expect(Tok::Comma)?;
        }
        indexes.push(if p.eat_kw(Kw::PRIMARY) { Ident::from("PRIMARY") } else { names::ident(p)? });
    }
    Ok(Some(IndexHint { kind, scope, indexes }))
}
