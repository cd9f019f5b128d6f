//! CREATE, ALTER and DROP of routines and triggers.

use super::column::is_whole;
use super::names::routine_name;
use super::program::Scopes;
use super::{Parser, Rule, column, names, program, statement, view};
use crate::ParseError;
use crate::ast::{
    AlterRoutine, Characteristics, CreateRoutine, CreateTrigger, DataAccess, DropProgram, ParamMode,
    ProgramKind, RoutineParam, Statement, TriggerEvent, TriggerTime, UserName,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At PROCEDURE or FUNCTION.
pub(super) fn create_routine(
    p: &mut Parser<'_>,
    or_replace: bool,
    definer: Option<UserName>,
) -> Rule<Statement> {
    let function = p.eat_kw(Kw::FUNCTION);
    if !function {
        p.expect_kw(Kw::PROCEDURE)?;
    }
    let kind = if function { ProgramKind::Function } else { ProgramKind::Procedure };
    let if_not_exists = names::if_not_exists(p);
    let name = routine_name(p)?;
    if function && !p.is(Tok::LParen) {
        return Ok(statement::unsupported(p, "CREATE FUNCTION ... SONAME", "create_function"));
    }
    let (params, params_text) = routine_params(p, function)?;
    let (mut returns, mut returns_text) = (None, bytes::Bytes::new());
    if function {
        p.expect_word("RETURNS")?;
        let start = p.token.start;
        returns = Some(column::data_type(p)?);
        returns_text = p.text_since(start);
    }
    let characteristics = characteristics(p)?;
    let names: Vec<_> = params.iter().map(|param| (param.name.clone(), is_whole(param.ty.name))).collect();
    let program = program::program(p, Scopes::new(kind, &names))?;
    Ok(Statement::CreateRoutine(Box::new(CreateRoutine {
        kind,
        or_replace,
        if_not_exists,
        definer,
        name,
        params,
        params_text,
        returns,
        returns_text,
        characteristics,
        program,
    })))
}

fn routine_params(p: &mut Parser<'_>, function: bool) -> Rule<(Vec<RoutineParam>, bytes::Bytes)> {
    let open = p.expect(Tok::LParen)?;
    let mut params: Vec<RoutineParam> = Vec::new();
    while !p.is(Tok::RParen) {
        if !params.is_empty() {
            p.expect(Tok::Comma)?;
        }
        let mode = match p.token.kw {
            _ if function => None,
            Kw::IN => Some(ParamMode::In),
            Kw::OUT => Some(ParamMode::Out),
            Kw::INOUT => Some(ParamMode::InOut),
            _ => None,
        };
        if mode.is_some() {
            p.advance();
        }
        let name = names::ident(p)?;
        if params.iter().any(|known| known.name.is(&name)) {
            return Err(ParseError::other(1330, "42000", format!("Duplicate parameter: {name}")));
        }
        let ty = column::data_type(p)?;
        params.push(RoutineParam { mode: mode.unwrap_or_default(), name, ty });
    }
    let close = p.expect(Tok::RParen)?;
    let text = p.slice(open.end as usize, close.start as usize);
    Ok((params, text))
}

fn characteristics(p: &mut Parser<'_>) -> Rule<Characteristics> {
    let mut found = Characteristics::default();
    loop {
        if p.eat_word("COMMENT") {
            found.comment = Some(names::string(p)?);
        } else if p.eat_words(&["LANGUAGE", "SQL"]) {
        } else if p.eat_kw(Kw::DETERMINISTIC) {
            found.deterministic = Some(true);
        } else if p.eat_words(&["NOT", "DETERMINISTIC"]) {
            found.deterministic = Some(false);
        } else if p.eat_words(&["CONTAINS", "SQL"]) {
            found.access = Some(DataAccess::ContainsSql);
        } else if p.eat_words(&["NO", "SQL"]) {
            found.access = Some(DataAccess::NoSql);
        } else if p.eat_words(&["READS", "SQL", "DATA"]) {
            found.access = Some(DataAccess::ReadsSqlData);
        } else if p.eat_words(&["MODIFIES", "SQL", "DATA"]) {
            found.access = Some(DataAccess::ModifiesSqlData);
        } else {
            match view::security(p)? {
                None => return Ok(found),
                security => found.security = security,
            }
        }
    }
}

/// At TRIGGER.
pub(super) fn create_trigger(
    p: &mut Parser<'_>,
    or_replace: bool,
    definer: Option<UserName>,
) -> Rule<Statement> {
    p.expect_kw(Kw::TRIGGER)?;
    let if_not_exists = names::if_not_exists(p);
    let name = names::object_name(p)?;
    let time = match p.eat_any(&["BEFORE", "AFTER"]) {
        Some("BEFORE") => TriggerTime::Before,
        Some(_) => TriggerTime::After,
        None => return Err(p.error()),
    };
    let event = match p.eat_any(&["INSERT", "UPDATE", "DELETE"]) {
        Some("INSERT") => TriggerEvent::Insert,
        Some("UPDATE") => TriggerEvent::Update,
        Some(_) => TriggerEvent::Delete,
        None => return Err(p.error()),
    };
    p.expect_kw(Kw::ON)?;
    let table = names::object_name(p)?;
    p.expect_words(&["FOR", "EACH", "ROW"])?;
    let order = match p.eat_any(&["FOLLOWS", "PRECEDES"]) {
        Some(word) => Some((word == "FOLLOWS", names::ident_or_text(p)?)),
        None => None,
    };
    let program = program::program(p, Scopes::of_trigger(time, event))?;
    Ok(Statement::CreateTrigger(Box::new(CreateTrigger {
        or_replace,
        if_not_exists,
        definer,
        name,
        time,
        event,
        table,
        order,
        program,
    })))
}

/// At PROCEDURE, FUNCTION, TRIGGER or EVENT, behind DROP.
pub(super) fn drop_program(p: &mut Parser<'_>, kind: ProgramKind) -> Rule<Statement> {
    p.advance();
    let if_exists = names::if_exists(p);
    Ok(Statement::DropProgram(DropProgram { kind, if_exists, name: names::object_name(p)? }))
}

/// At PROCEDURE or FUNCTION, behind ALTER.
pub(super) fn alter_routine(p: &mut Parser<'_>, kind: ProgramKind) -> Rule<Statement> {
    p.advance();
    let name = names::object_name(p)?;
    let characteristics = characteristics(p)?;
    if characteristics.deterministic.is_some() {
        return Err(p.error());
    }
    Ok(Statement::AlterRoutine(Box::new(AlterRoutine { kind, name, characteristics })))
}
