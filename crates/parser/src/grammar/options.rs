//! Table options.

use bytes::Bytes;

use super::names::parse_u64;
use super::{Parser, Rule};
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

impl Parser<'_> {
    /// One table option, or nothing.
    pub(super) fn table_option(&mut self) -> Rule<Option<TableOption>> {
        let mark = self.mark();
        let default = self.eat_kw(Kw::DEFAULT);
        if self.at_charset()
            && let Some(charset) = self.type_charset()?
        {
            return Ok(Some(TableOption::Charset(charset)));
        }
        if self.eat_kw(Kw::COLLATE) {
            self.optional_eq();
            return Ok(Some(TableOption::Collate(self.charset_name()?)));
        }
        if default {
            self.reset(mark);
            return Ok(None);
        }
        if self.eat_word("ENGINE")
            || (self.is_word("TYPE") && self.peek().kind == Tok::Eq && self.eat_word("TYPE"))
        {
            self.optional_eq();
            return Ok(Some(TableOption::Engine(self.ident_or_text()?)));
        }
        if self.eat_word("AUTO_INCREMENT") {
            self.optional_eq();
            return Ok(Some(TableOption::AutoIncrement(self.number()?)));
        }
        if self.eat_word("COMMENT") {
            self.optional_eq();
            return Ok(Some(TableOption::Comment(self.string()?)));
        }
        if self.eat_word("ROW_FORMAT") {
            self.optional_eq();
            return Ok(Some(TableOption::RowFormat(self.upper_word()?)));
        }
        if self.eat_word("KEY_BLOCK_SIZE") {
            self.optional_eq();
            check_range(self, "key_block_size", u16::MAX.into())?;
            return Ok(Some(TableOption::KeyBlockSize(self.number()?)));
        }
        self.other_option()
    }

    fn at_charset(&self) -> bool {
        self.is_kw(Kw::CHARACTER) || self.is_kw(Kw::CHAR) || self.is_word("CHARSET")
    }

    fn other_option(&mut self) -> Rule<Option<TableOption>> {
        if self.is_kw(Kw::UNION) && matches!(self.peek().kind, Tok::Eq | Tok::LParen) {
            self.advance();
            self.optional_eq();
            let start = self.token.start;
            self.paren_list(Self::object_name)?;
            let value = self.text_since(start);
            return Ok(Some(TableOption::Other { name: "UNION".into(), value }));
        }
        if (self.is_word("DATA") || self.is_kw(Kw::INDEX)) && self.peek_is_word("DIRECTORY") {
            let first = self.upper_word()?;
            self.advance();
            self.optional_eq();
            let name = format!("{first} DIRECTORY");
            let value = directory(self, &name)?;
            return Ok(Some(TableOption::Other { name: name.into(), value }));
        }
        if self.eat_words(&["START", "TRANSACTION"]) {
            return Ok(Some(TableOption::Other { name: "START TRANSACTION".into(), value: Bytes::new() }));
        }
        // What a definition of ours says in a comment for itself.
        if self.is_word("NOT_BUILT") && self.peek().kind == Tok::Eq {
            self.advance();
            self.advance();
            let value = self.string()?;
            return Ok(Some(TableOption::Other { name: "NOT_BUILT".into(), value }));
        }
        let Some(name) = self.eat_any(INERT) else { return Ok(None) };
        self.optional_eq();
        if name == "AVG_ROW_LENGTH" {
            check_range(self, "avg_row_length", u32::MAX.into())?;
        }
        let start = self.token.start;
        if !matches!(self.token.kind, Tok::Word | Tok::Str | Tok::Int | Tok::Quoted | Tok::HexNum) {
            return Err(self.error());
        }
        self.advance();
        let value = self.text_since(start);
        if name == "TABLESPACE" && self.eat_word("STORAGE") {
            self.upper_word()?;
        }
        Ok(Some(TableOption::Other { name: Ident::from(name), value }))
    }
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
    let path = parser.string()?;
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
