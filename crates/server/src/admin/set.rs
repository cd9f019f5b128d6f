//! SET: user variables, system variables of the session and the server.
//!
//! All values are computed and checked before anything changes: a mistake in a list leaves the variables before it as they
//! were, and a value that names a variable of the same list has the old one.

use crate::errors;
use crate::session::{Session, SessionShared};
use crate::sysvars::persisted;
use crate::sysvars::{Change, Given, Registry, Scope, VarDef, VarId, VarValue, coerce, isolation_name};
use omnibus_format::Dialect;
use omnibus_parser::ast::{self, SetItem, SetValue, VarScope};
use omnibus_sql::api::Assignment as Assigned;
use omnibus_sql::expr::eval::for_variable;
use omnibus_sql::{AccessCheck, Diagnostics, Isolation, SessionSettings, SqlError, SqlResult};
use omnibus_value::{ColumnType, Value};

/// What SET PERSIST does with a value beside setting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// SET GLOBAL and SET SESSION.
    No,
    /// PERSIST.
    Too,
    /// PERSIST_ONLY: the running server goes on with what it has.
    Only,
}

impl Keep {
    fn of(scope: Option<VarScope>) -> Keep {
        match scope {
            Some(VarScope::Persist) => Keep::Too,
            Some(VarScope::PersistOnly) => Keep::Only,
            _ => Keep::No,
        }
    }
}

/// A checked system variable assignment.
struct Assignment {
    id: VarId,
    global: bool,
    keep: Keep,
    value: VarValue,
    warning: Option<SqlError>,
}

/// What a member of SET assigns, computed.
enum Checked {
    System(Assignment),
    User { name: String, value: (Value, ColumnType) },
}

impl Session {
    pub(super) async fn set_statement(&mut self, items: &[SetItem]) -> SqlResult<()> {
        // Values may tell of the conditions that the statement before left.
        let (mut checked, mut own) = (Vec::with_capacity(items.len()), Diagnostics::default());
        for item in items {
            checked.push(self.check_item(item, &mut own).await?);
        }
        self.runner.state_mut().diagnostics = own;
        for (item, checked) in items.iter().zip(checked) {
            match (item, checked) {
                (_, Some(Checked::System(assignment))) => self.assign(assignment).await?,
                (_, Some(Checked::User { name, value })) => {
                    self.runner.state_mut().set_user_variable(name, value)?;
                }
                (SetItem::User { .. } | SetItem::System { .. }, None) => {
                    return Err(SqlError::internal("a variable that was not checked"));
                }
                (SetItem::Local { .. } | SetItem::NewColumn { .. }, None) => {
                    return Err(SqlError::internal("a variable outside of its program"));
                }
                (SetItem::Names { charset, collation }, None) => {
                    self.set_names(charset.as_deref(), collation.as_deref())?;
                }
                (SetItem::CharacterSet(charset), None) => self.set_character_set(charset.as_deref())?,
                (SetItem::Password { user, value, replaces, retain_current }, None) => {
                    self.set_password(user.as_ref(), value, replaces.as_deref(), *retain_current).await?;
                }
                (SetItem::Transaction { scope, isolation, read_only }, None) => {
                    self.set_transaction(*scope, *isolation, *read_only).await?;
                }
            }
        }
        Ok(())
    }

    /// Computes and checks the value of a variable; other members have none.
    async fn check_item(&mut self, item: &SetItem, own: &mut Diagnostics) -> SqlResult<Option<Checked>> {
        let (scope, name, value) = match item {
            SetItem::System { scope, name, value } => (scope, name, value),
            SetItem::User { name, value } => {
                let (value, ty) = self.evaluate_noting(value, own).await?;
                let collation = self.runner.state().settings.collation_connection;
                let name = name.to_ascii_lowercase();
                return Ok(Some(Checked::User { name, value: for_variable(value, &ty, collation) }));
            }
            _ => return Ok(None),
        };
        let (id, global) = self.check_target(*scope, name)?;
        let def = Registry::get().def(id);
        let given = match value {
            SetValue::Default => {
                let value = if global || def.scope == Scope::Session {
                    def.default.value()
                } else {
                    self.server.globals.get(id)
                };
                let keep = Keep::of(*scope);
                return Ok(Some(Checked::System(Assignment { id, global, keep, value, warning: None })));
            }
            SetValue::Word(word) => Given::Text(word.as_str().to_owned()),
            SetValue::Expr(expr) => Given::Value(self.evaluate_noting(expr, own).await?.0),
        };
        checked_value(id, global, *scope, &given).map(|assignment| Some(Checked::System(assignment)))
    }

    /// As `evaluate`; what it warns of goes to `own`, and what the statement before left stays.
    async fn evaluate_noting(
        &mut self,
        expr: &ast::Expr,
        own: &mut Diagnostics,
    ) -> SqlResult<(Value, ColumnType)> {
        if let Some(plain) = self.evaluate_plain(expr) {
            return plain;
        }
        let before = self.runner.state().diagnostics.clone();
        let value = self.evaluate(expr).await?;
        own.append(std::mem::replace(&mut self.runner.state_mut().diagnostics, before));
        Ok(value)
    }

    /// The variable, and whether the server's value is meant; or why it may not be set.
    fn check_target(&self, scope: Option<VarScope>, name: &str) -> SqlResult<(VarId, bool)> {
        let (id, global) = check_target(scope, name, self.server.log.dialect(), &self.identity.access)?;
        self.refuse_in_transaction(Registry::get().def(id), global)?;
        Ok((id, global))
    }

    fn refuse_in_transaction(&self, def: &VarDef, global: bool) -> SqlResult<()> {
        if !global && matches!(def.name, "gtid_seq_no" | "gtid_domain_id") && self.runner.trx().open {
            return Err(SqlError {
                code: 1953,
                state: *b"HY000",
                message:
                    "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside a transaction"
                        .into(),
            });
        }
        let code = match def.name {
            "sql_log_bin" => 1694,
            "binlog_format" => 1679,
            "skip_replication" => 1929,
            _ => return Ok(()),
        };
        if global || !self.runner.trx().open {
            return Ok(());
        }
        let message = format!("Cannot modify @@session.{} inside a transaction", def.name);
        Err(SqlError { code, state: *b"HY000", message })
    }

    async fn assign(&mut self, assignment: Assignment) -> SqlResult<()> {
        let def = Registry::get().def(assignment.id);
        if let Some(warning) = assignment.warning {
            self.runner.state_mut().diagnostics.warn(warning);
        }
        if assignment.keep != Keep::No {
            return self.keep(def, assignment.keep, assignment.id, assignment.value);
        }
        if super::set_gtid::is_special(def.name) {
            return self.set_special(def, &assignment.value).await;
        }
        if assignment.global {
            return self.server.set_global(assignment.id, assignment.value);
        }
        if def.name == "autocommit" && assignment.value.as_bool() && !self.runner.state().settings.autocommit
        {
            self.commit_first().await?;
        }
        self.assign_session(assignment.id, def, assignment.value);
        self.apply_settings();
        if matches!(def.name, "gtid_seq_no" | "gtid_domain_id" | "server_id") {
            self.gtids.sequence_given = true;
            return self.next_sequence();
        }
        Ok(())
    }

    /// SET PERSIST: first for this server, then for those to come; what a running server refuses is not kept.
    fn keep(&self, def: &VarDef, keep: Keep, id: VarId, value: VarValue) -> SqlResult<()> {
        if super::set_gtid::is_special(def.name) {
            return Err(errors::incorrect_scope(def.name, "non persistent read only"));
        }
        if keep == Keep::Too {
            self.server.set_global(id, value.clone())?;
        }
        let account = self.account();
        let who = (account.user.as_str(), account.host.as_str());
        let datadir = self.server.globals.named("datadir");
        let datadir = std::path::Path::new(datadir.as_str());
        tokio::task::block_in_place(|| self.server.persisted.keep(datadir, def.name, &value, who))
    }

    /// RESET PERSIST.
    pub(super) fn reset_persist(&mut self, name: Option<&str>, if_exists: bool) -> SqlResult<()> {
        let known = name.and_then(|name| Registry::get().find(name)).map(|id| Registry::get().def(id).name);
        let datadir = self.server.globals.named("datadir");
        let datadir = std::path::Path::new(datadir.as_str());
        let there = tokio::task::block_in_place(|| self.server.persisted.forget(datadir, known.or(name)))?;
        if there {
            return Ok(());
        }
        let message =
            format!("Variable {} does not exist in persisted config file", name.unwrap_or_default());
        let missing = SqlError { code: 3615, state: *b"HY000", message };
        if !if_exists {
            return Err(missing);
        }
        self.runner.state_mut().diagnostics.warn(missing);
        Ok(())
    }

    /// Session variables that are state rather than settings go where they live.
    fn assign_session(&mut self, id: VarId, def: &VarDef, value: VarValue) {
        let n = value.as_u64();
        match def.name {
            "insert_id" => {
                self.running.insert_id = Some(n).filter(|n| *n != 0);
            }
            "last_insert_id" => {
                self.runner.state_mut().last_insert_id = n;
                self.shared.statement_ended(0, 0, n);
            }
            "rand_seed1" => self.runner.state_mut().rand.0 = n,
            "rand_seed2" => self.runner.state_mut().rand.1 = n,
            _ => self.shared.set_with_companions(id, def, value),
        }
    }

    async fn set_transaction(
        &mut self,
        scope: Option<VarScope>,
        isolation: Option<ast::Isolation>,
        read_only: Option<bool>,
    ) -> SqlResult<()> {
        let isolation = isolation.map(convert);
        if scope.is_none() {
            return self.runner.set_next_transaction(isolation, read_only);
        }
        if let Some(level) = isolation {
            let (id, global) = self.check_target(scope, "transaction_isolation")?;
            let value = VarValue::Str(isolation_name(level).into());
            self.assign(Assignment { id, global, keep: Keep::of(scope), value, warning: None }).await?;
        }
        if let Some(read_only) = read_only {
            let (id, global) = self.check_target(scope, "transaction_read_only")?;
            let value = VarValue::Bool(read_only);
            self.assign(Assignment { id, global, keep: Keep::of(scope), value, warning: None }).await?;
        }
        Ok(())
    }
}

fn convert(isolation: ast::Isolation) -> Isolation {
    match isolation {
        ast::Isolation::ReadUncommitted => Isolation::ReadUncommitted,
        ast::Isolation::ReadCommitted => Isolation::ReadCommitted,
        ast::Isolation::RepeatableRead => Isolation::RepeatableRead,
        ast::Isolation::Serializable => Isolation::Serializable,
    }
}

/// The variable, and whether the server's value is meant; or why it may not be set.
fn check_target(
    scope: Option<VarScope>,
    name: &str,
    dialect: Dialect,
    access: &dyn AccessCheck,
) -> SqlResult<(VarId, bool)> {
    let registry = Registry::get();
    let id = registry.find_in(name, dialect).ok_or_else(|| SqlError::unknown_system_variable(name))?;
    let def = registry.def(id);
    let keep = Keep::of(scope);
    if keep != Keep::No {
        persisted::check(def)?;
    }
    if def.change == Change::Computed || def.change == Change::ReadOnly && keep != Keep::Only {
        return Err(errors::incorrect_scope(name, "read only"));
    }
    let global = match scope {
        Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly) => true,
        Some(VarScope::Session) | None => false,
    };
    if def.name == "server_id" && !global && dialect == Dialect::Mysql {
        return Err(errors::global_variable(name));
    }
    match (global, def.scope) {
        (false, Scope::Global) => return Err(errors::global_variable(name)),
        (true, Scope::Session) => return Err(errors::local_variable(name)),
        _ => {}
    }
    access.check_variable(def.name, scope, dialect)?;
    Ok((id, global))
}

impl SessionShared {
    /// SET in a function or trigger: without the session, which runs the statement around.
    pub(crate) fn assign_inside(
        &self,
        assignment: &Assigned<'_>,
    ) -> SqlResult<(SessionSettings, Option<SqlError>)> {
        let Assigned { scope, name, value, access, settings: now } = assignment;
        let dialect = self.server().log.dialect();
        let (id, global) = check_target(*scope, name, dialect, *access)?;
        let def = Registry::get().def(id);
        refuse_inside(def)?;
        if Keep::of(*scope) != Keep::No {
            return Err(SqlError::not_supported_yet("SET PERSIST in a function or trigger"));
        }
        let (value, warning) = match value {
            None if global || def.scope == Scope::Session => (def.default.value(), None),
            None => (self.server().globals.get(id), None),
            Some(value) => {
                let checked = checked_value(id, global, *scope, &Given::Value(value.clone()))?;
                (checked.value, checked.warning)
            }
        };
        let mut settings = (*now).clone();
        if global {
            self.server().set_global(id, value)?;
        } else if def.name == "sql_mode" {
            // The program's own, which ends with it.
            settings.sql_mode = crate::sysvars::sql_mode_bits(value.as_str()).unwrap_or(now.sql_mode);
        } else {
            self.set_with_companions(id, def, value);
            settings = self.settings_again(now);
        }
        Ok((settings, warning))
    }
}

/// What a program within a statement must leave alone: how the statement is logged and committed, and what is the session's state.
fn refuse_inside(def: &VarDef) -> SqlResult<()> {
    let refused =
        |code: u16, message: &str| Err(SqlError { code, state: *b"HY000", message: message.into() });
    match def.name {
        "autocommit" => refused(1445, "Not allowed to set autocommit from a stored function or trigger"),
        "binlog_format" => {
            refused(1560, "Cannot change the binary logging format inside a stored function or trigger")
        }
        "sql_log_bin" => refused(1695, "Cannot change the sql_log_bin inside a stored function or trigger"),
        "gtid_domain_id" | "gtid_seq_no" | "server_id" => not_inside(def.name),
        name if super::set_gtid::is_special(name) => not_inside(name),
        name @ ("insert_id" | "last_insert_id" | "rand_seed1" | "rand_seed2") => {
            Err(SqlError::not_supported_yet(format!("SET {name} in a function or trigger")))
        }
        _ => Ok(()),
    }
}

fn not_inside(name: &str) -> SqlResult<()> {
    let message = format!("The system variable {name} cannot be set in stored functions or triggers.");
    Err(SqlError { code: 1765, state: *b"HY000", message })
}

fn checked_value(id: VarId, global: bool, scope: Option<VarScope>, given: &Given) -> SqlResult<Assignment> {
    let def = Registry::get().def(id);
    let (value, warning) = coerce(def, given)?;
    crate::sysvars::refuse_unsupported(def, &value)?;
    Ok(Assignment { id, global, keep: Keep::of(scope), value, warning })
}
