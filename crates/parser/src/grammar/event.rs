//! CREATE and ALTER EVENT.

use super::program::Scopes;
use super::{Parser, Rule, expr, names, primary, program};
use crate::ast::{
    AlterEvent, CreateEvent, EventClauses, EventStatus, ObjectName, ProgramKind, Schedule, Statement,
    UserName,
};
use crate::lexer::keyword::Kw;

/// At EVENT.
pub(super) fn create_event(
    p: &mut Parser<'_>,
    or_replace: bool,
    definer: Option<UserName>,
) -> Rule<Statement> {
    let start = p.token.start;
    p.expect_word("EVENT")?;
    let if_not_exists = names::if_not_exists(p);
    let name = names::object_name(p)?;
    p.expect_words(&["ON", "SCHEDULE"])?;
    let schedule = schedule(p)?;
    let preserve = if at_completion(p) { on_completion(p)? } else { None };
    let clauses =
        event_rest(p, EventClauses { schedule: Some(schedule), preserve, ..EventClauses::default() })?;
    if clauses.program.is_none() {
        return Err(p.error());
    }
    let tail = p.text_since(start);
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
pub(super) fn alter_event(p: &mut Parser<'_>, definer: Option<UserName>) -> Rule<Statement> {
    let start = p.token.start;
    p.expect_word("EVENT")?;
    let name = names::object_name(p)?;
    let mut clauses = EventClauses::default();
    if p.is_kw(Kw::ON) && !at_completion(p) {
        p.expect_words(&["ON", "SCHEDULE"])?;
        clauses.schedule = Some(schedule(p)?);
    }
    if at_completion(p) {
        clauses.preserve = on_completion(p)?;
    }
    let mut rename: Option<ObjectName> = None;
    if p.eat_words(&["RENAME", "TO"]) {
        rename = Some(names::object_name(p)?);
    }
    let clauses = event_rest(p, clauses)?;
    if clauses == EventClauses::default() && rename.is_none() {
        return Err(p.error());
    }
    let tail = p.text_since(start);
    Ok(Statement::AlterEvent(Box::new(AlterEvent { definer, name, rename, clauses, tail })))
}

/// AT or EVERY.
fn schedule(p: &mut Parser<'_>) -> Rule<Schedule> {
    if p.eat_word("AT") {
        return Ok(Schedule::At(expr::expr(p)?));
    }
    p.expect_word("EVERY")?;
    let value = expr::expr(p)?;
    let unit = primary::interval_unit(p)?;
    let starts = if p.eat_word("STARTS") { Some(expr::expr(p)?) } else { None };
    let ends = if p.eat_word("ENDS") { Some(expr::expr(p)?) } else { None };
    Ok(Schedule::Every { value, unit, starts, ends })
}

fn at_completion(p: &mut Parser<'_>) -> bool {
    let mark = p.mark();
    let found = p.eat_words(&["ON", "COMPLETION"]);
    p.reset(mark);
    found
}

fn on_completion(p: &mut Parser<'_>) -> Rule<Option<bool>> {
    p.expect_words(&["ON", "COMPLETION"])?;
    let not = p.eat_kw(Kw::NOT);
    p.expect_word("PRESERVE")?;
    Ok(Some(!not))
}

/// The clauses from ON COMPLETION on.
fn event_rest(p: &mut Parser<'_>, mut clauses: EventClauses) -> Rule<EventClauses> {
    if p.eat_word("ENABLE") {
        clauses.status = Some(EventStatus::Enabled);
    } else if p.eat_word("DISABLE") {
        clauses.status = Some(EventStatus::Disabled);
        if p.eat_kw(Kw::ON) {
            if p.eat_any(&["SLAVE", "REPLICA"]).is_none() {
                return Err(p.error());
            }
            clauses.status = Some(EventStatus::ReplicaSideDisabled);
        }
    }
    if p.eat_word("COMMENT") {
        clauses.comment = Some(names::string(p)?);
    }
    if p.eat_word("DO") {
        clauses.program = Some(program::program(p, Scopes::new(ProgramKind::Event, &[]))?);
    }
    Ok(clauses)
}
