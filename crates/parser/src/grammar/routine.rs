//! CREATE, ALTER and DROP of routines and triggers.

use super::column::is_whole;
use super::names::routine_name;
use super::program::{Scopes, other};
use super::{Parser, Rule};
use crate::ast::{
    AlterRoutine, Characteristics, CreateRoutine, CreateTrigger, DataAccess, DropProgram, ParamMode,
    ProgramKind, RoutineParam, Statement, TriggerEvent, TriggerTime, UserName,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At PROCEDURE or FUNCTION.
    pub(super) fn create_routine(&mut self, or_replace: bool, definer: Option<UserName>) -> Rule<Statement> {
        let function = self.eat_kw(Kw::FUNCTION);
        if !function {
            self.expect_kw(Kw::PROCEDURE)?;
        }
        let kind = if function { ProgramKind::Function } else { ProgramKind::Procedure };
        let if_not_exists = self.if_not_exists();
        let name = routine_name(self)?;
        if function && !self.is(Tok::LParen) {
            return Ok(self.unsupported("CREATE FUNCTION ... SONAME", "create_function"));
        }
        let (params, params_text) = self.routine_params(function)?;
        let (mut returns, mut returns_text) = (None, bytes::Bytes::new());
        if function {
            self.expect_word("RETURNS")?;
            let start = self.token.start;
            returns = Some(self.data_type()?);
            returns_text = self.text_since(start);
        }
        let characteristics = self.characteristics()?;
        let names: Vec<_> =
            params.iter().map(|param| (param.name.clone(), is_whole(param.ty.name))).collect();
        let program = self.program(Scopes::new(kind, &names))?;
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

    fn routine_params(&mut self, function: bool) -> Rule<(Vec<RoutineParam>, bytes::Bytes)> {
        let open = self.expect(Tok::LParen)?;
        let mut params: Vec<RoutineParam> = Vec::new();
        while !self.is(Tok::RParen) {
            if !params.is_empty() {
                self.expect(Tok::Comma)?;
            }
            let mode = match self.token.kw {
                _ if function => None,
                Kw::IN => Some(ParamMode::In),
                Kw::OUT => Some(ParamMode::Out),
                Kw::INOUT => Some(ParamMode::InOut),
                _ => None,
            };
            if mode.is_some() {
                self.advance();
            }
            let name = self.ident()?;
            if params.iter().any(|known| known.name.is(&name)) {
                return Err(other(1330, "42000", format!("Duplicate parameter: {name}")));
            }
            let ty = self.data_type()?;
            params.push(RoutineParam { mode: mode.unwrap_or_default(), name, ty });
        }
        let close = self.expect(Tok::RParen)?;
        let text = self.slice(open.end as usize, close.start as usize);
        Ok((params, text))
    }

    fn characteristics(&mut self) -> Rule<Characteristics> {
        let mut found = Characteristics::default();
        loop {
            if self.eat_word("COMMENT") {
                found.comment = Some(self.string()?);
            } else if self.eat_words(&["LANGUAGE", "SQL"]) {
            } else if self.eat_kw(Kw::DETERMINISTIC) {
                found.deterministic = Some(true);
            } else if self.eat_words(&["NOT", "DETERMINISTIC"]) {
                found.deterministic = Some(false);
            } else if self.eat_words(&["CONTAINS", "SQL"]) {
                found.access = Some(DataAccess::ContainsSql);
            } else if self.eat_words(&["NO", "SQL"]) {
                found.access = Some(DataAccess::NoSql);
            } else if self.eat_words(&["READS", "SQL", "DATA"]) {
                found.access = Some(DataAccess::ReadsSqlData);
            } else if self.eat_words(&["MODIFIES", "SQL", "DATA"]) {
                found.access = Some(DataAccess::ModifiesSqlData);
            } else {
                match self.security()? {
                    None => return Ok(found),
                    security => found.security = security,
                }
            }
        }
    }

    /// At TRIGGER.
    pub(super) fn create_trigger(&mut self, or_replace: bool, definer: Option<UserName>) -> Rule<Statement> {
        self.expect_kw(Kw::TRIGGER)?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let time = match self.eat_any(&["BEFORE", "AFTER"]) {
            Some("BEFORE") => TriggerTime::Before,
            Some(_) => TriggerTime::After,
            None => return Err(self.error()),
        };
        let event = match self.eat_any(&["INSERT", "UPDATE", "DELETE"]) {
            Some("INSERT") => TriggerEvent::Insert,
            Some("UPDATE") => TriggerEvent::Update,
            Some(_) => TriggerEvent::Delete,
            None => return Err(self.error()),
        };
        self.expect_kw(Kw::ON)?;
        let table = self.object_name()?;
        self.expect_words(&["FOR", "EACH", "ROW"])?;
        let order = match self.eat_any(&["FOLLOWS", "PRECEDES"]) {
            Some(word) => Some((word == "FOLLOWS", self.ident_or_text()?)),
            None => None,
        };
        let program = self.program(Scopes::of_trigger(time, event))?;
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
    pub(super) fn drop_program(&mut self, kind: ProgramKind) -> Rule<Statement> {
        self.advance();
        let if_exists = self.if_exists();
        Ok(Statement::DropProgram(DropProgram { kind, if_exists, name: self.object_name()? }))
    }

    /// At PROCEDURE or FUNCTION, behind ALTER.
    pub(super) fn alter_routine(&mut self, kind: ProgramKind) -> Rule<Statement> {
        self.advance();
        let name = self.object_name()?;
        let characteristics = self.characteristics()?;
        if characteristics.deterministic.is_some() {
            return Err(self.error());
        }
        Ok(Statement::AlterRoutine(Box::new(AlterRoutine { kind, name, characteristics })))
    }
}

/// Whether a statement has a result set for the client.
pub(super) fn gives_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Select(query) => query.into.is_none(),
        Statement::Insert(insert) => !insert.returning.is_empty(),
        Statement::Delete(delete) => !delete.returning.is_empty(),
        Statement::Show(_)
        | Statement::Describe { .. }
        | Statement::Explain(_)
        | Statement::Help(_)
        | Statement::Maintenance(_) => true,
        _ => false,
    }
}
