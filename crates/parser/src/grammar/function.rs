//! Calls: plain functions, aggregates, window functions, and the calls with a grammar of their own.

use bytes::Bytes;

use super::expr::Interval;
use super::program::fractional_local;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    Aggregate, AggregateKind, CastType, Expr, FrameBound, FunctionCall, Ident, IntervalUnit, JsonValue,
    JsonValueInstead, Literal, Over, Trim, TrimSide, UnaryOp, WindowCall, WindowFrame, WindowSpec, Written,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// A word that is not reserved, before `(`.
    pub(super) fn call(&mut self) -> Rule<Expr> {
        let token = self.advance();
        let text = self.text(&token);
        let mut lower = [0u8; 32];
        let Some(buffer) = lower.get_mut(..text.len()) else {
            let name = self.ident_of(&token)?;
            return call_of(self, None, name, false);
        };
        buffer.copy_from_slice(text);
        buffer.make_ascii_lowercase();
        let name: &[u8] = buffer;
        if let Some(kind) = AggregateKind::from_name(name) {
            return self.aggregate(kind);
        }
        match name {
            b"cast" => self.cast(),
            b"extract" => {
                self.expect(Tok::LParen)?;
                let unit = self.interval_unit()?;
                self.expect_kw(Kw::FROM)?;
                let expr = Box::new(self.expr()?);
                self.expect(Tok::RParen)?;
                Ok(Expr::Extract { unit, expr })
            }
            b"trim" => self.trim(),
            b"substring" | b"substr" | b"mid" => self.substring(),
            b"position" => self.position(),
            b"date_add" | b"adddate" => self.date_arith(false),
            b"date_sub" | b"subdate" => self.date_arith(true),
            b"timestampadd" => self.unit_call("timestampadd"),
            b"timestampdiff" => self.unit_call("timestampdiff"),
            b"get_format" => self.get_format(),
            b"weight_string" => self.weight_string(),
            b"value" => self.values_of(),
            b"json_value" => self.json_value(),
            b"column_create" | b"column_add" | b"column_get" | b"column_delete" | b"column_exists"
            | b"column_list" | b"column_check" | b"column_json" => {
                Err(ParseError::NotSupported("dynamic columns"))
            }
            b"now" => self.plain_call("now"),
            b"session_user" | b"system_user" => self.plain_call("user"),
            _ => {
                let name = self.ident_of(&token)?;
                call_of(self, None, name, false)
            }
        }
    }

    /// A reserved word that starts an operand: some are functions, a few without parentheses.
    pub(super) fn reserved_function(&mut self) -> Rule<Expr> {
        let token = self.token;
        let next = self.peek();
        let name = match token.kw {
            Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => "now",
            Kw::CURRENT_DATE => "curdate",
            Kw::CURRENT_TIME => "curtime",
            Kw::CURRENT_USER => "current_user",
            Kw::UTC_DATE => "utc_date",
            Kw::UTC_TIME => "utc_time",
            Kw::UTC_TIMESTAMP => "utc_timestamp",
            _ if next.kind != Tok::LParen => return Err(self.error()),
            Kw::VALUES => {
                self.advance();
                return self.values_of();
            }
            Kw::CHAR => return self.char_call(),
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
            | Kw::NTH_VALUE => return self.window_call(),
            _ => return Err(self.error()),
        };
        self.advance();
        if self.is(Tok::LParen) {
            return self.plain_call(name);
        }
        Ok(function(name, Vec::new()))
    }

    /// A call by a quoted or qualified name.
    pub(super) fn stored_call(&mut self, schema: Option<Ident>, name: Ident) -> Rule<Expr> {
        call_of(self, schema, name, true)
    }

    /// `(args)` with the name consumed.
    fn plain_call(&mut self, name: &str) -> Rule<Expr> {
        Ok(function(name, self.arguments()?))
    }

    fn arguments(&mut self) -> Rule<Vec<Expr>> {
        self.expect(Tok::LParen)?;
        if self.eat(Tok::RParen) {
            return Ok(Vec::new());
        }
        let args = self.comma_list(Self::expr)?;
        self.expect(Tok::RParen)?;
        Ok(args)
    }

    fn cast(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let expr = Box::new(self.expr()?);
        if self.eat_words(&["AT", "TIME", "ZONE"]) {
            let interval = self.eat_kw(Kw::INTERVAL);
            let zone = String::from_utf8_lossy(&self.string()?).into();
            self.expect_kw(Kw::AS)?;
            if !self.eat_words(&["DATETIME"]) {
                return Err(self.error());
            }
            let decimals = self.fraction()?;
            self.expect(Tok::RParen)?;
            return Ok(Expr::Cast { expr, ty: Box::new(CastType::DateTimeAt { zone, interval, decimals }) });
        }
        self.expect_kw(Kw::AS)?;
        let mut ty = Box::new(self.cast_type()?);
        if self.eat_word("ARRAY") {
            ty = Box::new(CastType::Array(ty));
        }
        self.expect(Tok::RParen)?;
        Ok(Expr::Cast { expr, ty })
    }

    fn char_call(&mut self) -> Rule<Expr> {
        self.advance();
        self.expect(Tok::LParen)?;
        let args = self.comma_list(Self::expr)?;
        let charset = if self.eat_kw(Kw::USING) { Some(self.charset_name()?) } else { None };
        self.expect(Tok::RParen)?;
        let call = function("char", args);
        Ok(match charset {
            Some(charset) => Expr::ConvertUsing { expr: Box::new(call), charset },
            None => call,
        })
    }

    fn trim(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let side = match self.token.kw {
            Kw::LEADING => Some(TrimSide::Leading),
            Kw::TRAILING => Some(TrimSide::Trailing),
            Kw::BOTH => Some(TrimSide::Both),
            _ => None,
        };
        if side.is_some() {
            self.advance();
        }
        let first = if side.is_some() && self.is_kw(Kw::FROM) { None } else { Some(self.expr()?) };
        let trim = match first {
            Some(from) if side.is_none() && !self.is_kw(Kw::FROM) => {
                Trim { side: TrimSide::Both, what: None, from }
            }
            what => {
                self.expect_kw(Kw::FROM)?;
                Trim { side: side.unwrap_or(TrimSide::Both), what, from: self.expr()? }
            }
        };
        self.expect(Tok::RParen)?;
        Ok(Expr::Trim(Box::new(trim)))
    }

    fn substring(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let mut args = vec![self.expr()?];
        if self.eat_kw(Kw::FROM) {
            args.push(self.expr()?);
            if self.eat_kw(Kw::FOR) {
                args.push(self.expr()?);
            }
        } else {
            while self.eat(Tok::Comma) {
                args.push(self.expr()?);
            }
        }
        self.expect(Tok::RParen)?;
        Ok(function("substring", args))
    }

    fn position(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let needle = self.bit_expr()?;
        self.expect_kw(Kw::IN)?;
        let haystack = self.expr()?;
        self.expect(Tok::RParen)?;
        Ok(function("locate", vec![needle, haystack]))
    }

    /// DATE_ADD and its kind; ADDDATE and SUBDATE also take plain days.
    fn date_arith(&mut self, subtract: bool) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let expr = Box::new(self.expr()?);
        self.expect(Tok::Comma)?;
        let (value, unit) = if self.is_kw(Kw::INTERVAL) {
            match self.interval()? {
                Interval::Operand(value, unit) => (value, unit),
                Interval::Call(call) => (call, IntervalUnit::Day),
            }
        } else {
            (self.expr()?, IntervalUnit::Day)
        };
        self.expect(Tok::RParen)?;
        Ok(Expr::DateArith { expr, value: Box::new(value), unit, subtract })
    }

    fn unit_call(&mut self, name: &str) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let unit = self.interval_unit()?;
        self.expect(Tok::Comma)?;
        let first = self.expr()?;
        self.expect(Tok::Comma)?;
        let second = self.expr()?;
        self.expect(Tok::RParen)?;
        Ok(function(name, vec![Expr::Unit(unit), first, second]))
    }

    /// `GET_FORMAT(DATE, 'EUR')`: the kind becomes a string argument.
    fn get_format(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let kind = self.upper_word()?;
        self.expect(Tok::Comma)?;
        let format = self.expr()?;
        self.expect(Tok::RParen)?;
        let kind = Expr::Literal(Literal::Str(Bytes::from(kind.into_string())));
        Ok(function("get_format", vec![kind, format]))
    }

    /// `WEIGHT_STRING(x [AS CHAR(n)])`: the length becomes a second argument. That of AS BINARY(n) is a cast's. Or `(x, bytes,
    /// characters, flags)`.
    fn weight_string(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let mut args = vec![self.expr()?];
        if self.eat_kw(Kw::AS) {
            match self.cast_type()? {
                CastType::Char { length: Some(length @ 1..), charset: None, binary: false } => {
                    args.push(Expr::Literal(Literal::Int(length.into())));
                }
                ty @ CastType::Binary(Some(1..)) => {
                    let expr = Box::new(args.remove(0));
                    args.push(Expr::Cast { expr, ty: Box::new(ty) });
                }
                _ => return Err(self.error()),
            }
        } else if self.is(Tok::Comma) {
            for _ in 0..3 {
                self.expect(Tok::Comma)?;
                args.push(Expr::Literal(Literal::Int(self.number()?)));
            }
        }
        self.expect(Tok::RParen)?;
        Ok(function("weight_string", args))
    }

    /// `JSON_VALUE(doc, 'path' [RETURNING type] [.. ON EMPTY] [.. ON ERROR])`; with two expressions MariaDB's function.
    fn json_value(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let doc = self.expr()?;
        self.expect(Tok::Comma)?;
        // As SHOW CREATE TABLE writes it.
        if !self.options.mariadb && self.is_word("_utf8mb4") {
            self.advance();
        }
        if self.options.mariadb || !self.is(Tok::Str) {
            let path = self.expr()?;
            self.expect(Tok::RParen)?;
            return Ok(function("json_value", vec![doc, path]));
        }
        let path = self.string()?;
        let ty = if self.eat_word("RETURNING") { Some(self.cast_type()?) } else { None };
        let on_empty = self.json_value_instead("EMPTY")?;
        let on_error = self.json_value_instead("ERROR")?;
        self.expect(Tok::RParen)?;
        Ok(Expr::JsonValue(Box::new(JsonValue { doc, path, ty, on_empty, on_error })))
    }

    fn json_value_instead(&mut self, event: &str) -> Rule<JsonValueInstead> {
        let mark = self.mark();
        let instead = if self.eat_kw(Kw::NULL) {
            JsonValueInstead::Null
        } else if self.eat_word("ERROR") {
            JsonValueInstead::Error
        } else if self.eat_kw(Kw::DEFAULT) {
            let begin = self.mark();
            let value = self.simple_expr()?;
            if !is_value(&value) {
                self.reset(begin);
                return Err(self.error());
            }
            JsonValueInstead::Default(value)
        } else {
            return Ok(JsonValueInstead::Null);
        };
        self.expect_kw(Kw::ON)?;
        if self.eat_word(event) {
            return Ok(instead);
        }
        // It is for the other event, which comes behind this one.
        if event == "EMPTY" && self.is_word("ERROR") {
            self.reset(mark);
            return Ok(JsonValueInstead::Null);
        }
        Err(self.error())
    }

    /// The text behind SEPARATOR, which may be written as its bytes.
    fn separator(&mut self) -> Rule<Bytes> {
        if self.is(Tok::Str) {
            return self.string();
        }
        match self.special_literal()? {
            Literal::Hex(bytes) | Literal::Bit(bytes) => Ok(bytes),
            _ => Err(self.error()),
        }
    }

    fn aggregate(&mut self, kind: AggregateKind) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
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
        if kind == AggregateKind::Count && self.eat(Tok::Star) {
            call.star = true;
        } else {
            use AggregateKind as A;
            let may = matches!(kind, A::Count | A::Sum | A::Avg | A::Min | A::Max | A::GroupConcat)
                || kind == A::JsonArrayAgg && self.options.mariadb;
            if self.is_kw(Kw::DISTINCT) && !may {
                return Err(self.error());
            }
            call.distinct = self.eat_kw(Kw::DISTINCT);
            if !call.distinct {
                self.eat_kw(Kw::ALL);
            }
            let several = match kind {
                AggregateKind::Count => call.distinct,
                AggregateKind::GroupConcat | AggregateKind::JsonObjectAgg => true,
                _ => false,
            };
            call.args = if several { self.comma_list(Self::expr)? } else { vec![self.expr()?] };
        }
        if kind == AggregateKind::GroupConcat {
            call.order_by = self.order_by()?;
            if self.eat_kw(Kw::SEPARATOR) {
                call.separator = Some(self.separator()?);
            }
            call.limit = self.limit()?;
        }
        self.expect(Tok::RParen)?;
        if self.is_kw(Kw::OVER) {
            call.over = Some(self.over()?);
        }
        Ok(Expr::Aggregate(Box::new(call)))
    }

    fn window_call(&mut self) -> Rule<Expr> {
        let token = self.advance();
        let name: Ident = self.ident_of(&token)?.to_ascii_lowercase().into();
        let args = window_arguments(self, &name)?;
        // The only order there is.
        self.eat_words(&["FROM", "FIRST"]);
        let ignore_nulls = self.eat_words(&["IGNORE", "NULLS"]);
        self.eat_words(&["RESPECT", "NULLS"]);
        let over = self.over()?;
        Ok(Expr::Window(Box::new(WindowCall { name, args, ignore_nulls, over })))
    }

    fn over(&mut self) -> Rule<Over> {
        self.expect_kw(Kw::OVER)?;
        if self.is(Tok::LParen) { Ok(Over::Spec(self.window_spec()?)) } else { Ok(Over::Name(self.ident()?)) }
    }

    /// `( [base] [PARTITION BY ..] [ORDER BY ..] [frame] )`
    pub(super) fn window_spec(&mut self) -> Rule<WindowSpec> {
        self.expect(Tok::LParen)?;
        let base = if self.is_ident() { Some(self.ident()?) } else { None };
        let partition_by =
            if self.eat_words(&["PARTITION", "BY"]) { self.comma_list(Self::expr)? } else { Vec::new() };
        let order_by = self.order_by()?;
        let frame = match self.token.kw {
            Kw::ROWS | Kw::RANGE => Some(self.window_frame()?),
            _ if self.is_word("GROUPS") => return Err(ParseError::NotSupported("GROUPS")),
            _ => None,
        };
        if frame.is_some() && !self.options.mariadb && self.is_word("EXCLUDE") {
            return Err(ParseError::NotSupported("EXCLUDE"));
        }
        self.expect(Tok::RParen)?;
        Ok(WindowSpec { base, partition_by, order_by, frame })
    }

    fn window_frame(&mut self) -> Rule<WindowFrame> {
        let rows = self.advance().kw == Kw::ROWS;
        if self.eat_kw(Kw::BETWEEN) {
            let start = self.frame_bound()?;
            self.expect_kw(Kw::AND)?;
            let end = Some(self.frame_bound()?);
            return Ok(WindowFrame { rows, start, end });
        }
        Ok(WindowFrame { rows, start: self.frame_bound()?, end: None })
    }

    fn frame_bound(&mut self) -> Rule<FrameBound> {
        if self.eat_words(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        let unbounded = self.eat_word("UNBOUNDED");
        let expr = if unbounded {
            None
        } else if self.is_kw(Kw::INTERVAL) {
            match self.interval()? {
                Interval::Operand(value, unit) => Some(function("interval", vec![value, Expr::Unit(unit)])),
                Interval::Call(call) => Some(call),
            }
        } else if self.options.mariadb {
            Some(self.bit_expr()?)
        } else {
            // MySQL takes a number or a parameter, and no other expression.
            let begin = self.mark();
            let distance = self.bit_expr()?;
            if !matches!(distance, Expr::Param(_)) && !is_number_literal(&distance) {
                self.reset(begin);
                return Err(self.error());
            }
            Some(distance)
        };
        let preceding = self.eat_word("PRECEDING");
        if !preceding {
            self.expect_word("FOLLOWING")?;
        }
        Ok(match (expr, preceding) {
            (None, true) => FrameBound::UnboundedPreceding,
            (None, false) => FrameBound::UnboundedFollowing,
            (Some(expr), true) => FrameBound::Preceding(expr),
            (Some(expr), false) => FrameBound::Following(expr),
        })
    }
}

fn is_number_literal(expr: &Expr) -> bool {
    use Literal as L;
    matches!(expr, Expr::Literal(L::Int(_) | L::Decimal(_) | L::Float(_)))
}

/// `(args)` of whatever function has a name that was written so.
fn call_of(parser: &mut Parser<'_>, schema: Option<Ident>, written: Ident, quoted: bool) -> Rule<Expr> {
    let name: Ident = written.to_ascii_lowercase().into();
    let written = Written { name: Some(written).filter(|written| *written != name), quoted };
    let args = parser.arguments()?;
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
        let arg = parser.expr()?;
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
