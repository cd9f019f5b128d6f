//! CREATE, ALTER, DROP and RENAME of views.
//!
//! A view is bound as a query before any lock is taken; what it reads may change afterwards, and then it is invalid when it is used.
//! The log gets the statement as it was written, with its definer and its own name complete, so that every peer can run it.

use super::build::check_name;
use super::exec::{Change, Ddl, ids};
use crate::api::client_text::of_client;
use crate::api::{AccessCheck, Outcome, Priv, Rights};
use crate::bind::scope::same;
use crate::bind::{Binder, compound, outline, query};
use crate::catalog::{Catalog, Definer, View, ViewDef, parse_view, persist};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::logical::VirtualTables;
use crate::state::SessionState;
use crate::store::Names;
use omnibus_parser::ast::{CreateView, DropTable, Query, QueryBody, Security, UserName, ViewAlgorithm};
use omnibus_parser::print;
use omnibus_parser::{Facts, Meaning, ViewText};
use std::cell::RefCell;
use std::sync::Arc;

/// The account of a session as the definer of what it makes.
fn own_account(state: &SessionState) -> Definer {
    let (user, host) = state.login.account.rsplit_once('@').unwrap_or((&state.login.account, ""));
    Definer { user: Arc::from(user), host: Arc::from(host) }
}

/// The definer that a statement means, if the account may name it. One that is not there is worth a note.
pub(crate) fn named_definer(
    name: Option<&UserName>,
    access: &dyn AccessCheck,
    state: &mut SessionState,
) -> SqlResult<Definer> {
    let own = own_account(state);
    let definer = match name {
        None | Some(UserName::CurrentUser) => return Ok(own),
        Some(UserName::CurrentRole) => {
            let role = state.current_role().ok_or_else(SqlError::malformed_definer)?;
            Definer { user: Arc::from(role), host: Arc::from("") }
        }
        Some(UserName::Named { user, host }) => {
            // Without a host a role is meant, if there is one.
            let role = host.is_empty() && state.settings.mariadb && access.is_role(user);
            let host = if host.is_empty() && !role { "%" } else { &**host };
            Definer { user: Arc::from(&**user), host: Arc::from(host) }
        }
    };
    if definer != own {
        access.check_names_definer(&definer)?;
        if let Err(missing) = access.of_definer(&definer) {
            state.diagnostics.note(missing);
        }
    }
    Ok(definer)
}

/// Whether the account may define anew what goes on acting in this definer's name.
///
/// # Errors
/// As for naming it.
pub(crate) fn kept_definer(
    definer: &Definer,
    access: &dyn AccessCheck,
    state: &SessionState,
) -> SqlResult<()> {
    if *definer == own_account(state) { Ok(()) } else { access.check_names_definer(definer) }
}

/// CREATE VIEW and ALTER VIEW. `catalog` has the session's temporary tables, too.
pub(crate) fn create_view(
    ddl: &mut Ddl<'_>,
    tree: &CreateView,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
) -> ExecResult<Outcome> {
    let db = ddl.schema_of(&tree.name)?;
    let name = tree.name.name.as_str();
    ddl.check(&db, Some(name), Priv::CreateView)?;
    let replaces = tree.or_replace || tree.alter;
    if replaces {
        ddl.check(&db, Some(name), Priv::Drop)?;
    }
    catalog.schema(&db)?;
    check_name(name)?;
    // ALTER keeps what it does not name.
    let old = if tree.alter { Some(catalog.view(&db, name)?.def.clone()) } else { None };
    let definer = match &old {
        Some(old) if tree.definer.is_none() => {
            kept_definer(&old.definer, ddl.access, ddl.state)?;
            old.definer.clone()
        }
        _ => named_definer(tree.definer.as_ref(), ddl.access, ddl.state)?,
    };
    let mut tree = tree.clone();
    if let Some(old) = old {
        tree.security.get_or_insert(old.security);
        tree.algorithm.get_or_insert(old.algorithm);
    }
    let tree = &tree;
    let mut def = view_def(ddl, tree, &db, definer, catalog, virtuals)?;
    let mut change = ddl.begin(Names::Tables(&[(db.clone(), name.to_owned())]))?;
    let schema = change.next.schema(&db)?.clone();
    if schema.tables.contains_key(name) && replaces {
        return Err(SqlError::wrong_object(&db, name, "VIEW").into());
    }
    if schema.has(name) && !replaces {
        if !tree.if_not_exists {
            return Err(SqlError::table_exists(name).into());
        }
        ddl.state.diagnostics.note(SqlError::table_exists(name));
        ddl.trx.rollback();
        return Ok(Outcome::ok());
    }
    match schema.views.get(name) {
        Some(old) => forget_view(ddl, &mut change, old),
        None if tree.alter => return Err(SqlError::no_such_table(&db, name).into()),
        None => {}
    }
    def.id = ids(&mut change.next).table();
    ddl.trx.locks.lock_successor(ddl.trx.statement.waits(), def.id)?;
    let text = logged_view(ddl, tree, &def);
    persist::put_view(&mut ddl.trx.transaction.writes, &def);
    change.next.put_view(Arc::new(View::new(def)));
    let mut named = Ddl { trx: &mut *ddl.trx, state: &mut *ddl.state, access: ddl.access, sql: &text };
    named.commit(change)
}

/// The statement as it is logged.
fn logged_view(ddl: &Ddl<'_>, tree: &CreateView, def: &ViewDef) -> Vec<u8> {
    use crate::catalog::quote_ident;
    let CreateView {
        alter,
        or_replace,
        columns,
        text: query_text,
        // They are in the definition, and there is none of this name.
        algorithm: _,
        definer: _,
        security: _,
        name: _,
        query: _,
        check: _,
        if_not_exists: _,
    } = tree;
    let verb = match (*alter, *or_replace) {
        (true, _) => "ALTER",
        (_, true) => "CREATE OR REPLACE",
        _ => "CREATE",
    };
    let names: Vec<_> = columns.iter().map(|name| quote_ident(name)).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(",")) };
    let (db, name) = (quote_ident(&def.db), quote_ident(&def.name));
    let check = def.check.map_or_else(String::new, |check| format!(" WITH {} CHECK OPTION", check.word()));
    let mut text = format!("{} VIEW {db}.{name}{names} AS ", def.head(verb)).into_bytes();
    text.extend_from_slice(query_text);
    text.extend_from_slice(check.as_bytes());
    // The event says that it is in the client's character set.
    of_client(&text, ddl.state.settings.collation_client).into_owned()
}

/// Looks at the text of a view's query: variables and parameters are refused by their kind, whatever they are.
///
/// # Errors
/// 1350, 1351.
pub(crate) fn check_view_text(query: &Query) -> SqlResult<Facts> {
    let (_, facts) = print::view_sql(query, &ViewText::default());
    if facts.into {
        return Err(SqlError::view_select_derived_clause("INTO"));
    }
    if facts.variable {
        return Err(SqlError::view_select_variable());
    }
    Ok(facts)
}

/// The definition, checked; without its id.
fn view_def(
    ddl: &mut Ddl<'_>,
    tree: &CreateView,
    db: &str,
    definer: Definer,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
) -> SqlResult<ViewDef> {
    let mut query = (*tree.query).clone();
    list_columns(&mut query.body);
    let meaning = RefCell::new(Meaning::default());
    let facts = check_view_text(&query)?;
    if facts.table {
        return Err(SqlError::not_supported_yet("TABLE in a subquery of a view"));
    }
    let mut binder = Binder::new(ddl.state, catalog);
    binder.objects.virtuals = virtuals;
    binder.author.access = Rights::Session(ddl.access);
    binder.notes.meaning = Some(&meaning);
    let plan = query::query(&mut binder, &query)?;
    if !tree.columns.is_empty() && tree.columns.len() != plan.columns.len() {
        return Err(SqlError::view_wrong_list());
    }
    let mut meaning = meaning.into_inner();
    if tree.columns.is_empty() {
        meaning.tell_apart(&query);
    }
    let client = ddl.state.settings.collation_client;
    let written = |text: &[u8]| of_client(text, client).into_owned();
    // MySQL keeps a list of names as it is.
    let folded = ddl.state.settings.mariadb && query.takes_names();
    let folded = if folded { &tree.columns[..] } else { &[] };
    let text = ViewText {
        meaning: Some(&meaning),
        columns: folded,
        home: None,
        written: Some(&written),
        ..ViewText::default()
    };
    let (text, _) = print::view_sql(&query, &text);
    let text = String::from_utf8_lossy(&text);
    let mut def = ViewDef {
        id: 0,
        db: Arc::from(db),
        name: Arc::from(&*tree.name.name),
        algorithm: tree.algorithm.unwrap_or_default(),
        definer,
        security: tree.security.unwrap_or(Security::Definer),
        columns: if folded.is_empty() { tree.columns.clone() } else { Vec::new() },
        query: parse_view(db, &format!("CREATE DEFINER=`u`@`h` VIEW `v` AS {text}"))?.query,
        check: tree.check,
        client,
        connection: ddl.state.settings.collation_connection,
        created: (ddl.state.statement.now_us / 1_000_000) as u64,
    };
    check_view(ddl, &mut def, catalog, virtuals)?;
    Ok(def)
}

/// Uses the view once: its columns' names, whether it is what its options ask for.
fn check_view(
    ddl: &mut Ddl<'_>,
    def: &mut ViewDef,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
) -> SqlResult<()> {
    if def.algorithm == ViewAlgorithm::Merge && View::new(def.clone()).select().is_none() {
        ddl.state.diagnostics.warn(SqlError::warn_view_merge());
        def.algorithm = ViewAlgorithm::Undefined;
    }
    let view = Arc::new(View::new(def.clone()));
    let mut with_it = catalog.clone();
    with_it.remove_table(&def.db, &def.name);
    with_it.put_view(view.clone());
    let outline = outline(&view, ddl.state, &with_it, virtuals).map_err(|error| match error.code {
        // It would read itself: at this moment there is no such view.
        1462 => SqlError::no_such_table(&def.db, &def.name),
        _ => error,
    })?;
    for (at, column) in outline.columns.iter().enumerate() {
        let name = &column.name;
        if name.is_empty() || name.ends_with(' ') || name.chars().count() > 64 {
            return Err(SqlError::wrong_column_name(name));
        }
        if outline.columns[..at].iter().any(|other| same(&other.name, name)) {
            return Err(SqlError::dup_fieldname(name));
        }
    }
    if def.check.is_some() && !outline.updatable {
        return Err(SqlError::view_nonupd_check(view.qualified()));
    }
    Ok(())
}

/// Takes a view that is locked out of the catalog to be.
pub(super) fn forget_view(ddl: &mut Ddl<'_>, change: &mut Change, view: &Arc<View>) {
    persist::delete_view(&mut ddl.trx.transaction.writes, view.def.id);
    change.next.remove_view(&view.def.db, &view.def.name);
    change.stale_views.push(view.clone());
}

/// DROP VIEW: all of them or none.
pub(crate) fn drop_views(ddl: &mut Ddl<'_>, tree: &DropTable) -> ExecResult<Outcome> {
    let names = super::table::names_to_drop(ddl, tree)?;
    let mut change = ddl.begin(Names::Tables(&names))?;
    let mut missing = Vec::new();
    for (db, name) in &names {
        match change.next.schemas.get(&**db).and_then(|schema| schema.views.get(&**name)).cloned() {
            Some(view) => forget_view(ddl, &mut change, &view),
            None if tree.if_exists => missing.push(format!("{db}.{name}")),
            None if change.next.find_table(db, name).is_some() => {
                return Err(SqlError::wrong_object(db, name, "VIEW").into());
            }
            None => missing.push(format!("{db}.{name}")),
        }
    }
    if !missing.is_empty() && !tree.if_exists {
        return Err(unknown_view(ddl, missing.join(",")).into());
    }
    for names in super::table::told_together(ddl, missing) {
        let note = unknown_view(ddl, names);
        ddl.state.diagnostics.note(note);
    }
    if change.stale_views.is_empty() {
        ddl.trx.rollback();
        return Ok(Outcome::ok());
    }
    ddl.commit(change)
}

fn unknown_view(ddl: &Ddl<'_>, names: String) -> SqlError {
    match ddl.state.settings.mariadb {
        true => SqlError::new(4092, b"42S02", format!("Unknown VIEW: '{names}'")),
        false => SqlError::bad_table(names),
    }
}

/// The error of DROP TABLE for a view.
pub(super) fn is_a_view(ddl: &Ddl<'_>, change: &Change, db: &str, name: &str) -> Option<SqlError> {
    let view = change.next.find_view(db, name).filter(|_| ddl.state.settings.mariadb)?;
    Some(SqlError::new(1965, b"42S02", format!("'{}' is a view", view.qualified())))
}

/// RENAME TABLE of a view, which keeps its database.
pub(super) fn rename_view(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    view: &Arc<View>,
    to: (&str, &str),
) -> SqlResult<()> {
    let (db, name) = to;
    check_name(name)?;
    if *db != *view.def.db {
        return Err(SqlError::forbid_schema_change(&view.def.db, db));
    }
    if change.next.schema(db)?.has(name) {
        return Err(SqlError::table_exists(name));
    }
    let def = ViewDef { name: Arc::from(name), ..view.def.clone() };
    persist::put_view(&mut ddl.trx.transaction.writes, &def);
    change.next.remove_view(db, &view.def.name);
    change.next.put_view(Arc::new(View::new(def)));
    change.stale_views.push(view.clone());
    Ok(())
}

/// `TABLE t` as a SELECT of a list of columns, where that is the query or a part of its set operations.
fn list_columns(body: &mut QueryBody) {
    match body {
        QueryBody::Table(name) => *body = QueryBody::Select(Box::new(compound::select_all(name))),
        QueryBody::SetOperation { left, right, .. } => {
            list_columns(left);
            list_columns(right);
        }
        QueryBody::Nested(inner) => list_columns(&mut inner.body),
        QueryBody::Select(_) | QueryBody::Values(_) => {}
    }
}
