//! Templates: texts of statements without the values that a parameter stands for just as well.
//!
//! Works on tokens, in one pass over the text. A literal becomes a `?` where it is compared with a column, assigned to one, or stands alone in a row of
//! VALUES. All others stay, because something depends on them beside the value: names and types of result columns, positions in ORDER BY, lengths, LIMIT,
//! patterns; and the plan on the ends of a range, but for integers of a BETWEEN in one table. Statements with a second SELECT, groups or a `?` of their own have no template. It is text, so a tree of it is made by the parser as of any
//! other, and what comes before its first `?` is where it was.

use crate::ParseOptions;
use crate::lexer::keyword::Kw;
use crate::lexer::{Lexer, Tok, Token, literal};
use bytes::Bytes;

/// A value that was taken out of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// An integer, with its sign.
    Int(i64),
    /// The text of an exact number that is no integer, with its sign.
    Decimal(Bytes),
    /// A string of ASCII characters, escapes resolved.
    Str(Bytes),
}

/// A statement's text without its values; what it was before is gone with the next one, the memory stays.
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// The text, with a `?` in the place of each value.
    pub text: Vec<u8>,
    /// The values, in the text's order.
    pub values: Vec<Constant>,
    /// The first byte of the statement in the text that it is of.
    pub start: usize,
    /// The byte behind its last one.
    pub end: usize,
}

/// Numbers of more digits may not fit.
const MAX_DIGITS: usize = 18;

impl Template {
    /// Makes the template of a text; false if it has none: it is no such statement, has no such value, or is more than one statement.
    pub fn read(&mut self, sql: &[u8], options: &ParseOptions) -> bool {
        self.text.clear();
        self.values.clear();
        if sql.len() > u32::MAX as usize - 1 {
            return false;
        }
        let mut lexer = Lexer::new(sql, 0, options);
        let first = lexer.next();
        if first.kind != Tok::Word
            || !matches!(first.kw, Kw::SELECT | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE)
        {
            return false;
        }
        let mut reader = Reader {
            sql,
            options,
            verb: first.kw,
            template: self,
            before: [first; 3],
            // What stands before is a comment.
            copied: first.start as usize,
            place: Place::Head,
            depth: 0,
            after_from: false,
            joined: false,
            between: false,
        };
        if lexer.version_comment().is_some() {
            return false;
        }
        let mut token = lexer.next();
        loop {
            match token.kind {
                Tok::Eof => break,
                Tok::Semicolon if lexer.next().kind == Tok::Eof => break,
                Tok::Invalid | Tok::Param | Tok::Semicolon => return false,
                _ => {}
            }
            let next = lexer.next();
            if lexer.version_comment().is_some() || !reader.take(token, next) {
                return false;
            }
            token = next;
        }
        let (copied, end) = (reader.copied, reader.before[0].end as usize);
        self.text.extend_from_slice(&sql[copied..end]);
        // As the parser has it: comments around a statement are parts of it.
        self.start = sql.len() - sql.trim_ascii_start().len();
        self.end = sql[..token.start as usize].trim_ascii_end().len();
        !self.values.is_empty()
    }
}

/// The part of a statement that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first clause whose values may be taken out, and behind the last.
    Head,
    /// WHERE, SET.
    Conditions,
    /// The rows of VALUES.
    Rows,
    /// A list of IN, in parentheses of this depth, in conditions.
    List(u32),
}

struct Reader<'a> {
    sql: &'a [u8],
    options: &'a ParseOptions,
    verb: Kw,
    template: &'a mut Template,
    /// The last three tokens, the newest first.
    before: [Token; 3],
    /// The bytes of the text that are in the template.
    copied: usize,
    place: Place,
    depth: u32,
    /// FROM was there.
    after_from: bool,
    /// There is more than one table.
    joined: bool,
    /// The newest token but AND and a sign is the first value of a BETWEEN.
    between: bool,
}

impl Reader<'_> {
    /// Takes a token; false if the statement has no template.
    fn take(&mut self, token: Token, next: Token) -> bool {
        match token.kind {
            Tok::Word if !self.word(token) => return false,
            Tok::LParen => {
                self.depth += 1;
                if self.place == Place::Conditions && self.before[0].kw == Kw::IN && is_column(self.before[1])
                {
                    self.place = Place::List(self.depth);
                }
            }
            Tok::Comma if self.place == Place::Head && self.depth == 0 => {
                self.joined |= self.after_from || self.verb == Kw::UPDATE;
            }
            Tok::RParen => {
                if self.place == Place::List(self.depth) {
                    self.place = Place::Conditions;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Tok::Int | Tok::Decimal | Tok::Str => {
                let is_first = self.literal(token, next);
                self.push(token);
                self.between = is_first;
                return true;
            }
            _ => {}
        }
        // A sign belongs to the second value.
        if token.kw != Kw::AND && token.kind != Tok::Minus {
            self.between = false;
        }
        self.push(token);
        true
    }

    fn push(&mut self, token: Token) {
        self.before = [token, self.before[0], self.before[1]];
    }

    /// Takes a word; false if no statement with it has a template.
    fn word(&mut self, token: Token) -> bool {
        match token.kw {
            Kw::NONE if self.is_word(token, b"RETURNING") => return false,
            // VALUE is no reserved word: it is one where rows may come.
            Kw::NONE
                if matches!(self.verb, Kw::INSERT | Kw::REPLACE)
                    && self.place == Place::Head
                    && self.depth == 0
                    && self.is_word(token, b"VALUE") =>
            {
                self.place = Place::Rows;
            }
            Kw::SELECT
            | Kw::UNION
            | Kw::WITH
            | Kw::GROUP
            | Kw::HAVING
            | Kw::OVER
            | Kw::WINDOW
            | Kw::PROCEDURE
            | Kw::TABLE => return false,
            Kw::INTO if self.verb == Kw::SELECT => return false,
            Kw::FROM => self.after_from = true,
            Kw::JOIN | Kw::STRAIGHT_JOIN => self.joined = true,
            Kw::WHERE => self.place = Place::Conditions,
            Kw::SET if self.verb != Kw::SELECT && self.verb != Kw::DELETE => self.place = Place::Conditions,
            Kw::VALUES
                if self.depth == 0
                    && matches!(self.verb, Kw::INSERT | Kw::REPLACE)
                    && self.place == Place::Head =>
            {
                self.place = Place::Rows;
            }
            // ON DUPLICATE KEY UPDATE
            Kw::UPDATE if self.verb == Kw::INSERT => self.place = Place::Conditions,
            Kw::ON if self.place == Place::Rows => self.place = Place::Head,
            Kw::ORDER | Kw::LIMIT | Kw::FOR | Kw::LOCK if self.depth == 0 => self.place = Place::Head,
            _ => {}
        }
        true
    }

    fn is_word(&self, token: Token, word: &[u8]) -> bool {
        self.sql[token.start as usize..token.end as usize].eq_ignore_ascii_case(word)
    }

    /// Takes a literal out if it may be; returns whether it is then the first value of a BETWEEN.
    fn literal(&mut self, token: Token, next: Token) -> bool {
        let is_negative = token.kind != Tok::Str && self.before[0].kind == Tok::Minus;
        let [one, two] =
            if is_negative { [self.before[1], self.before[2]] } else { [self.before[0], self.before[1]] };
        let in_list =
            matches!(one.kind, Tok::LParen | Tok::Comma) && matches!(next.kind, Tok::RParen | Tok::Comma);
        let (taken, first) = match self.place {
            Place::Head => (false, false),
            Place::Rows => (in_list && self.depth == 1, false),
            Place::List(depth) => (in_list && depth == self.depth, false),
            Place::Conditions if one.kw == Kw::BETWEEN && is_column(two) => {
                (next.kw == Kw::AND && token.kind == Tok::Int && !self.joined, true)
            }
            // The second value, if the first was taken out.
            Place::Conditions if one.kw == Kw::AND && self.between => {
                (ends_operand(next) && token.kind == Tok::Int, false)
            }
            Place::Conditions => (is_comparison(one.kind) && is_column(two) && ends_operand(next), false),
        };
        let Some(value) = taken.then(|| self.value(token, is_negative)).flatten() else { return false };
        let start = if is_negative { self.before[0].start } else { token.start };
        self.template.text.extend_from_slice(&self.sql[self.copied..start as usize]);
        self.template.text.push(b'?');
        self.template.values.push(value);
        self.copied = token.end as usize;
        first
    }

    fn value(&self, token: Token, is_negative: bool) -> Option<Constant> {
        let text = &self.sql[token.start as usize..token.end as usize];
        match token.kind {
            Tok::Int if text.len() <= MAX_DIGITS => {
                let number = text.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0'));
                Some(Constant::Int(if is_negative { -number } else { number }))
            }
            Tok::Decimal if text.len() <= MAX_DIGITS => {
                let sign: &[u8] = if is_negative { b"-" } else { b"" };
                Some(Constant::Decimal([sign, text].concat().into()))
            }
            Tok::Str if text.is_ascii() => {
                let raw = literal::raw(&token, text);
                if !token.escaped {
                    return Some(Constant::Str(Bytes::copy_from_slice(raw)));
                }
                let mut out = Vec::new();
                literal::unescape(raw, text[0], !self.options.no_backslash_escapes, &mut out);
                Some(Constant::Str(out.into()))
            }
            _ => None,
        }
    }
}

/// Whether a token may be a column's name, or the last part of it.
fn is_column(token: Token) -> bool {
    token.kind == Tok::Quoted || token.kind == Tok::Word && token.kw == Kw::NONE
}

fn is_comparison(kind: Tok) -> bool {
    matches!(kind, Tok::Eq | Tok::Ne)
}

/// Whether nothing that binds to the operand before it begins with this token.
fn ends_operand(token: Token) -> bool {
    match token.kind {
        Tok::Eof | Tok::Semicolon | Tok::Comma | Tok::RParen => true,
        _ => matches!(
            token.kw,
            Kw::AND | Kw::OR | Kw::XOR | Kw::WHERE | Kw::ORDER | Kw::LIMIT | Kw::FOR | Kw::LOCK
        ),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<(String, Vec<Constant>)> {
        let mut template = Template::default();
        let found = template.read(sql.as_bytes(), &ParseOptions::default());
        found.then(|| (String::from_utf8(template.text).unwrap(), template.values))
    }

    fn text(text: &str) -> Constant {
        Constant::Str(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn values_that_stand_beside_columns_are_taken_out() {
        let is = |sql: &str, left: &str, values: Vec<Constant>| {
            assert_eq!(read(sql), Some((left.into(), values)), "{sql}")
        };
        is("SELECT 'x', c FROM t WHERE id=5", "SELECT 'x', c FROM t WHERE id=?", vec![Constant::Int(5)]);
        is(
            "SELECT c FROM t WHERE t.`id` != -5 AND s = 'it''s';",
            "SELECT c FROM t WHERE t.`id` != ? AND s = ?",
            vec![Constant::Int(-5), text("it's")],
        );
        is(
            "SELECT c FROM t WHERE id BETWEEN 1 AND 100 ORDER BY 1 LIMIT 3",
            "SELECT c FROM t WHERE id BETWEEN ? AND ? ORDER BY 1 LIMIT 3",
            vec![Constant::Int(1), Constant::Int(100)],
        );
        is(
            "SELECT c FROM t WHERE id IN (1, 2)",
            "SELECT c FROM t WHERE id IN (?, ?)",
            vec![Constant::Int(1), Constant::Int(2)],
        );
        is(
            "UPDATE t SET k=k+1, c='a' WHERE id=7 -- end",
            "UPDATE t SET k=k+1, c=? WHERE id=?",
            vec![text("a"), Constant::Int(7)],
        );
        is(
            "INSERT INTO t (a, b) VALUES (1, -2.50), (NULL, CONCAT('x', 'y')) ON DUPLICATE KEY UPDATE a = 9",
            "INSERT INTO t (a, b) VALUES (?, ?), (NULL, CONCAT('x', 'y')) ON DUPLICATE KEY UPDATE a = ?",
            vec![Constant::Int(1), Constant::Decimal(Bytes::from_static(b"-2.50")), Constant::Int(9)],
        );
        is(
            "DELETE FROM t WHERE a = 1 OR (b <> 2)",
            "DELETE FROM t WHERE a = ? OR (b <> ?)",
            vec![Constant::Int(1), Constant::Int(2)],
        );
    }

    #[test]
    fn comments_around_a_statement_are_no_part_of_its_template() {
        let mut template = Template::default();
        let sql = b" /* trace 7 */ SELECT c FROM t WHERE id=5 /* end */ ; ";
        assert!(template.read(sql, &ParseOptions::default()));
        assert_eq!(template.text, b"SELECT c FROM t WHERE id=?");
        assert_eq!(&sql[template.start..template.end], b"/* trace 7 */ SELECT c FROM t WHERE id=5 /* end */");
    }

    #[test]
    fn what_more_depends_on_than_a_value_stays() {
        for sql in [
            "SELECT 1",
            "SELECT a = 1 FROM t",
            "SELECT a FROM t WHERE 5 = 5",
            "SELECT a FROM t WHERE a = 5 + 1",
            "SELECT a FROM t WHERE a = 'x' COLLATE utf8mb4_bin",
            "SELECT a FROM t WHERE a = 'x' 'y'",
            "SELECT a FROM t WHERE a = 'ü'",
            "SELECT a FROM t WHERE a = _latin1'x'",
            "SELECT a FROM t WHERE a = x'41'",
            "SELECT a FROM t WHERE a LIKE 'x%'",
            "SELECT a FROM t WHERE a = 9999999999999999999",
            "SELECT a FROM t WHERE a BETWEEN 1 + 1 AND 5",
            "SELECT a FROM t WHERE a + INTERVAL 5 DAY = b",
            "SELECT a FROM t WHERE /*!80000 a = 5 */",
            "/*!80000 SELECT */ a FROM t WHERE a = 5",
            "SELECT a FROM t WHERE a > 5",
            "SELECT a FROM t, u WHERE a BETWEEN 5 AND 6",
            "SELECT a FROM t JOIN u WHERE a BETWEEN 5 AND 6",
            "SELECT a FROM t WHERE a BETWEEN '5' AND '6'",
            "SELECT a FROM t LIMIT 5",
            "SELECT COUNT(*) FROM t WHERE a = 5 GROUP BY b",
            "SELECT a FROM t WHERE a = (SELECT b FROM u WHERE c = 5)",
            "SELECT a FROM t WHERE a = 5 UNION SELECT 6",
            "SELECT a FROM t WHERE a = 5 INTO @a",
            "SELECT a FROM t WHERE a = ? AND b = 5",
            "SELECT a FROM t WHERE a = 5; SELECT 1",
            "INSERT INTO t SELECT 5",
            "DELETE FROM t WHERE a = 5 RETURNING a",
            "SET @a = 5",
            "SELECT a FROM t WHERE a = 'never ends",
            "",
        ] {
            assert_eq!(read(sql), None, "{sql}");
        }
    }
}
