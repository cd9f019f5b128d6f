//! Table options.

use bytes::Bytes;

use super::names::parse_u64;
use super::{Parser, Rule, column, names};
use crate::ast::{Ident, TableOption};
use crate::error::ParseError;
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// Bytes that MySQL's paths have at least one less of.
const LONGEST_PATH: usize = 512;

/// Options that are read and have no effect: `NAME [=] value`.
const INERT: &[&str] = &[
    "AUTOEXTEND_SIZE",
    "AVG_ROW_LENGTH",
    "CHECKSUM",
    "COMPRESSION",
    "CONNECTION",
    "DELAY_KEY_WRITE",
    "ENCRYPTED",
    "ENCRYPTION",
    "ENCRYPTION_KEY_ID",
    "ENGINE_ATTRIBUTE",
    "IETF_QUOTES",
    "INSERT_METHOD",
    "ITEF_QUOTES",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "PAGE_CHECKSUM",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "PASSWORD",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "SEQUENCE",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLE_CHECKSUM",
    "TABLESPACE",
    "TRANSACTIONAL",
];

/// One table option, or nothing.
pub(super) fn table_option(p: &mut Parser<'_>) -> Rule<Option<TableOption>> {
    let mark = p.mark();
    let default = p.eat_kw(Kw::DEFAULT);
    if at_charset(p)
        && let Some(charset) = column::type_charset(p)?
    {
        return Ok(Some(TableOption::Charset(charset)));
    }
    if p.eat_kw(Kw::COLLATE) {
        names::optional_eq(p);
        return Ok(Some(TableOption::Collate(names::charset_name(p)?)));
    }
    if default {
        p.reset(mark);
        return Ok(None);
    }
    if p.eat_word("ENGINE") || (p.is_word("TYPE") && p.peek().kind == Tok::Eq && p.eat_word("TYPE")) {
        names::optional_eq(p);
        return Ok(Some(TableOption::Engine(names::ident_or_text(p)?)));
    }
    if p.eat_word("AUTO_INCREMENT") {
        names::optional_eq(p);
        return Ok(Some(TableOption::AutoIncrement(names::number(p)?)));
    }
    if p.eat_word("COMMENT") {
        names::optional_eq(p);
        return Ok(Some(TableOption::Comment(names::string(p)?)));
    }
    if p.eat_word("ROW_FORMAT") {
        names::optional_eq(p);
        return Ok(Some(TableOption::RowFormat(names::upper_word(p)?)));
    }
    if p.eat_word("KEY_BLOCK_SIZE") {
        names::optional_eq(p);
        check_range(p, "key_block_size", u16::MAX.into())?;
        return Ok(Some(TableOption::KeyBlockSize(names::number(p)?)));
    }
    other_option(p)
}

fn at_charset(p: &Parser<'_>) -> bool {
    p.is_kw(Kw::CHARACTER) || p.is_kw(Kw::CHAR) || p.is_word("CHARSET")
}

fn other_option(p: &mut Parser<'_>) -> Rule<Option<TableOption>> {
    if p.is_kw(Kw::UNION) && matches!(p.peek().kind, Tok::Eq | Tok::LParen) {
        p.advance();
        names::optional_eq(p);
        let start = p.token.start;
        p.paren_list(names::object_name)?;
        let value = p.text_since(start);
        return Ok(Some(TableOption::Other { name: "UNION".into(), value }));
    }
    if (p.is_word("DATA") || p.is_kw(Kw::INDEX)) && p.peek_is_word("DIRECTORY") {
        let first = names::upper_word(p)?;
        p.advance();
        names::optional_eq(p);
        let name = format!("{first} DIRECTORY");
        let value = directory(p, &name)?;
        return Ok(Some(TableOption::Other { name: name.into(), value }));
    }
    if p.eat_words(&["START", "TRANSACTION"]) {
        return Ok(Some(TableOption::Other { name: "START TRANSACTION".into(), value: Bytes::new() }));
    }
    // What a definition of ours says in a comment for itself.
    if p.is_word("NOT_BUILT") && p.peek().kind == Tok::Eq {
        p.advance();
        p.advance();
        let value = names::string(p)?;
        return Ok(Some(TableOption::Other { name: "NOT_BUILT".into(), value }));
    }
    let Some(name) = p.eat_any(INERT) else { return Ok(None) };
    names::optional_eq(p);
    if name == "AVG_ROW_LENGTH" {
        check_range(p, "avg_row_length", u32::MAX.into())?;
    }
    let start = p.token.start;
    if !matches!(p.token.kind, Tok::Word | Tok::Str | Tok::Int | Tok::Quoted | Tok::HexNum) {
        return Err(p.error());
    }
    p.advance();
    let value = p.text_since(start);
    if name == "TABLESPACE" && p.eat_word("STORAGE") {
        names::upper_word(p)?;
    }
    Ok(Some(TableOption::Other { name: Ident::from(name), value }))
}

/// Fails if the number that is next is beyond what MySQL keeps of an option.
fn check_range(parser: &Parser<'_>, option: &str, most: u64) -> Rule<()> {
    let number = parse_u64(parser.text(&parser.token));
    if parser.options.mariadb || !parser.is(Tok::Int) || number.is_some_and(|number| number <= most) {
        return Ok(());
    }
    let ParseError::Syntax { near, line } = parser.error() else { return Err(parser.error()) };
    let message = format!("The valid range for {option} is [0,{most}]. Error near '{near}' at line {line}");
    Err(ParseError::Other { code: 1064, state: "42000", message })
}

/// A path of DATA DIRECTORY or INDEX DIRECTORY, which is a whole one.
fn directory(parser: &mut Parser<'_>, option: &str) -> Rule<Bytes> {
    let path = names::string(parser)?;
    if parser.options.mariadb {
        return Ok(path);
    }
    let (code, message) = if path.len() >= LONGEST_PATH {
        (1680, format!("The path specified for {option} is too long."))
    } else if !path.is_empty() && !path.starts_with(b"/") {
        (1525, format!("Incorrect path value: '{}'", String::from_utf8_lossy(&path)))
    } else {
        return Ok(path);
    };
    Err(ParseError::Other { code, state: "HY000", message })
}
