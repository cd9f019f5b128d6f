//! Column types and column attributes, in any order.

use super::names::parse_u64;
use super::program::other;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    Check, ColumnDef, DataType, DefaultValue, Expr, FunctionCall, Generated, Ident, Literal, TypeName,
    UnaryOp,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// A column definition behind its name.
    pub(super) fn column_def(&mut self, name: Ident) -> Rule<ColumnDef> {
        let ty = self.data_type().map_err(|error| match error {
            ParseError::Other { code: 1439, .. } => too_wide(&name),
            error => error,
        })?;
        let serial = ty.name == TypeName::Serial;
        let mut column = ColumnDef {
            name,
            ty,
            nullable: serial.then_some(false),
            default: None,
            on_update: None,
            auto_increment: serial,
            primary_key: false,
            unique: serial,
            comment: None,
            generated: None,
            invisible: None,
            checks: Vec::new(),
            references: None,
            srid: None,
        };
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    /// A column type with its parameters and string attributes.
    pub(super) fn data_type(&mut self) -> Rule<DataType> {
        let at = self.mark();
        let word = self.upper_word()?;
        let behind = self.token.start;
        let mut ty = DataType {
            name: TypeName::Int,
            length: None,
            scale: None,
            unsigned: false,
            zerofill: false,
            labels: Vec::new(),
            charset: None,
            collation: None,
            binary: false,
            implied: false,
        };
        ty.name = self.type_name(&word, &mut ty).map_err(|error| {
            // A word that is no type is at fault itself.
            if self.token.start != behind {
                return error;
            }
            self.reset(at);
            self.error()
        })?;
        match ty.name {
            TypeName::Enum | TypeName::Set => ty.labels = self.paren_list(Self::text_value)?,
            _ => self.type_size(&mut ty)?,
        }
        self.type_attributes(&mut ty)?;
        Ok(ty)
    }

    fn type_name(&mut self, word: &Ident, ty: &mut DataType) -> Rule<TypeName> {
        Ok(match word.as_str() {
            "TINYINT" | "INT1" => TypeName::TinyInt,
            "SMALLINT" | "INT2" => TypeName::SmallInt,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => TypeName::MediumInt,
            "INT" | "INTEGER" | "INT4" => TypeName::Int,
            "BIGINT" | "INT8" => TypeName::BigInt,
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => TypeName::Decimal,
            "FLOAT" | "FLOAT4" => TypeName::Float,
            "DOUBLE" => {
                self.eat_kw(Kw::PRECISION);
                TypeName::Double
            }
            "REAL" if self.options.real_as_float => TypeName::Float,
            "FLOAT8" | "REAL" => TypeName::Double,
            "BIT" => TypeName::Bit,
            "BOOL" | "BOOLEAN" => TypeName::Bool,
            "SERIAL" => TypeName::Serial,
            "YEAR" => TypeName::Year,
            "DATE" => TypeName::Date,
            "TIME" => TypeName::Time,
            "DATETIME" => TypeName::DateTime,
            "TIMESTAMP" => TypeName::Timestamp,
            "CHAR" | "CHARACTER" => self.char_type(),
            "VARCHAR" | "VARCHARACTER" => TypeName::VarChar,
            "NCHAR" | "NATIONAL" => {
                ty.charset = Some("utf8mb3".into());
                self.national_type(word)?
            }
            "NVARCHAR" => {
                ty.charset = Some("utf8mb3".into());
                TypeName::VarChar
            }
            "BINARY" => TypeName::Binary,
            "VARBINARY" => TypeName::VarBinary,
            "TINYTEXT" => TypeName::TinyText,
            "TEXT" => TypeName::Text,
            "MEDIUMTEXT" => TypeName::MediumText,
            "LONGTEXT" => TypeName::LongText,
            "LONG" => self.long_type(),
            "TINYBLOB" => TypeName::TinyBlob,
            "BLOB" => TypeName::Blob,
            "MEDIUMBLOB" => TypeName::MediumBlob,
            "LONGBLOB" => TypeName::LongBlob,
            "ENUM" => TypeName::Enum,
            "SET" => TypeName::Set,
            "JSON" => TypeName::Json,
            "UUID" => TypeName::Uuid,
            "INET4" => TypeName::Inet4,
            "INET6" => TypeName::Inet6,
            "VECTOR" => TypeName::Vector,
            other => match geometry(other) {
                Some(name) => name,
                None => return Err(self.error()),
            },
        })
    }

    /// Behind CHAR: VARYING makes it VARCHAR.
    fn char_type(&mut self) -> TypeName {
        if self.eat_kw(Kw::VARYING) { TypeName::VarChar } else { TypeName::Char }
    }

    fn national_type(&mut self, word: &Ident) -> Rule<TypeName> {
        if word.is("NATIONAL") {
            if self.eat_kw(Kw::VARCHAR) || self.eat_kw(Kw::VARCHARACTER) {
                return Ok(TypeName::VarChar);
            }
            if !self.eat_kw(Kw::CHAR) {
                self.expect_kw(Kw::CHARACTER)?;
            }
        } else if self.eat_kw(Kw::VARCHAR) || self.eat_kw(Kw::VARCHARACTER) {
            return Ok(TypeName::VarChar);
        }
        Ok(self.char_type())
    }

    /// LONG, LONG VARCHAR, LONG VARBINARY.
    fn long_type(&mut self) -> TypeName {
        if self.eat_kw(Kw::VARBINARY) {
            return TypeName::MediumBlob;
        }
        if self.eat_kw(Kw::CHAR) || self.eat_kw(Kw::CHARACTER) {
            self.eat_kw(Kw::VARYING);
        } else {
            let _ = self.eat_kw(Kw::VARCHAR) || self.eat_kw(Kw::VARCHARACTER);
        }
        TypeName::MediumText
    }

    /// `(n)` or `(n, m)`.
    fn type_size(&mut self, ty: &mut DataType) -> Rule<()> {
        if !self.eat(Tok::LParen) {
            let needed = matches!(ty.name, TypeName::VarChar | TypeName::VarBinary);
            return if needed { Err(self.error()) } else { Ok(()) };
        }
        ty.length = Some(match ty.name {
            TypeName::Char
            | TypeName::VarChar
            | TypeName::Binary
            | TypeName::VarBinary
            | TypeName::Text
            | TypeName::Blob => type_width(self)?,
            // A year has one width.
            TypeName::Year if is_beyond_u32(self) => {
                self.advance();
                u32::MAX
            }
            TypeName::TinyInt
            | TypeName::SmallInt
            | TypeName::MediumInt
            | TypeName::Int
            | TypeName::BigInt
                if is_beyond_u32(self) =>
            {
                return Err(too_wide("cast as char"));
            }
            _ => self.number_u32()?,
        });
        if self.eat(Tok::Comma) {
            ty.scale = Some(self.number_u32()?);
        }
        self.expect(Tok::RParen)?;
        Ok(())
    }

    fn type_attributes(&mut self, ty: &mut DataType) -> Rule<()> {
        let (number, text) = (is_number(ty.name), is_text(ty.name) || self.options.mariadb);
        loop {
            if number && self.eat_kw(Kw::UNSIGNED) {
                ty.unsigned = true;
            } else if number && self.eat_kw(Kw::ZEROFILL) {
                ty.zerofill = true;
                ty.unsigned = true;
            } else if text && self.eat_kw(Kw::BINARY) {
                ty.binary = true;
            } else if number && self.is_word("SIGNED") {
                self.advance();
            } else if text && let Some(charset) = self.type_charset()? {
                ty.charset = Some(charset);
            } else if self.eat_kw(Kw::COLLATE) {
                ty.collation = Some(self.charset_name()?);
                ty.implied |= self.eat_words(&["OF", "SOURCE"]);
            } else {
                return Ok(());
            }
        }
    }

    /// One attribute; false when there is none.
    fn column_attribute(&mut self, column: &mut ColumnDef) -> Rule<bool> {
        match self.token.kw {
            Kw::NULL => column.nullable = Some(true),
            Kw::NOT => {
                self.advance();
                if self.eat_kw(Kw::NULL) {
                    column.nullable = Some(false);
                } else {
                    self.expect_word("ENFORCED")?;
                    self.last_check(column)?.enforced = false;
                }
                return Ok(true);
            }
            Kw::DEFAULT => {
                self.advance();
                column.default = Some(self.default_clause()?);
                return Ok(true);
            }
            Kw::ON => {
                self.advance();
                self.expect_kw(Kw::UPDATE)?;
                column.on_update = Some(self.now_fraction()?);
                return Ok(true);
            }
            Kw::PRIMARY => {
                self.advance();
                self.expect_kw(Kw::KEY)?;
                column.primary_key = true;
                return Ok(true);
            }
            Kw::UNIQUE => {
                self.advance();
                self.eat_kw(Kw::KEY);
                column.unique = true;
                return Ok(true);
            }
            Kw::KEY => column.primary_key = true,
            Kw::COLLATE => {
                self.advance();
                column.ty.collation = Some(self.charset_name()?);
                return Ok(true);
            }
            Kw::GENERATED => {
                self.advance();
                self.expect_word("ALWAYS")?;
                self.generated(column)?;
                return Ok(true);
            }
            Kw::AS => {
                self.generated(column)?;
                return Ok(true);
            }
            Kw::CONSTRAINT | Kw::CHECK => {
                column.checks.push(self.column_check()?);
                return Ok(true);
            }
            Kw::REFERENCES => {
                column.references = Some(Box::new(self.references()?));
                return Ok(true);
            }
            Kw::NONE => return self.word_attribute(column),
            _ => return Ok(false),
        }
        self.advance();
        Ok(true)
    }

    /// Attributes whose word is not reserved.
    fn word_attribute(&mut self, column: &mut ColumnDef) -> Rule<bool> {
        if self.eat_word("AUTO_INCREMENT") {
            column.auto_increment = true;
        } else if self.eat_word("COMMENT") {
            column.comment = Some(self.string()?);
        } else if self.eat_word("INVISIBLE") {
            column.invisible = Some(true);
        } else if self.eat_word("VISIBLE") {
            column.invisible = Some(false);
        } else if self.eat_word("ENFORCED") {
            self.last_check(column)?.enforced = true;
        } else if self.eat_words(&["SERIAL", "DEFAULT", "VALUE"]) {
            column.nullable = Some(false);
            column.auto_increment = true;
            column.unique = true;
        } else if self.eat_word("SRID") || self.eat_word("REF_SYSTEM_ID") {
            self.optional_eq();
            column.srid = Some(self.number_u32()?);
        } else if self.eat_word("COLUMN_FORMAT") || self.eat_word("STORAGE") {
            self.upper_word()?;
        } else if self.eat_word("ENGINE_ATTRIBUTE") || self.eat_word("SECONDARY_ENGINE_ATTRIBUTE") {
            self.optional_eq();
            self.string()?;
        } else if (is_text(column.ty.name) || self.options.mariadb)
            && let Some(charset) = self.type_charset()?
        {
            column.ty.charset = Some(charset);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn last_check<'c>(&self, column: &'c mut ColumnDef) -> Rule<&'c mut Check> {
        column.checks.last_mut().ok_or_else(|| self.error())
    }

    fn column_check(&mut self) -> Rule<Check> {
        let mut name = None;
        if self.eat_kw(Kw::CONSTRAINT) && !self.is_kw(Kw::CHECK) {
            name = Some(self.ident()?);
        }
        self.check(name)
    }

    /// At CHECK; ENFORCED is left to the caller's loop or taken here.
    pub(super) fn check(&mut self, name: Option<Ident>) -> Rule<Check> {
        self.expect_kw(Kw::CHECK)?;
        self.expect(Tok::LParen)?;
        let at = self.token.start;
        let expr = self.expr()?;
        self.expect(Tok::RParen)?;
        let mut enforced = true;
        if self.eat_words(&["NOT", "ENFORCED"]) {
            enforced = false;
        } else {
            self.eat_word("ENFORCED");
        }
        Ok(Check { name, expr, at, enforced })
    }

    /// `AS (expr) [VIRTUAL | STORED]`
    fn generated(&mut self, column: &mut ColumnDef) -> Rule<()> {
        self.expect_kw(Kw::AS)?;
        self.expect(Tok::LParen)?;
        let expr = self.expr()?;
        self.expect(Tok::RParen)?;
        let stored = self.eat_kw(Kw::STORED) || self.eat_word("PERSISTENT");
        if !stored {
            self.eat_kw(Kw::VIRTUAL);
        }
        column.generated = Some(Generated { expr, stored });
        Ok(())
    }

    /// Behind DEFAULT.
    pub(super) fn default_clause(&mut self) -> Rule<DefaultValue> {
        if self.is(Tok::LParen) {
            self.advance();
            let expr = self.expr()?;
            self.expect(Tok::RParen)?;
            return Ok(DefaultValue::Expression(expr));
        }
        let sign = match self.token.kind {
            Tok::Minus => Some(UnaryOp::Minus),
            Tok::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        if let Some(op) = sign {
            self.advance();
            let number = Expr::Literal(self.number_literal()?);
            return Ok(DefaultValue::Value(Expr::Unary { op, expr: Box::new(number) }));
        }
        if self.at_now() {
            let fraction = self.now_fraction()?;
            return Ok(DefaultValue::Value(now_call(fraction)));
        }
        let expr = self.nest(Self::primary)?;
        match &expr {
            Expr::Literal(_) | Expr::Introduced(_) | Expr::Collate { .. } => Ok(DefaultValue::Value(expr)),
            // MariaDB takes any expression here; MySQL wants parentheses, and says so with 1064.
            Expr::Function(_) if self.options.mariadb => Ok(DefaultValue::Expression(expr)),
            _ => Err(self.error()),
        }
    }

    fn at_now(&self) -> bool {
        matches!(self.token.kw, Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP)
            || (self.is_word("NOW") && self.peek().kind == Tok::LParen)
    }

    /// CURRENT_TIMESTAMP and its synonyms, with their fractional digits.
    fn now_fraction(&mut self) -> Rule<u8> {
        if !self.at_now() {
            return Err(self.error());
        }
        self.advance();
        if !self.eat(Tok::LParen) {
            return Ok(0);
        }
        let digits = if self.is(Tok::RParen) { 0 } else { self.number_u32()?.min(255) as u8 };
        self.expect(Tok::RParen)?;
        Ok(digits)
    }
}

fn now_call(fraction: u8) -> Expr {
    let args = match fraction {
        0 => Vec::new(),
        n => vec![Expr::Literal(Literal::Int(u64::from(n)))],
    };
    Expr::Function(Box::new(FunctionCall::built_in("now", args)))
}

fn geometry(word: &str) -> Option<TypeName> {
    Some(match word {
        "GEOMETRY" => TypeName::Geometry,
        "POINT" => TypeName::Point,
        "LINESTRING" => TypeName::LineString,
        "POLYGON" => TypeName::Polygon,
        "MULTIPOINT" => TypeName::MultiPoint,
        "MULTILINESTRING" => TypeName::MultiLineString,
        "MULTIPOLYGON" => TypeName::MultiPolygon,
        "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => TypeName::GeometryCollection,
        _ => return None,
    })
}

/// Whether a type is of whole numbers.
pub(super) fn is_whole(name: TypeName) -> bool {
    use TypeName as T;
    matches!(name, T::Bool | T::TinyInt | T::SmallInt | T::MediumInt | T::Int | T::BigInt | T::Year)
}

/// Whether a type may be UNSIGNED and ZEROFILL.
fn is_number(name: TypeName) -> bool {
    use TypeName as T;
    is_whole(name) && name != T::Bool || matches!(name, T::Decimal | T::Float | T::Double)
}

/// Whether a type has a character set.
fn is_text(name: TypeName) -> bool {
    use TypeName as T;
    let long = matches!(name, T::TinyText | T::Text | T::MediumText | T::LongText);
    long || matches!(name, T::Char | T::VarChar | T::Enum | T::Set)
}

fn too_wide(column: &str) -> ParseError {
    other(1439, "42000", format!("Display width out of range for column '{column}' (max = {})", u32::MAX))
}

/// Whether a number is next that has more than 32 bits.
fn is_beyond_u32(parser: &Parser<'_>) -> bool {
    let width = parse_u64(parser.text(&parser.token));
    parser.is(Tok::Int) && width.is_none_or(|width| width > u64::from(u32::MAX))
}

/// The length of a text or of bytes, which CAST calls as this error does.
pub(super) fn type_width(parser: &mut Parser<'_>) -> Rule<u32> {
    match is_beyond_u32(parser) {
        true => Err(too_wide("cast as char")),
        false => parser.number_u32(),
    }
}
