//! CREATE VIEW and ALTER VIEW, and the clauses that they share with stored programs.

use super::{Parser, Rule, names, query};
use crate::ast::{CheckOption, CreateView, Security, Statement, UserName, ViewAlgorithm};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// `DEFINER = account`, or nothing.
pub(super) fn definer(p: &mut Parser<'_>) -> Rule<Option<UserName>> {
    if !p.is_word("DEFINER") || p.peek().kind != Tok::Eq {
        return Ok(None);
    }
    p.advance();
    p.advance();
    names::definer_name(p).map(Some)
}

/// `SQL SECURITY DEFINER | INVOKER`, or nothing.
pub(super) fn security(p: &mut Parser<'_>) -> Rule<Option<Security>> {
    if !p.eat_kw(Kw::SQL) {
        return Ok(None);
    }
    p.expect_word("SECURITY")?;
    match p.eat_any(&["DEFINER", "INVOKER"]) {
        Some("DEFINER") => Ok(Some(Security::Definer)),
        Some(_) => Ok(Some(Security::Invoker)),
        None => Err(p.error()),
    }
}

/// `ALGORITHM = word`, or nothing.
pub(super) fn view_algorithm(p: &mut Parser<'_>) -> Rule<Option<ViewAlgorithm>> {
    if !p.is_word("ALGORITHM") {
        return Ok(None);
    }
    p.advance();
    p.expect(Tok::Eq)?;
    match p.eat_any(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
        Some("MERGE") => Ok(Some(ViewAlgorithm::Merge)),
        Some("TEMPTABLE") => Ok(Some(ViewAlgorithm::TempTable)),
        Some(_) => Ok(Some(ViewAlgorithm::Undefined)),
        None => Err(p.error()),
    }
}

/// Whether what has been read of CREATE or ALTER goes on as that of a view.
pub(super) fn at_view(p: &Parser<'_>) -> bool {
    p.is_word("VIEW") || p.is_kw(Kw::SQL)
}

/// At SQL SECURITY or VIEW.
pub(super) fn view(
    p: &mut Parser<'_>,
    or_replace: bool,
    alter: bool,
    algorithm: Option<ViewAlgorithm>,
    definer: Option<UserName>,
) -> Rule<Statement> {
    let security = security(p)?;
    p.expect_word("VIEW")?;
    let if_not_exists = !alter && (p.options.mariadb || !or_replace) && names::if_not_exists(p);
    let name = names::object_name(p)?;
    let columns = if p.is(Tok::LParen) { names::ident_list(p)? } else { Vec::new() };
    p.expect_kw(Kw::AS)?;
    let start = p.token.start;
    let query = Box::new(query::whole_query(p)?);
    let text = p.text_since(start);
    let mut check = None;
    if p.eat_kw(Kw::WITH) {
        let local = p.eat_any(&["LOCAL", "CASCADED"]) == Some("LOCAL");
        p.expect_words(&["CHECK", "OPTION"])?;
        check = Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
    }
    let view = CreateView {
        or_replace,
        if_not_exists,
        alter,
        algorithm,
        definer,
        security,
        name,
        columns,
        query,
        text,
        check,
    };
    Ok(Statement::CreateView(Box::new(view)))
}
