//! Operands: literals, names, variables, parentheses, CASE, CAST and their kind.

use bytes::Bytes;
use omnibus_value::decimal::Decimal;

use super::column::type_width;
use super::expr::Interval;
use super::names::parse_u64;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    Case, CastType, ColumnRef, Expr, Ident, IntervalUnit, Literal, MatchAgainst, QueryBody, VarScope,
};
use crate::lexer::keyword::Kw;
use crate::lexer::{Tok, literal};

impl Parser<'_> {
    /// One operand, without prefix operators.
    #[inline]
    pub(super) fn primary(&mut self) -> Rule<Expr> {
        match self.token.kind {
            Tok::Int | Tok::Decimal | Tok::Float => self.number_literal().map(Expr::Literal),
            Tok::Str => Ok(Expr::Literal(Literal::Str(self.string_value()?))),
            Tok::Word => self.word_primary(),
            Tok::Quoted => self.name_primary(),
            Tok::Param if self.options.markers => {
                self.advance();
                self.params += 1;
                Ok(Expr::Param(self.params - 1))
            }
            Tok::LParen => self.paren_expr(),
            Tok::UserVar => self.user_variable(),
            Tok::AtAt => self.system_variable(),
            Tok::Dot => {
                self.advance();
                let first = self.reference_after_dot()?;
                Ok(Expr::Column(self.column_ref_after(first)?))
            }
            Tok::LBrace => self.odbc_escape(),
            _ => self.special_literal().map(Expr::Literal),
        }
    }

    /// An unsigned numeric literal.
    pub(super) fn number_literal(&mut self) -> Rule<Literal> {
        let token = self.token;
        let text = self.text(&token);
        let value = match token.kind {
            Tok::Int if let Some(n) = parse_u64(text) => Literal::Int(n),
            Tok::Int | Tok::Decimal => match Decimal::parse(text).overflow {
                false => Literal::Decimal(self.slice(token.start as usize, token.end as usize)),
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
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(value)
    }

    /// `N'..'`, `x'..'`, `0x..`, `b'..'`, `0b..`
    pub(super) fn special_literal(&mut self) -> Rule<Literal> {
        let token = self.token;
        let text = self.text(&token);
        let value = match token.kind {
            Tok::NStr => return Ok(Literal::National(self.string_value()?)),
            Tok::HexStr => Literal::Hex(Bytes::from(literal::hex(literal::raw(&token, text)))),
            Tok::HexNum => Literal::Hex(Bytes::from(literal::hex(&text[2..]))),
            Tok::BitStr => Literal::Bit(Bytes::from(literal::bits(literal::raw(&token, text)))),
            Tok::BitNum => Literal::Bit(Bytes::from(literal::bits(&text[2..]))),
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(value)
    }

    /// An unquoted word that starts an operand.
    fn word_primary(&mut self) -> Rule<Expr> {
        let literal = match self.token.kw {
            Kw::NONE => return self.plain_word(),
            Kw::NULL => Literal::Null,
            Kw::TRUE => Literal::True,
            Kw::FALSE => Literal::False,
            Kw::CASE => return self.case(),
            Kw::EXISTS => {
                self.advance();
                return Ok(Expr::Exists(Box::new(self.paren_query()?)));
            }
            Kw::DEFAULT => return self.default_value(),
            Kw::ROW => {
                self.advance();
                let members = self.paren_list(Self::expr)?;
                return if members.len() < 2 { Err(self.error()) } else { Ok(Expr::Row(members)) };
            }
            Kw::INTERVAL => return self.interval_first(),
            Kw::MATCH => return self.match_against(),
            Kw::CONVERT => return self.convert(),
            _ => return self.reserved_function(),
        };
        self.advance();
        Ok(Expr::Literal(literal))
    }

    /// A word that is not reserved: an introducer, a temporal literal, CAST, a call, or a name.
    fn plain_word(&mut self) -> Rule<Expr> {
        if (self.is_word("NEXT") || self.is_word("PREVIOUS"))
            && self.options.mariadb
            && let Some(call) = self.value_for()?
        {
            return Ok(call);
        }
        let token = self.token;
        let next = self.peek();
        match next.kind {
            Tok::LParen => return self.call(),
            Tok::Str | Tok::HexStr | Tok::HexNum | Tok::BitStr | Tok::BitNum => {
                let text = self.text(&token);
                if text[0] == b'_' && literal::is_charset(&text[1..]) {
                    return self.introduced();
                }
                if next.kind == Tok::Str
                    && let Some(make) = temporal_literal(text)
                {
                    self.advance();
                    return Ok(Expr::Literal(make(self.string()?)));
                }
            }
            Tok::Dot => {}
            // MariaDB has it without parentheses, too.
            _ if self.at_current_role() => {
                self.advance();
                return Ok(super::function::function("current_role", Vec::new()));
            }
            _ => {}
        }
        self.name_primary()
    }

    fn introduced(&mut self) -> Rule<Expr> {
        let token = self.advance();
        let name = String::from_utf8_lossy(&self.text(&token)[1..]).to_ascii_lowercase();
        let literal = match self.token.kind {
            Tok::Str => Literal::Str(self.string_value()?),
            _ => self.special_literal()?,
        };
        Ok(Expr::Introduced(Box::new((Ident::from(name), literal))))
    }

    /// A column name, or a call of a stored function by a quoted or qualified name.
    fn name_primary(&mut self) -> Rule<Expr> {
        let first = self.reference()?;
        if self.is(Tok::LParen) {
            return self.stored_call(None, first);
        }
        if !self.is(Tok::Dot)
            && let Some(local) = self.local_operand(&first)
        {
            return arrow_behind(self, local);
        }
        let row = self.in_trigger() && self.is(Tok::Dot);
        if row {
            self.trigger_row(&first)?;
        }
        let column = self.column_ref_after(first)?;
        if row {
            super::program::reads_row(self, &column);
        }
        if self.is(Tok::LParen) {
            return match column.qualifier {
                Some(q) if q.schema.is_none() => self.stored_call(Some(q.table), column.name),
                _ => Err(self.error()),
            };
        }
        arrow_behind(self, Expr::Column(column))
    }

    /// At `(`: an expression, a row, or a subquery.
    fn paren_expr(&mut self) -> Rule<Expr> {
        let mut members = self.paren_members()?;
        match (members.len(), members.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                members.extend(last);
                Ok(Expr::Row(members))
            }
        }
    }

    /// At `(`: the expressions of a list in parentheses, or the one subquery that they enclose.
    pub(super) fn paren_members(&mut self) -> Rule<Vec<Expr>> {
        if self.query_follows_paren() {
            return Ok(vec![Expr::Subquery(Box::new(self.paren_query()?))]);
        }
        self.expect(Tok::LParen)?;
        let mut members = vec![self.expr()?];
        while self.eat(Tok::Comma) {
            members.push(self.expr()?);
        }
        // `((SELECT 1) UNION SELECT 2)`: what looked like an operand was a query's first term.
        if matches!(members[..], [Expr::Subquery(_)])
            && self.query_goes_on()
            && let Some(Expr::Subquery(query)) = members.pop()
        {
            members.push(Expr::Subquery(Box::new(self.query_after(QueryBody::Nested(query))?)));
        }
        self.expect(Tok::RParen)?;
        Ok(members)
    }

    fn user_variable(&mut self) -> Rule<Expr> {
        let name = self.user_var()?;
        if self.eat(Tok::Assign) {
            let value = self.expr()?;
            return Ok(Expr::AssignUserVar(Box::new((name, value))));
        }
        Ok(Expr::UserVar(name))
    }

    fn system_variable(&mut self) -> Rule<Expr> {
        let (scope, name) = self.system_variable_name()?;
        Ok(Expr::SysVar { scope, name })
    }

    /// At `@@`: `@@[scope.]name[.part]`.
    pub(super) fn system_variable_name(&mut self) -> Rule<(Option<VarScope>, Ident)> {
        self.expect(Tok::AtAt)?;
        let first = self.token;
        let scope = self.scope_word(&first);
        let mut name = self.ident_after_dot()?;
        if scope.is_some() && self.eat(Tok::Dot) {
            name = self.ident_after_dot()?;
            if self.eat(Tok::Dot) {
                let part = self.ident_after_dot()?;
                name = Ident::from(format!("{name}.{part}"));
            }
            return Ok((scope, name));
        }
        if self.eat(Tok::Dot) {
            let part = self.ident_after_dot()?;
            name = Ident::from(format!("{name}.{part}"));
        }
        Ok((None, name))
    }

    /// GLOBAL, SESSION, LOCAL, PERSIST or PERSIST_ONLY.
    pub(super) fn scope_word(&self, token: &crate::lexer::Token) -> Option<VarScope> {
        let is = |word: &str| self.token_is_word(token, word);
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
    fn odbc_escape(&mut self) -> Rule<Expr> {
        self.advance();
        let word = self.expect(Tok::Word)?;
        let make = match self.text(&word) {
            t if t.eq_ignore_ascii_case(b"d") => Some(Literal::Date as fn(Bytes) -> Literal),
            t if t.eq_ignore_ascii_case(b"t") => Some(Literal::Time as fn(Bytes) -> Literal),
            t if t.eq_ignore_ascii_case(b"ts") => Some(Literal::Timestamp as fn(Bytes) -> Literal),
            _ => None,
        };
        let expr = match make {
            Some(make) if self.is(Tok::Str) => Expr::Literal(make(self.string()?)),
            _ => self.expr()?,
        };
        self.expect(Tok::RBrace)?;
        Ok(expr)
    }

    fn case(&mut self) -> Rule<Expr> {
        self.advance();
        let operand = if self.is_kw(Kw::WHEN) { None } else { Some(self.expr()?) };
        let mut whens = Vec::new();
        while self.eat_kw(Kw::WHEN) {
            let when = self.expr()?;
            self.expect_kw(Kw::THEN)?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.eat_kw(Kw::ELSE) { Some(self.expr()?) } else { None };
        self.expect_word("END")?;
        Ok(Expr::Case(Box::new(Case { operand, whens, otherwise })))
    }

    fn default_value(&mut self) -> Rule<Expr> {
        self.advance();
        if !self.eat(Tok::LParen) {
            return Ok(Expr::Default);
        }
        let column = self.column_ref()?;
        self.expect(Tok::RParen)?;
        Ok(Expr::DefaultOf(column))
    }

    /// `VALUES(col)`, with the word consumed.
    pub(super) fn values_of(&mut self) -> Rule<Expr> {
        self.expect(Tok::LParen)?;
        let column: ColumnRef = self.column_ref()?;
        self.expect(Tok::RParen)?;
        Ok(Expr::Values(column))
    }

    /// At INTERVAL as the first operand: `INTERVAL 1 DAY + x`, or the function.
    fn interval_first(&mut self) -> Rule<Expr> {
        let (value, unit) = match self.interval()? {
            Interval::Operand(value, unit) => (value, unit),
            Interval::Call(call) => return Ok(call),
        };
        self.expect(Tok::Plus)?;
        let expr = Box::new(self.bit_expr()?);
        Ok(Expr::DateArith { expr, value: Box::new(value), unit, subtract: false })
    }

    fn match_against(&mut self) -> Rule<Expr> {
        self.advance();
        let columns = if self.is(Tok::LParen) {
            self.paren_list(|p| Ok(Expr::Column(p.column_ref()?)))?
        } else {
            self.comma_list(|p| Ok(Expr::Column(p.column_ref()?)))?
        };
        self.expect_word("AGAINST")?;
        self.expect(Tok::LParen)?;
        let against = self.bit_expr()?;
        let boolean = self.eat_words(&["IN", "BOOLEAN", "MODE"]);
        if !boolean {
            self.eat_words(&["IN", "NATURAL", "LANGUAGE", "MODE"]);
        }
        let query_expansion = self.eat_words(&["WITH", "QUERY", "EXPANSION"]);
        self.expect(Tok::RParen)?;
        Ok(Expr::Match(Box::new(MatchAgainst { columns, against, boolean, query_expansion })))
    }

    /// `CONVERT(expr USING cs)` and `CONVERT(expr, type)`.
    fn convert(&mut self) -> Rule<Expr> {
        self.advance();
        self.expect(Tok::LParen)?;
        let expr = Box::new(self.expr()?);
        let result = if self.eat_kw(Kw::USING) {
            Expr::ConvertUsing { expr, charset: self.charset_name()? }
        } else {
            self.expect(Tok::Comma)?;
            Expr::Cast { expr, ty: Box::new(self.cast_type()?) }
        };
        self.expect(Tok::RParen)?;
        Ok(result)
    }

    /// The target of CAST.
    pub(super) fn cast_type(&mut self) -> Rule<CastType> {
        let word = self.upper_word()?;
        Ok(match word.as_str() {
            "SIGNED" | "UNSIGNED" => {
                let _ = self.eat_kw(Kw::INTEGER) || self.eat_kw(Kw::INT);
                if word.is("SIGNED") { CastType::Signed } else { CastType::Unsigned }
            }
            "INT" | "INTEGER" => CastType::Signed,
            "BINARY" => CastType::Binary(self.optional_length()?),
            "CHAR" | "CHARACTER" | "VARCHAR" => {
                let length = self.optional_length()?;
                let mut binary = self.eat_kw(Kw::BINARY);
                let charset = self.type_charset()?;
                binary |= self.eat_kw(Kw::BINARY);
                CastType::Char { length, charset, binary }
            }
            "NCHAR" => CastType::NChar(self.optional_length()?),
            "NATIONAL" => {
                self.expect_kw(Kw::CHAR)?;
                CastType::NChar(self.optional_length()?)
            }
            "DATE" => CastType::Date,
            "TIME" => CastType::Time(self.fraction()?),
            "DATETIME" | "TIMESTAMP" => CastType::DateTime(self.fraction()?),
            "DECIMAL" | "DEC" | "NUMERIC" => {
                let (precision, scale) = self.decimal_size()?;
                CastType::Decimal { precision, scale }
            }
            "FLOAT" => CastType::Float(self.optional_length()?.map(|n| n.min(255) as u8)),
            "DOUBLE" => {
                self.eat_kw(Kw::PRECISION);
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
            _ => return Err(self.error()),
        })
    }

    fn decimal_size(&mut self) -> Rule<(u8, u8)> {
        if !self.eat(Tok::LParen) {
            return Ok((10, 0));
        }
        let precision = self.number_u32()?.min(255) as u8;
        let scale = if self.eat(Tok::Comma) { self.number_u32()?.min(255) as u8 } else { 0 };
        self.expect(Tok::RParen)?;
        Ok((precision, scale))
    }

    /// `(n)` or nothing.
    pub(super) fn optional_length(&mut self) -> Rule<Option<u32>> {
        if !self.eat(Tok::LParen) {
            return Ok(None);
        }
        let length = type_width(self)?;
        self.expect(Tok::RParen)?;
        Ok(Some(length))
    }

    /// `(n)` fractional digits, 0 without.
    pub(super) fn fraction(&mut self) -> Rule<u8> {
        Ok(self.optional_length()?.unwrap_or(0).min(255) as u8)
    }

    /// An interval unit, also as `SQL_TSI_x`.
    pub(super) fn interval_unit(&mut self) -> Rule<IntervalUnit> {
        let text = self.text(&self.token);
        let unit = if self.is(Tok::Word) { IntervalUnit::from_word(text) } else { None };
        match unit {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => Err(self.error()),
        }
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
    let path = Expr::Literal(Literal::Str(parser.string()?));
    Ok(Expr::Binary { op, left: Box::new(document), right: Box::new(path) })
}
