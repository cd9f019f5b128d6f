//! Expressions as text inside error messages ("value is out of range in '(9 + 1)'").

use super::exec::Exec;
use super::node::{ArithOp, Expr, Kind};
use omnibus_value::Value;

/// `(left op right)`.
#[must_use]
pub fn binary(op: ArithOp, left: &Expr, right: &Expr, cx: &Exec<'_>) -> String {
    format!("({} {} {})", expr(left, cx), symbol(op), expr(right, cx))
}

/// `-(e)`.
#[must_use]
pub fn negated(e: &Expr, cx: &Exec<'_>) -> String {
    format!("-({})", expr(e, cx))
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

/// A variable of a program, which MySQL shows with its value.
fn local_name(number: u32, cx: &Exec<'_>) -> String {
    let columns = &cx.session.programs.locals.columns;
    columns.get(number as usize).map_or_else(String::new, |column| column.name.to_string())
}

fn expr(e: &Expr, cx: &Exec<'_>) -> String {
    match &e.kind {
        Kind::Const(Value::Null) => "NULL".into(),
        Kind::Const(Value::Bytes(text)) => format!("'{}'", String::from_utf8_lossy(text)),
        Kind::Const(value) => {
            String::from_utf8_lossy(&super::convert::print(value, e.ty.column.decimals)).into_owned()
        }
        Kind::Param(_) => "?".into(),
        Kind::Local(number) => local_name(*number, cx),
        Kind::Stored(call) => {
            let args: Vec<String> = call.args.iter().map(|e| expr(e, cx)).collect();
            format!("`{}`.`{}`({})", call.def.db, call.def.name, args.join(","))
        }
        Kind::Column { slot, column, .. } => column_name(*slot, *column, cx),
        Kind::UserVariable(name) => format!("(@`{name}`)"),
        Kind::Arith(op, pair) => binary(*op, &pair[0], &pair[1], cx),
        Kind::Negate(e) => negated(e, cx),
        Kind::Call(def, args) => {
            let args: Vec<String> = args.iter().map(|e| expr(e, cx)).collect();
            format!("{}({})", def.name.to_lowercase(), args.join(","))
        }
        Kind::Comparable(_, e) | Kind::Cast(e) | Kind::Retype(e) | Kind::Text(e) | Kind::Transcode(e) => {
            expr(e, cx)
        }
        _ => "...".into(),
    }
}

/// "`db`.`table`.`column`"; a computed table's columns have no names left.
fn column_name(slot: u16, column: u16, cx: &Exec<'_>) -> String {
    let table = cx.frame.get(usize::from(slot)).and_then(|slot| slot.table.as_ref());
    match table.and_then(|t| t.columns().get(usize::from(column)).map(|c| (t, c))) {
        Some((t, c)) => format!("`{}`.`{}`.`{}`", t.def.db, t.def.name, c.name),
        None => format!("`{}`", column + 1),
    }
}
