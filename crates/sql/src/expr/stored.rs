//! A call of a stored function.

use super::types::{Coercibility, Family, family};
use super::{Context, Expr, ExprType};
use crate::catalog::ProgramDef;
use crate::error::{ExecResult, SqlError};
use crate::store::Trx;
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct StoredCall {
    /// The function.
    pub def: Arc<ProgramDef>,
    /// Its name as the statement has it, in quotes.
    pub written: Box<str>,
    /// Its arguments.
    pub args: Box<[Expr]>,
}

/// The type of a variable, or of what a function gives, as an expression.
pub(crate) fn local_type(column: &ColumnType) -> ExprType {
    let coercibility = match family(column.kind) {
        Family::String | Family::Json => Coercibility::Implicit,
        _ => Coercibility::Numeric,
    };
    ExprType { column: column.clone(), nullable: true, coercibility }
}

impl StoredCall {
    /// The function's value.
    ///
    /// # Errors
    /// As its statements; `NeedBlocking` where it may not block.
    pub(crate) fn eval(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        let mut values = Vec::with_capacity(self.args.len());
        // They are assigned to parameters.
        let strict = std::mem::replace(&mut cx.strict, cx.session.settings.strict());
        for arg in &self.args {
            match arg.eval(cx) {
                Ok(value) => values.push((value, arg.ty.column.clone())),
                Err(error) => {
                    cx.strict = strict;
                    return Err(error);
                }
            }
        }
        cx.strict = strict;
        let runner = cx.session.programs.runner.clone();
        let trx = cx.storage.transaction().and_then(|trx| trx.downcast_mut::<Trx>());
        match (runner, trx) {
            (Some(runner), Some(trx)) => runner.call(&self.def, values, cx.session, trx),
            _ => Err(SqlError::not_supported_yet("stored functions here").into()),
        }
    }
}
