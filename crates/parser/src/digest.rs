//! Digests: statements that differ in their literals only are the same statement.
//!
//! Works on tokens, in one pass over the text. Literals are `?`, lists of them `...`, rows of them `(?)` or `(...)`, and
//! several of those one with `/* , ... */` behind it: what `DIGEST_TEXT` looks like in MySQL.

use crate::ParseOptions;
use crate::lexer::keyword::Kw;
use crate::lexer::{Lexer, Tok, Token};

/// Units of a digest at most; what follows in a longer statement does not tell it from others.
const UNITS: usize = 400;
/// Bytes of a digest's text at most, as in MySQL (`performance_schema_max_digest_length`).
const TEXT: usize = 1024;

#[derive(Clone, Copy, Debug)]
enum Unit {
    Value,
    Values,
    Row,
    RowOfOne,
    Rows,
    RowsOfOne,
    Token(Token),
}

/// A statement without its literals.
#[derive(Debug)]
pub struct Digest<'a> {
    sql: &'a [u8],
    units: Vec<Unit>,
}

impl<'a> Digest<'a> {
    /// Of one statement; of a text that is none, what there is of it.
    #[must_use]
    pub fn of(sql: &'a [u8]) -> Digest<'a> {
        let mut digest = Digest { sql, units: Vec::with_capacity(32) };
        if sql.len() > u32::MAX as usize - 1 {
            return digest;
        }
        let mut lexer = Lexer::new(sql, 0, &ParseOptions::default());
        while digest.units.len() < UNITS {
            let token = lexer.next();
            match token.kind {
                Tok::Eof | Tok::Semicolon | Tok::Invalid => break,
                Tok::Str
                | Tok::NStr
                | Tok::HexStr
                | Tok::HexNum
                | Tok::BitStr
                | Tok::BitNum
                | Tok::Int
                | Tok::Decimal
                | Tok::Float
                | Tok::Param => digest.value(),
                Tok::Word if token.kw == Kw::NULL && digest.begins_value() => digest.value(),
                Tok::RParen => digest.close(token),
                _ => digest.units.push(Unit::Token(token)),
            }
        }
        digest
    }

    fn is(&self, back: usize, kind: Tok) -> bool {
        let at = self.units.len().checked_sub(back);
        matches!(at.map(|at| self.units[at]), Some(Unit::Token(token)) if token.kind == kind)
    }

    /// Whether a value, and no operator, may come now.
    fn begins_value(&self) -> bool {
        match self.units.last() {
            None => true,
            Some(Unit::Token(token)) => match token.kind {
                Tok::Word => !matches!(token.kw, Kw::NONE | Kw::IS | Kw::NOT),
                Tok::RParen | Tok::Quoted | Tok::UserVar => false,
                _ => true,
            },
            Some(_) => false,
        }
    }

    fn value(&mut self) {
        if self.is(1, Tok::Minus) || self.is(1, Tok::Plus) {
            let sign = self.units.pop();
            if !self.begins_value() {
                self.units.extend(sign);
            }
        }
        if self.is(1, Tok::Comma)
            && let [.., last @ (Unit::Value | Unit::Values), _] = &mut self.units[..]
        {
            *last = Unit::Values;
            self.units.pop();
            return;
        }
        // Neighbouring strings are one.
        if !matches!(self.units.last(), Some(Unit::Value | Unit::Values)) {
            self.units.push(Unit::Value);
        }
    }

    fn close(&mut self, token: Token) {
        let row = match self.units.last() {
            Some(Unit::Value) if self.is(2, Tok::LParen) => Unit::RowOfOne,
            Some(Unit::Values) if self.is(2, Tok::LParen) => Unit::Row,
            _ => {
                self.units.push(Unit::Token(token));
                return;
            }
        };
        self.units.truncate(self.units.len() - 2);
        let follows = self.is(1, Tok::Comma);
        match (&mut self.units[..], row) {
            ([.., last @ (Unit::Row | Unit::Rows), _], Unit::Row) if follows => *last = Unit::Rows,
            ([.., last @ (Unit::RowOfOne | Unit::RowsOfOne), _], Unit::RowOfOne) if follows => {
                *last = Unit::RowsOfOne;
            }
            _ => {
                self.units.push(row);
                return;
            }
        }
        self.units.pop();
    }

    fn word(&self, token: Token) -> &'a [u8] {
        &self.sql[token.start as usize..token.end as usize]
    }

    /// Folds it into a number: `fold` is given bytes one after the other. Words count without their case, so names that differ
    /// in it only are one.
    pub fn fold(&self, mut fold: impl FnMut(u8)) {
        for unit in &self.units {
            match unit {
                Unit::Token(token) if matches!(token.kind, Tok::Word | Tok::UserVar) => {
                    self.word(*token).iter().for_each(|byte| fold(byte.to_ascii_uppercase()));
                }
                Unit::Token(token) if token.kind == Tok::Quoted => {
                    let quoted = self.word(*token);
                    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
                    inner.iter().for_each(|byte| fold(byte.to_ascii_uppercase()));
                }
                Unit::Token(token) => self.word(*token).iter().for_each(|byte| fold(*byte)),
                other => fold(0x80 | other.mark()),
            }
            fold(0);
        }
    }

    /// Its text; `is_keyword` tells words of the grammar, given in upper case, from names.
    #[must_use]
    pub fn text(&self, is_keyword: impl Fn(&str) -> bool) -> String {
        let mut text = String::with_capacity(256);
        for unit in &self.units {
            if !text.is_empty() {
                text.push(' ');
            }
            match unit {
                Unit::Token(token) => self.put(*token, &is_keyword, &mut text),
                other => text.push_str(other.text()),
            }
            if text.len() > TEXT {
                let end = (0..=TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text.truncate(end);
                text.push_str("...");
                break;
            }
        }
        text
    }

    fn put(&self, token: Token, is_keyword: &impl Fn(&str) -> bool, text: &mut String) {
        let word = String::from_utf8_lossy(self.word(token));
        if token.kind != Tok::Word {
            text.push_str(&word);
            return;
        }
        let upper = word.to_ascii_uppercase();
        let after_dot = text.ends_with(". ");
        if !after_dot && (token.kw != Kw::NONE || is_keyword(&upper)) {
            text.push_str(&upper);
        } else {
            text.push('`');
            text.push_str(&word);
            text.push('`');
        }
    }
}

impl Unit {
    fn mark(self) -> u8 {
        match self {
            Unit::Value => 1,
            Unit::Values => 2,
            Unit::Row => 3,
            Unit::RowOfOne => 4,
            Unit::Rows => 5,
            Unit::RowsOfOne => 6,
            Unit::Token(_) => 0,
        }
    }

    fn text(self) -> &'static str {
        ["", "?", "?, ...", "(...)", "(?)", "(...) /* , ... */", "(?) /* , ... */"][usize::from(self.mark())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sql: &str) -> String {
        Digest::of(sql.as_bytes()).text(|word| matches!(word, "COUNT" | "BEGIN"))
    }

    fn number(sql: &str) -> u64 {
        let mut number = 0_u64;
        Digest::of(sql.as_bytes())
            .fold(|byte| number = (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        number
    }

    #[test]
    fn literals_and_their_lists_are_one_thing() {
        for (sql, digest) in [
            ("select * from T where id=5 and s = 'x' 'y'", "SELECT * FROM `T` WHERE `id` = ? AND `s` = ?"),
            (
                "SELECT COUNT(*) FROM d.count WHERE a IN (1,2,3)",
                "SELECT COUNT ( * ) FROM `d` . `count` WHERE `a` IN (...)",
            ),
            ("SELECT a FROM t WHERE a IN (?)", "SELECT `a` FROM `t` WHERE `a` IN (?)"),
            ("INSERT INTO t VALUES (1,'a',NULL),(2,'b',3)", "INSERT INTO `t` VALUES (...) /* , ... */"),
            ("insert into t values (1),(2),(-3)", "INSERT INTO `t` VALUES (?) /* , ... */"),
            (
                "SELECT a-1, -1, NOT NULL, b IS NULL LIMIT 1, 2",
                "SELECT `a` - ?, ... , NOT NULL , `b` IS NULL LIMIT ?, ...",
            ),
            ("begin -- comment", "BEGIN"),
            ("SELECT 1; SELECT 2", "SELECT ?"),
            ("SELECT 'never ends", "SELECT"),
            ("", ""),
        ] {
            assert_eq!(text(sql), digest, "{sql}");
        }
    }

    #[test]
    fn numbers_are_equal_as_texts_are() {
        assert_eq!(number("SELECT a FROM t WHERE b = 1"), number("select  A from `t` where b='x'"));
        assert_eq!(number("INSERT INTO t VALUES (1,2)"), number("INSERT INTO t VALUES (3,4)"));
        assert_ne!(number("INSERT INTO t VALUES (1,2)"), number("INSERT INTO t VALUES (3)"));
        assert_ne!(number("SELECT a FROM tb"), number("SELECT a FROM t b"));
    }

    #[test]
    fn long_statements_have_an_end() {
        let columns = (0..5000).map(|n| format!("column_{n}")).collect::<Vec<_>>().join(",");
        let digest = text(&format!("SELECT {columns} FROM t"));
        assert!(digest.len() <= TEXT + 3 && digest.ends_with("..."), "{}", digest.len());
    }
}
