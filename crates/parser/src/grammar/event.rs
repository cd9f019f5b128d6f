//! CREATE and ALTER EVENT.

use super::program::Scopes;
use super::{Parser, Rule};
use crate::ast::{
    AlterEvent, CreateEvent, EventClauses, EventStatus, ObjectName, ProgramKind, Schedule, Statement,
    UserName,
};
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At EVENT.
    pub(super) fn create_event(&mut self, or_replace: bool, definer: Option<UserName>) -> Rule<Statement> {
        let start = self.token.start;
        self.expect_word("EVENT")?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        self.expect_words(&["ON", "SCHEDULE"])?;
        let schedule = self.schedule()?;
        let preserve = if self.at_completion() { self.on_completion()? } else { None };
        let clauses =
            self.event_rest(EventClauses { schedule: Some(schedule), preserve, ..EventClauses::default() })?;
        if clauses.program.is_none() {
            return Err(self.error());
        }
        let tail = self.text_since(start);
        Ok(Statement::CreateEvent(Box::new(CreateEvent {
            or_replace,
            if_not_exists,
            definer,
            name,
            clauses,
            tail,
        })))
    }

    /// At EVENT.
    pub(super) fn alter_event(&mut self, definer: Option<UserName>) -> Rule<Statement> {
        let start = self.token.start;
        self.expect_word("EVENT")?;
        let name = self.object_name()?;
        let mut clauses = EventClauses::default();
        if self.is_kw(Kw::ON) && !self.at_completion() {
            self.expect_words(&["ON", "SCHEDULE"])?;
            clauses.schedule = Some(self.schedule()?);
        }
        if self.at_completion() {
            clauses.preserve = self.on_completion()?;
        }
        let mut rename: Option<ObjectName> = None;
        if self.eat_words(&["RENAME", "TO"]) {
            rename = Some(self.object_name()?);
        }
        let clauses = self.event_rest(clauses)?;
        if clauses == EventClauses::default() && rename.is_none() {
            return Err(self.error());
        }
        let tail = self.text_since(start);
        Ok(Statement::AlterEvent(Box::new(AlterEvent { definer, name, rename, clauses, tail })))
    }

    /// AT or EVERY.
    fn schedule(&mut self) -> Rule<Schedule> {
        if self.eat_word("AT") {
            return Ok(Schedule::At(self.expr()?));
        }
        self.expect_word("EVERY")?;
        let value = self.expr()?;
        let unit = self.interval_unit()?;
        let starts = if self.eat_word("STARTS") { Some(self.expr()?) } else { None };
        let ends = if self.eat_word("ENDS") { Some(self.expr()?) } else { None };
        Ok(Schedule::Every { value, unit, starts, ends })
    }

    fn at_completion(&mut self) -> bool {
        let mark = self.mark();
        let found = self.eat_words(&["ON", "COMPLETION"]);
        self.reset(mark);
        found
    }

    fn on_completion(&mut self) -> Rule<Option<bool>> {
        self.expect_words(&["ON", "COMPLETION"])?;
        let not = self.eat_kw(Kw::NOT);
        self.expect_word("PRESERVE")?;
        Ok(Some(!not))
    }

    /// The clauses from ON COMPLETION on.
    fn event_rest(&mut self, mut clauses: EventClauses) -> Rule<EventClauses> {
        if self.eat_word("ENABLE") {
            clauses.status = Some(EventStatus::Enabled);
        } else if self.eat_word("DISABLE") {
            clauses.status = Some(EventStatus::Disabled);
            if self.eat_kw(Kw::ON) {
                if self.eat_any(&["SLAVE", "REPLICA"]).is_none() {
                    return Err(self.error());
                }
                clauses.status = Some(EventStatus::ReplicaSideDisabled);
            }
        }
        if self.eat_word("COMMENT") {
            clauses.comment = Some(self.string()?);
        }
        if self.eat_word("DO") {
            clauses.program = Some(self.program(Scopes::new(ProgramKind::Event, &[]))?);
        }
        Ok(clauses)
    }
}
