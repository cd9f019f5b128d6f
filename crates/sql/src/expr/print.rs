//! Expressions as text: inside error messages ("value is out of range in '(9 + 1)'") and in EXPLAIN.

use super::context::Context;
use super::node::{ArithOp, BitOp, Expr, IsKind, Kind};
use super::stored::StoredCall;
use super::subquery::{Subquery, SubqueryKind};
use omnibus_value::Value;

/// The names of things that an expression has numbers for.
pub trait Names {
    /// A column of a slot's row.
    fn column(&self, slot: u16, column: u16) -> String;
    /// A variable of a program.
    fn local(&self, number: u32) -> String;
    /// A subquery, without what stands around it.
    fn subquery(&self, subquery: &Subquery) -> String;
}

/// Names as error messages have them.
impl Names for Context<'_> {
    /// "`db`.`table`.`column`"; a computed table's columns have no names left.
    fn column(&self, slot: u16, column: u16) -> String {
        let table = self.frame.get(usize::from(slot)).and_then(|slot| slot.table.as_ref());
        match table.and_then(|t| t.columns().get(usize::from(column)).map(|c| (t, c))) {
            Some((t, c)) => format!("`{}`.`{}`.`{}`", t.def.db, t.def.name, c.name),
            None => format!("`{}`", column + 1),
        }
    }

    /// MySQL shows it with its value.
    fn local(&self, number: u32) -> String {
        let columns = &self.session.programs.locals.columns;
        columns.get(number as usize).map_or_else(String::new, |column| column.name.to_string())
    }

    fn subquery(&self, _: &Subquery) -> String {
        "(...)".into()
    }
}

/// `(left op right)`.
#[must_use]
pub fn binary(op: ArithOp, left: &Expr, right: &Expr, names: &dyn Names) -> String {
    format!("({} {} {})", expr(left, names), arithmetic(op), expr(right, names))
}

/// `-(e)`.
#[must_use]
pub fn negated(e: &Expr, names: &dyn Names) -> String {
    format!("-({})", expr(e, names))
}

fn arithmetic(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::IntDiv => "DIV",
        ArithOp::Mod => "%",
    }
}

fn bits(op: BitOp) -> &'static str {
    match op {
        BitOp::And => "&",
        BitOp::Or => "|",
        BitOp::Xor => "^",
        BitOp::ShiftLeft => "<<",
        BitOp::ShiftRight => ">>",
    }
}

/// "not " of a negated form.
fn not(negated: bool) -> &'static str {
    if negated { "not " } else { "" }
}

/// Several, with something between.
#[must_use]
pub fn list<'e>(exprs: impl IntoIterator<Item = &'e Expr>, between: &str, names: &dyn Names) -> String {
    exprs.into_iter().map(|e| expr(e, names)).collect::<Vec<_>>().join(between)
}

/// One expression.
#[must_use]
pub fn expr(e: &Expr, names: &dyn Names) -> String {
    let text = |e: &Expr| expr(e, names);
    match &e.kind {
        Kind::Const(Value::Null) => "NULL".into(),
        Kind::Const(Value::Bytes(text)) => format!("'{}'", String::from_utf8_lossy(text)),
        Kind::Const(value @ (Value::Date(_) | Value::DateTime(_) | Value::Time(_))) => {
            format!("'{}'", plain(value, e))
        }
        Kind::Const(value) => number(value, e),
        Kind::Param(_) => "?".into(),
        Kind::Local(number) => names.local(*number),
        Kind::Stored(call) => stored_call(call, names),
        Kind::Column { slot, column, .. } => names.column(*slot, *column),
        Kind::UserVariable(name) => format!("(@`{name}`)"),
        Kind::Assign(assign) => format!("(@{}:={})", assign.0, text(&assign.1)),
        Kind::SystemVariable(variable) => format!("@@{}", variable.1),
        Kind::Arith(op, pair) => binary(*op, &pair[0], &pair[1], names),
        Kind::Bits(op, pair) => format!("({} {} {})", text(&pair[0]), bits(*op), text(&pair[1])),
        Kind::BitNot(e) => format!("~({})", text(e)),
        Kind::Negate(e) => negated(e, names),
        Kind::Call(def, args) => format!("{}({})", def.name.to_lowercase(), list(&**args, ",", names)),
        Kind::ServerCall(name, args) => format!("{}({})", name.to_lowercase(), list(&**args, ",", names)),
        Kind::Comparable(_, e)
        | Kind::Cast(e)
        | Kind::Retype(e)
        | Kind::Text(e)
        | Kind::Transcode(e)
        | Kind::Once(_, e) => text(e),
        Kind::Compare(op, _, pair) => format!("({} {} {})", text(&pair[0]), op.symbol(), text(&pair[1])),
        Kind::And(all) => format!("({})", list(&**all, " and ", names)),
        Kind::Or(any) => format!("({})", list(&**any, " or ", names)),
        Kind::Xor(pair) => format!("({})", list(&**pair, " xor ", names)),
        Kind::Not(e) => format!("(not({}))", text(e)),
        Kind::Is { expr: e, what, negated } => {
            let what = match what {
                IsKind::Null => "null",
                IsKind::True => "true",
                IsKind::False => "false",
            };
            format!("({} is {}{what})", text(e), not(*negated))
        }
        Kind::In { args, negated, .. } => match args.split_first() {
            Some((first, rest)) => {
                format!("({} {}in ({}))", text(first), not(*negated), list(rest, ",", names))
            }
            None => String::new(),
        },
        Kind::Between { args, negated, .. } => {
            let [e, low, high] = &**args;
            format!("({} {}between {} and {})", text(e), not(*negated), text(low), text(high))
        }
        Kind::Like(like) => {
            format!("({} {}like {})", text(&like.text), not(like.negated), text(&like.pattern))
        }
        Kind::Regexp(regexp) => {
            let call = format!("regexp_like({},{})", text(&regexp.text), text(&regexp.pattern));
            if regexp.negated { format!("(not({call}))") } else { call }
        }
        Kind::Case { whens, otherwise } => {
            let whens = whens.iter().map(|(when, then)| format!("when {} then {} ", text(when), text(then)));
            let otherwise = otherwise.as_ref().map_or(String::new(), |e| format!("else {} ", text(e)));
            format!("(case {}{otherwise}end)", whens.collect::<String>())
        }
        Kind::DateArith { args, unit, subtract } => {
            let sign = if *subtract { '-' } else { '+' };
            format!("({} {sign} interval {} {})", text(&args[0]), text(&args[1]), unit.word().to_lowercase())
        }
        Kind::JsonValue(call) => format!("json_value({},'{}')", text(&call.doc), call.path_text),
        Kind::Extract(unit, e) => format!("extract({} from {})", unit.word().to_lowercase(), text(e)),
        Kind::Unit(unit) => unit.word().to_lowercase(),
        Kind::Row(parts) => format!("({})", list(&**parts, ",", names)),
        Kind::Subquery(subquery) => around(subquery, names),
        Kind::Sequence(_) | Kind::RowKey(_) | Kind::Present(_) => "...".into(),
    }
}

fn stored_call(call: &StoredCall, names: &dyn Names) -> String {
    format!("`{}`.`{}`({})", call.def.db, call.def.name, list(&*call.args, ",", names))
}

/// A constant, which was a minus with a constant behind it if it is below zero.
fn number(value: &Value, e: &Expr) -> String {
    let text = plain(value, e);
    text.strip_prefix('-').map_or_else(|| text.clone(), |positive| format!("-({positive})"))
}

fn plain(value: &Value, e: &Expr) -> String {
    String::from_utf8_lossy(&super::convert::print(value, e.ty.column.decimals)).into_owned()
}

fn around(subquery: &Subquery, names: &dyn Names) -> String {
    let inner = names.subquery(subquery);
    let left = match &subquery.operands[..] {
        [one] => expr(one, names),
        several => format!("({})", list(several, ",", names)),
    };
    match &subquery.kind {
        SubqueryKind::Scalar { .. } => inner,
        SubqueryKind::Exists => format!("exists{inner}"),
        SubqueryKind::In { negated } => format!("({left} {}in {inner})", not(*negated)),
        SubqueryKind::Quantified { op, all } => {
            format!("({left} {} {} {inner})", op.symbol(), if *all { "all" } else { "any" })
        }
    }
}
