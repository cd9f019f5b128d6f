//! CREATE, ALTER and DROP of routines: definitions like those of tables.

use super::check;
use super::compile::{Compiled, variable_column};
use crate::api::client_text::of_client;
use crate::api::{Outcome, Priv, Routine, VariableScope};
use crate::catalog::{
    Definer, EventTimes, ProgramDef, charset, persist, program_key, quote_ident, quote_string, type_text,
};
use crate::ddl::{Change, Ddl, check_name, kept_definer, named_definer};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::Names;
use omnibus_parser::ast::{
    AlterRoutine, Characteristics, CreateRoutine, DataAccess, DropProgram, ObjectName, ProgramKind, Security,
    Statement, UserName,
};
use omnibus_value::Value;
use std::fmt::Write;
use std::sync::Arc;

/// A system variable that is on; off where there is no server.
pub(super) fn is_on(state: &SessionState, name: &str) -> bool {
    match state.connection.host.variable(VariableScope::Global, name) {
        Ok((Value::Int(n), _)) => n != 0,
        Ok((Value::UInt(n), _)) => n != 0,
        Ok((Value::Bytes(text), _)) => text.eq_ignore_ascii_case(b"ON"),
        Ok(_) => false,
        Err(_) => true,
    }
}

/// A name as SHOW and statements have it.
pub(super) fn quoted(name: &str) -> String {
    quote_ident(name)
}

/// A definition statement that is about a stored program.
pub(crate) struct ProgramDdl<'d, 'a> {
    pub ddl: &'d mut Ddl<'a>,
}

impl ProgramDdl<'_, '_> {
    /// Runs a definition of a stored program. `times` are those of an event's schedule.
    pub(crate) fn run(&mut self, statement: &Statement, times: Option<EventTimes>) -> ExecResult<Outcome> {
        match statement {
            Statement::CreateRoutine(tree) => self.create_routine(tree),
            Statement::AlterRoutine(tree) => self.alter_routine(tree),
            Statement::CreateTrigger(tree) => self.create_trigger(tree),
            Statement::CreateEvent(tree) => match times {
                Some(times) => self.create_event(tree, times),
                None => Err(SqlError::internal("an event without a schedule").into()),
            },
            Statement::AlterEvent(tree) => self.alter_event(tree, times),
            Statement::DropProgram(tree) => match tree.kind {
                ProgramKind::Trigger => self.drop_trigger(tree),
                ProgramKind::Event => self.drop_event(tree),
                ProgramKind::Procedure | ProgramKind::Function => self.drop_program(tree),
            },
            _ => Err(SqlError::internal("not a definition of a stored program").into()),
        }
    }

    /// In whose name a program is made, with the right to say so.
    pub(super) fn named_definer(&mut self, written: Option<&UserName>) -> SqlResult<Definer> {
        named_definer(written, self.ddl.access, self.ddl.state)
    }

    /// A program that is made now.
    pub(super) fn new_program(&self, kind: ProgramKind, db: &str, name: &str, text: String) -> ProgramDef {
        let settings = &self.ddl.state.settings;
        let catalog = self.ddl.trx.catalog();
        let database = catalog.schema(db).map_or(settings.collation_server, |schema| schema.collation);
        let mut def = ProgramDef {
            kind: Some(kind),
            db: Arc::from(db),
            name: Arc::from(name),
            created_us: self.ddl.state.statement.now_us,
            modified_us: self.ddl.state.statement.now_us,
            sql_mode: settings.sql_mode,
            // Its text is kept in UTF-8.
            client: settings.collation_client,
            connection: settings.collation_connection,
            database,
            ..ProgramDef::default()
        };
        def.set_text(text);
        def
    }

    /// The text for the log, in the client's character set.
    pub(super) fn log_as(&self, text: &str) -> Vec<u8> {
        of_client(text.as_bytes(), self.ddl.state.settings.collation_client).into_owned()
    }

    /// CREATE PROCEDURE and CREATE FUNCTION.
    pub(crate) fn create_routine(&mut self, tree: &CreateRoutine) -> ExecResult<Outcome> {
        let db = self.ddl.schema_of(&tree.name)?;
        let (name, what) = (tree.name.name.as_str(), tree.kind.name());
        check_name(name).map_err(|error| match error.code {
            1103 => SqlError::new(1458, b"42000", format!("Incorrect routine name '{name}'")),
            _ => error,
        })?;
        if !self.ddl.state.settings.mariadb {
            let params = tree.params.iter().map(|param| param.name.as_str());
            check::routine_names(std::iter::once(name).chain(params))?;
            let shown = format!("stored routine '{db}.{name}'");
            check::comment(tree.characteristics.comment.as_ref(), &shown)?;
        }
        let routine = Routine { kind: tree.kind, db: &db, name };
        self.ddl.access.check_routine(routine, None, Priv::CreateRoutine)?;
        let definer = self.named_definer(tree.definer.as_ref())?;
        check::body(tree.kind, &tree.program)?;
        if tree.kind == ProgramKind::Function && !tree.program.returns {
            let message = format!("No RETURN found in FUNCTION {db}.{name}");
            return Err(SqlError::new(1320, b"42000", message).into());
        }
        check::variables(self.ddl.state, &tree.program)?;
        self.trust(tree)?;
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        change.next.schema(&db)?;
        let old = change.next.program(tree.kind, &db, name).cloned();
        if old.is_some() && tree.if_not_exists {
            self.ddl.state.diagnostics.note(SqlError::sp_already_exists(what, name));
            self.ddl.trx.rollback();
            return Ok(Outcome::ok());
        }
        if old.is_some() && !tree.or_replace {
            return Err(SqlError::sp_already_exists(what, name).into());
        }
        let text = self.routine_text(tree, &db, &definer)?;
        let mut def = self.new_program(tree.kind, &db, name, text);
        if let Some(old) = &old {
            self.ddl.access.check_routine(routine, None, Priv::AlterRoutine)?;
            def.created_us = old.created_us;
        }
        let def = Arc::new(def);
        Compiled::new(&def, &self.ddl.state.settings, None)?;
        persist::put_program(&mut self.ddl.trx.transaction.writes, &def);
        change.next.put_program(def.clone());
        let replace = if tree.or_replace { "CREATE OR REPLACE " } else { "CREATE " };
        let logged = self.log_as(&def.text.replacen("CREATE ", replace, 1));
        self.commit_in(change, &db, &logged)
    }

    /// Commits a definition whose text names no database: the log has `db` as the current one.
    pub(super) fn commit_in(&mut self, change: Change, db: &str, logged: &[u8]) -> ExecResult<Outcome> {
        let Ddl { trx, state, access, .. } = &mut *self.ddl;
        let current = state.database.replace(db.into());
        let done = Ddl { trx, state, access: *access, sql: logged }.commit(change);
        state.database = current;
        done
    }

    /// Functions that may do anything are not made by everybody: a log of statements would repeat it.
    fn trust(&self, tree: &CreateRoutine) -> SqlResult<()> {
        let what = &tree.characteristics;
        let safe = what.deterministic == Some(true)
            || matches!(what.access, Some(DataAccess::NoSql | DataAccess::ReadsSqlData));
        if tree.kind != ProgramKind::Function
            || safe
            || !self.ddl.state.settings.sql_log_bin
            || is_on(self.ddl.state, "log_bin_trust_function_creators")
        {
            return Ok(());
        }
        let message = "This function has none of DETERMINISTIC, NO SQL, or READS SQL DATA in its declaration and binary \
                       logging is enabled (you *might* want to use the less safe log_bin_trust_function_creators variable)";
        Err(SqlError::new(1418, b"HY000", message))
    }

    /// The statement as SHOW CREATE shows it.
    fn routine_text(&self, tree: &CreateRoutine, db: &str, definer: &Definer) -> SqlResult<String> {
        let returns = match &tree.returns {
            None => None,
            Some(ty) => {
                let collation = self.ddl.trx.catalog().schema(db)?.collation;
                let utf8mb4 = self.ddl.state.settings.default_collation_for_utf8mb4;
                let column = variable_column("RETURN", ty, collation, utf8mb4)?;
                let mut text = type_text(&column.ty);
                if ty.name == omnibus_parser::ast::TypeName::Timestamp {
                    text = text.replacen("datetime", "timestamp", 1);
                }
                if column.is_string() && column.ty.collation != 63
                    || matches!(
                        column.ty.kind,
                        omnibus_value::ColumnKind::Enum | omnibus_value::ColumnKind::Set
                    )
                {
                    let name = charset::charset_name(column.ty.collation);
                    let _ = write!(text, " CHARSET {name}");
                    if self.ddl.state.settings.mariadb || charset::is_not_default(column.ty.collation) {
                        let _ = write!(text, " COLLATE {}", charset::collation_name(column.ty.collation));
                    }
                }
                Some(text)
            }
        };
        let CreateRoutine {
            kind,
            // The caller deals with one that is there, and with the account.
            or_replace: _,
            if_not_exists: _,
            definer: _,
            name,
            // These are kept as texts.
            params: _,
            params_text,
            returns: _,
            returns_text: _,
            characteristics,
            program,
        } = tree;
        let head = Head {
            kind: *kind,
            definer,
            name: &name.name,
            params: &String::from_utf8_lossy(params_text),
            returns: returns.as_deref(),
        };
        Ok(head.text(characteristics, &program.text))
    }

    fn may_alter(&self, kind: ProgramKind, db: &str, name: &str) -> SqlResult<()> {
        let definer = self.ddl.trx.catalog().program(kind, db, name).map(|def| def.definer());
        self.ddl.access.check_routine(Routine { kind, db, name }, definer.as_ref(), Priv::AlterRoutine)
    }

    /// ALTER PROCEDURE and ALTER FUNCTION: what is said of it, and not what it does.
    pub(crate) fn alter_routine(&mut self, alter: &AlterRoutine) -> ExecResult<Outcome> {
        let db = self.ddl.schema_of(&alter.name)?;
        self.may_alter(alter.kind, &db, &alter.name.name)?;
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        let stored = change.next.schema(&db).is_ok();
        let old = change.next.program(alter.kind, &db, &alter.name.name).filter(|_| stored);
        let Some(old) = old.cloned() else {
            return Err(missing(alter.kind, &db, &alter.name).into());
        };
        let tree = old.routine()?;
        let new = &alter.characteristics;
        if !self.ddl.state.settings.mariadb {
            let shown = format!("{} '{db}.{}'", alter.kind.name(), alter.name.name);
            check::comment(new.comment.as_ref(), &shown)?;
        }
        let characteristics = Characteristics {
            comment: new.comment.clone().or(tree.characteristics.comment),
            deterministic: tree.characteristics.deterministic,
            access: new.access.or(tree.characteristics.access),
            security: new.security.or(tree.characteristics.security),
        };
        let definer = old.definer();
        if new.security == Some(Security::Definer) {
            // From now on it acts in the definer's name, which is as good as to name one.
            kept_definer(&definer, self.ddl.access, self.ddl.state)?;
        }
        let returns =
            tree.returns.is_some().then(|| String::from_utf8_lossy(&tree.returns_text).into_owned());
        let head = Head {
            kind: alter.kind,
            definer: &definer,
            name: &old.name,
            params: &String::from_utf8_lossy(&tree.params_text),
            returns: returns.as_deref(),
        };
        let mut def = ProgramDef::clone(&old);
        def.set_text(head.text(&characteristics, &tree.program.text));
        def.modified_us = self.ddl.state.statement.now_us;
        let def = Arc::new(def);
        persist::put_program(&mut self.ddl.trx.transaction.writes, &def);
        change.next.put_program(def);
        self.ddl.commit(change)
    }

    /// DROP PROCEDURE and DROP FUNCTION.
    pub(crate) fn drop_program(&mut self, drop: &DropProgram) -> ExecResult<Outcome> {
        let (kind, name) = (drop.kind, &drop.name.name);
        let db = match self.ddl.schema_of(&drop.name) {
            // As MySQL: a user-defined function has no database.
            Err(_) if kind == ProgramKind::Function && drop.if_exists => String::new(),
            db => db?,
        };
        self.may_alter(kind, &db, name)?;
        let mut change = self.ddl.begin(Names::Tables(&[]))?;
        let stored = change.next.schema(&db).is_ok();
        let Some(old) = change.next.program(kind, &db, name).filter(|_| stored).cloned() else {
            let error = missing(kind, &db, &drop.name);
            if !drop.if_exists {
                return Err(error.into());
            }
            self.ddl.state.diagnostics.note(error);
            // The statement is logged all the same: a replica may have what is not here.
            return self.ddl.commit(change);
        };
        change.next.remove_program(&db, &program_key(kind, name));
        persist::delete_program(&mut self.ddl.trx.transaction.writes, &old);
        self.ddl.commit(change)
    }
}

/// No such program.
fn missing(kind: ProgramKind, db: &str, name: &ObjectName) -> SqlError {
    match kind {
        ProgramKind::Trigger => SqlError::new(1360, b"HY000", "Trigger does not exist"),
        _ => SqlError::sp_does_not_exist(kind.name(), format!("{db}.{}", name.name)),
    }
}

/// The beginning of a routine's statement.
struct Head<'a> {
    kind: ProgramKind,
    definer: &'a Definer,
    name: &'a str,
    params: &'a str,
    returns: Option<&'a str>,
}

impl Head<'_> {
    fn text(&self, what: &Characteristics, body: &[u8]) -> String {
        let mut text = format!(
            "CREATE DEFINER={} {} {}({})",
            self.definer.quoted(),
            self.kind.name(),
            quoted(self.name),
            self.params
        );
        if let Some(returns) = self.returns {
            let _ = write!(text, " RETURNS {returns}");
        }
        text.push('\n');
        match what.access {
            None | Some(DataAccess::ContainsSql) => {}
            Some(access) => {
                let _ = writeln!(text, "    {}", access.text());
            }
        }
        if what.deterministic == Some(true) {
            text.push_str("    DETERMINISTIC\n");
        }
        if what.security == Some(Security::Invoker) {
            text.push_str("    SQL SECURITY INVOKER\n");
        }
        if let Some(comment) = what.comment.as_ref().filter(|comment| !comment.is_empty()) {
            let _ = writeln!(text, "    COMMENT {}", quote_string(&String::from_utf8_lossy(comment)));
        }
        text.push_str(&String::from_utf8_lossy(body));
        text
    }
}
