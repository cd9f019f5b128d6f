//! Binding of comparisons, BETWEEN and IN: which collation decides, and what is converted so that both sides compare.

use super::binder::Binder;
use super::operators::{as_text, number_literal};
use super::scope::Source;
use super::times_beside::{given, params_as_datetimes, params_as_times, refuse_no_dates, times_as_text};
use crate::error::{SqlError, SqlResult};
use crate::expr::charset;
use crate::expr::comparable::As;
use crate::expr::mix::{merge_all, merge_collations, mixed};
use crate::expr::node::{CompareOp, Expr, Kind};
use crate::expr::types::{BINARY, ExprType, Family, NOT_FIXED, illegal_types};
use omnibus_parser::ast::{self, BinaryOp};
use omnibus_value::{ColumnKind, FixedKind, Value};

/// A comparison, with both sides made comparable; rows are taken apart.
pub(crate) fn compare(binder: &mut Binder<'_>, op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
    compare_in(binder, op, left, right, true)
}

/// `years`: as in `comparable_in`.
fn compare_in(
    binder: &mut Binder<'_>,
    op: CompareOp,
    left: Expr,
    right: Expr,
    years: bool,
) -> SqlResult<Expr> {
    match (&left.kind, &right.kind) {
        (Kind::Row(_), _) | (_, Kind::Row(_)) => return compare_rows(binder, op, left, right),
        _ => {}
    }
    if matches!(op, CompareOp::Eq | CompareOp::Ne | CompareOp::NullSafeEq) {
        if let Some(number) = label_number(&left, &right) {
            return Ok(Expr::compare(op, BINARY, left, number));
        }
        if let Some(number) = label_number(&right, &left) {
            return Ok(Expr::compare(op, BINARY, number, right));
        }
    }
    if unlike_fixed(&left.ty, &right.ty) {
        return Err(illegal_types(&left.ty, &right.ty, op.symbol()));
    }
    let (left, right) = match op {
        // The one comparison that takes them for what they are.
        CompareOp::NullSafeEq => (left, right),
        _ => params_as_times(binder, left, right),
    };
    let (left, right) = times_as_text(binder, left, right);
    let (left, right, collation) = comparable_in(binder, left, right, years)?;
    let compared = Expr::compare(op, collation, left, right);
    Ok(binder.fold(compared))
}

fn compare_rows(binder: &mut Binder<'_>, op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
    let width = match &left.kind {
        Kind::Row(members) => members.len(),
        _ => 1,
    };
    let (Kind::Row(a), Kind::Row(b)) = (left.kind, right.kind) else {
        return Err(SqlError::operand_columns(width));
    };
    if a.len() != b.len() {
        return Err(SqlError::operand_columns(a.len()));
    }
    let pairs: Vec<(Expr, Expr)> = a.into_vec().into_iter().zip(b.into_vec()).collect();
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne => {
            let mut parts = Vec::with_capacity(pairs.len());
            for (a, b) in pairs {
                parts.push(compare(binder, op, a, b)?);
            }
            let nullable = parts.iter().any(|e| e.ty.nullable);
            let list = parts.into();
            Ok(Expr::boolean(if op == CompareOp::Ne { Kind::Or(list) } else { Kind::And(list) }, nullable))
        }
        _ => compare_lexicographically(binder, op, &pairs),
    }
}

/// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`. Two digits are no year there.
fn compare_lexicographically(
    binder: &mut Binder<'_>,
    op: CompareOp,
    pairs: &[(Expr, Expr)],
) -> SqlResult<Expr> {
    let Some(((a, b), rest)) = pairs.split_first() else { return Ok(Expr::null()) };
    if rest.is_empty() {
        return compare_in(binder, op, a.clone(), b.clone(), false);
    }
    let strict = match op {
        CompareOp::Le => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Gt,
        other => other,
    };
    let first = compare_in(binder, strict, a.clone(), b.clone(), false)?;
    let equal = compare_in(binder, CompareOp::Eq, a.clone(), b.clone(), false)?;
    let rest = compare_lexicographically(binder, op, rest)?;
    let tail = Expr::boolean(Kind::And(Box::new([equal, rest])), true);
    Ok(Expr::boolean(Kind::Or(Box::new([first, tail])), true))
}

/// Converts what must be converted before two operands are compared, and says under which
/// collation strings are.
pub(crate) fn comparable(binder: &mut Binder<'_>, left: Expr, right: Expr) -> SqlResult<(Expr, Expr, u16)> {
    comparable_in(binder, left, right, true)
}

/// One side of a comparison as what the other asks for: the table in `comparable`.
fn beside(binder: &mut Binder<'_>, e: Expr, other: &Expr, years: bool) -> Expr {
    let year = |e: &Expr| e.ty.column.kind == ColumnKind::Year;
    let what = match (e.ty.family(), other.ty.family()) {
        (_, Family::Json) if e.is_truth() => return json_truth(binder, e),
        (Family::String, Family::Json)
            if matches!(e.kind, Kind::Param(_)) && !binder.session.settings.mariadb =>
        {
            As::NumberIfAny
        }
        (Family::Json, _) | (_, Family::Json) => return e,
        (Family::String, Family::Fixed) if !e.ty.is_null() => match FixedKind::of(other.ty.column.kind) {
            Some(kind) => As::Fixed(kind),
            None => return e,
        },
        _ if e.ty.is_null() => return e,
        // Two digits are a year beside a column, not beside what YEAR() gives.
        (_, Family::Integer) if years && year(other) && !is_call(other) && !year(&e) && e.is_fixed() => {
            As::Year
        }
        (Family::String | Family::Time, Family::Date | Family::DateTime) => As::DateTime,
        (Family::String, Family::Time) => As::Time,
        (Family::String, Family::Integer | Family::Decimal) if e.is_fixed() && !e.ty.is_binary_literal() => {
            As::Number
        }
        (Family::Integer, Family::Date | Family::DateTime) if given(&e) => As::DateTime,
        (Family::Integer, Family::Date | Family::DateTime) => return number_as_datetime(binder, e),
        // As MySQL stores it into the column first.
        (Family::Decimal | Family::Real, Family::Date | Family::DateTime)
            if matches!(other.kind, Kind::Column { .. }) && !binder.session.settings.mariadb =>
        {
            return number_as_datetime(binder, e);
        }
        (Family::Real, Family::Integer) if e.as_const().is_some() => return whole_double(e),
        (Family::Real, Family::Integer | Family::Decimal | Family::Real) => {
            match fixed_float(binder, &e, other) {
                Some(decimals) => As::Rounded(decimals),
                None => return e,
            }
        }
        _ => return e,
    };
    let mut ty = match what {
        As::Number => ExprType::decimal(65, 30),
        As::NumberIfAny => e.ty.clone(),
        As::Double | As::Rounded(_) => ExprType::double(),
        As::Year => ExprType::bigint(),
        As::DateTime => ExprType::datetime(6),
        As::Time => ExprType::time(6),
        As::Fixed(kind) => ExprType::fixed(kind),
    };
    ty.nullable = e.ty.nullable || matches!(what, As::Fixed(_));
    let folded = binder.fold(Expr { kind: Kind::Comparable(what, Box::new(e)), ty });
    match folded.as_const() {
        Some(Value::Int(_)) => Expr { ty: ExprType::bigint(), ..folded },
        Some(Value::UInt(_)) => Expr { ty: ExprType::ubigint(), ..folded },
        Some(Value::Double(_)) => Expr { ty: ExprType::double(), ..folded },
        _ => folded,
    }
}

fn is_call(e: &Expr) -> bool {
    matches!(e.kind, Kind::Call(..) | Kind::Const(_))
}

/// A truth value beside JSON, where TRUE is not 1.
fn json_truth(binder: &mut Binder<'_>, e: Expr) -> Expr {
    let json = |truth| {
        let value = crate::expr::json::to_value(&omnibus_value::json::Json::Bool(truth));
        Expr::constant(value, ExprType::json())
    };
    let nullable = e.ty.nullable;
    let not = Expr::boolean(Kind::Not(Box::new(e.clone())), nullable);
    let whens = Box::new([(e, json(true)), (not, json(false))]);
    let ty = ExprType::json().nullable(nullable);
    binder.fold(Expr { kind: Kind::Case { whens, otherwise: None }, ty })
}

pub(super) fn comparable_strings(
    binder: &mut Binder<'_>,
    left: Expr,
    right: Expr,
) -> SqlResult<(Expr, Expr, u16)> {
    if left.ty.is_null() || right.ty.is_null() {
        let collation = if left.ty.is_null() { right.ty.column.collation } else { left.ty.column.collation };
        return Ok((left, right, collation));
    }
    if let Some(collation) = plain_literal(&left, &right) {
        return Ok((left, right, collation));
    }
    let (collation, _) = merge_collations(
        (left.ty.column.collation, left.ty.coercibility),
        (right.ty.column.collation, right.ty.coercibility),
        "=",
    )?;
    refuse_lossy(binder, &[&left, &right], collation, "=")?;
    Ok((in_collation(binder, left, collation), in_collation(binder, right, collation), collation))
}

/// The string in another collation's character set, if its own is a different one.
pub(crate) fn in_collation(binder: &mut Binder<'_>, e: Expr, collation: u16) -> Expr {
    if e.ty.family() != Family::String || charset::converts_as_is(e.ty.column.collation, collation) {
        return e;
    }
    let mut ty = e.ty.clone();
    ty.column.collation = collation;
    binder.fold(Expr { kind: Kind::Transcode(Box::new(e)), ty })
}

/// A constant number that is compared with a date: 20231110 is a day, however many digits a time of day would add. One
/// that is no date stays a number.
fn number_as_datetime(binder: &mut Binder<'_>, constant: Expr) -> Expr {
    let number = matches!(constant.ty.family(), Family::Integer | Family::Decimal | Family::Real);
    if constant.as_const().is_none() || !number {
        return constant;
    }
    let target = ExprType::datetime(6);
    match binder.constant_as(&constant, &target) {
        Some(value) => Expr::constant(value, target),
        None => constant,
    }
}

pub(super) fn between(
    binder: &mut Binder<'_>,
    operand: &ast::Expr,
    low: &ast::Expr,
    high: &ast::Expr,
    negated: bool,
) -> SqlResult<Expr> {
    let mut operands = [binder.expr(operand)?, binder.expr(low)?, binder.expr(high)?];
    params_as_datetimes(binder, &mut operands, false);
    let [e, low, high] = operands;
    let nullable = e.ty.nullable || low.ty.nullable || high.ty.nullable;
    let (e, low, high, collation) = comparable_bounds(binder, e, low, high)?;
    let args = Box::new([e, low, high]);
    Ok(Expr::boolean(Kind::Between { args, collation, negated }, nullable))
}

fn as_double(binder: &mut Binder<'_>, e: Expr) -> Expr {
    let ty = ExprType::double().nullable(e.ty.nullable);
    binder.fold(Expr { kind: Kind::Comparable(As::Double, Box::new(e)), ty })
}

/// The three operands of BETWEEN are compared as one type: as text only if all are, as numbers if one of them is.
fn comparable_bounds(
    binder: &mut Binder<'_>,
    e: Expr,
    low: Expr,
    high: Expr,
) -> SqlResult<(Expr, Expr, Expr, u16)> {
    let string = |e: &Expr| e.ty.family() == Family::String;
    let number = |e: &Expr| matches!(e.ty.family(), Family::Integer | Family::Decimal | Family::Real);
    let temporal =
        [&e, &low, &high].into_iter().find(|e| e.ty.is_temporal() || e.ty.family() == Family::Fixed).cloned();
    if string(&e) && string(&low) && string(&high) {
        let types = [&e, &low, &high].map(|e| &e.ty);
        let (collation, _) = merge_all(types, BINARY, "between")?;
        refuse_lossy(binder, &[&e, &low, &high], collation, "between")?;
        let [e, low, high] = [e, low, high].map(|e| in_collation(binder, as_text(e), collation));
        return Ok((e, low, high, collation));
    }
    let document = e.ty.family() == Family::Json && !binder.session.settings.mariadb;
    let e = match temporal {
        Some(other) if string(&e) => beside(binder, e, &other, true),
        // A document between numbers is the number that it is.
        _ if document && number(&low) && number(&high) => as_double(binder, e),
        None if string(&e) && (number(&low) || number(&high)) && !e.ty.is_null() => {
            let e = number_literal(e);
            as_double(binder, e)
        }
        _ => e,
    };
    let (at_low, low, _) = comparable(binder, e.clone(), low)?;
    let (at_high, high, _) = comparable(binder, e, high)?;
    let e = if at_low.ty == at_high.ty || at_low.ty.is_temporal() { at_low } else { at_high };
    Ok((e, low, high, BINARY))
}

pub(super) fn is_in(
    binder: &mut Binder<'_>,
    operand: &ast::Expr,
    list: &[ast::Expr],
    negated: bool,
) -> SqlResult<Expr> {
    let e = binder.expr_or_row(operand)?;
    if let Kind::Row(_) = e.kind {
        let mut options = Vec::with_capacity(list.len());
        for member in list {
            let member = binder.expr_or_row(member)?;
            if list.len() == 1 {
                refuse_no_dates(binder, &e, &member)?;
            }
            options.push(compare(binder, CompareOp::Eq, e.clone(), member)?);
        }
        let any = if options.len() == 1 {
            options.remove(0)
        } else {
            Expr::boolean(Kind::Or(options.into()), true)
        };
        return Ok(if negated { Expr::boolean(Kind::Not(Box::new(any)), true) } else { any });
    }
    let mut operands = Vec::with_capacity(list.len() + 1);
    operands.push(e);
    for member in list {
        operands.push(binder.expr(member)?);
    }
    if list.len() > 1 {
        params_as_datetimes(binder, &mut operands, true);
    }
    let members = operands.split_off(1);
    match operands.pop() {
        Some(e) => in_members(binder, e, members, negated),
        None => Err(SqlError::unknown_error()),
    }
}

/// The texts of IN or CASE under one collation, that of all of them.
pub(super) fn in_one_collation(
    binder: &mut Binder<'_>,
    e: Expr,
    members: Vec<Expr>,
    operation: &str,
) -> SqlResult<(Expr, Vec<Expr>)> {
    let text = |e: &Expr| e.ty.family() == Family::String && !e.ty.is_null() && !e.ty.is_binary_literal();
    let types = || members.iter().filter(|member| text(member)).map(|member| &member.ty);
    let same = types().all(|ty| ty.column.collation == e.ty.column.collation);
    if !text(&e) || same || types().nth(1).is_none() {
        return Ok((e, members));
    }
    let (collation, coercibility) = merge_all([&e.ty].into_iter().chain(types()), BINARY, operation)?;
    let texts: Vec<&Expr> = [&e].into_iter().chain(members.iter().filter(|member| text(member))).collect();
    refuse_lossy(binder, &texts, collation, operation)?;
    let mut convert = |member: Expr| {
        if !text(&member) || member.ty.column.collation == collation {
            return member;
        }
        let mut member = in_collation(binder, as_text(member), collation);
        member.ty.column.collation = collation;
        member.ty.coercibility = coercibility;
        member
    };
    let e = convert(e);
    Ok((e, members.into_iter().map(convert).collect()))
}

/// Each member is compared with the operand as if it stood alone; IN only keeps those together for which the operand is
/// the same.
fn in_members(binder: &mut Binder<'_>, e: Expr, members: Vec<Expr>, negated: bool) -> SqlResult<Expr> {
    let nullable = e.ty.nullable || members.iter().any(|member| member.ty.nullable);
    if let [member] = &members[..] {
        refuse_no_dates(binder, &e, member)?;
    }
    let (e, members) = in_one_collation(binder, e, members, "in")?;
    let single = members.len() == 1;
    let years = single || binder.session.settings.mariadb;
    let mut alike = Vec::with_capacity(members.len() + 1);
    let mut collation = BINARY;
    let mut apart = Vec::new();
    for member in members {
        let null = member.ty.is_null();
        if unlike_fixed(&e.ty, &member.ty) {
            return Err(illegal_types(&e.ty, &member.ty, "in"));
        }
        let (left, member) = match single {
            true => params_as_times(binder, e.clone(), member),
            false => (e.clone(), member),
        };
        let (left, right, this) = comparable_in(binder, left, member, years)?;
        match alike.first() {
            None if null => apart.push(Expr::compare(CompareOp::Eq, this, left, right)),
            None => {
                collation = this;
                alike.extend([left, right]);
            }
            Some(_) if null => alike.push(right),
            Some(first) if first.ty == left.ty && collation == this => alike.push(right),
            Some(_) => apart.push(Expr::compare(CompareOp::Eq, this, left, right)),
        }
    }
    if apart.is_empty() {
        let kind = Kind::In { args: alike.into(), collation, negated };
        return Ok(Expr::boolean(kind, nullable));
    }
    if !alike.is_empty() {
        let kind = Kind::In { args: alike.into(), collation, negated: false };
        apart.insert(0, Expr::boolean(kind, nullable));
    }
    let any = Expr::boolean(Kind::Or(apart.into()), nullable);
    Ok(if negated { Expr::boolean(Kind::Not(Box::new(any)), nullable) } else { any })
}

/// As `comparable`; `years`: a constant beside a YEAR is a year, too, which it is not among several.
fn comparable_in(
    binder: &mut Binder<'_>,
    left: Expr,
    right: Expr,
    years: bool,
) -> SqlResult<(Expr, Expr, u16)> {
    if unlike_fixed(&left.ty, &right.ty) {
        return Err(illegal_types(&left.ty, &right.ty, "="));
    }
    let (left, right) = (prepare_side(left, &right.ty), right);
    let right = prepare_side(right, &left.ty);
    let (a, b) = (left.ty.family(), right.ty.family());
    if a == Family::String && b == Family::String {
        return comparable_strings(binder, left, right);
    }
    let (left, right) = (beside(binder, left.clone(), &right, years), beside(binder, right, &left, years));
    Ok((left, right, BINARY))
}

/// The comparison of CASE with an operand: a constant is no year there, and text meets a date as text, but a date meets text as a date.
pub(super) fn compare_case(binder: &mut Binder<'_>, operand: Expr, condition: Expr) -> SqlResult<Expr> {
    let text = operand.ty.family() == Family::String && condition.ty.is_temporal();
    if text && !binder.session.settings.mariadb {
        return compare(binder, CompareOp::Eq, operand, as_text(condition));
    }
    let year = |e: &Expr| e.ty.column.kind == ColumnKind::Year;
    if !year(&operand) && !year(&condition) {
        return compare(binder, CompareOp::Eq, operand, condition);
    }
    let (left, right, collation) = comparable_in(binder, operand, condition, false)?;
    Ok(binder.fold(Expr::compare(CompareOp::Eq, collation, left, right)))
}

/// Bytes of a constant that error 3854 shows.
const SHOWN_BYTES: usize = 6;

/// Refuses constants that lose characters in the character set of a collation, and bytes that are none of its characters.
///
/// # Errors
/// 3854, in the mariadb dialect 1267, 1270, 1271.
pub(super) fn refuse_lossy(
    binder: &Binder<'_>,
    texts: &[&Expr],
    collation: u16,
    operation: &str,
) -> SqlResult<()> {
    let stored = binder.blocks.last().is_some_and(|block| block.clause.is_stored());
    let bytes_are_read = !binder.session.settings.mariadb && !binder.session.settings.replicated && !stored;
    let loses = |e: &&Expr| {
        let from = e.ty.column.collation;
        match e.as_const() {
            Some(Value::Bytes(bytes)) if from == BINARY && bytes_are_read && !e.ty.is_null() => {
                charset::well_formed(bytes, collation) < bytes.len()
            }
            Some(Value::Bytes(text))
                if e.ty.family() == Family::String && !charset::converts_as_is(from, collation) =>
            {
                charset::convert(&charset::convert(text, from, collation), collation, from) != *text
            }
            _ => false,
        }
    };
    let Some(lossy) = texts.iter().find(|e| loses(e)) else { return Ok(()) };
    if let (Some(Value::Bytes(text)), false) = (lossy.as_const(), binder.session.settings.mariadb) {
        let (from, to) = (charset::charset_name(lossy.ty.column.collation), charset::charset_name(collation));
        let mut shown: String = text
            .iter()
            .take(SHOWN_BYTES)
            .map(|byte| match byte {
                0x20..0x7f => char::from(*byte).to_string(),
                other => format!("\\x{other:02X}"),
            })
            .collect();
        if text.len() > SHOWN_BYTES {
            shown.push_str("...");
        }
        let message = format!("Cannot convert string '{shown}' from {from} to {to}");
        return Err(SqlError::new(3854, b"HY000", message));
    }
    let texts = texts.iter().filter(|e| e.ty.family() == Family::String);
    let types: Vec<_> = texts.map(|e| (e.ty.column.collation, e.ty.coercibility)).collect();
    Err(mixed(&types, operation))
}

/// The collation of the left side if it is no Unicode one and the right side is a literal of nothing but ASCII, which every
/// character set has.
fn plain_literal(left: &Expr, right: &Expr) -> Option<u16> {
    let ascii = |e: &Expr| matches!(e.as_const(), Some(Value::Bytes(text)) if text.is_ascii());
    let (a, b) = (left.ty.column.collation, right.ty.column.collation);
    let apply = left.ty.coercibility == right.ty.coercibility
        && a != BINARY
        && b != BINARY
        && charset::charset_name(a) != charset::charset_name(b)
        && !charset::charset_name(a).starts_with("utf8")
        && ascii(right)
        && left.as_const().is_some()
        && !ascii(left);
    apply.then_some(a)
}

/// The decimals to which a FLOAT(M,D), or a double that is shown with so many, is rounded beside a number that has a fixed
/// number of decimals as well.
fn fixed_float(binder: &Binder<'_>, e: &Expr, other: &Expr) -> Option<u8> {
    let column = &e.ty.column;
    let is_float = other.ty.column.kind == ColumnKind::Float;
    // What a stored column has is rounded already.
    let stored = match &e.kind {
        Kind::Column { slot, .. } => {
            let table = binder.collected.slots.get(usize::from(*slot)).and_then(Option::as_ref);
            table.is_some_and(|table| matches!(table.source, Source::Table(_)))
        }
        _ => false,
    };
    let computed = column.kind == ColumnKind::Double && !stored;
    let other = if other.ty.family() == Family::Integer { 0 } else { other.ty.column.decimals };
    let fixed = !(is_float && other == column.decimals)
        && (column.kind == ColumnKind::Float || computed)
        && column.decimals < NOT_FIXED
        && other < NOT_FIXED;
    fixed.then(|| column.decimals.max(other))
}

/// A constant double that is a whole number is that integer beside exact numbers.
fn whole_double(e: Expr) -> Expr {
    match e.as_const() {
        Some(Value::Double(n)) if n.fract() == 0.0 && n.abs() < 9.2e18 => Expr::integer(*n as i64),
        _ => e,
    }
}

/// The comparison that an operator of the grammar is.
pub(super) fn comparison(op: BinaryOp) -> CompareOp {
    match op {
        BinaryOp::NullSafeEq => CompareOp::NullSafeEq,
        BinaryOp::Ne => CompareOp::Ne,
        BinaryOp::Lt => CompareOp::Lt,
        BinaryOp::Le => CompareOp::Le,
        BinaryOp::Gt => CompareOp::Gt,
        BinaryOp::Ge => CompareOp::Ge,
        _ => CompareOp::Eq,
    }
}

/// The number of the label of an ENUM column that a constant text is, so that the comparison is one
/// of numbers, which an index on the column can answer.
fn label_number(column: &Expr, text: &Expr) -> Option<Expr> {
    let (Kind::Column { .. }, ColumnKind::Enum) = (&column.kind, column.ty.column.kind) else { return None };
    let Some(Value::Bytes(text)) = text.as_const() else { return None };
    let ty = &column.ty.column;
    // '' is what the error value, number 0, shows, whatever other member is empty.
    if text.is_empty() {
        return None;
    }
    let found = ty.labels.iter().position(|label| charset::compare(label, text, ty.collation).is_eq())?;
    let number = u16::try_from(found + 1).ok()?;
    Some(Expr::constant(Value::Enum(number), column.ty.clone().nullable(false)))
}

/// Whether one side is a UUID or an address and the other cannot be one.
fn unlike_fixed(a: &ExprType, b: &ExprType) -> bool {
    let fixed = |ty: &ExprType| ty.family() == Family::Fixed;
    let text = |ty: &ExprType| ty.family() == Family::String || ty.is_null();
    (fixed(a) || fixed(b)) && a.column.kind != b.column.kind && !text(a) && !text(b)
}

/// One side of a comparison, given the other: labels of ENUM and SET become text beside text,
/// binary literals numbers beside numbers.
fn prepare_side(e: Expr, other: &ExprType) -> Expr {
    let labels = matches!(e.ty.column.kind, ColumnKind::Enum | ColumnKind::Set);
    if labels && (other.family() == Family::String || other.is_temporal()) && !other.is_null() {
        return as_text(e);
    }
    if matches!(other.family(), Family::Integer | Family::Decimal | Family::Real) {
        return number_literal(e);
    }
    e
}

/// A condition of IF or CASE: of a document the number that it is decides, where WHERE and NOT ask whether it is another document than 0.
pub(super) fn truth_of_number(condition: Expr) -> Expr {
    if condition.ty.family() != Family::Json {
        return condition;
    }
    let ty = ExprType::double().nullable(condition.ty.nullable);
    Expr { kind: Kind::Cast(Box::new(condition)), ty }
}
