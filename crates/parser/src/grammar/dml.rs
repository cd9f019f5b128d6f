//! INSERT, REPLACE, UPDATE, DELETE.

use super::query::select_items;
use super::{Parser, Rule, expr, from, hints, names, query};
use crate::ParseError;
use crate::ast::{
    Assignment, Delete, Expr, Ident, Insert, InsertSource, ObjectName, Priority, Query, QueryBody, RowAlias,
    SelectItem, Statement, TableRef, Update, With,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At INSERT or REPLACE.
pub(super) fn insert(p: &mut Parser<'_>) -> Rule<Statement> {
    let replace = p.advance().kw == Kw::REPLACE;
    let hints = hints::hints(p);
    let priority = priority(p);
    let ignore = p.eat_kw(Kw::IGNORE);
    p.eat_kw(Kw::INTO);
    let table = names::object_name(p)?;
    let partitions = from::partitions(p)?;
    let (columns, mut source) = insert_source(p)?;
    if let InsertSource::Query(query) = &mut source
        && let Some(select) = query.body.first_select_mut()
    {
        let of_tables = hints.iter().filter(|hint| hint.is_of_tables()).cloned();
        select.hints.splice(0..0, of_tables);
    }
    let row_alias = row_alias(p)?;
    let on_duplicate = if !replace && p.eat_words(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
        assignments(p)?
    } else {
        Vec::new()
    };
    let returning = returning(p)?;
    Ok(Statement::Insert(Box::new(Insert {
        replace,
        hints,
        priority,
        ignore,
        table,
        partitions,
        columns,
        source,
        row_alias,
        on_duplicate,
        returning,
    })))
}

fn priority(p: &mut Parser<'_>) -> Priority {
    let priority = match p.token.kw {
        Kw::LOW_PRIORITY => Priority::Low,
        Kw::HIGH_PRIORITY => Priority::High,
        Kw::DELAYED => Priority::Delayed,
        _ => return Priority::Normal,
    };
    p.advance();
    priority
}

fn insert_source(p: &mut Parser<'_>) -> Rule<(Vec<Ident>, InsertSource)> {
    if p.eat_kw(Kw::SET) {
        let mut columns = Vec::new();
        let mut row = Vec::new();
        for Assignment { column, value } in assignments(p)? {
            columns.push(column.name);
            row.push(value);
        }
        return Ok((columns, InsertSource::Values(vec![row])));
    }
    let mut columns = Vec::new();
    if p.is(Tok::LParen) && !query::query_follows_paren(p) && p.peek().kind != Tok::LParen {
        p.advance();
        while !p.eat(Tok::RParen) {
            if !columns.is_empty() {
                p.expect(Tok::Comma)?;
            }
            columns.push(names::column_ref(p)?.name);
        }
    }
    let values = p.is_kw(Kw::VALUES) && p.peek().kw != Kw::ROW;
    if values || p.is_word("VALUE") {
        p.advance();
        return Ok((columns, InsertSource::Values(value_rows(p)?)));
    }
    if !query::at_query(p) {
        return Err(p.error());
    }
    let query = query::query(p)?;
    let bare = query.with.is_none() && query.order_by.is_empty() && query.limit.is_none();
    Ok((
        columns,
        match query.body {
            // `VALUES ROW(..)`, whose values may be DEFAULT here.
            QueryBody::Values(rows) if bare => InsertSource::Values(rows),
            body => InsertSource::Query(Box::new(Query { body, ..query })),
        },
    ))
}

/// `(..), (..), ...`
fn value_rows(p: &mut Parser<'_>) -> Rule<Vec<Vec<Expr>>> {
    let mut rows: Vec<Vec<Expr>> = Vec::new();
    loop {
        p.expect(Tok::LParen)?;
        let mut row = Vec::with_capacity(rows.last().map_or(4, Vec::len));
        if !p.eat(Tok::RParen) {
            loop {
                row.push(expr::expr(p)?);
                match p.token.kind {
                    Tok::Comma => p.advance(),
                    Tok::RParen => break,
                    _ => return Err(p.error()),
                };
            }
            p.advance();
        }
        rows.push(row);
        if !p.eat(Tok::Comma) {
            return Ok(rows);
        }
    }
}

fn row_alias(p: &mut Parser<'_>) -> Rule<Option<RowAlias>> {
    if !p.eat_kw(Kw::AS) {
        return Ok(None);
    }
    let name = names::ident(p)?;
    let columns = if p.is(Tok::LParen) { names::ident_list(p)? } else { Vec::new() };
    Ok(Some(RowAlias { name, columns }))
}

/// `column = value, ...`
pub(super) fn assignments(p: &mut Parser<'_>) -> Rule<Vec<Assignment>> {
    p.comma_list(|p| {
        let column = names::column_ref(p)?;
        if !p.eat(Tok::Assign) {
            p.expect(Tok::Eq)?;
        }
        Ok(Assignment { column, value: expr::expr(p)? })
    })
}

fn returning(p: &mut Parser<'_>) -> Rule<Vec<SelectItem>> {
    if p.eat_word("RETURNING") { select_items(p) } else { Ok(Vec::new()) }
}

/// At UPDATE.
pub(super) fn update(p: &mut Parser<'_>, with: Option<Box<With>>) -> Rule<Statement> {
    p.advance();
    let hints = hints::hints(p);
    let low_priority = p.eat_kw(Kw::LOW_PRIORITY);
    let ignore = p.eat_kw(Kw::IGNORE);
    let tables = from::table_refs(p)?;
    p.expect_kw(Kw::SET)?;
    let assignments = assignments(p)?;
    let filter = query::filter(p)?;
    let order_by = query::order_by(p)?;
    let limit = query::limit(p)?;
    Ok(Statement::Update(Box::new(Update {
        with,
        hints,
        low_priority,
        ignore,
        tables,
        assignments,
        filter,
        order_by,
        limit,
    })))
}

/// At DELETE.
pub(super) fn delete(p: &mut Parser<'_>, with: Option<Box<With>>) -> Rule<Statement> {
    p.advance();
    let mut delete = Delete {
        with,
        hints: hints::hints(p),
        low_priority: false,
        quick: false,
        ignore: false,
        targets: Vec::new(),
        from: Vec::new(),
        filter: None,
        order_by: Vec::new(),
        limit: None,
        returning: Vec::new(),
    };
    loop {
        if p.eat_kw(Kw::LOW_PRIORITY) {
            delete.low_priority = true;
        } else if p.eat_kw(Kw::IGNORE) {
            delete.ignore = true;
        } else if p.is_word("QUICK") && (names::token_is_ident(&p.peek()) || p.peek().kw != Kw::NONE) {
            p.advance();
            delete.quick = true;
        } else {
            break;
        }
    }
    if p.eat_kw(Kw::FROM) {
        delete_from(p, &mut delete)?;
    } else {
        delete.targets = p.comma_list(delete_target)?;
        p.expect_kw(Kw::FROM)?;
        delete.from = from::table_refs(p)?;
        // MariaDB's DELETE HISTORY FROM t: nothing that is called so is read.
        if is_history(&delete) {
            return Err(ParseError::NotSupported("DELETE HISTORY"));
        }
    }
    delete.filter = query::filter(p)?;
    if delete.targets.is_empty() {
        delete.order_by = query::order_by(p)?;
        delete.limit = query::limit(p)?;
        delete.returning = returning(p)?;
    }
    Ok(Statement::Delete(Box::new(delete)))
}

/// Behind DELETE FROM: one table, or targets and USING.
fn delete_from(p: &mut Parser<'_>, delete: &mut Delete) -> Rule<()> {
    let start = p.mark();
    let first = delete_target(p)?;
    if p.is(Tok::Comma) || p.is_kw(Kw::USING) {
        delete.targets.push(first);
        while p.eat(Tok::Comma) {
            delete.targets.push(delete_target(p)?);
        }
        p.expect_kw(Kw::USING)?;
        delete.from = from::table_refs(p)?;
        return Ok(());
    }
    p.reset(start);
    let name = names::object_name(p)?;
    let mut table = from::named_table(p, name)?;
    if let TableRef::Table(factor) = &mut table
        && factor.partitions.is_empty()
    {
        // MySQL writes the alias before PARTITION here.
        factor.partitions = from::partitions(p)?;
    }
    delete.from.push(table);
    Ok(())
}

/// `t`, `s.t`, `t.*`, `s.t.*`
fn delete_target(p: &mut Parser<'_>) -> Rule<ObjectName> {
    let first = names::ident(p)?;
    if !p.eat(Tok::Dot) {
        return Ok(ObjectName { schema: None, name: first });
    }
    if p.eat(Tok::Star) {
        return Ok(ObjectName { schema: None, name: first });
    }
    let name = names::ident_after_dot(p)?;
    if p.eat(Tok::Dot) {
        p.expect(Tok::Star)?;
    }
    Ok(ObjectName { schema: Some(first), name })
}

/// Whether a DELETE of several tables names as its only target `history`, and reads one table of another name.
fn is_history(delete: &Delete) -> bool {
    let ([target], [TableRef::Table(from)]) = (&*delete.targets, &*delete.from) else { return false };
    let known_as = from.alias.as_ref().unwrap_or(&from.name.name);
    target.schema.is_none()
        && target.name.eq_ignore_ascii_case("history")
        && !known_as.eq_ignore_ascii_case("history")
}
