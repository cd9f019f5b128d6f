//! Calls of stored functions.

use super::Binder;
use super::calls;
use super::calls::SERVER_FUNCTIONS;
use super::uses::STORED_FUNCTION;
use crate::api::{Priv, Routine};
use crate::catalog::quote_ident;
use crate::error::{SqlError, SqlResult};
use crate::expr::stored::{StoredCall, local_type};
use crate::expr::{Expr, Kind, functions};
use omnibus_parser::ast::{FunctionCall, ProgramKind};

/// Whether a call is of a function that the server has itself: no stored one hides it.
pub(super) fn is_built_in(call: &FunctionCall) -> bool {
    call.schema.is_none()
        && (functions::lookup(&call.name).is_some()
            || SERVER_FUNCTIONS.contains(&call.name.to_ascii_uppercase().as_str()))
}

/// A call of any other function.
pub(super) fn stored_function(
    binder: &mut Binder<'_>,
    call: &FunctionCall,
    args: Vec<Expr>,
) -> SqlResult<Expr> {
    let db = call.schema.as_ref().map(|schema| schema.to_string());
    let db = db.or_else(|| binder.author.database.as_deref().map(str::to_owned));
    let stored = match db {
        Some(db) => stored_call(binder, &db, call, args)?,
        None => None,
    };
    binder.mean(|meaning| meaning.set_stored(call));
    stored.ok_or_else(|| calls::no_such_function(binder, call.written_name(), call.schema.as_deref()))
}

/// Binds a call, if there is such a function.
fn stored_call(
    binder: &mut Binder<'_>,
    db: &str,
    call: &FunctionCall,
    args: Vec<Expr>,
) -> SqlResult<Option<Expr>> {
    let Some(def) = binder.objects.catalog.program(ProgramKind::Function, db, &call.name).cloned() else {
        return Ok(None);
    };
    binder.author.access.check_routine(
        Routine { kind: ProgramKind::Function, db, name: &def.name },
        Some(&def.definer()),
        Priv::Execute,
    )?;
    let expected = crate::catalog::of_routine(&def, |tree| tree.params.len())?;
    if expected != args.len() {
        return Err(SqlError::sp_wrong_no_of_args("FUNCTION", def.full_name(), expected, args.len()));
    }
    let Some(runner) = &binder.session.programs.runner else {
        return Err(SqlError::not_supported_yet("stored functions here"));
    };
    let signature = runner.signature(&def, &binder.session.settings)?;
    let returns = signature.returns.ok_or_else(|| SqlError::internal("a function without a type"))?;
    let ty = local_type(&returns.ty);
    binder.note(|noted| noted.bits |= STORED_FUNCTION);
    let schema = call.schema.as_ref().map_or_else(String::new, |schema| quote_ident(schema) + ".");
    let written = (schema + &quote_ident(call.written_name())).into();
    Ok(Some(Expr { kind: Kind::Stored(Box::new(StoredCall { def, written, args: args.into() })), ty }))
}
