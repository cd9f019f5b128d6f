//! A view's query as MySQL shows it: the same meaning in the words that its optimizer has for it.
//!
//! Only what SHOW CREATE VIEW and `information_schema` show; what is kept is what was written. Each form here reads back as what it stands for.

use super::{Printer, calls};
use crate::ast::{
    Aggregate, AggregateKind, BinaryOp, CastType, Expr, FrameBound, FunctionCall, IntervalUnit, Like,
    Literal, Quantifier, Query, QueryBody, Truth, UnaryOp, WindowFrame, WindowSpec,
};
use std::borrow::Cow;

/// Functions by another name, and the name that MySQL shows.
const NAMES: [(&str, &str); 9] = [
    ("substring", "substr"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("power", "pow"),
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("octet_length", "length"),
    ("day", "dayofmonth"),
    ("json_merge", "json_merge_preserve"),
];

/// Whether a query needs no parentheses as a part of another.
pub(super) fn is_bare(query: &Query) -> bool {
    matches!(query.body, QueryBody::Select(_))
        && query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn not(expr: Expr) -> Expr {
    Expr::Unary { op: UnaryOp::Not, expr: Box::new(expr) }
}

fn zero() -> Expr {
    Expr::Literal(Literal::Int(0))
}

/// Whether an operand is asked as it is.
fn is_asked_plainly(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(_)) || expr.is_truth()
}

/// An operand that is asked whether it is true.
fn asked(expr: &Expr) -> Expr {
    if is_asked_plainly(expr) { expr.clone() } else { binary(BinaryOp::Ne, zero(), expr.clone()) }
}

/// XOR asks constants, too.
fn asked_by_xor(expr: &Expr) -> Expr {
    match expr {
        Expr::Literal(_) => binary(BinaryOp::Ne, zero(), expr.clone()),
        expr => asked(expr),
    }
}

fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

/// NOT of an expression without that word, if there is such a form.
fn negation(expr: &Expr) -> Option<Expr> {
    let flipped = |mut expr: Expr| {
        match &mut expr {
            Expr::Between { negated, .. } | Expr::In { negated, .. } | Expr::IsNull { negated, .. } => {
                *negated = !*negated;
            }
            _ => {}
        }
        expr
    };
    let negated = |expr: &Expr| negation(expr).unwrap_or_else(|| not(expr.clone()));
    match expr {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            Some(binary(BinaryOp::Or, negated(left), negated(right)))
        }
        Expr::Binary { op: BinaryOp::Or, left, right } => {
            Some(binary(BinaryOp::And, negated(left), negated(right)))
        }
        Expr::Binary { op, left, right } if let Some(op) = opposite(*op) => {
            Some(binary(op, (**left).clone(), (**right).clone()))
        }
        Expr::Unary { op: UnaryOp::Not, expr } => Some(asked(expr)),
        Expr::Between { .. } | Expr::In { .. } | Expr::IsNull { .. } => Some(flipped(expr.clone())),
        expr if !is_asked_plainly(expr) => Some(binary(BinaryOp::Eq, zero(), expr.clone())),
        _ => None,
    }
}

/// Operands of AND or OR, however they are nested.
fn flat<'e>(of: BinaryOp, expr: &'e Expr, out: &mut Vec<Cow<'e, Expr>>) {
    match expr {
        Expr::Binary { op, left, right } if *op == of => {
            flat(of, left, out);
            flat(of, right, out);
        }
        Expr::Binary { op: BinaryOp::Eq, left, right } if of == BinaryOp::And => match (&**left, &**right) {
            (Expr::Row(left), Expr::Row(right)) if left.len() == right.len() => {
                let equal = left.iter().zip(right);
                out.extend(equal.map(|(a, b)| Cow::Owned(binary(BinaryOp::Eq, a.clone(), b.clone()))));
            }
            _ => out.push(Cow::Borrowed(expr)),
        },
        expr => out.push(Cow::Borrowed(expr)),
    }
}

/// `a = 1 AND b = 2` of rows that are equal.
fn by_member(left: &[Expr], right: &[Expr]) -> Option<Expr> {
    let mut equal = left.iter().zip(right).map(|(a, b)| binary(BinaryOp::Eq, a.clone(), b.clone()));
    let first = equal.next().filter(|_| left.len() == right.len())?;
    Some(equal.fold(first, |all, one| binary(BinaryOp::And, all, one)))
}

/// Another expression that MySQL shows for this one.
fn instead(expr: &Expr) -> Option<Expr> {
    Some(match expr {
        Expr::Unary { op: UnaryOp::Not, expr } => negation(expr)?,
        Expr::Unary { op: UnaryOp::Plus, expr } => (**expr).clone(),
        Expr::Binary { op: BinaryOp::Eq, left, right } => match (&**left, &**right) {
            (Expr::Row(left), Expr::Row(right)) => by_member(left, right)?,
            _ => return None,
        },
        Expr::Binary { op: BinaryOp::SoundsLike, left, right } => {
            let soundex =
                |e: &Expr| Expr::Function(Box::new(FunctionCall::built_in("soundex", vec![e.clone()])));
            binary(BinaryOp::Eq, soundex(left), soundex(right))
        }
        // Of one value IN is a comparison.
        Expr::In { expr, list, negated } => match &list[..] {
            [only] => {
                let op = if *negated { BinaryOp::Ne } else { BinaryOp::Eq };
                binary(op, (**expr).clone(), only.clone())
            }
            _ => return None,
        },
        Expr::InSubquery { expr, query, negated: true } => {
            not(Expr::InSubquery { expr: expr.clone(), query: query.clone(), negated: false })
        }
        Expr::Quantified { op, quantifier, left, query } => {
            let within = Expr::InSubquery { expr: left.clone(), query: query.clone(), negated: false };
            match (op, quantifier) {
                (BinaryOp::Eq, Quantifier::Any) => within,
                (BinaryOp::Ne, Quantifier::All) => not(within),
                _ => return None,
            }
        }
        Expr::Like(like) if like.negated => {
            not(Expr::Like(Box::new(Like { negated: false, ..(**like).clone() })))
        }
        Expr::Regexp { expr, pattern, negated } => {
            let args = vec![(**expr).clone(), (**pattern).clone()];
            let found = Expr::Function(Box::new(FunctionCall::built_in("regexp_like", args)));
            if *negated { not(found) } else { found }
        }
        Expr::IsTruth { expr, truth: Truth::Unknown, negated } => {
            Expr::IsNull { expr: expr.clone(), negated: *negated }
        }
        Expr::IsTruth { expr, truth, negated } if !is_asked_plainly(expr) => {
            Expr::IsTruth { expr: Box::new(asked(expr)), truth: *truth, negated: *negated }
        }
        Expr::Function(call) if call.schema.is_none() && !call.written.quoted => instead_of_call(call)?,
        _ => return None,
    })
}

fn instead_of_call(call: &FunctionCall) -> Option<Expr> {
    if let Some((_, name)) = NAMES.iter().find(|(name, _)| call.name.is(name)) {
        return Some(Expr::Function(Box::new(FunctionCall::built_in(name, call.args.clone()))));
    }
    match (&*call.name, &call.args[..]) {
        ("atan2", [_, _]) => {
            Some(Expr::Function(Box::new(FunctionCall::built_in("atan", call.args.clone()))))
        }
        ("isnull", [value]) => Some(Expr::IsNull { expr: Box::new(value.clone()), negated: false }),
        ("mod", [a, b]) => Some(binary(BinaryOp::Mod, a.clone(), b.clone())),
        ("instr", [text, part]) => {
            let args = vec![part.clone(), text.clone()];
            Some(Expr::Function(Box::new(FunctionCall::built_in("locate", args))))
        }
        ("timestampadd", [Expr::Unit(unit), value, to]) => Some(Expr::DateArith {
            expr: Box::new(to.clone()),
            value: Box::new(value.clone()),
            unit: *unit,
            subtract: false,
        }),
        _ => None,
    }
}

pub(super) fn is_shown(printer: &Printer<'_>) -> bool {
    printer.view.is_some_and(|view| view.shown) || printer.stored.is_some_and(|stored| stored.shown)
}

/// A condition of WHERE, HAVING or ON.
pub(super) fn condition(printer: &mut Printer<'_>, expr: &Expr) {
    if is_shown(printer) { printer.expr(&asked(expr)) } else { printer.expr(expr) }
}

/// The unit of an interval.
pub(super) fn put_unit(printer: &mut Printer<'_>, unit: IntervalUnit) {
    let word = unit.word();
    if is_shown(printer) { printer.put(&word.to_lowercase()) } else { printer.put(word) }
}

/// Writes an expression as MySQL shows it; false if it shows it as others are written.
pub(super) fn shown(printer: &mut Printer<'_>, expr: &Expr) -> bool {
    if let Some(other) = instead(expr) {
        printer.expr(&other);
        return true;
    }
    match expr {
        Expr::Unary { op, expr } => shown_unary(printer, *op, expr),
        Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), .. } => {
            let mut operands = Vec::new();
            flat(*op, expr, &mut operands);
            let word = if *op == BinaryOp::And { " and " } else { " or " };
            for (at, operand) in operands.into_iter().enumerate() {
                printer.put(if at > 0 { word } else { "(" });
                printer.expr(&asked(&operand));
            }
            printer.put(")");
        }
        Expr::Binary { op: BinaryOp::Xor, left, right } => {
            printer.put("(");
            printer.expr(&asked_by_xor(left));
            printer.put(" xor ");
            printer.expr(&asked_by_xor(right));
            printer.put(")");
        }
        Expr::InSubquery { expr, query, .. } => {
            printer.expr(expr);
            printer.put(" in ");
            printer.subquery(query);
        }
        Expr::Row(members) => {
            printer.put("(");
            printer.list(members);
            printer.put(")");
        }
        Expr::MemberOf { expr, array } => {
            printer.expr(expr);
            printer.put(" member of (");
            printer.expr(array);
            printer.put(")");
        }
        Expr::Literal(literal) => return shown_literal(printer, literal),
        Expr::Aggregate(call) => return shown_aggregate(printer, call),
        Expr::Cast { expr, ty } => match &**ty {
            CastType::Binary(length) => cast_to_char(printer, expr, *length, "binary"),
            CastType::NChar(length) => cast_to_char(printer, expr, *length, "utf8mb3"),
            CastType::Char { length, charset: None, binary: false } => {
                let Some(charset) = printer.view.and_then(|view| view.charset) else { return false };
                cast_to_char(printer, expr, *length, charset);
            }
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn cast_to_char(printer: &mut Printer<'_>, expr: &Expr, length: Option<u32>, charset: &str) {
    printer.put("cast(");
    printer.expr(expr);
    let length = length.map_or_else(String::new, |length| format!("({length})"));
    printer.put(&format!(" as char{length} charset {charset})"));
}

fn shown_unary(printer: &mut Printer<'_>, op: UnaryOp, expr: &Expr) {
    let open = match op {
        UnaryOp::Not if matches!(expr, Expr::Exists(_)) => "(not ",
        UnaryOp::Not => "(not(",
        UnaryOp::Minus => "-(",
        UnaryOp::BitNot => "~(",
        UnaryOp::Binary => return cast_to_char(printer, expr, None, "binary"),
        UnaryOp::Plus => "(",
    };
    printer.put(open);
    printer.expr(expr);
    printer.put(if open == "(not(" { "))" } else { ")" });
}

fn shown_literal(printer: &mut Printer<'_>, literal: &Literal) -> bool {
    match literal {
        Literal::Hex(bytes) | Literal::Bit(bytes) if !bytes.is_empty() => {
            printer.put("0x");
            bytes.iter().for_each(|byte| printer.put(&format!("{byte:02x}")));
        }
        Literal::National(text) => omnibus_value::literal::write_escaped(text, &mut printer.out),
        Literal::Decimal(text) if text.starts_with(b".") => {
            printer.put("0");
            printer.out.extend_from_slice(text);
        }
        _ => return false,
    }
    true
}

fn shown_aggregate(printer: &mut Printer<'_>, call: &Aggregate) -> bool {
    let mut other = call.clone();
    match call.kind {
        AggregateKind::Count if call.star => {
            (other.star, other.args) = (false, vec![zero()]);
        }
        AggregateKind::Min | AggregateKind::Max if call.distinct => other.distinct = false,
        AggregateKind::GroupConcat => {
            other.separator.get_or_insert_with(|| bytes::Bytes::from_static(b","));
        }
        _ => return false,
    }
    calls::aggregate(printer, &other);
    true
}

/// A window in parentheses.
pub(super) fn shown_window(printer: &mut Printer<'_>, spec: &WindowSpec) {
    printer.put("(");
    if let Some(base) = &spec.base {
        printer.ident(base);
        printer.put(" ");
    }
    if !spec.partition_by.is_empty() {
        printer.put("PARTITION BY ");
        printer.list(&spec.partition_by);
        printer.put(" ");
    }
    printer.order_by("ORDER BY ", &spec.order_by);
    printer.put(if spec.order_by.is_empty() { "" } else { " " });
    if let Some(frame) = &spec.frame {
        shown_frame(printer, frame);
    }
    printer.put(") ");
}

fn shown_frame(printer: &mut Printer<'_>, frame: &WindowFrame) {
    let WindowFrame { rows, start, end } = frame;
    printer.put(if *rows { "ROWS " } else { "RANGE " });
    printer.put("BETWEEN ");
    shown_bound(printer, start);
    printer.put(" AND ");
    shown_bound(printer, end.as_ref().unwrap_or(&FrameBound::CurrentRow));
}

fn shown_bound(printer: &mut Printer<'_>, bound: &FrameBound) {
    let (expr, word) = match bound {
        FrameBound::CurrentRow => return printer.put("CURRENT ROW"),
        FrameBound::UnboundedPreceding => return printer.put("UNBOUNDED PRECEDING"),
        FrameBound::UnboundedFollowing => return printer.put("UNBOUNDED FOLLOWING"),
        FrameBound::Preceding(expr) => (expr, " PRECEDING"),
        FrameBound::Following(expr) => (expr, " FOLLOWING"),
    };
    match expr {
        Expr::Function(call) if call.name.is("interval") => match &call.args[..] {
            [value, Expr::Unit(unit)] => {
                printer.put("INTERVAL ");
                printer.expr(value);
                printer.put(" ");
                put_unit(printer, *unit);
                printer.put(" ");
            }
            _ => printer.expr(expr),
        },
        expr => printer.expr(expr),
    }
    printer.put(word);
}
