//! Identifiers, qualified names, strings, numbers and accounts.

use bytes::Bytes;

use super::{Parser, Rule, primary};
use crate::ParseError;
use crate::ast::{ColumnRef, Ident, Literal, ObjectName, Qualifier, UserName};
use crate::lexer::keyword::Kw;
use crate::lexer::{Tok, Token, literal};

/// Characters of an identifier.
const MAX_IDENT: usize = 64;
/// Characters of an alias.
const MAX_ALIAS: usize = 256;

/// Whether a token can be an identifier without quotes around it being missed.
pub(super) fn token_is_ident(token: &Token) -> bool {
    match token.kind {
        Tok::Quoted => true,
        Tok::Word => token.kw == Kw::NONE,
        _ => false,
    }
}

pub(super) fn is_ident(p: &Parser<'_>) -> bool {
    token_is_ident(&p.token)
}

/// The identifier a token spells; any word is accepted.
pub(super) fn ident_of(p: &mut Parser<'_>, token: &Token) -> Rule<Ident> {
    let text = p.text(token);
    if token.kind == Tok::Word {
        return checked(text, MAX_ALIAS);
    }
    let raw = literal::raw(token, text);
    let quote = text.iter().copied().find(|b| matches!(b, b'`' | b'"' | b'\'')).unwrap_or(b'`');
    if !token.escaped {
        return checked(raw, MAX_ALIAS);
    }
    let backslash = !matches!(token.kind, Tok::Quoted) && quote != b'`' && !p.options.no_backslash_escapes;
    p.scratch.clear();
    literal::unescape(raw, quote, backslash, &mut p.scratch);
    checked(&p.scratch, MAX_ALIAS)
}

/// An identifier: quoted, or not reserved.
pub(super) fn ident(p: &mut Parser<'_>) -> Rule<Ident> {
    if !is_ident(p) {
        return Err(p.error());
    }
    checked_ident(p)
}

/// An alias or a reference to one, which may be longer than a name.
pub(super) fn reference(p: &mut Parser<'_>) -> Rule<Ident> {
    if is_ident(p) { named(p) } else { Err(p.error()) }
}

/// A name of a length that names may have.
fn checked_ident(p: &mut Parser<'_>) -> Rule<Ident> {
    let ident = any_ident(p)?;
    if ident.len() > MAX_IDENT && ident.chars().count() > MAX_IDENT {
        return Err(ParseError::IdentifierTooLong(ident.into_string()));
    }
    Ok(ident)
}

/// The current word or quoted name, whatever it is.
fn any_ident(p: &mut Parser<'_>) -> Rule<Ident> {
    let token = p.token;
    let ident = ident_of(p, &token)?;
    p.advance();
    Ok(ident)
}

/// A name after a dot: reserved words are allowed.
pub(super) fn ident_after_dot(p: &mut Parser<'_>) -> Rule<Ident> {
    if matches!(p.token.kind, Tok::Word | Tok::Quoted) { checked_ident(p) } else { Err(p.error()) }
}

/// As [`reference`], behind a dot.
pub(super) fn reference_after_dot(p: &mut Parser<'_>) -> Rule<Ident> {
    match p.token.kind {
        Tok::Word | Tok::Quoted => named(p),
        _ => Err(p.error()),
    }
}

/// A name of the length that an alias may have.
fn named(p: &mut Parser<'_>) -> Rule<Ident> {
    any_ident(p)
}

/// An alias or a name that may be a string: `AS 'x'`.
pub(super) fn ident_or_text(p: &mut Parser<'_>) -> Rule<Ident> {
    match p.token.kind {
        Tok::Str => {
            let text = string(p)?;
            checked(&text, MAX_ALIAS)
        }
        _ if is_ident(p) => any_ident(p),
        _ => Err(p.error()),
    }
}

/// Any word, also a reserved one, upper case.
pub(super) fn upper_word(p: &mut Parser<'_>) -> Rule<Ident> {
    let token = p.expect(Tok::Word)?;
    Ok(checked(p.text(&token), MAX_ALIAS)?.to_ascii_uppercase().into())
}

/// A character set or engine name: a word, a quoted name or a string, also `binary` and `default`.
pub(super) fn charset_name(p: &mut Parser<'_>) -> Rule<Ident> {
    match p.token.kind {
        Tok::Word => any_ident(p),
        _ => ident_or_text(p),
    }
}

/// `[schema.]name`
pub(super) fn object_name(p: &mut Parser<'_>) -> Rule<ObjectName> {
    qualified_name(p, not_empty)
}

/// `[[schema.]table.]column`
pub(super) fn column_ref(p: &mut Parser<'_>) -> Rule<ColumnRef> {
    let first = reference(p)?;
    column_ref_after(p, first)
}

/// The same, with its first name consumed.
pub(super) fn column_ref_after(p: &mut Parser<'_>, first: Ident) -> Rule<ColumnRef> {
    if !p.eat(Tok::Dot) {
        return Ok(ColumnRef { qualifier: None, name: first });
    }
    let second = reference_after_dot(p)?;
    if !p.eat(Tok::Dot) {
        let qualifier = Qualifier { schema: None, table: first };
        return Ok(ColumnRef { qualifier: Some(Box::new(qualifier)), name: second });
    }
    let name = reference_after_dot(p)?;
    let qualifier = Qualifier { schema: Some(first), table: second };
    Ok(ColumnRef { qualifier: Some(Box::new(qualifier)), name })
}

/// `(a, b, ...)` of plain names.
pub(super) fn ident_list(p: &mut Parser<'_>) -> Rule<Vec<Ident>> {
    p.paren_list(ident)
}

/// A string's bytes: escapes resolved, adjacent strings joined.
pub(super) fn string(p: &mut Parser<'_>) -> Rule<Bytes> {
    if !p.is(Tok::Str) {
        return Err(p.error());
    }
    string_value(p)
}

/// The value of the current string-like token (`Str`, `NStr`) and the strings that follow it.
pub(super) fn string_value(p: &mut Parser<'_>) -> Rule<Bytes> {
    let token = p.advance();
    if !token.escaped && !p.is(Tok::Str) {
        let open = 1 + u32::from(token.kind == Tok::NStr);
        return Ok(p.slice((token.start + open) as usize, token.end as usize - 1));
    }
    let mut out = Vec::new();
    unescape_into(p, &token, &mut out);
    while p.is(Tok::Str) {
        let next = p.advance();
        unescape_into(p, &next, &mut out);
    }
    Ok(Bytes::from(out))
}

fn unescape_into(p: &Parser<'_>, token: &Token, out: &mut Vec<u8>) {
    let text = p.text(token);
    let raw = literal::raw(token, text);
    if token.escaped {
        let quote = text.last().copied().unwrap_or(b'\'');
        literal::unescape(raw, quote, !p.options.no_backslash_escapes, out);
    } else {
        out.extend_from_slice(raw);
    }
}

/// An unsigned number; `0x` forms too.
pub(super) fn number(p: &mut Parser<'_>) -> Rule<u64> {
    let text = p.text(&p.token);
    let value = match p.token.kind {
        Tok::Int => parse_u64(text),
        Tok::HexNum if text.len() <= 18 => {
            Some(literal::hex(&text[2..]).iter().fold(0, |n, &b| n << 8 | u64::from(b)))
        }
        _ => None,
    };
    match value {
        Some(n) => {
            p.advance();
            Ok(n)
        }
        None => Err(p.error()),
    }
}

/// A number that must fit 32 bits: lengths and widths.
pub(super) fn number_u32(p: &mut Parser<'_>) -> Rule<u32> {
    let mark = p.mark();
    let n = number(p)?;
    u32::try_from(n).map_err(|_| {
        p.reset(mark);
        p.error()
    })
}

/// `=` or nothing.
pub(super) fn optional_eq(p: &mut Parser<'_>) {
    p.eat(Tok::Eq);
}

/// As `user_name`, or CURRENT_ROLE[()].
pub(super) fn user_or_role(p: &mut Parser<'_>) -> Rule<UserName> {
    if !at_current_role(p) {
        return user_name(p);
    }
    p.advance();
    if p.eat(Tok::LParen) {
        p.expect(Tok::RParen)?;
    }
    Ok(UserName::CurrentRole)
}

/// At a word that is a reserved one in MariaDB only.
pub(super) fn at_current_role(p: &Parser<'_>) -> bool {
    p.options.mariadb && p.is_word("CURRENT_ROLE")
}

/// `'user'@'host'`, `user`, CURRENT_USER[()].
pub(super) fn user_name(p: &mut Parser<'_>) -> Rule<UserName> {
    user_name_from(p, "%")
}

/// The account that a DEFINER clause names.
pub(super) fn definer_name(p: &mut Parser<'_>) -> Rule<UserName> {
    if at_current_role(p) { user_or_role(p) } else { user_name_from(p, "") }
}

fn user_name_from(p: &mut Parser<'_>, anywhere: &str) -> Rule<UserName> {
    if at_current_role(p) {
        return Err(p.error());
    }
    if p.eat_kw(Kw::CURRENT_USER) {
        if p.eat(Tok::LParen) {
            p.expect(Tok::RParen)?;
        }
        return Ok(UserName::CurrentUser);
    }
    let user = ident_or_text(p)?;
    let host = match p.token.kind {
        Tok::UserVar => user_var(p)?,
        Tok::At => {
            p.advance();
            ident_or_text(p)?
        }
        _ => Ident::from(anywhere),
    };
    if !p.options.mariadb {
        short_enough(&user, "user", 32)?;
        short_enough(&host, "host", 255)?;
    }
    Ok(UserName::Named { user, host: host.to_ascii_lowercase().into() })
}

/// The name in a `@name` token.
pub(super) fn user_var(p: &mut Parser<'_>) -> Rule<Ident> {
    let token = p.expect(Tok::UserVar)?;
    let text = p.text(&token);
    match text.get(1) {
        Some(b'`' | b'\'' | b'"') => ident_of(p, &token),
        _ => checked(&text[1..], MAX_ALIAS),
    }
}

/// A part of an account's name of a length that it may have.
fn short_enough(name: &Ident, what: &str, max: usize) -> Rule<()> {
    if name.len() <= max || name.chars().count() <= max {
        return Ok(());
    }
    let message = format!("String '{name}' is too long for {what} name (should be no longer than {max})");
    Err(ParseError::other(1470, "HY000", message))
}

/// Functions whose names are no names of anything where a parenthesis stands right behind them.
const CALLS: [&str; 35] = [
    "ADDDATE",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CAST",
    "COUNT",
    "CURDATE",
    "CURTIME",
    "DATE_ADD",
    "DATE_SUB",
    "EXTRACT",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MID",
    "MIN",
    "NOW",
    "POSITION",
    "SESSION_USER",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "ST_COLLECT",
    "SUBDATE",
    "SUBSTR",
    "SUBSTRING",
    "SUM",
    "SYSDATE",
    "SYSTEM_USER",
    "TRIM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

/// Whether the word here is the name of such a function, being called.
fn is_call(parser: &Parser<'_>) -> bool {
    let token = parser.token;
    // Most names have no parenthesis behind them, which is quicker to see than that they are none of the list.
    let opens = match parser.options.ignore_space {
        true => parser.peek().kind == Tok::LParen,
        false => parser.src.get(token.end as usize) == Some(&b'('),
    };
    opens
        && token.kind == Tok::Word
        && CALLS.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(parser.text(&token)))
}

/// The name of a procedure or function.
pub(super) fn routine_name(parser: &mut Parser<'_>) -> Rule<ObjectName> {
    qualified_name(parser, |name| match name.is_empty() {
        true => Err(ParseError::other(1458, "42000", "Incorrect routine name ''")),
        false => Ok(name),
    })
}

fn qualified_name(parser: &mut Parser<'_>, not_empty: fn(Ident) -> Rule<Ident>) -> Rule<ObjectName> {
    // A leading dot means the current database.
    if parser.is(Tok::Dot) {
        parser.advance();
        return Ok(ObjectName { schema: None, name: not_empty(ident_after_dot(parser)?)? });
    }
    if is_call(parser) {
        return Err(parser.error());
    }
    let first = ident(parser)?;
    if parser.eat(Tok::Dot) {
        if first.is_empty() {
            return Err(ParseError::other(1102, "42000", "Incorrect database name ''"));
        }
        let name = not_empty(ident_after_dot(parser)?)?;
        return Ok(ObjectName { schema: Some(first), name });
    }
    Ok(ObjectName { schema: None, name: not_empty(first)? })
}

/// A table's name, which has letters.
fn not_empty(name: Ident) -> Rule<Ident> {
    if name.is_empty() { Err(ParseError::other(1103, "42000", "Incorrect table name ''")) } else { Ok(name) }
}

/// Decimal digits that fit 64 bits.
pub(super) fn parse_u64(digits: &[u8]) -> Option<u64> {
    if digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| n.checked_mul(10)?.checked_add(u64::from(b.wrapping_sub(b'0'))))
}

fn checked(text: &[u8], max: usize) -> Rule<Ident> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(ParseError::InvalidIdentifier(String::from_utf8_lossy(text).into_owned()));
    };
    if text.len() > max && text.chars().count() > max {
        return Err(ParseError::IdentifierTooLong(text.to_owned()));
    }
    Ok(Ident::from(text))
}

/// A string, hex or bit literal's bytes.
pub(super) fn text_value(p: &mut Parser<'_>) -> Rule<Bytes> {
    if p.is(Tok::Str) {
        return string(p);
    }
    match primary::special_literal(p)? {
        Literal::Hex(b) | Literal::Bit(b) | Literal::National(b) => Ok(b),
        _ => Err(p.error()),
    }
}

/// Takes IF EXISTS, and says whether it was there.
pub(super) fn if_exists(p: &mut Parser<'_>) -> bool {
    p.eat_words(&["IF", "EXISTS"])
}

/// Takes IF NOT EXISTS, and says whether it was there.
pub(super) fn if_not_exists(p: &mut Parser<'_>) -> bool {
    p.eat_words(&["IF", "NOT", "EXISTS"])
}
