//! Expressions as text inside error messages ("value is out of range in '(9 + 1)'").

use super::node::{ArithOp, Expr, Kind};
use omnibus_value::Value;

/// `(left op right)`.
#[must_use]
pub fn binary(op: ArithOp, left: &Expr, right: &Expr) -> String {
    format!("({} {} {})", expr(left), symbol(op), expr(right))
}

/// `-(e)`.
#[must_use]
pub fn negated(e: &Expr) -> String {
    format!("-({})", expr(e))
}

fn symbol(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::IntDiv => "DIV",
        ArithOp::Mod => "%",
    }
}

fn expr(e: &Expr) -> String {
    match &e.kind {
        Kind::Const(Value::Null) => "NULL".into(),
        Kind::Const(Value::Bytes(text)) => format!("'{}'", String::from_utf8_lossy(text)),
        Kind::Const(value) => {
            String::from_utf8_lossy(&super::convert::print(value, e.ty.column.decimals)).into_owned()
        }
        Kind::Param(_) => "?".into(),
        Kind::Column { slot, column, .. } => format!("column {column} of table {slot}"),
        Kind::UserVariable(name) => format!("(@`{name}`)"),
        Kind::Arith(op, pair) => binary(*op, &pair[0], &pair[1]),
        Kind::Negate(e) => negated(e),
        Kind::Call(def, args) => {
            let args: Vec<String> = args.iter().map(expr).collect();
            format!("{}({})", def.name.to_lowercase(), args.join(","))
        }
        Kind::Cast(e) | Kind::Retype(e) | Kind::Text(e) | Kind::Transcode(e) => expr(e),
        _ => "...".into(),
    }
}
