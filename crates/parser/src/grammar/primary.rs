//! Operands: literals, names, variables, parentheses, CASE, CAST and their kind.

use bytes::Bytes;
use omnibus_value::decimal::Decimal;

use super::column::type_width;
use super::expr::Interval;
use super::names::parse_u64;
use super::{Parser, Rule, column, expr, function, names, program, query, sequence};
use crate::ParseError;
use crate::ast::{
    Case, CastType, ColumnRef, Expr, Ident, IntervalUnit, Literal, MatchAgainst, QueryBody, VarScope,
};
use crate::lexer::keyword::Kw;
use crate::lexer::{Tok, literal};

/// One operand, without prefix operators.
#[inline]
pub(super) fn primary(p: &mut Parser<'_>) -> Rule<Expr> {
    match p.token.kind {
        Tok::Int | Tok::Decimal | Tok::Float => number_literal(p).map(Expr::Literal),
        Tok::Str => Ok(Expr::Literal(Literal::Str(names::string_value(p)?))),
        Tok::Word => word_primary(p),
        Tok::Quoted => name_primary(p),
        Tok::Param if p.options.markers => {
            p.advance();
            p.params += 1;
            Ok(Expr::Param(p.params - 1))
        }
        Tok::LParen => paren_expr(p),
        Tok::UserVar => user_variable(p),
        Tok::AtAt => system_variable(p),
        Tok::Dot => {
            p.advance();
            let first = names::reference_after_dot(p)?;
            Ok(Expr::Column(names::column_ref_after(p, first)?))
        }
        Tok::LBrace => odbc_escape(p),
        _ => special_literal(p).map(Expr::Literal),
    }
}

/// An unsigned numeric literal.
pub(super) fn number_literal(p: &mut Parser<'_>) -> Rule<Literal> {
    let token = p.token;
    let text = p.text(&token);
    let value = match token.kind {
        Tok::Int if let Some(n) = parse_u64(text) => Literal::Int(n),
        Tok::Int | Tok::Decimal => match Decimal::parse(text).overflow {
            false => Literal::Decimal(p.slice(token.start as usize, token.end as usize)),
            // The largest DECIMAL in its stead would fit columns that the number does not fit.
            true => Literal::Float(
                std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::MAX),
            ),
        },
        Tok::Float => {
            // The lexer admits only what the standard parser reads; overflow is an infinity, as in MySQL an error.
            let float = std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok());
            match float {
                Some(f) if f.is_finite() => Literal::Float(f),
                _ => {
                    return Err(crate::ParseError::Other {
                        code: 1367,
                        state: "22007",
                        message: format!(
                            "Illegal double '{}' value found during parsing",
                            String::from_utf8_lossy(text)
                        ),
                    });
                }
            }
        }
        _ => return Err(p.error()),
    };
    p.advance();
    Ok(value)
}

/// `N'..'`, `x'..'`, `0x..`, `b'..'`, `0b..`
pub(super) fn special_literal(p: &mut Parser<'_>) -> Rule<Literal> {
    let token = p.token;
    let text = p.text(&token);
    let value = match token.kind {
        Tok::NStr => return Ok(Literal::National(names::string_value(p)?)),
        Tok::HexStr => Literal::Hex(Bytes::from(literal::hex(literal::raw(&token, text)))),
        Tok::HexNum => Literal::Hex(Bytes::from(literal::hex(&text[2..]))),
        Tok::BitStr => Literal::Bit(Bytes::from(literal::bits(literal::raw(&token, text)))),
        Tok::BitNum => Literal::Bit(Bytes::from(literal::bits(&text[2..]))),
        _ => return Err(p.error()),
    };
    p.advance();
    Ok(value)
}

/// An unquoted word that starts an operand.
fn word_primary(p: &mut Parser<'_>) -> Rule<Expr> {
    let literal = match p.token.kw {
        Kw::NONE => return plain_word(p),
        Kw::NULL => Literal::Null,
        Kw::TRUE => Literal::True,
        Kw::FALSE => Literal::False,
        Kw::CASE => return case(p),
        Kw::EXISTS => {
            p.advance();
            return Ok(Expr::Exists(Box::new(query::paren_query(p)?)));
        }
        Kw::DEFAULT => return default_value(p),
        Kw::ROW => {
            p.advance();
            let members = p.paren_list(expr::expr)?;
            return if members.len() < 2 { Err(p.error()) } else { Ok(Expr::Row(members)) };
        }
        Kw::INTERVAL => return interval_first(p),
        Kw::MATCH => return match_against(p),
        Kw::CONVERT => return convert(p),
        _ => return function::reserved_function(p),
    };
    p.advance();
    Ok(Expr::Literal(literal))
}

/// A word that is not reserved: an introducer, a temporal literal, CAST, a call, or a name.
fn plain_word(p: &mut Parser<'_>) -> Rule<Expr> {
    if (p.is_word("NEXT") || p.is_word("PREVIOUS"))
        && p.options.mariadb
        && let Some(call) = sequence::value_for(p)?
    {
        return Ok(call);
    }
    let token = p.token;
    let next = p.peek();
    match next.kind {
        Tok::LParen => return function::call(p),
        Tok::Str | Tok::HexStr | Tok::HexNum | Tok::BitStr | Tok::BitNum => {
            let text = p.text(&token);
            if text[0] == b'_' && literal::is_charset(&text[1..]) {
                return introduced(p);
            }
            if next.kind == Tok::Str
                && let Some(make) = temporal_literal(text)
            {
                p.advance();
                return Ok(Expr::Literal(make(names::string(p)?)));
            }
        }
        Tok::Dot => {}
        // MariaDB has it without parentheses, too.
        _ if names::at_current_role(p) => {
            p.advance();
            return Ok(super::function::function("current_role", Vec::new()));
        }
        _ => {}
    }
    name_primary(p)
}

fn introduced(p: &mut Parser<'_>) -> Rule<Expr> {
    let token = p.advance();
    let name = String::from_utf8_lossy(&p.text(&token)[1..]).to_ascii_lowercase();
    let literal = match p.token.kind {
        Tok::Str => Literal::Str(names::string_value(p)?),
        _ => special_literal(p)?,
    };
    Ok(Expr::Introduced(Box::new((Ident::from(name), literal))))
}

/// A column name, or a call of a stored function by a quoted or qualified name.
fn name_primary(p: &mut Parser<'_>) -> Rule<Expr> {
    let first = names::reference(p)?;
    if p.is(Tok::LParen) {
        return function::stored_call(p, None, first);
    }
    if !p.is(Tok::Dot)
        && let Some(local) = program::local_operand(p, &first)
    {
        return arrow_behind(p, local);
    }
    let row = program::in_trigger(p) && p.is(Tok::Dot);
    if row {
        program::trigger_row(p, &first)?;
    }
    let column = names::column_ref_after(p, first)?;
    if row {
        super::program::reads_row(p, &column);
    }
    if p.is(Tok::LParen) {
        return match column.qualifier {
            Some(q) if q.schema.is_none() => function::stored_call(p, Some(q.table), column.name),
            _ => Err(p.error()),
        };
    }
    arrow_behind(p, Expr::Column(column))
}

/// At `(`: an expression, a row, or a subquery.
fn paren_expr(p: &mut Parser<'_>) -> Rule<Expr> {
    let mut members = paren_members(p)?;
    match (members.len(), members.pop()) {
        (1, Some(only)) => Ok(only),
        (_, last) => {
            members.extend(last);
            Ok(Expr::Row(members))
        }
    }
}

/// At `(`: the expressions of a list in parentheses, or the one subquery that they enclose.
pub(super) fn paren_members(p: &mut Parser<'_>) -> Rule<Vec<Expr>> {
    if query::query_follows_paren(p) {
        return Ok(vec![Expr::Subquery(Box::new(query::paren_query(p)?))]);
    }
    p.expect(Tok::LParen)?;
    let mut members = vec![expr::expr(p)?];
    while p.eat(Tok::Comma) {
        members.push(expr::expr(p)?);
    }
    // `((SELECT 1) UNION SELECT 2)`: what looked like an operand was a query's first term.
    if matches!(members[..], [Expr::Subquery(_)])
        && query::query_goes_on(p)
        && let Some(Expr::Subquery(query)) = members.pop()
    {
        members.push(Expr::Subquery(Box::new(query::query_after(p, QueryBody::Nested(query))?)));
    }
    p.expect(Tok::RParen)?;
    Ok(members)
}

fn user_variable(p: &mut Parser<'_>) -> Rule<Expr> {
    let name = names::user_var(p)?;
    if p.eat(Tok::Assign) {
        let value = expr::expr(p)?;
        return Ok(Expr::AssignUserVar(Box::new((name, value))));
    }
    Ok(Expr::UserVar(name))
}

fn system_variable(p: &mut Parser<'_>) -> Rule<Expr> {
    let (scope, name) = system_variable_name(p)?;
    Ok(Expr::SysVar { scope, name })
}

/// At `@@`: `@@[scope.]name[.part]`.
pub(super) fn system_variable_name(p: &mut Parser<'_>) -> Rule<(Option<VarScope>, Ident)> {
    p.expect(Tok::AtAt)?;
    let first = p.token;
    let scope = scope_word(p, &first);
    let mut name = names::ident_after_dot(p)?;
    if scope.is_some() && p.eat(Tok::Dot) {
        name = names::ident_after_dot(p)?;
        if p.eat(Tok::Dot) {
            let part = names::ident_after_dot(p)?;
            name = Ident::from(format!("{name}.{part}"));
        }
        return Ok((scope, name));
    }
    if p.eat(Tok::Dot) {
        let part = names::ident_after_dot(p)?;
        name = Ident::from(format!("{name}.{part}"));
    }
    Ok((None, name))
}

/// GLOBAL, SESSION, LOCAL, PERSIST or PERSIST_ONLY.
pub(super) fn scope_word(p: &Parser<'_>, token: &crate::lexer::Token) -> Option<VarScope> {
    let is = |word: &str| p.token_is_word(token, word);
    if is("GLOBAL") {
        Some(VarScope::Global)
    } else if is("SESSION") || is("LOCAL") {
        Some(VarScope::Session)
    } else if is("PERSIST") {
        Some(VarScope::Persist)
    } else if is("PERSIST_ONLY") {
        Some(VarScope::PersistOnly)
    } else {
        None
    }
}

/// `{d '..'}`, `{fn expr}`: the braces and the word mean nothing but a temporal literal's kind.
fn odbc_escape(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    let word = p.expect(Tok::Word)?;
    let make = match p.text(&word) {
        t if t.eq_ignore_ascii_case(b"d") => Some(Literal::Date as fn(Bytes) -> Literal),
        t if t.eq_ignore_ascii_case(b"t") => Some(Literal::Time as fn(Bytes) -> Literal),
        t if t.eq_ignore_ascii_case(b"ts") => Some(Literal::Timestamp as fn(Bytes) -> Literal),
        _ => None,
    };
    let expr = match make {
        Some(make) if p.is(Tok::Str) => Expr::Literal(make(names::string(p)?)),
        _ => expr::expr(p)?,
    };
    p.expect(Tok::RBrace)?;
    Ok(expr)
}

fn case(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    let operand = if p.is_kw(Kw::WHEN) { None } else { Some(expr::expr(p)?) };
    let mut whens = Vec::new();
    while p.eat_kw(Kw::WHEN) {
        let when = expr::expr(p)?;
        p.expect_kw(Kw::THEN)?;
        whens.push((when, expr::expr(p)?));
    }
    if whens.is_empty() {
        return Err(p.error());
    }
    let otherwise = if p.eat_kw(Kw::ELSE) { Some(expr::expr(p)?) } else { None };
    p.expect_word("END")?;
    Ok(Expr::Case(Box::new(Case { operand, whens, otherwise })))
}

fn default_value(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    if !p.eat(Tok::LParen) {
        return Ok(Expr::Default);
    }
    let column = names::column_ref(p)?;
    p.expect(Tok::RParen)?;
    Ok(Expr::DefaultOf(column))
}

/// `VALUES(col)`, with the word consumed.
pub(super) fn values_of(p: &mut Parser<'_>) -> Rule<Expr> {
    p.expect(Tok::LParen)?;
    let column: ColumnRef = names::column_ref(p)?;
    p.expect(Tok::RParen)?;
    Ok(Expr::Values(column))
}

/// At INTERVAL as the first operand: `INTERVAL 1 DAY + x`, or the function.
fn interval_first(p: &mut Parser<'_>) -> Rule<Expr> {
    let (value, unit) = match expr::interval(p)? {
        Interval::Operand(value, unit) => (value, unit),
        Interval::Call(call) => return Ok(call),
    };
    p.expect(Tok::Plus)?;
    let expr = Box::new(expr::bit_expr(p)?);
    Ok(Expr::DateArith { expr, value: Box::new(value), unit, subtract: false })
}

fn match_against(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    let columns = if p.is(Tok::LParen) {
        p.paren_list(|p| Ok(Expr::Column(names::column_ref(p)?)))?
    } else {
        p.comma_list(|p| Ok(Expr::Column(names::column_ref(p)?)))?
    };
    p.expect_word("AGAINST")?;
    p.expect(Tok::LParen)?;
    let against = expr::bit_expr(p)?;
    let boolean = p.eat_words(&["IN", "BOOLEAN", "MODE"]);
    if !boolean {
        p.eat_words(&["IN", "NATURAL", "LANGUAGE", "MODE"]);
    }
    let query_expansion = p.eat_words(&["WITH", "QUERY", "EXPANSION"]);
    p.expect(Tok::RParen)?;
    Ok(Expr::Match(Box::new(MatchAgainst { columns, against, boolean, query_expansion })))
}

/// `CONVERT(expr USING cs)` and `CONVERT(expr, type)`.
fn convert(p: &mut Parser<'_>) -> Rule<Expr> {
    p.advance();
    p.expect(Tok::LParen)?;
    let expr = Box::new(expr::expr(p)?);
    let result = if p.eat_kw(Kw::USING) {
        Expr::ConvertUsing { expr, charset: names::charset_name(p)? }
    } else {
        p.expect(Tok::Comma)?;
        Expr::Cast { expr, ty: Box::new(cast_type(p)?) }
    };
    p.expect(Tok::RParen)?;
    Ok(result)
}

/// The target of CAST.
pub(super) fn cast_type(p: &mut Parser<'_>) -> Rule<CastType> {
    let word = names::upper_word(p)?;
    Ok(match word.as_str() {
        "SIGNED" | "UNSIGNED" => {
            let _ = p.eat_kw(Kw::INTEGER) || p.eat_kw(Kw::INT);
            if word.is("SIGNED") { CastType::Signed } else { CastType::Unsigned }
        }
        "INT" | "INTEGER" => CastType::Signed,
        "BINARY" => CastType::Binary(optional_length(p)?),
        "CHAR" | "CHARACTER" | "VARCHAR" => {
            let length = optional_length(p)?;
            let mut binary = p.eat_kw(Kw::BINARY);
            let charset = column::type_charset(p)?;
            binary |= p.eat_kw(Kw::BINARY);
            CastType::Char { length, charset, binary }
        }
        "NCHAR" => CastType::NChar(optional_length(p)?),
        "NATIONAL" => {
            p.expect_kw(Kw::CHAR)?;
            CastType::NChar(optional_length(p)?)
        }
        "DATE" => CastType::Date,
        "TIME" => CastType::Time(fraction(p)?),
        "DATETIME" | "TIMESTAMP" => CastType::DateTime(fraction(p)?),
        "DECIMAL" | "DEC" | "NUMERIC" => {
            let (precision, scale) = decimal_size(p)?;
            CastType::Decimal { precision, scale }
        }
        "FLOAT" => CastType::Float(optional_length(p)?.map(|n| n.min(255) as u8)),
        "DOUBLE" => {
            p.eat_kw(Kw::PRECISION);
            CastType::Double
        }
        "REAL" => CastType::Double,
        "YEAR" => CastType::Year,
        "JSON" => CastType::Json,
        "UUID" => CastType::Uuid,
        "INET4" => CastType::Inet4,
        "INET6" => CastType::Inet6,
        "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING" | "MULTIPOLYGON"
        | "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => {
            return Err(ParseError::NotSupported("spatial types"));
        }
        _ => return Err(p.error()),
    })
}

fn decimal_size(p: &mut Parser<'_>) -> Rule<(u8, u8)> {
    if !p.eat(Tok::LParen) {
        return Ok((10, 0));
    }
    let precision = names::number_u32(p)?.min(255) as u8;
    let scale = if p.eat(Tok::Comma) { names::number_u32(p)?.min(255) as u8 } else { 0 };
    p.expect(Tok::RParen)?;
    Ok((precision, scale))
}

/// `(n)` or nothing.
pub(super) fn optional_length(p: &mut Parser<'_>) -> Rule<Option<u32>> {
    if !p.eat(Tok::LParen) {
        return Ok(None);
    }
    let length = type_width(p)?;
    p.expect(Tok::RParen)?;
    Ok(Some(length))
}

/// `(n)` fractional digits, 0 without.
pub(super) fn fraction(p: &mut Parser<'_>) -> Rule<u8> {
    Ok(optional_length(p)?.unwrap_or(0).min(255) as u8)
}

/// An interval unit, also as `SQL_TSI_x`.
pub(super) fn interval_unit(p: &mut Parser<'_>) -> Rule<IntervalUnit> {
    let text = p.text(&p.token);
    let unit = if p.is(Tok::Word) { IntervalUnit::from_word(text) } else { None };
    match unit {
        Some(unit) => {
            p.advance();
            Ok(unit)
        }
        None => Err(p.error()),
    }
}

fn temporal_literal(word: &[u8]) -> Option<fn(Bytes) -> Literal> {
    match word.len() {
        4 if word.eq_ignore_ascii_case(b"date") => Some(Literal::Date),
        4 if word.eq_ignore_ascii_case(b"time") => Some(Literal::Time),
        9 if word.eq_ignore_ascii_case(b"timestamp") => Some(Literal::Timestamp),
        _ => None,
    }
}

/// A column or a variable, and the path of a document in it.
fn arrow_behind(parser: &mut Parser<'_>, document: Expr) -> Rule<Expr> {
    let op = match parser.token.kind {
        Tok::Arrow => crate::ast::BinaryOp::JsonExtract,
        Tok::LongArrow => crate::ast::BinaryOp::JsonUnquote,
        _ => return Ok(document),
    };
    parser.advance();
    let path = Expr::Literal(Literal::Str(names::string(parser)?));
    Ok(Expr::Binary { op, left: Box::new(document), right: Box::new(path) })
}
