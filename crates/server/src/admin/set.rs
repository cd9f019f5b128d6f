//! SET: user variables, system variables of the session and the server.
//!
//! All values are computed and checked before anything changes: a mistake in a list leaves the variables before it as they
//! were, and a value that names a variable of the same list has the old one.

use super::Admin;
use crate::account::Account;
use crate::connection::{Assignment, Keep, check_target, checked_value, is_special};
use crate::errors;
use crate::server::Server;
use crate::sysvars::{Given, LastStatement, Registry, Scope, VarDef, VarId, VarValue, isolation_name};
use omnibus_format::Dialect;
use omnibus_parser::ast::{self, SetItem, SetValue, VarScope};
use omnibus_sql::api::sql_mode;
use omnibus_sql::expr::eval::for_variable;
use omnibus_sql::{Diagnostics, Isolation, SqlError, SqlResult, SqlSession};
use omnibus_value::{ColumnType, Value};

/// A member of SET with its value computed.
enum Checked {
    System(Assignment),
    User { name: String, value: (Value, ColumnType) },
}

pub(crate) async fn set_statement(admin: &mut Admin<'_>, items: &[SetItem]) -> SqlResult<()> {
    // Values may tell of the conditions that the statement before left.
    let (mut checked, mut own) = (Vec::with_capacity(items.len()), admin.sql.state.diagnostics.emptied());
    for item in items {
        checked.push(check_item(admin, item, &mut own).await?);
    }
    admin.sql.state.diagnostics = own;
    for (item, checked) in items.iter().zip(checked) {
        match (item, checked) {
            (_, Some(Checked::System(assignment))) => assign(admin, assignment).await?,
            (_, Some(Checked::User { name, value })) => {
                admin.sql.state.set_user_variable(name, value)?;
            }
            (SetItem::User { .. } | SetItem::System { .. }, None) => {
                return Err(SqlError::internal("a variable that was not checked"));
            }
            (SetItem::Local { .. } | SetItem::NewColumn { .. }, None) => {
                return Err(SqlError::internal("a variable outside of its program"));
            }
            (SetItem::Names { charset, collation }, None) => {
                super::set_names::set_names(admin, charset.as_deref(), collation.as_deref())?;
            }
            (SetItem::CharacterSet(charset), None) => {
                super::set_names::set_character_set(admin, charset.as_deref())?
            }
            (SetItem::Password { user, value, replaces, retain_current }, None) => {
                super::users::set_password(admin, user.as_ref(), value, replaces.as_deref(), *retain_current)
                    .await?;
            }
            (SetItem::Transaction { scope, isolation, read_only }, None) => {
                set_transaction(admin, *scope, *isolation, *read_only).await?;
            }
        }
    }
    Ok(())
}

/// Computes and checks the value of a variable; other members have none.
async fn check_item(
    admin: &mut Admin<'_>,
    item: &SetItem,
    own: &mut Diagnostics,
) -> SqlResult<Option<Checked>> {
    let (scope, name, value) = match item {
        SetItem::System { scope, name, value } => (scope, name, value),
        SetItem::User { name, value } => {
            let (value, ty) = evaluate_noting(admin, value, own).await?;
            let collation = admin.sql.state.settings.collation_connection;
            let name = name.to_ascii_lowercase();
            return Ok(Some(Checked::User { name, value: for_variable(value, &ty, collation) }));
        }
        _ => return Ok(None),
    };
    let (id, global) = target(admin, *scope, name)?;
    let def = Registry::get().def(id);
    let given = match value {
        SetValue::Default => {
            let value = if global || def.scope == Scope::Session {
                def.default.value()
            } else {
                admin.server.globals.get(id)
            };
            let keep = Keep::of(*scope);
            return Ok(Some(Checked::System(Assignment { id, global, keep, value, warning: None })));
        }
        SetValue::Word(word) => Given::Text(word.as_str().to_owned()),
        SetValue::Expr(expr) => Given::Value(evaluate_noting(admin, expr, own).await?.0),
    };
    let dialect = admin.server.log.dialect();
    let assignment = checked_value(id, global, *scope, &given, dialect)?;
    // What is beyond a variable's bounds is an error then, and not the bound.
    let strict = admin.sql.state.settings.sql_mode & sql_mode::STRICT_ALL_TABLES != 0;
    let adjusted = assignment.warning.as_ref().is_some_and(|warning| warning.code == 1292);
    if dialect == Dialect::Mysql && strict && adjusted {
        return Err(SqlError::wrong_value_for_var(def.name, given.text()));
    }
    Ok(Some(Checked::System(assignment)))
}

/// As `evaluate`; what it warns of goes to `own`, and what the statement before left stays.
async fn evaluate_noting(
    admin: &mut Admin<'_>,
    expr: &ast::Expr,
    own: &mut Diagnostics,
) -> SqlResult<(Value, ColumnType)> {
    if let Some(plain) = admin.evaluate_plain(expr) {
        return plain;
    }
    let before = admin.sql.state.diagnostics.clone();
    let value = admin.evaluate(expr).await?;
    own.append(std::mem::replace(&mut admin.sql.state.diagnostics, before));
    Ok(value)
}

/// The variable, and whether the server's value is meant; or why it may not be set.
fn target(admin: &Admin<'_>, scope: Option<VarScope>, name: &str) -> SqlResult<(VarId, bool)> {
    let (id, global) = check_target(scope, name, admin.server.log.dialect(), &admin.login.access)?;
    refuse_in_transaction(admin.sql, Registry::get().def(id), global)?;
    Ok((id, global))
}

fn refuse_in_transaction(sql: &SqlSession, def: &VarDef, global: bool) -> SqlResult<()> {
    if !global && matches!(def.name, "gtid_seq_no" | "gtid_domain_id") && sql.in_transaction() {
        return Err(SqlError {
            code: 1953,
            state: *b"HY000",
            message: "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside a transaction"
                .into(),
        });
    }
    let code = match def.name {
        "sql_log_bin" => 1694,
        "binlog_format" => 1679,
        "skip_replication" => 1929,
        _ => return Ok(()),
    };
    if global || !sql.in_transaction() {
        return Ok(());
    }
    let message = format!("Cannot modify @@session.{} inside a transaction", def.name);
    Err(SqlError { code, state: *b"HY000", message })
}

async fn assign(admin: &mut Admin<'_>, assignment: Assignment) -> SqlResult<()> {
    let def = Registry::get().def(assignment.id);
    if let Some(warning) = assignment.warning {
        admin.sql.state.diagnostics.warn(warning);
    }
    if assignment.keep != Keep::No {
        return keep(
            admin.server,
            admin.login.account(),
            def,
            assignment.keep,
            assignment.id,
            assignment.value,
        );
    }
    if is_special(def.name) {
        return super::set_gtid::set_special(admin, def, &assignment.value).await;
    }
    if assignment.global {
        return admin.server.set_global(assignment.id, assignment.value);
    }
    let commits_itself = admin.sql.state.settings.transactions.autocommit;
    if def.name == "autocommit" && assignment.value.as_bool() && !commits_itself {
        admin.commit_first().await?;
    }
    assign_session(admin, assignment.id, def, assignment.value);
    admin.apply_settings();
    if matches!(def.name, "gtid_seq_no" | "gtid_domain_id" | "server_id") {
        return admin.settings.give_sequence(admin.sql);
    }
    Ok(())
}

/// SET PERSIST: first for this server, then for those to come; what a running server refuses is not kept.
fn keep(
    server: &Server,
    account: &Account,
    def: &VarDef,
    keep: Keep,
    id: VarId,
    value: VarValue,
) -> SqlResult<()> {
    if is_special(def.name) {
        return Err(errors::incorrect_scope(def.name, "non persistent read only"));
    }
    if keep == Keep::Too {
        server.set_global(id, value.clone())?;
    }
    let who = (account.user.as_str(), account.host.as_str());
    let datadir = server.globals.named("datadir");
    let datadir = std::path::Path::new(datadir.as_str());
    crate::net::blocking(|| server.persisted.keep(datadir, def.name, &value, who))
}

/// RESET PERSIST.
pub(super) fn reset_persist(admin: &mut Admin<'_>, name: Option<&str>, if_exists: bool) -> SqlResult<()> {
    let known = name.and_then(|name| Registry::get().find(name)).map(|id| Registry::get().def(id).name);
    let datadir = admin.server.globals.named("datadir");
    let datadir = std::path::Path::new(datadir.as_str());
    let there = crate::net::blocking(|| admin.server.persisted.forget(datadir, known.or(name)))?;
    if there {
        return Ok(());
    }
    let message = format!("Variable {} does not exist in persisted config file", name.unwrap_or_default());
    let missing = SqlError { code: 3615, state: *b"HY000", message };
    if !if_exists {
        return Err(missing);
    }
    admin.sql.state.diagnostics.warn(missing);
    Ok(())
}

/// Session variables that are state rather than settings go where they live.
fn assign_session(admin: &mut Admin<'_>, id: VarId, def: &VarDef, value: VarValue) {
    let n = value.as_u64();
    match def.name {
        "insert_id" => {
            admin.settings.insert_id = Some(n).filter(|n| *n != 0);
            admin.settings.shared.set_with_companions(id, def, value);
        }
        "last_insert_id" => {
            admin.sql.state.results.last_insert_id = n;
            let in_transaction = admin.sql.in_transaction();
            admin.settings.shared.statement_ended(LastStatement {
                insert_id: n,
                in_transaction,
                ..LastStatement::default()
            });
        }
        "rand_seed1" => admin.sql.state.connection.rand.0 = n,
        "rand_seed2" => admin.sql.state.connection.rand.1 = n,
        _ => admin.settings.shared.set_with_companions(id, def, value),
    }
}

async fn set_transaction(
    admin: &mut Admin<'_>,
    scope: Option<VarScope>,
    isolation: Option<ast::Isolation>,
    read_only: Option<bool>,
) -> SqlResult<()> {
    let isolation = isolation.map(convert);
    if scope.is_none() {
        return admin.sql.set_next_transaction(isolation, read_only);
    }
    if let Some(level) = isolation {
        let (id, global) = target(admin, scope, "transaction_isolation")?;
        let value = VarValue::Str(isolation_name(level).into());
        assign(admin, Assignment { id, global, keep: Keep::of(scope), value, warning: None }).await?;
    }
    if let Some(read_only) = read_only {
        let (id, global) = target(admin, scope, "transaction_read_only")?;
        let value = VarValue::Bool(read_only);
        assign(admin, Assignment { id, global, keep: Keep::of(scope), value, warning: None }).await?;
    }
    Ok(())
}

fn convert(isolation: ast::Isolation) -> Isolation {
    match isolation {
        ast::Isolation::ReadUncommitted => Isolation::ReadUncommitted,
        ast::Isolation::ReadCommitted => Isolation::ReadCommitted,
        ast::Isolation::RepeatableRead => Isolation::RepeatableRead,
        ast::Isolation::Serializable => Isolation::Serializable,
    }
}
