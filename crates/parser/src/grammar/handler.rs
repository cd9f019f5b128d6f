//! HANDLER.

use super::{Parser, Rule, expr, from, names, query};
use crate::ast::{BinaryOp, HandlerRead, HandlerStatement, HandlerStep, Statement};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At HANDLER.
pub(super) fn statement(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let table = names::object_name(p)?;
    if p.eat_word("OPEN") {
        let alias = from::table_alias(p)?;
        return Ok(Statement::Handler(Box::new(HandlerStatement::Open { table, alias })));
    }
    // Only OPEN may name a database: the others mean what was opened.
    if table.schema.is_some() {
        return Err(p.error());
    }
    let alias = table.name;
    if p.eat_word("CLOSE") {
        return Ok(Statement::Handler(Box::new(HandlerStatement::Close(alias))));
    }
    p.expect_kw(Kw::READ)?;
    let (index, step) = match scan(p) {
        Some(step) => (None, step),
        None => (Some(names::ident(p)?), step(p)?),
    };
    let filter = if p.eat_kw(Kw::WHERE) { Some(expr::expr(p)?) } else { None };
    let limit = query::limit(p)?;
    let read = HandlerRead { alias, index, step, filter, limit };
    Ok(Statement::Handler(Box::new(HandlerStatement::Read(read))))
}

/// FIRST or NEXT of the table itself, unless that is an index's name.
fn scan(p: &mut Parser<'_>) -> Option<HandlerStep> {
    let next = p.peek();
    let ends = matches!(next.kind, Tok::Eof | Tok::Semicolon) || matches!(next.kw, Kw::WHERE | Kw::LIMIT);
    match ends {
        true if p.eat_word("FIRST") => Some(HandlerStep::First),
        true if p.eat_word("NEXT") => Some(HandlerStep::Next),
        _ => None,
    }
}

fn step(p: &mut Parser<'_>) -> Rule<HandlerStep> {
    let op = match p.token.kind {
        Tok::Eq => BinaryOp::Eq,
        Tok::Ge => BinaryOp::Ge,
        Tok::Le => BinaryOp::Le,
        Tok::Gt => BinaryOp::Gt,
        Tok::Lt => BinaryOp::Lt,
        _ => {
            return match names::upper_word(p)?.as_str() {
                "FIRST" => Ok(HandlerStep::First),
                "NEXT" => Ok(HandlerStep::Next),
                "PREV" => Ok(HandlerStep::Previous),
                "LAST" => Ok(HandlerStep::Last),
                _ => Err(p.error()),
            };
        }
    };
    p.advance();
    p.expect(Tok::LParen)?;
    let values = p.comma_list(expr::expr)?;
    p.expect(Tok::RParen)?;
    Ok(HandlerStep::Key { op, values })
}
