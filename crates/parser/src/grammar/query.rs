//! Queries: SELECT, VALUES, TABLE, set operations and the clauses around them.

use super::{Parser, Rule, column, expr, from, function, hints, load, names, program};
use crate::ParseError;
use crate::ast::{
    CommonTable, Expr, Into, Limit, Literal, LockStrength, LockWait, Locking, OrderItem, Query, QueryBody,
    Select, SelectItem, SelectOptions, SetOp, With,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;
use std::sync::Arc;

/// A select list; also RETURNING's. Only its first member may be a star without a table.
pub(super) fn select_items(parser: &mut Parser<'_>) -> Rule<Vec<SelectItem>> {
    let first = if parser.eat(Tok::Star) { SelectItem::Wildcard } else { select_item(parser)? };
    let mut items = vec![first];
    while parser.eat(Tok::Comma) {
        items.push(select_item(parser)?);
    }
    Ok(items)
}

/// A query inside of a statement: its rows go to what stands around it, and nowhere else.
pub(super) fn query(p: &mut Parser<'_>) -> Rule<Query> {
    let query = whole_query(p)?;
    match query.into {
        None => Ok(query),
        Some(_) => Err(misplaced_into()),
    }
}

/// A query expression with all its clauses: a statement.
pub(super) fn whole_query(p: &mut Parser<'_>) -> Rule<Query> {
    p.nest(|p| {
        let with = with(p)?;
        let (first, into) = query_term(p)?;
        let mut query = finish_query(p, first, into)?;
        if with.is_some() {
            // `WITH .. (SELECT ..)`: the parenthesised query may have had its own WITH.
            if query.with.is_some() {
                query = plain_query(QueryBody::Nested(Box::new(query)));
            }
            query.with = with;
        }
        Ok(query)
    })
}

/// `( query )`, at its parenthesis.
pub(super) fn paren_query(p: &mut Parser<'_>) -> Rule<Query> {
    p.expect(Tok::LParen)?;
    let query = query(p)?;
    p.expect(Tok::RParen)?;
    Ok(query)
}

/// The rest of a query whose first term is known.
pub(super) fn query_after(p: &mut Parser<'_>, first: QueryBody) -> Rule<Query> {
    p.nest(|p| finish_query(p, first, None))
}

/// Whether the current `(` opens a query (and not an expression or a table reference in parentheses; more
/// parentheses are the caller's question).
pub(super) fn query_follows_paren(p: &Parser<'_>) -> bool {
    let mut lexer = p.lexer;
    let next = lexer.next();
    match next.kw {
        Kw::SELECT | Kw::WITH | Kw::TABLE => true,
        Kw::VALUES => lexer.next().kw == Kw::ROW,
        _ => false,
    }
}

/// Whether the current token starts a query.
pub(super) fn at_query(p: &Parser<'_>) -> bool {
    matches!(p.token.kw, Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE) || p.is(Tok::LParen)
}

/// Whether the current token continues a query after one of its terms.
pub(super) fn query_goes_on(p: &Parser<'_>) -> bool {
    matches!(p.token.kw, Kw::UNION | Kw::EXCEPT | Kw::INTERSECT | Kw::ORDER | Kw::LIMIT)
}

pub(super) fn with(p: &mut Parser<'_>) -> Rule<Option<Box<With>>> {
    if !p.eat_kw(Kw::WITH) {
        return Ok(None);
    }
    let recursive = p.eat_kw(Kw::RECURSIVE);
    let tables = p.comma_list(|p| {
        let name = names::ident(p)?;
        let columns = if p.is(Tok::LParen) { names::ident_list(p)? } else { Vec::new() };
        p.expect_kw(Kw::AS)?;
        Ok(CommonTable { name, columns, query: Arc::new(paren_query(p)?) })
    })?;
    Ok(Some(Box::new(With { recursive, tables })))
}

fn finish_query(p: &mut Parser<'_>, first: QueryBody, mut into: Option<Box<Into>>) -> Rule<Query> {
    let body = set_operations(p, first, &mut into, false)?;
    let order_by = order_by(p)?;
    let limit = limit(p)?;
    let bare = order_by.is_empty() && limit.is_none() && into.is_none();
    if bare && !matches!(p.token.kw, Kw::FOR | Kw::LOCK | Kw::INTO) {
        // Parentheses around a whole query mean nothing.
        if let QueryBody::Nested(inner) = body {
            return Ok(*inner);
        }
    }
    if into.is_none() {
        into = into_clause(p)?;
    }
    let mut locking = Vec::new();
    while matches!(p.token.kw, Kw::FOR | Kw::LOCK)
        && let Some(lock) = locking_clause(p)?
    {
        locking.push(lock);
    }
    if into.is_none() {
        into = into_clause(p)?;
    }
    Ok(Query { with: None, body, order_by, limit, locking, into })
}

/// INTERSECT binds tighter than UNION and EXCEPT; all lean left.
///
/// `into` is what stood behind the last term so far: what another term follows was misplaced.
fn set_operations(
    p: &mut Parser<'_>,
    first: QueryBody,
    into: &mut Option<Box<Into>>,
    only_intersect: bool,
) -> Rule<QueryBody> {
    let mut left = first;
    loop {
        let op = match p.token.kw {
            Kw::INTERSECT => SetOp::Intersect,
            Kw::UNION if !only_intersect => SetOp::Union,
            Kw::EXCEPT if !only_intersect => SetOp::Except,
            _ => return Ok(left),
        };
        if into.is_some() {
            return Err(misplaced_into());
        }
        p.advance();
        let all = p.eat_kw(Kw::ALL);
        if !all {
            p.eat_kw(Kw::DISTINCT);
        }
        let (mut right, behind) = query_term(p)?;
        *into = behind;
        if op != SetOp::Intersect {
            right = set_operations(p, right, into, true)?;
        }
        left = QueryBody::SetOperation { op, all, left: Box::new(left), right: Box::new(right) };
        p.grow()?;
    }
}

/// SELECT, VALUES, TABLE, or a query in parentheses.
fn query_term(p: &mut Parser<'_>) -> Rule<(QueryBody, Option<Box<Into>>)> {
    match p.token.kw {
        Kw::SELECT => select(p),
        Kw::VALUES => {
            p.advance();
            let rows = p.comma_list(|p| {
                p.expect_kw(Kw::ROW)?;
                if p.is(Tok::LParen) && p.peek().kind == Tok::RParen {
                    p.advance();
                    p.advance();
                    return Ok(Vec::new());
                }
                p.paren_list(expr::expr)
            })?;
            Ok((QueryBody::Values(rows), None))
        }
        Kw::TABLE => {
            p.advance();
            Ok((QueryBody::Table(names::object_name(p)?), None))
        }
        _ if p.is(Tok::LParen) => {
            // Around a whole statement they mean nothing, and its INTO is the statement's.
            p.expect(Tok::LParen)?;
            let mut query = whole_query(p)?;
            p.expect(Tok::RParen)?;
            let into = query.into.take();
            Ok((QueryBody::Nested(Box::new(query)), into))
        }
        _ => Err(p.error()),
    }
}

fn select(p: &mut Parser<'_>) -> Rule<(QueryBody, Option<Box<Into>>)> {
    p.advance();
    let hints = hints::hints(p);
    let options = select_options(p)?;
    let items = select_items(p)?;
    let mut into = into_clause(p)?;
    let from = if p.eat_kw(Kw::FROM) { from::tables_clause(p)? } else { Vec::new() };
    let filter = filter(p)?;
    let (group_by, with_rollup) = group_by(p)?;
    let having = if p.eat_kw(Kw::HAVING) { Some(expr::expr(p)?) } else { None };
    let windows = if p.eat_kw(Kw::WINDOW) {
        p.comma_list(|p| {
            let name = names::ident(p)?;
            p.expect_kw(Kw::AS)?;
            Ok((name, function::window_spec(p)?))
        })?
    } else {
        Vec::new()
    };
    if into.is_none() {
        into = into_clause(p)?;
    }
    let select = Select { options, hints, items, from, filter, group_by, with_rollup, having, windows };
    Ok((QueryBody::Select(Box::new(select)), into))
}

fn select_options(p: &mut Parser<'_>) -> Rule<SelectOptions> {
    let mut options = SelectOptions::default();
    let mut all = false;
    loop {
        if all && options.distinct {
            return Err(ParseError::other(1221, "HY000", "Incorrect usage of ALL and DISTINCT".to_owned()));
        }
        match p.token.kw {
            Kw::ALL => all = true,
            Kw::DISTINCT | Kw::DISTINCTROW => options.distinct = true,
            Kw::HIGH_PRIORITY => options.high_priority = true,
            Kw::STRAIGHT_JOIN => options.straight_join = true,
            Kw::SQL_SMALL_RESULT => options.small_result = true,
            Kw::SQL_BIG_RESULT => options.big_result = true,
            Kw::SQL_CALC_FOUND_ROWS => options.calc_found_rows = true,
            Kw::NONE if p.is_word("SQL_NO_CACHE") => options.no_cache = true,
            Kw::NONE if p.is_word("SQL_BUFFER_RESULT") => options.buffer_result = true,
            Kw::NONE if p.is_word("SQL_CACHE") && p.peek().kind != Tok::Comma => {}
            _ => return Ok(options),
        }
        p.advance();
    }
}

fn select_item(p: &mut Parser<'_>) -> Rule<SelectItem> {
    if names::is_ident(p)
        && let Some(item) = table_wildcard(p)?
    {
        return Ok(item);
    }
    let start = p.token.start;
    let expr = expr::expr(p)?;
    let text = match &expr {
        Expr::Column(_) => bytes::Bytes::new(),
        _ => p.text_since(start),
    };
    let alias = if p.eat_kw(Kw::AS) || p.is(Tok::Str) || is_alias(p) {
        let alias = names::ident_or_text(p)?;
        // A name begins with something that is seen.
        let seen = alias.trim_start_matches(|c: char| c.is_ascii_control() || c == ' ');
        Some(if seen.len() < alias.len() { seen.into() } else { alias })
    } else {
        None
    };
    Ok(SelectItem::Expr { expr, alias, text })
}

/// Whether an identifier here is an alias without AS.
pub(super) fn is_alias(p: &Parser<'_>) -> bool {
    names::is_ident(p) && !p.is_word("RETURNING")
}

/// `t.*` or `s.t.*`, else nothing consumed.
fn table_wildcard(p: &mut Parser<'_>) -> Rule<Option<SelectItem>> {
    let mut lexer = p.lexer;
    if lexer.next().kind != Tok::Dot {
        return Ok(None);
    }
    let mut next = lexer.next();
    if next.kind != Tok::Star {
        if lexer.next().kind != Tok::Dot {
            return Ok(None);
        }
        next = lexer.next();
        if next.kind != Tok::Star {
            return Ok(None);
        }
        let name = names::object_name(p)?;
        p.advance();
        p.advance();
        return Ok(Some(SelectItem::TableWildcard(name)));
    }
    let name = crate::ast::ObjectName { schema: None, name: names::reference(p)? };
    p.advance();
    p.advance();
    Ok(Some(SelectItem::TableWildcard(name)))
}

/// WHERE.
pub(super) fn filter(p: &mut Parser<'_>) -> Rule<Option<Expr>> {
    if p.eat_kw(Kw::WHERE) { expr::expr(p).map(Some) } else { Ok(None) }
}

fn group_by(p: &mut Parser<'_>) -> Rule<(Vec<OrderItem>, bool)> {
    if !p.eat_kw(Kw::GROUP) {
        return Ok((Vec::new(), false));
    }
    p.expect_kw(Kw::BY)?;
    if !p.options.mariadb && p.is_word("ROLLUP") && p.peek().kind == Tok::LParen {
        p.advance();
        return Ok((p.paren_list(grouped)?, true));
    }
    let list = p.comma_list(grouped)?;
    Ok((list, p.eat_words(&["WITH", "ROLLUP"])))
}

/// ORDER BY or nothing.
pub(super) fn order_by(p: &mut Parser<'_>) -> Rule<Vec<OrderItem>> {
    if !p.eat_kw(Kw::ORDER) {
        return Ok(Vec::new());
    }
    p.expect_kw(Kw::BY)?;
    p.comma_list(order_item)
}

pub(super) fn order_item(p: &mut Parser<'_>) -> Rule<OrderItem> {
    let expr = expr::expr(p)?;
    let descending = p.eat_kw(Kw::DESC);
    if !descending {
        p.eat_kw(Kw::ASC);
    }
    Ok(OrderItem { expr, descending })
}

/// LIMIT or nothing.
pub(super) fn limit(p: &mut Parser<'_>) -> Rule<Option<Limit>> {
    if !p.eat_kw(Kw::LIMIT) {
        return Ok(None);
    }
    let first = limit_value(p)?;
    if p.eat(Tok::Comma) {
        let count = limit_value(p)?;
        return Ok(Some(Limit { count, offset: Some(first) }));
    }
    let offset = if p.eat_word("OFFSET") { Some(limit_value(p)?) } else { None };
    Ok(Some(Limit { count: first, offset }))
}

fn limit_value(p: &mut Parser<'_>) -> Rule<Expr> {
    match p.token.kind {
        Tok::Int | Tok::HexNum => Ok(Expr::Literal(Literal::Int(names::number(p)?))),
        Tok::Param => expr::simple_expr(p),
        _ if p.program.is_some() && program::at_local(p) => expr::simple_expr(p),
        _ => Err(p.error()),
    }
}

/// At FOR or LOCK; `None` when they belong to someone else.
fn locking_clause(p: &mut Parser<'_>) -> Rule<Option<Locking>> {
    if p.eat_words(&["LOCK", "IN", "SHARE", "MODE"]) {
        let wait = lock_wait(p)?;
        return Ok(Some(Locking { strength: LockStrength::Share, tables: Vec::new(), wait }));
    }
    let strength = if p.eat_words(&["FOR", "UPDATE"]) {
        LockStrength::Update
    } else if p.eat_words(&["FOR", "SHARE"]) {
        LockStrength::Share
    } else {
        return Ok(None);
    };
    let tables = if p.eat_kw(Kw::OF) { p.comma_list(names::object_name)? } else { Vec::new() };
    Ok(Some(Locking { strength, tables, wait: lock_wait(p)? }))
}

fn lock_wait(p: &mut Parser<'_>) -> Rule<LockWait> {
    if p.eat_word("NOWAIT") {
        return Ok(LockWait::NoWait);
    }
    if p.eat_words(&["SKIP", "LOCKED"]) {
        return Ok(LockWait::SkipLocked);
    }
    if p.eat_word("WAIT") {
        return Ok(LockWait::Seconds(names::number(p)?));
    }
    Ok(LockWait::Wait)
}

/// INTO or nothing.
fn into_clause(p: &mut Parser<'_>) -> Rule<Option<Box<Into>>> {
    if !p.eat_kw(Kw::INTO) {
        return Ok(None);
    }
    if p.eat_kw(Kw::OUTFILE) {
        let file = names::string(p)?;
        let charset = column::type_charset(p)?;
        let format = load::file_format(p)?;
        return Ok(Some(Box::new(Into::Outfile { file, charset, format })));
    }
    if p.eat_word("DUMPFILE") {
        return Ok(Some(Box::new(Into::Dumpfile(names::string(p)?))));
    }
    Ok(Some(Box::new(Into::Variables(p.comma_list(program::target)?))))
}

/// A member of GROUP BY. MySQL has no direction there since 8.0; MariaDB sorts by it.
fn grouped(parser: &mut Parser<'_>) -> Rule<OrderItem> {
    match parser.options.mariadb {
        true => order_item(parser),
        false => Ok(OrderItem { expr: expr::expr(parser)?, descending: false }),
    }
}

fn misplaced_into() -> ParseError {
    let message = "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.";
    ParseError::other(3954, "42000", message)
}

/// A query of a body alone.
fn plain_query(body: QueryBody) -> Query {
    Query { with: None, body, order_by: Vec::new(), limit: None, locking: Vec::new(), into: None }
}
