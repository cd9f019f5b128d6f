//! Values of literals and variables, without the SQL layer.

use super::host::SessionShared;
use crate::sysvars::{double_type, integer_type, text_type};
use omnibus_parser::ast::{Expr, Literal, UnaryOp, VarScope};
use omnibus_sql::{SessionHost, SessionState, SqlResult, VariableScope};
use omnibus_value::{ColumnType, Value};

fn literal(literal: &Literal) -> Option<(Value, ColumnType)> {
    Some(match literal {
        Literal::Null => (Value::Null, text_type(0)),
        Literal::True => (Value::Int(1), integer_type(false)),
        Literal::False => (Value::Int(0), integer_type(false)),
        Literal::Int(n) => match i64::try_from(*n) {
            Ok(n) => (Value::Int(n), integer_type(false)),
            Err(_) => (Value::UInt(*n), integer_type(true)),
        },
        Literal::Float(x) => (Value::Double(*x), double_type()),
        Literal::Str(s) => (Value::Bytes(s.clone()), text_type(s.len() as u32)),
        _ => return None,
    })
}

/// The value without asking the SQL layer, where that is plain.
pub(crate) fn evaluate_plain(
    shared: &SessionShared,
    state: &SessionState,
    expr: &Expr,
) -> Option<SqlResult<(Value, ColumnType)>> {
    match expr {
        Expr::Literal(l) => literal(l).map(Ok),
        Expr::Unary { op: UnaryOp::Minus, expr } => match evaluate_plain(shared, state, expr)? {
            Ok((Value::Int(n), ty)) => Some(Ok((Value::Int(-n), ty))),
            Ok((Value::Double(x), ty)) => Some(Ok((Value::Double(-x), ty))),
            _ => None,
        },
        Expr::SysVar { scope, name } => {
            let scope = match scope {
                None => VariableScope::Either,
                Some(VarScope::Session) => VariableScope::Session,
                Some(_) => VariableScope::Global,
            };
            Some(shared.variable(scope, name))
        }
        Expr::UserVar(name) => {
            let known = state.values.get(&name.to_ascii_lowercase());
            Some(Ok(known.cloned().unwrap_or((Value::Null, text_type(0)))))
        }
        _ => None,
    }
}
