//! Column types and column attributes, in any order.

use super::names::parse_u64;
use super::{Parser, Rule, expr, index, names, primary};
use crate::ParseError;
use crate::ast::{
    Check, ColumnDef, DataType, DefaultValue, Expr, FunctionCall, Generated, Ident, Literal, TypeName,
    UnaryOp,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// A column definition behind its name.
pub(super) fn column_def(p: &mut Parser<'_>, name: Ident) -> Rule<ColumnDef> {
    let ty = data_type(p).map_err(|error| match error {
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
    while column_attribute(p, &mut column)? {}
    Ok(column)
}

/// A column type with its parameters and string attributes.
pub(super) fn data_type(p: &mut Parser<'_>) -> Rule<DataType> {
    let at = p.mark();
    let word = names::upper_word(p)?;
    let behind = p.token.start;
    let mut ty = DataType::of(TypeName::Int);
    ty.name = type_name(p, &word, &mut ty).map_err(|error| {
        // A word that is no type is at fault itself.
        if p.token.start != behind {
            return error;
        }
        p.reset(at);
        p.error()
    })?;
    match ty.name {
        TypeName::Enum | TypeName::Set => ty.labels = p.paren_list(names::text_value)?,
        _ => type_size(p, &mut ty)?,
    }
    type_attributes(p, &mut ty)?;
    Ok(ty)
}

fn type_name(p: &mut Parser<'_>, word: &Ident, ty: &mut DataType) -> Rule<TypeName> {
    Ok(match word.as_str() {
        "TINYINT" | "INT1" => TypeName::TinyInt,
        "SMALLINT" | "INT2" => TypeName::SmallInt,
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => TypeName::MediumInt,
        "INT" | "INTEGER" | "INT4" => TypeName::Int,
        "BIGINT" | "INT8" => TypeName::BigInt,
        "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => TypeName::Decimal,
        "FLOAT" | "FLOAT4" => TypeName::Float,
        "DOUBLE" => {
            p.eat_kw(Kw::PRECISION);
            TypeName::Double
        }
        "REAL" if p.options.real_as_float => TypeName::Float,
        "FLOAT8" | "REAL" => TypeName::Double,
        "BIT" => TypeName::Bit,
        "BOOL" | "BOOLEAN" => TypeName::Bool,
        "SERIAL" => TypeName::Serial,
        "YEAR" => TypeName::Year,
        "DATE" => TypeName::Date,
        "TIME" => TypeName::Time,
        "DATETIME" => TypeName::DateTime,
        "TIMESTAMP" => TypeName::Timestamp,
        "CHAR" | "CHARACTER" => char_type(p),
        "VARCHAR" | "VARCHARACTER" => TypeName::VarChar,
        "NCHAR" | "NATIONAL" => {
            ty.charset = Some("utf8mb3".into());
            national_type(p, word)?
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
        "LONG" => long_type(p),
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
            None => return Err(p.error()),
        },
    })
}

/// Behind CHAR: VARYING makes it VARCHAR.
fn char_type(p: &mut Parser<'_>) -> TypeName {
    if p.eat_kw(Kw::VARYING) { TypeName::VarChar } else { TypeName::Char }
}

fn national_type(p: &mut Parser<'_>, word: &Ident) -> Rule<TypeName> {
    if word.is("NATIONAL") {
        if p.eat_kw(Kw::VARCHAR) || p.eat_kw(Kw::VARCHARACTER) {
            return Ok(TypeName::VarChar);
        }
        if !p.eat_kw(Kw::CHAR) {
            p.expect_kw(Kw::CHARACTER)?;
        }
    } else if p.eat_kw(Kw::VARCHAR) || p.eat_kw(Kw::VARCHARACTER) {
        return Ok(TypeName::VarChar);
    }
    Ok(char_type(p))
}

/// LONG, LONG VARCHAR, LONG VARBINARY.
fn long_type(p: &mut Parser<'_>) -> TypeName {
    if p.eat_kw(Kw::VARBINARY) {
        return TypeName::MediumBlob;
    }
    if p.eat_kw(Kw::CHAR) || p.eat_kw(Kw::CHARACTER) {
        p.eat_kw(Kw::VARYING);
    } else {
        let _ = p.eat_kw(Kw::VARCHAR) || p.eat_kw(Kw::VARCHARACTER);
    }
    TypeName::MediumText
}

/// `(n)` or `(n, m)`.
fn type_size(p: &mut Parser<'_>, ty: &mut DataType) -> Rule<()> {
    if !p.eat(Tok::LParen) {
        let needed = matches!(ty.name, TypeName::VarChar | TypeName::VarBinary);
        return if needed { Err(p.error()) } else { Ok(()) };
    }
    ty.length = Some(match ty.name {
        TypeName::Char
        | TypeName::VarChar
        | TypeName::Binary
        | TypeName::VarBinary
        | TypeName::Text
        | TypeName::Blob => type_width(p)?,
        // A year has one width.
        TypeName::Year if is_beyond_u32(p) => {
            p.advance();
            u32::MAX
        }
        TypeName::TinyInt | TypeName::SmallInt | TypeName::MediumInt | TypeName::Int | TypeName::BigInt
            if is_beyond_u32(p) =>
        {
            return Err(too_wide("cast as char"));
        }
        _ => names::number_u32(p)?,
    });
    if p.eat(Tok::Comma) {
        ty.scale = Some(names::number_u32(p)?);
    }
    p.expect(Tok::RParen)?;
    Ok(())
}

fn type_attributes(p: &mut Parser<'_>, ty: &mut DataType) -> Rule<()> {
    let (number, text) = (is_number(ty.name), is_text(ty.name) || p.options.mariadb);
    loop {
        if number && p.eat_kw(Kw::UNSIGNED) {
            ty.unsigned = true;
        } else if number && p.eat_kw(Kw::ZEROFILL) {
            ty.zerofill = true;
            ty.unsigned = true;
        } else if text && p.eat_kw(Kw::BINARY) {
            ty.binary = true;
        } else if number && p.is_word("SIGNED") {
            p.advance();
        } else if text && let Some(charset) = type_charset(p)? {
            ty.charset = Some(charset);
        } else if p.eat_kw(Kw::COLLATE) {
            ty.collation = Some(names::charset_name(p)?);
            ty.implied |= p.eat_words(&["OF", "SOURCE"]);
        } else {
            return Ok(());
        }
    }
}

/// One attribute; false when there is none.
fn column_attribute(p: &mut Parser<'_>, column: &mut ColumnDef) -> Rule<bool> {
    match p.token.kw {
        Kw::NULL => column.nullable = Some(true),
        Kw::NOT => {
            p.advance();
            if p.eat_kw(Kw::NULL) {
                column.nullable = Some(false);
            } else {
                p.expect_word("ENFORCED")?;
                last_check(p, column)?.enforced = false;
            }
            return Ok(true);
        }
        Kw::DEFAULT => {
            p.advance();
            column.default = Some(default_clause(p)?);
            return Ok(true);
        }
        Kw::ON => {
            p.advance();
            p.expect_kw(Kw::UPDATE)?;
            column.on_update = Some(now_fraction(p)?);
            return Ok(true);
        }
        Kw::PRIMARY => {
            p.advance();
            p.expect_kw(Kw::KEY)?;
            column.primary_key = true;
            return Ok(true);
        }
        Kw::UNIQUE => {
            p.advance();
            p.eat_kw(Kw::KEY);
            column.unique = true;
            return Ok(true);
        }
        Kw::KEY => column.primary_key = true,
        Kw::COLLATE => {
            p.advance();
            column.ty.collation = Some(names::charset_name(p)?);
            return Ok(true);
        }
        Kw::GENERATED => {
            p.advance();
            p.expect_word("ALWAYS")?;
            generated(p, column)?;
            return Ok(true);
        }
        Kw::AS => {
            generated(p, column)?;
            return Ok(true);
        }
        Kw::CONSTRAINT | Kw::CHECK => {
            column.checks.push(column_check(p)?);
            return Ok(true);
        }
        Kw::REFERENCES => {
            column.references = Some(Box::new(index::references(p)?));
            return Ok(true);
        }
        Kw::NONE => return word_attribute(p, column),
        _ => return Ok(false),
    }
    p.advance();
    Ok(true)
}

/// Attributes whose word is not reserved.
fn word_attribute(p: &mut Parser<'_>, column: &mut ColumnDef) -> Rule<bool> {
    if p.eat_word("AUTO_INCREMENT") {
        column.auto_increment = true;
    } else if p.eat_word("COMMENT") {
        column.comment = Some(names::string(p)?);
    } else if p.eat_word("INVISIBLE") {
        column.invisible = Some(true);
    } else if p.eat_word("VISIBLE") {
        column.invisible = Some(false);
    } else if p.eat_word("ENFORCED") {
        last_check(p, column)?.enforced = true;
    } else if p.eat_words(&["SERIAL", "DEFAULT", "VALUE"]) {
        column.nullable = Some(false);
        column.auto_increment = true;
        column.unique = true;
    } else if p.eat_word("SRID") || p.eat_word("REF_SYSTEM_ID") {
        names::optional_eq(p);
        column.srid = Some(names::number_u32(p)?);
    } else if p.eat_word("COLUMN_FORMAT") || p.eat_word("STORAGE") {
        names::upper_word(p)?;
    } else if p.eat_word("ENGINE_ATTRIBUTE") || p.eat_word("SECONDARY_ENGINE_ATTRIBUTE") {
        names::optional_eq(p);
        names::string(p)?;
    } else if (is_text(column.ty.name) || p.options.mariadb)
        && let Some(charset) = type_charset(p)?
    {
        column.ty.charset = Some(charset);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn last_check<'c>(p: &Parser<'_>, column: &'c mut ColumnDef) -> Rule<&'c mut Check> {
    column.checks.last_mut().ok_or_else(|| p.error())
}

fn column_check(p: &mut Parser<'_>) -> Rule<Check> {
    let mut name = None;
    if p.eat_kw(Kw::CONSTRAINT) && !p.is_kw(Kw::CHECK) {
        name = Some(names::ident(p)?);
    }
    check(p, name)
}

/// At CHECK; ENFORCED is left to the caller's loop or taken here.
pub(super) fn check(p: &mut Parser<'_>, name: Option<Ident>) -> Rule<Check> {
    p.expect_kw(Kw::CHECK)?;
    p.expect(Tok::LParen)?;
    let at = p.token.start;
    let expr = expr::expr(p)?;
    p.expect(Tok::RParen)?;
    let mut enforced = true;
    if p.eat_words(&["NOT", "ENFORCED"]) {
        enforced = false;
    } else {
        p.eat_word("ENFORCED");
    }
    Ok(Check { name, expr, at, enforced })
}

/// `AS (expr) [VIRTUAL | STORED]`
fn generated(p: &mut Parser<'_>, column: &mut ColumnDef) -> Rule<()> {
    p.expect_kw(Kw::AS)?;
    p.expect(Tok::LParen)?;
    let expr = expr::expr(p)?;
    p.expect(Tok::RParen)?;
    let stored = p.eat_kw(Kw::STORED) || p.eat_word("PERSISTENT");
    if !stored {
        p.eat_kw(Kw::VIRTUAL);
    }
    column.generated = Some(Generated { expr, stored });
    Ok(())
}

/// Behind DEFAULT.
pub(super) fn default_clause(p: &mut Parser<'_>) -> Rule<DefaultValue> {
    if p.is(Tok::LParen) {
        p.advance();
        let expr = expr::expr(p)?;
        p.expect(Tok::RParen)?;
        return Ok(DefaultValue::Expression(expr));
    }
    let sign = match p.token.kind {
        Tok::Minus => Some(UnaryOp::Minus),
        Tok::Plus => Some(UnaryOp::Plus),
        _ => None,
    };
    if let Some(op) = sign {
        p.advance();
        let number = Expr::Literal(primary::number_literal(p)?);
        return Ok(DefaultValue::Value(Expr::Unary { op, expr: Box::new(number) }));
    }
    if at_now(p) {
        let fraction = now_fraction(p)?;
        return Ok(DefaultValue::Value(now_call(fraction)));
    }
    let expr = p.nest(primary::primary)?;
    match &expr {
        Expr::Literal(_) | Expr::Introduced(_) | Expr::Collate { .. } => Ok(DefaultValue::Value(expr)),
        // MariaDB takes any expression here; MySQL wants parentheses, and says so with 1064.
        Expr::Function(_) if p.options.mariadb => Ok(DefaultValue::Expression(expr)),
        _ => Err(p.error()),
    }
}

fn at_now(p: &Parser<'_>) -> bool {
    matches!(p.token.kw, Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP)
        || (p.is_word("NOW") && p.peek().kind == Tok::LParen)
}

/// CURRENT_TIMESTAMP and its synonyms, with their fractional digits.
fn now_fraction(p: &mut Parser<'_>) -> Rule<u8> {
    if !at_now(p) {
        return Err(p.error());
    }
    p.advance();
    if !p.eat(Tok::LParen) {
        return Ok(0);
    }
    let digits = if p.is(Tok::RParen) { 0 } else { names::number_u32(p)?.min(255) as u8 };
    p.expect(Tok::RParen)?;
    Ok(digits)
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
    ParseError::other(
        1439,
        "42000",
        format!("Display width out of range for column '{column}' (max = {})", u32::MAX),
    )
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
        false => names::number_u32(parser),
    }
}

/// `[CHARACTER SET cs | CHARSET cs]` and the short forms ASCII, UNICODE, BYTE.
pub(super) fn type_charset(p: &mut Parser<'_>) -> Rule<Option<Ident>> {
    if p.eat_words(&["CHARACTER", "SET"]) || p.eat_words(&["CHAR", "SET"]) || p.eat_word("CHARSET") {
        names::optional_eq(p);
        return names::charset_name(p).map(Some);
    }
    Ok(match p.eat_any(&["ASCII", "UNICODE", "BYTE"]) {
        Some("ASCII") => Some("latin1".into()),
        Some("UNICODE") => Some("ucs2".into()),
        Some(_) => Some("binary".into()),
        None => None,
    })
}
