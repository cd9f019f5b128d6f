//! CREATE, ALTER and DROP EVENT, and what the scheduler asks of a session. When an event is due is the server's.

use super::check;
use super::compile::Compiled;
use super::define::ProgramDdl;
use super::run::Execution;
use crate::api::{Mode, Outcome, Priv};
use crate::catalog::{EventDef, EventTimes, ProgramDef, persist, program_key};
use crate::ddl::{Change, Ddl, check_name};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::session::run::run;
use crate::session::{Call, Nowhere, SqlSession, StatementContext, evaluate};
use crate::state::Inside;
use crate::store::Names;
use omnibus_commit::Ticket;
use omnibus_parser::ast::{
    AlterEvent, CastType, CreateEvent, DropProgram, EventClauses, EventStatus, Expr, FunctionCall,
    ObjectName, Program, ProgramKind, Schedule,
};
use omnibus_value::Value;
use omnibus_value::temporal::Interval;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn missing(name: &ObjectName) -> SqlError {
    SqlError::new(1539, b"HY000", format!("Unknown event '{}'", name.name))
}

fn exists(name: &str) -> SqlError {
    SqlError::new(1537, b"HY000", format!("Event '{name}' already exists"))
}

fn wrong_value(what: &str, value: &str) -> SqlError {
    SqlError::new(1525, b"HY000", format!("Incorrect {what} value: '{value}'"))
}

fn bad_ends() -> SqlError {
    SqlError::new(1543, b"HY000", "ENDS is either invalid or before STARTS")
}

fn in_the_past(what: &str) -> String {
    format!("Event execution time is in the past{what}")
}

/// The schedule of a statement.
///
/// # Errors
/// 1525, 1542, 1543.
pub(crate) fn event_times(
    cx: &mut StatementContext<'_>,
    schedule: Option<&Schedule>,
    call: &Call<'_>,
) -> ExecResult<Option<EventTimes>> {
    let Some(schedule) = schedule else { return Ok(None) };
    cx.enter();
    let now = cx.state.statement.now_us.div_euclid(1_000_000);
    Ok(Some(match schedule {
        Schedule::At(at) => EventTimes::At(moment(cx, "AT", at, call)?),
        Schedule::Every { value, unit, starts, ends } => {
            if unit.has_micros() {
                return Err(SqlError::not_supported_yet("MICROSECOND").into());
            }
            let (number, _) = evaluate::value(cx, value, &[], false, call.access)?;
            if matches!(number, Value::Null) {
                return Err(wrong_value("INTERVAL", "NULL").into());
            }
            let kind = if unit.is_compound() { text_type() } else { CastType::Signed };
            let given = match evaluate::value(cx, &cast(value, kind), &[], false, call.access)?.0 {
                Value::Bytes(text) => Interval::parse(&text, *unit),
                Value::Int(n) => Interval::of(n, *unit),
                _ => None,
            };
            let starts = match starts {
                Some(starts) => moment(cx, "STARTS", starts, call)?,
                None => now,
            };
            let ends = match ends {
                Some(ends) => Some(moment(cx, "ENDS", ends, call).map_err(|_| bad_ends())?),
                None => None,
            };
            if ends.is_some_and(|ends| ends <= starts) {
                return Err(bad_ends().into());
            }
            let too_big = || SqlError::new(1542, b"HY000", "INTERVAL is either not positive or too big");
            given.and_then(|given| EventTimes::every(given, *unit, starts, ends)).ok_or_else(too_big)?
        }
    }))
}

/// An expression as seconds since 1970.
fn moment(cx: &mut StatementContext<'_>, what: &str, expr: &Expr, call: &Call<'_>) -> ExecResult<i64> {
    let local = cast(expr, CastType::DateTime(0));
    let seconds = FunctionCall::built_in("unix_timestamp", vec![local]);
    let known = cx.state.diagnostics.clone();
    let (seconds, _) = evaluate::value(cx, &Expr::Function(Box::new(seconds)), &[], false, call.access)?;
    match seconds {
        Value::Int(seconds) if seconds > 0 => return Ok(seconds),
        Value::UInt(seconds) if seconds > 0 => return Ok(seconds.cast_signed()),
        _ => cx.state.diagnostics = known,
    }
    let text = match evaluate::value(cx, &cast(expr, text_type()), &[], false, call.access)?.0 {
        Value::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
        _ => "NULL".to_owned(),
    };
    Err(wrong_value(what, &text).into())
}

impl SqlSession {
    /// The scheduler runs an event for the last time: after a crash it is not run again. `false`: it is not what it was.
    ///
    /// # Errors
    /// As any definition. The ticket's commit must be awaited.
    pub fn event_is_over(&mut self, def: &Arc<ProgramDef>) -> ExecResult<Option<Ticket>> {
        let logs = std::mem::replace(&mut self.state.settings.sql_log_bin, false);
        let mut call = Call {
            mode: Mode::Blocking,
            access: &crate::api::AllowAll,
            sink: &mut Nowhere,
            text: &bytes::Bytes::new(),
            params: &[],
            inner: None,
        };
        self.context().begin(call.text, false);
        let result = run(self, &mut call, |session, call| {
            let (trx, state) = (&mut session.trx, &mut session.state);
            let mut ddl = Ddl { trx, state, access: call.access, sql: b"" };
            let result = ProgramDdl { ddl: &mut ddl }.event_is_over(def);
            session.context().end_definition(result)
        });
        self.state.settings.sql_log_bin = logs;
        result.map(|outcome| outcome.wait)
    }
}

impl Execution<'_, '_> {
    /// Runs an event's body, in the name of its definer.
    pub(crate) fn run_event(
        session: &mut SqlSession,
        name: &ObjectName,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        let mut nowhere = Nowhere;
        let mut call = Call {
            mode: call.mode,
            access: call.access,
            sink: &mut nowhere,
            text: call.text,
            params: call.params,
            inner: None,
        };
        Execution::run(session, &mut call, |Execution { session, call, machine }| {
            let db = session.context().schema_of(name)?;
            let found = session.context().catalog().program(ProgramKind::Event, &db, &name.name).cloned();
            let def = found.ok_or_else(|| missing(name))?;
            call.access.check(&db, None, Priv::Event)?;
            let program = session.interpreter.compiled(&def, &session.state.settings, None)?;
            let frame = super::call::enter_program(&mut session.state, &program, Vec::new())?;
            session.state.programs.inside = Inside::Procedure;
            machine.frames.push(frame);
            Ok(())
        })
    }
}

fn text_type() -> CastType {
    CastType::Char { length: None, charset: None, binary: false }
}

fn cast(expr: &Expr, ty: CastType) -> Expr {
    Expr::Cast { expr: Box::new(expr.clone()), ty: Box::new(ty) }
}

impl ProgramDdl<'_, '_> {
    /// CREATE EVENT.
    pub(crate) fn create_event(&mut self, tree: &CreateEvent, times: EventTimes) -> ExecResult<Outcome> {
        let CreateEvent { or_replace, if_not_exists, definer, name: full_name, clauses, tail } = tree;
        let db = self.ddl.schema_of(full_name)?;
        let name = full_name.name.as_str();
        check_name(name)?;
        let Some(program) = &clauses.program else { return Err(missing(full_name).into()) };
        check::body(ProgramKind::Event, program)?;
        check::variables(self.ddl.state, program)?;
        self.ddl.trx.catalog().schema(&db)?;
        self.ddl.access.check(&db, None, Priv::Event)?;
        let definer = self.named_definer(definer.as_ref())?.quoted();
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        change.next.schema(&db)?;
        let old = change.next.program(ProgramKind::Event, &db, name).cloned();
        if old.is_some() && !*or_replace {
            if !*if_not_exists {
                return Err(exists(name).into());
            }
            self.ddl.state.diagnostics.note(exists(name));
            self.ddl.trx.rollback();
            return Ok(Outcome::ok());
        }
        let mut event = self.new_event(times, clauses);
        let logged = self.log_as(&format!(
            "CREATE {}DEFINER={definer} {}",
            if *or_replace { "OR REPLACE " } else { "" },
            String::from_utf8_lossy(tail)
        ));
        if let Some(old) = &old {
            change.next.remove_program(&db, &old.key());
            persist::delete_program(&mut self.ddl.trx.transaction.writes, old);
        }
        if self.is_past(&event) {
            if !event.preserve {
                let what = " and ON COMPLETION NOT PRESERVE is set. The event was dropped immediately after creation";
                let point = if self.ddl.state.settings.mariadb { "" } else { "." };
                let message = in_the_past(what) + point;
                self.ddl.state.diagnostics.note(SqlError::new(1588, b"HY000", message));
                return self.commit_as(change, &logged);
            }
            self.disable_past(&mut event);
        }
        let mut def = self.new_program(ProgramKind::Event, &db, name, String::new());
        let comment = clauses.comment.as_deref().unwrap_or_default();
        def.set_text(event.text(&definer, name, comment, &program.text, true));
        def.event = Some(event);
        self.put_event(&mut change, def)?;
        self.commit_as(change, &logged)
    }

    fn new_event(&self, times: EventTimes, clauses: &EventClauses) -> EventDef {
        EventDef {
            times,
            status: self.event_status(clauses.status).unwrap_or_default(),
            preserve: clauses.preserve == Some(true),
            zone: self.ddl.state.settings.time_zone.as_str().into(),
            originator: self.ddl.state.settings.server_id,
            executed: Arc::default(),
        }
    }

    /// The status that an event gets: one that came from a source does not run here.
    fn event_status(&self, written: Option<EventStatus>) -> Option<EventStatus> {
        if self.ddl.state.settings.replicated { Some(EventStatus::ReplicaSideDisabled) } else { written }
    }

    fn is_past(&self, event: &EventDef) -> bool {
        let now = self.ddl.state.statement.now_us.div_euclid(1_000_000);
        event.times.end().is_some_and(|end| end < now)
    }

    fn disable_past(&mut self, event: &mut EventDef) {
        if event.status == EventStatus::Enabled {
            event.status = EventStatus::Disabled;
        }
        let message = in_the_past(". Event has been disabled");
        self.ddl.state.diagnostics.note(SqlError::new(1544, b"HY000", message));
    }

    fn put_event(&mut self, change: &mut Change, def: ProgramDef) -> ExecResult<()> {
        let def = Arc::new(def);
        Compiled::new(&def, &self.ddl.state.settings, None)?;
        persist::put_program(&mut self.ddl.trx.transaction.writes, &def);
        change.next.put_program(def);
        Ok(())
    }

    /// Commits what is logged as another text than the client's.
    fn commit_as(&mut self, change: Change, logged: &[u8]) -> ExecResult<Outcome> {
        let Ddl { trx, state, access, .. } = &mut *self.ddl;
        Ddl { trx, state, access: *access, sql: logged }.commit(change)
    }

    /// ALTER EVENT. Who alters it is its definer from then on.
    pub(crate) fn alter_event(
        &mut self,
        tree: &AlterEvent,
        times: Option<EventTimes>,
    ) -> ExecResult<Outcome> {
        let (db, clauses) = (self.ddl.schema_of(&tree.name)?, &tree.clauses);
        if let Some(program) = &clauses.program {
            check::body(ProgramKind::Event, program)?;
            check::variables(self.ddl.state, program)?;
        }
        self.ddl.access.check(&db, None, Priv::Event)?;
        let definer = self.named_definer(tree.definer.as_ref())?.quoted();
        let (new_db, new_name) = match &tree.rename {
            None => (db.clone(), None),
            Some(to) => (self.ddl.schema_of(to)?, Some(to.name.to_string())),
        };
        if let Some(name) = &new_name {
            check_name(name)?;
            self.ddl.access.check(&new_db, None, Priv::Event)?;
            if new_db == db && name.eq_ignore_ascii_case(&tree.name.name) {
                return Err(SqlError::new(1551, b"HY000", "Same old and new event name").into());
            }
        }
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        let Some(old) = change.next.program(ProgramKind::Event, &db, &tree.name.name).cloned() else {
            return Err(missing(&tree.name).into());
        };
        let Some(mut event) = old.event.clone() else { return Err(missing(&tree.name).into()) };
        let name = new_name.clone().unwrap_or_else(|| old.name.to_string());
        if new_name.is_some() && change.next.program(ProgramKind::Event, &new_db, &name).is_some() {
            return Err(exists(&name).into());
        }
        change.next.schema(&new_db)?;
        if let Some(times) = times {
            event.times = times;
            event.zone = self.ddl.state.settings.time_zone.as_str().into();
            event.executed = Arc::default();
        }
        event.preserve = clauses.preserve.unwrap_or(event.preserve);
        event.status = self.event_status(clauses.status).unwrap_or(event.status);
        event.originator = self.ddl.state.settings.server_id;
        if times.is_some() && self.is_past(&event) {
            if !event.preserve {
                let what = " and ON COMPLETION NOT PRESERVE is set. The event was not changed. Specify a time in the future.";
                return Err(SqlError::new(1589, b"HY000", in_the_past(what)).into());
            }
            self.disable_past(&mut event);
        }
        let (comment, program) = old.event_parts()?;
        let comment = clauses.comment.as_deref().unwrap_or(&comment);
        let body = clauses.program.as_ref().map_or(&program.text, |program: &Program| &program.text);
        let mut def = ProgramDef::clone(&old);
        if clauses.program.is_some() {
            let own = self.new_program(ProgramKind::Event, &new_db, &name, String::new());
            (def.sql_mode, def.client, def.connection, def.database) =
                (own.sql_mode, own.client, own.connection, own.database);
        }
        (def.db, def.name) = (new_db.as_str().into(), name.as_str().into());
        def.modified_us = self.ddl.state.statement.now_us;
        def.set_text(event.text(&definer, &name, comment, body, true));
        def.event = Some(event);
        change.next.remove_program(&db, &old.key());
        persist::delete_program(&mut self.ddl.trx.transaction.writes, &old);
        self.put_event(&mut change, def)?;
        let logged = format!("ALTER DEFINER={definer} {}", String::from_utf8_lossy(&tree.tail));
        let logged = self.log_as(&logged);
        self.commit_as(change, &logged)
    }

    /// DROP EVENT.
    pub(crate) fn drop_event(&mut self, drop: &DropProgram) -> ExecResult<Outcome> {
        let (db, name) = (self.ddl.schema_of(&drop.name)?, &drop.name.name);
        self.ddl.access.check(&db, None, Priv::Event)?;
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        match change.next.remove_program(&db, &program_key(ProgramKind::Event, name)) {
            Some(old) => persist::delete_program(&mut self.ddl.trx.transaction.writes, &old),
            None if drop.if_exists => {
                let message = format!("Event {name} does not exist");
                self.ddl.state.diagnostics.note(SqlError::new(1305, b"42000", message));
            }
            None => return Err(missing(&drop.name).into()),
        }
        self.ddl.commit(change)
    }

    fn event_is_over(&mut self, def: &Arc<ProgramDef>) -> ExecResult<Outcome> {
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        let current = change.next.program(ProgramKind::Event, &def.db, &def.name).cloned();
        let event = def.event.as_ref().filter(|_| current.is_some_and(|current| Arc::ptr_eq(&current, def)));
        let Some(event) = event else {
            self.ddl.trx.rollback();
            return Ok(Outcome::ok());
        };
        let mut event = event.clone();
        event.status = EventStatus::Disabled;
        event.executed.store(self.ddl.state.statement.now_us.div_euclid(1_000_000), Ordering::Relaxed);
        let (comment, program) = def.event_parts()?;
        let mut over = ProgramDef::clone(def);
        over.set_text(event.text(&def.definer().quoted(), &def.name, &comment, &program.text, true));
        over.event = Some(event);
        self.put_event(&mut change, over)?;
        self.ddl.commit(change)
    }
}
