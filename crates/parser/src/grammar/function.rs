//! Calls: plain functions, aggregates, window functions, and the calls with a grammar of their own.

use bytes::Bytes;

use super::expr::Interval;
use super::program::fractional_local;
use super::{Parser, Rule, expr, names, primary, query};
use crate::ParseError;
use crate::ast::{
    Aggregate, AggregateKind, CastType, Expr, FrameBound, FunctionCall, Ident, IntervalUnit, JsonValue,
    JsonValueInstead, Literal, Over, Trim, TrimSide, UnaryOp, WindowCall, WindowFrame, WindowSpec, Written,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// A word that is not reserved, before `(`.
pub(super) fn call(p: &mut Parser<'_>) -> Rule<Expr> {
    let token = p.advance();
    let text = p.text(&token);
    let mut lower = [0u8; 32];
    let Some(buffer) = lower.get_mut(..text.len()) else {
        let name = names::ident_of(p, &token)?;
        return call_of(p, None, name, false);
    };
    buffer.copy_from_slice(text);
    buffer.make_ascii_lowercase();
    let name: &[u8] = buffer;
    if let Some(kind) = AggregateKind::from_name(name) {
        return aggregate(p, kind);
    }
    match name {
        b"cast" => cast(p),
        b"extract" => {
            p.expect(Tok::LParen)?;
            let unit = primary::interval_unit(p)?;
            p.expect_kw(Kw::FROM)?;
            let expr = Box::new(expr::expr(p)?);
            p.expect(Tok::RParen)?;
            Ok(Expr::Extract { unit, expr })
        }
        b"trim" => trim(p),
        b"substring" | b"substr" | b"mid" => substring(p),
        b"position" => position(p),
        b"date_add" | b"adddate" => date_arith(p, false),
        b"date_sub" | b"subdate" => date_arith(p, true),
        b"timestampadd" => unit_call(p, "timestampadd"),
        b"timestampdiff" => unit_call(p, "timestampdiff"),
        b"get_format" => get_format(p),
        b"weight_string" => weight_string(p),
        b"value" => primary::values_of(p),
        b"json_value" => json_value(p),
        b"column_create" | b"column_add" | b"column_get" | b"column_delete" | b"column_exists"
        | b"column_list" | b"column_check" | b"column_json" => {
            Err(ParseError::NotSupported("dynamic columns"))
        }
        b"now" => plain_call(p, "now"),
        b"session_user" | b"system_user" => plain_call(p, "user"),
        _ => {
            let name = names::ident_of(p, &token)?;
            call_of(p, None, name, false)
        }
    }
}

/// A reserved word that starts an operand: some are functions, a few without parentheses.
pub(super) fn reserved_function(p: &mut Parser<'_>) -> Rule<Expr> {
    let token = p.token;
    let next = p.peek();
    let name = match token.kw {
        Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => "now",
        Kw::CURRENT_DATE => "curdate",
        Kw::CURRENT_TIME => "curtime",
        Kw::CURRENT_USER => "current_user",
        Kw::UTC_DATE => "utc_date",
        Kw::UTC_TIME => "utc_time",
        Kw::UTC_TIMESTAMP => "utc_timestamp",
        _ if next.kind != Tok::LParen => return Err(p.error()),
        Kw::VALUES => {
            p.advance();
            return primary::values_of(p);
        }
        Kw::CHAR => return char_call(p),
        Kw::IF => "if",
        Kw::LEFT => "left",
        Kw::RIGHT => "right",
        Kw::REPLACE => "replace",
        Kw::INSERT => "insert",
        Kw::REPEAT => "repeat",
        Kw::MOD => "mod",
        Kw::DATABASE | Kw::SCHEMA => "database",
        Kw::GROUPING => "grouping",
        Kw::ROW_NUMBER
        | Kw::RANK
        | Kw::DENSE_RANK
        | Kw::PERCENT_RANK
        | Kw::CUME_DIST
        | Kw::NTILE
        | Kw::LAG
        | Kw::LEAD
        | Kw::FIRST_VALUE
        | Kw::LAST_VALUE
        | Kw::NTH_VALUE => return window_call(p),
        _ => return Err(p.error()),
    };
    p.advance();
    if p.is(Tok::LParen) {
        return plain_call(p, name);
    }
    Ok(function(name, Vec::new()))
}

/// A call by a quoted or qualified name.
pub(super) fn stored_call(p: &mut Parser<'_>, schema: Option<Ident>, name: Ident) -> Rule<Expr> {
    call_of(p, schema, name, true)
}

/// `(args)` with the name consumed.
fn plain_call(p: &mut Parser<'_>, name: &str) -> Rule<Expr> {
    Ok(function(name, arguments(p)?))
}

fn arguments(p: &mut Parser<'_>) -> Rule<Vec<Expr>> {
    p.expect(Tok::LParen)?;
    if p.eat(Tok::RParen) {
        return Ok(Vec::new());
    }
    let args = p.comma_list(expr::expr)?;
    p.expect(Tok::RParen)?;
    Ok(args)
}

fn cast(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let expr = Box::new(expr::expr(p)?);
    if p.eat_words(&["AT", "TIME", "ZONE"]) {
        let interval = p.eat_kw(Kw::INTERVAL);
        let zone = String::from_utf8_lossy(&names::string(p)?).into();
        p.expect_kw(Kw::AS)?;
        if !p.eat_words(&["DATETIME"]) {
            return Err(p.error());
        }
        let decimals = primary::fraction(p)?;
        p.expect(Tok::RParen)?;
        return Ok(Expr::Cast { expr, ty: Box::new(CastType::DateTimeAt { zone, interval, decimals }) });
    }
    p.expect_kw(Kw::AS)?;
    let mut ty = Box::new(primary::cast_type(p)?);
    if p.eat_word("ARRAY") {
        ty = Box::new(CastType::Array(ty));
    }
    p.expect(Tok::RParen)?;
    Ok(Expr::Cast { expr, ty })
}

fn char_call(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    p.expect(Tok::LParen)?;
    let args = p.comma_list(expr::expr)?;
    let charset = if p.eat_kw(Kw::USING) { Some(names::charset_name(p)?) } else { None };
    p.expect(Tok::RParen)?;
    let call = function("char", args);
    Ok(match charset {
        Some(charset) => Expr::ConvertUsing { expr: Box::new(call), charset },
        None => call,
    })
}

fn trim(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let side = match p.token.kw {
        Kw::LEADING => Some(TrimSide::Leading),
        Kw::TRAILING => Some(TrimSide::Trailing),
        Kw::BOTH => Some(TrimSide::Both),
        _ => None,
    };
    if side.is_some() {
        p.advance();
    }
    let first = if side.is_some() && p.is_kw(Kw::FROM) { None } else { Some(expr::expr(p)?) };
    let trim = match first {
        Some(from) if side.is_none() && !p.is_kw(Kw::FROM) => Trim { side: TrimSide::Both, what: None, from },
        what => {
            p.expect_kw(Kw::FROM)?;
            Trim { side: side.unwrap_or(TrimSide::Both), what, from: expr::expr(p)? }
        }
    };
    p.expect(Tok::RParen)?;
    Ok(Expr::Trim(Box::new(trim)))
}

fn substring(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let mut args = vec![expr::expr(p)?];
    if p.eat_kw(Kw::FROM) {
        args.push(expr::expr(p)?);
        if p.eat_kw(Kw::FOR) {
            args.push(expr::expr(p)?);
        }
    } else {
        while p.eat(Tok::Comma) {
            args.push(expr::expr(p)?);
        }
    }
    p.expect(Tok::RParen)?;
    Ok(function("substring", args))
}

fn position(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let needle = expr::bit_expr(p)?;
    p.expect_kw(Kw::IN)?;
    let haystack = expr::expr(p)?;
    p.expect(Tok::RParen)?;
    Ok(function("locate", vec![needle, haystack]))
}

/// DATE_ADD and its kind; ADDDATE and SUBDATE also take plain days.
fn date_arith(p: &mut Parser<'_>, subtract: bool) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let expr = Box::new(expr::expr(p)?);
    p.expect(Tok::Comma)?;
    let (value, unit) = if p.is_kw(Kw::INTERVAL) {
        match expr::interval(p)? {
            Interval::Operand(value, unit) => (value, unit),
            Interval::Call(call) => (call, IntervalUnit::Day),
        }
    } else {
        (expr::expr(p)?, IntervalUnit::Day)
    };
    p.expect(Tok::RParen)?;
    Ok(Expr::DateArith { expr, value: Box::new(value), unit, subtract })
}

fn unit_call(p: &mut Parser<'_>, name: &str) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let unit = primary::interval_unit(p)?;
    p.expect(Tok::Comma)?;
    let first = expr::expr(p)?;
    p.expect(Tok::Comma)?;
    let second = expr::expr(p)?;
    p.expect(Tok::RParen)?;
    Ok(function(name, vec![Expr::Unit(unit), first, second]))
}

/// `GET_FORMAT(DATE, 'EUR')`: the kind becomes a string argument.
fn get_format(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let kind = names::upper_word(p)?;
    p.expect(Tok::Comma)?;
    let format = expr::expr(p)?;
    p.expect(Tok::RParen)?;
    let kind = Expr::Literal(Literal::Str(Bytes::from(kind.into_string())));
    Ok(function("get_format", vec![kind, format]))
}

/// `WEIGHT_STRING(x [AS CHAR(n)])`: the length becomes a second argument. That of AS BINARY(n) is a cast's. Or `(x, bytes,
/// characters, flags)`.
fn weight_string(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let mut args = vec![expr::expr(p)?];
    if p.eat_kw(Kw::AS) {
        match primary::cast_type(p)? {
            CastType::Char { length: Some(length @ 1..), charset: None, binary: false } => {
                args.push(Expr::Literal(Literal::Int(length.into())));
            }
            ty @ CastType::Binary(Some(1..)) => {
                let expr = Box::new(args.remove(0));
                args.push(Expr::Cast { expr, ty: Box::new(ty) });
            }
            _ => return Err(p.error()),
        }
    } else if p.is(Tok::Comma) {
        for _ in 0..3 {
            p.expect(Tok::Comma)?;
            args.push(Expr::Literal(Literal::Int(names::number(p)?)));
        }
    }
    p.expect(Tok::RParen)?;
    Ok(function("weight_string", args))
}

/// `JSON_VALUE(doc, 'path' [RETURNING type] [.. ON EMPTY] [.. ON ERROR])`; with two expressions MariaDB's function.
fn json_value(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let doc = expr::expr(p)?;
    p.expect(Tok::Comma)?;
    // As SHOW CREATE TABLE writes it.
    if !p.options.mariadb && p.is_word("_utf8mb4") {
        p.advance();
    }
    if p.options.mariadb || !p.is(Tok::Str) {
        let path = expr::expr(p)?;
        p.expect(Tok::RParen)?;
        return Ok(function("json_value", vec![doc, path]));
    }
    let path = names::string(p)?;
    let ty = if p.eat_word("RETURNING") { Some(primary::cast_type(p)?) } else { None };
    let on_empty = json_value_instead(p, "EMPTY")?;
    let on_error = json_value_instead(p, "ERROR")?;
    p.expect(Tok::RParen)?;
    Ok(Expr::JsonValue(Box::new(JsonValue { doc, path, ty, on_empty, on_error })))
}

fn json_value_instead(p: &mut Parser<'_>, event: &str) -> Rule<JsonValueInstead> {
    let mark = p.mark();
    let instead = if p.eat_kw(Kw::NULL) {
        JsonValueInstead::Null
    } else if p.eat_word("ERROR") {
        JsonValueInstead::Error
    } else if p.eat_kw(Kw::DEFAULT) {
        let begin = p.mark();
        let value = expr::simple_expr(p)?;
        if !is_value(&value) {
            p.reset(begin);
            return Err(p.error());
        }
        JsonValueInstead::Default(value)
    } else {
        return Ok(JsonValueInstead::Null);
    };
    p.expect_kw(Kw::ON)?;
    if p.eat_word(event) {
        return Ok(instead);
    }
    // It is for the other event, which comes behind this one.
    if event == "EMPTY" && p.is_word("ERROR") {
        p.reset(mark);
        return Ok(JsonValueInstead::Null);
    }
    Err(p.error())
}

/// The text behind SEPARATOR, which may be written as its bytes.
fn separator(p: &mut Parser<'_>) -> Rule<Bytes> {
    if p.is(Tok::Str) {
        return names::string(p);
    }
    match primary::special_literal(p)? {
        Literal::Hex(bytes) | Literal::Bit(bytes) => Ok(bytes),
        _ => Err(p.error()),
    }
}

fn aggregate(p: &mut Parser<'_>, kind: AggregateKind) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let mut call = Aggregate {
        kind,
        distinct: false,
        star: false,
        args: Vec::new(),
        order_by: Vec::new(),
        separator: None,
        limit: None,
        over: None,
    };
    if kind == AggregateKind::Count && p.eat(Tok::Star) {
        call.star = true;
    } else {
        use AggregateKind as A;
        let may = matches!(kind, A::Count | A::Sum | A::Avg | A::Min | A::Max | A::GroupConcat)
            || kind == A::JsonArrayAgg && p.options.mariadb;
        if p.is_kw(Kw::DISTINCT) && !may {
            return Err(p.error());
        }
        call.distinct = p.eat_kw(Kw::DISTINCT);
        if !call.distinct {
            p.eat_kw(Kw::ALL);
        }
        let several = match kind {
            AggregateKind::Count => call.distinct,
            AggregateKind::GroupConcat | AggregateKind::JsonObjectAgg => true,
            _ => false,
        };
        call.args = if several { p.comma_list(expr::expr)? } else { vec![expr::expr(p)?] };
    }
    if kind == AggregateKind::JsonArrayAgg && !p.options.mariadb {
        // What it does anyway.
        p.eat_words(&["NULL", "ON", "NULL"]);
    }
    if kind == AggregateKind::GroupConcat {
        call.order_by = query::order_by(p)?;
        if p.eat_kw(Kw::SEPARATOR) {
            call.separator = Some(separator(p)?);
        }
        call.limit = query::limit(p)?;
    }
    p.expect(Tok::RParen)?;
    if p.is_kw(Kw::OVER) {
        call.over = Some(over(p)?);
    }
    Ok(Expr::Aggregate(Box::new(call)))
}

fn window_call(p: &mut Parser<'_>) -> Rule<Expr> {
    let token = p.advance();
    let name: Ident = names::ident_of(p, &token)?.to_ascii_lowercase().into();
    let args = window_arguments(p, &name)?;
    // The only order there is.
    p.eat_words(&["FROM", "FIRST"]);
    let ignore_nulls = p.eat_words(&["IGNORE", "NULLS"]);
    p.eat_words(&["RESPECT", "NULLS"]);
    let over = over(p)?;
    Ok(Expr::Window(Box::new(WindowCall { name, args, ignore_nulls, over })))
}

fn over(p: &mut Parser<'_>) -> Rule<Over> {
    p.expect_kw(Kw::OVER)?;
    if p.is(Tok::LParen) { Ok(Over::Spec(window_spec(p)?)) } else { Ok(Over::Name(names::ident(p)?)) }
}

/// `( [base] [PARTITION BY ..] [ORDER BY ..] [frame] )`
pub(super) fn window_spec(p: &mut Parser<'_>) -> Rule<WindowSpec> {
    p.expect(Tok::LParen)?;
    let base = if names::is_ident(p) { Some(names::ident(p)?) } else { None };
    let partition_by = if p.eat_words(&["PARTITION", "BY"]) { p.comma_list(expr::expr)? } else { Vec::new() };
    let order_by = query::order_by(p)?;
    let frame = match p.token.kw {
        Kw::ROWS | Kw::RANGE => Some(window_frame(p)?),
        _ if p.is_word("GROUPS") => return Err(ParseError::NotSupported("GROUPS")),
        _ => None,
    };
    if frame.is_some() && !p.options.mariadb && p.is_word("EXCLUDE") {
        return Err(ParseError::NotSupported("EXCLUDE"));
    }
    p.expect(Tok::RParen)?;
    Ok(WindowSpec { base, partition_by, order_by, frame })
}

fn window_frame(p: &mut Parser<'_>) -> Rule<WindowFrame> {
    let rows = p.advance().kw == Kw::ROWS;
    if p.eat_kw(Kw::BETWEEN) {
        let start = frame_bound(p)?;
        p.expect_kw(Kw::AND)?;
        let end = Some(frame_bound(p)?);
        return Ok(WindowFrame { rows, start, end });
    }
    Ok(WindowFrame { rows, start: frame_bound(p)?, end: None })
}

fn frame_bound(p: &mut Parser<'_>) -> Rule<FrameBound> {
    if p.eat_words(&["CURRENT", "ROW"]) {
        return Ok(FrameBound::CurrentRow);
    }
    let unbounded = p.eat_word("UNBOUNDED");
    let expr = if unbounded {
        None
    } else if p.is_kw(Kw::INTERVAL) {
        match expr::interval(p)? {
            Interval::Operand(value, unit) => Some(function("interval", vec![value, Expr::Unit(unit)])),
            Interval::Call(call) => Some(call),
        }
    } else if p.options.mariadb {
        Some(expr::bit_expr(p)?)
    } else {
        // MySQL takes a number or a parameter, and no other expression.
        let begin = p.mark();
        let distance = expr::bit_expr(p)?;
        if !matches!(distance, Expr::Param(_)) && !is_number_literal(&distance) {
            p.reset(begin);
            return Err(p.error());
        }
        Some(distance)
    };
    let preceding = p.eat_word("PRECEDING");
    if !preceding {
        p.expect_word("FOLLOWING")?;
    }
    Ok(match (expr, preceding) {
        (None, true) => FrameBound::UnboundedPreceding,
        (None, false) => FrameBound::UnboundedFollowing,
        (Some(expr), true) => FrameBound::Preceding(expr),
        (Some(expr), false) => FrameBound::Following(expr),
    })
}

fn is_number_literal(expr: &Expr) -> bool {
    use Literal as L;
    matches!(expr, Expr::Literal(L::Int(_) | L::Decimal(_) | L::Float(_)))
}

/// `(args)` of whatever function has a name that was written so.
fn call_of(parser: &mut Parser<'_>, schema: Option<Ident>, written: Ident, quoted: bool) -> Rule<Expr> {
    let name: Ident = written.to_ascii_lowercase().into();
    let written = Written { name: Some(written).filter(|written| *written != name), quoted };
    let args = arguments(parser)?;
    Ok(Expr::Function(Box::new(FunctionCall { schema, name, written, args })))
}

pub(super) fn function(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Box::new(FunctionCall::built_in(name, args)))
}

/// A literal that is not NULL, with a sign or without.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => *literal != Literal::Null,
        Expr::Introduced(_) => true,
        Expr::Unary { op: UnaryOp::Minus | UnaryOp::Plus, expr } => {
            matches!(**expr, Expr::Literal(Literal::Int(_) | Literal::Decimal(_) | Literal::Float(_)))
        }
        _ => false,
    }
}

/// The arguments of a window function; a variable that says how far it looks is of whole numbers.
fn window_arguments(parser: &mut Parser<'_>, name: &str) -> Rule<Vec<Expr>> {
    let far = if name == "ntile" { 0 } else { 1 };
    let mut args = Vec::new();
    parser.expect(Tok::LParen)?;
    if parser.eat(Tok::RParen) {
        return Ok(args);
    }
    loop {
        let start = parser.token.start as usize;
        let arg = expr::expr(parser)?;
        let mysql = !parser.options.mariadb && args.len() == far;
        if let Some(variable) = fractional_local(parser, &arg).filter(|_| mysql)
            && let ParseError::Syntax { near, line } = ParseError::at(parser.src, start)
        {
            let message = format!(
                "The variable \"{variable}\" has a non-integer based type near '{near}' at line {line}"
            );
            return Err(ParseError::Other { code: 1064, state: "42000", message });
        }
        args.push(arg);
        if !parser.eat(Tok::Comma) {
            break;
        }
    }
    parser.expect(Tok::RParen)?;
    Ok(args)
}
