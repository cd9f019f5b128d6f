//! SET.

use super::{Parser, Rule, expr, names, primary, program, statement, user};
use crate::ast::{
    Expr, Ident, Isolation, PasswordValue, SetItem, SetStatement, SetValue, Statement, VarScope,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At SET.
pub(super) fn set(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.is_word("STATEMENT") && p.peek().kind == Tok::Word {
        return set_for_statement(p);
    }
    if p.eat_words(&["RESOURCE", "GROUP"]) {
        return Ok(statement::unsupported(p, "SET RESOURCE GROUP", "set_resource_group"));
    }
    if p.is_word("ROLE") || (p.is_kw(Kw::DEFAULT) && p.peek_is_word("ROLE")) {
        return user::set_role(p);
    }
    let mut items = Vec::new();
    let mut scope = None;
    loop {
        let item = set_item(p, &mut scope)?;
        items.push(item);
        if !p.eat(Tok::Comma) {
            return Ok(Statement::Set(items));
        }
    }
}

/// At STATEMENT: names of variables of the session, and the statement that they are for.
fn set_for_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let items = p.comma_list(|p| {
        let name = names::ident(p)?;
        assign(p)?;
        Ok(SetItem::System { scope: None, name, value: set_value(p)? })
    })?;
    p.expect_kw(Kw::FOR)?;
    let start = p.token.start;
    p.nest(statement::statement)?;
    Ok(Statement::SetStatement(Box::new(SetStatement { items, text: p.text_since(start) })))
}

/// One member. A scope word holds for the members after it too, until the next one.
fn set_item(p: &mut Parser<'_>, sticky: &mut Option<VarScope>) -> Rule<SetItem> {
    match p.token.kind {
        Tok::UserVar => {
            let name = names::user_var(p)?;
            assign(p)?;
            return Ok(SetItem::User { name, value: expr::expr(p)? });
        }
        Tok::AtAt => {
            let (scope, name) = primary::system_variable_name(p)?;
            assign(p)?;
            return Ok(SetItem::System { scope, name, value: set_value(p)? });
        }
        _ => {}
    }
    let token = p.token;
    let next = p.peek();
    if matches!(next.kind, Tok::Eq | Tok::Assign) && program::at_local(p) {
        let name = names::ident(p)?;
        let Some(local) = program::variable_named(p, &name) else { return Err(p.error()) };
        assign(p)?;
        return Ok(SetItem::Local { local, value: expr::expr(p)? });
    }
    if next.kind == Tok::Dot && program::in_trigger(p) && (p.is_word("NEW") || p.is_word("OLD")) {
        let row = names::ident(p)?;
        p.advance();
        let column = program::new_column(p, &row)?;
        assign(p)?;
        return Ok(SetItem::NewColumn { column, value: expr::expr(p)? });
    }
    if !matches!(next.kind, Tok::Eq | Tok::Assign | Tok::Dot) {
        if let Some(item) = special_item(p)? {
            return Ok(item);
        }
        if let Some(scope) = primary::scope_word(p, &token) {
            p.advance();
            *sticky = Some(scope);
            if p.is_word("TRANSACTION") && !matches!(p.peek().kind, Tok::Eq | Tok::Assign) {
                return set_transaction(p, Some(scope));
            }
        } else if p.is_word("TRANSACTION") {
            return set_transaction(p, None);
        }
    } else if p.is_word("PASSWORD") && next.kind != Tok::Dot {
        return set_password(p);
    }
    let mut name: Ident = names::ident_after_dot(p)?;
    while p.eat(Tok::Dot) {
        let part = names::ident_after_dot(p)?;
        name = Ident::from(format!("{name}.{part}"));
    }
    assign(p)?;
    Ok(SetItem::System { scope: *sticky, name, value: set_value(p)? })
}

fn assign(p: &mut Parser<'_>) -> Rule<()> {
    if p.eat(Tok::Assign) {
        return Ok(());
    }
    p.expect(Tok::Eq).map(|_| ())
}

/// NAMES, CHARACTER SET, PASSWORD FOR.
fn special_item(p: &mut Parser<'_>) -> Rule<Option<SetItem>> {
    if p.eat_word("NAMES") {
        let charset = charset_or_default(p)?;
        let collation = if p.eat_kw(Kw::COLLATE) { charset_or_default(p)? } else { None };
        return Ok(Some(SetItem::Names { charset, collation }));
    }
    if p.eat_words(&["CHARACTER", "SET"]) || p.eat_words(&["CHAR", "SET"]) || p.eat_word("CHARSET") {
        return Ok(Some(SetItem::CharacterSet(charset_or_default(p)?)));
    }
    if p.is_word("PASSWORD") {
        return set_password(p).map(Some);
    }
    Ok(None)
}

fn charset_or_default(p: &mut Parser<'_>) -> Rule<Option<Ident>> {
    if p.eat_kw(Kw::DEFAULT) { Ok(None) } else { names::charset_name(p).map(Some) }
}

/// At PASSWORD.
fn set_password(p: &mut Parser<'_>) -> Rule<SetItem> {
    p.advance();
    let user = if p.eat_kw(Kw::FOR) { Some(names::user_name(p)?) } else { None };
    if p.eat_kw(Kw::TO) {
        p.expect_word("RANDOM")?;
        let value = PasswordValue::Random;
        return Ok(SetItem::Password { user, value, replaces: None, retain_current: false });
    }
    assign(p)?;
    let value = if p.is_word("PASSWORD") || p.is_word("OLD_PASSWORD") {
        p.advance();
        p.expect(Tok::LParen)?;
        let text = names::string(p)?;
        p.expect(Tok::RParen)?;
        PasswordValue::Clear(text)
    } else {
        PasswordValue::Text(names::string(p)?)
    };
    let replaces = if p.eat_kw(Kw::REPLACE) { Some(names::string(p)?) } else { None };
    let retain_current = p.eat_words(&["RETAIN", "CURRENT", "PASSWORD"]);
    Ok(SetItem::Password { user, value, replaces, retain_current })
}

/// At TRANSACTION.
fn set_transaction(p: &mut Parser<'_>, scope: Option<VarScope>) -> Rule<SetItem> {
    p.advance();
    let (mut isolation, mut read_only) = (None, None);
    loop {
        if isolation.is_none() && p.eat_words(&["ISOLATION", "LEVEL"]) {
            isolation = Some(isolation_level(p)?);
        } else if read_only.is_none() && p.eat_words(&["READ", "ONLY"]) {
            read_only = Some(true);
        } else if read_only.is_none() && p.eat_words(&["READ", "WRITE"]) {
            read_only = Some(false);
        } else {
            return Err(p.error());
        }
        if !p.eat(Tok::Comma) {
            return Ok(SetItem::Transaction { scope, isolation, read_only });
        }
    }
}

fn isolation_level(p: &mut Parser<'_>) -> Rule<Isolation> {
    if p.eat_words(&["READ", "UNCOMMITTED"]) {
        Ok(Isolation::ReadUncommitted)
    } else if p.eat_words(&["READ", "COMMITTED"]) {
        Ok(Isolation::ReadCommitted)
    } else if p.eat_words(&["REPEATABLE", "READ"]) {
        Ok(Isolation::RepeatableRead)
    } else if p.eat_word("SERIALIZABLE") {
        Ok(Isolation::Serializable)
    } else {
        Err(p.error())
    }
}

/// The right side of a system variable's assignment.
fn set_value(p: &mut Parser<'_>) -> Rule<SetValue> {
    let token = p.token;
    if token.kind == Tok::Word && value_ends_after(p) {
        match token.kw {
            Kw::DEFAULT => {
                p.advance();
                return Ok(SetValue::Default);
            }
            Kw::ON | Kw::ALL | Kw::BINARY | Kw::ROW | Kw::SYSTEM | Kw::FORCE => {
                let word = names::ident_of(p, &token)?;
                p.advance();
                return Ok(SetValue::Word(word));
            }
            _ => {}
        }
    }
    Ok(match expr::expr(p)? {
        Expr::Column(column) if column.qualifier.is_none() => SetValue::Word(column.name),
        expr => SetValue::Expr(expr),
    })
}

fn value_ends_after(p: &Parser<'_>) -> bool {
    let next = p.peek();
    matches!(next.kind, Tok::Comma | Tok::Semicolon | Tok::Eof) || next.kw == Kw::FOR
}
