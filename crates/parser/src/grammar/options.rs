//! Table options.

use bytes::Bytes;

use super::{Parser, Rule};
use crate::ast::{Ident, TableOption};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

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
            let value = self.string()?;
            return Ok(Some(TableOption::Other { name: format!("{first} DIRECTORY").into(), value }));
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
