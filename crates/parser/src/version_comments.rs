//! Parts of a statement that other servers do not understand, put into version comments that they do not execute.
//!
//! A statement text that other servers replay must not name engines that they lack: they refuse it (1286). A version comment
//! of [`OWN_VERSION`] hides the option from them, and this parser reads it like any other text.

use crate::ParseOptions;
pub use crate::lexer::OWN_VERSION;
use crate::lexer::{Lexer, Tok, Token};
use std::borrow::Cow;

/// The text with every `ENGINE = name` at its outermost level, for which `own` says so of the name, in a comment of ours.
///
/// A comma that separates the option from the next, or from the one before, goes along, so that what others read is still
/// a list. Options inside a query (`CREATE TABLE .. SELECT`) are none, so the search ends there.
#[must_use]
pub fn set_engines_aside<'a>(
    sql: &'a [u8],
    options: &ParseOptions,
    own: impl Fn(&str) -> bool,
) -> Cow<'a, [u8]> {
    if sql.len() > u32::MAX as usize - 1 || !sql.windows(6).any(|word| word.eq_ignore_ascii_case(b"engine")) {
        return Cow::Borrowed(sql);
    }
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut search = Search { sql, lexer: Lexer::new(sql, 0, options), depth: 0, comma: None };
    while let Some(found) = search.next_engine() {
        if !own(&found.name) || found.ours {
            continue;
        }
        let out = out.get_or_insert_with(|| Vec::with_capacity(sql.len() + 32));
        out.extend_from_slice(&sql[copied..found.start]);
        let version = found.comment.unwrap_or_default();
        if !version.is_empty() {
            out.extend_from_slice(b"*/ ");
        }
        out.extend_from_slice(format!("/*!{OWN_VERSION} ").as_bytes());
        out.extend_from_slice(&sql[found.start..found.end]);
        out.extend_from_slice(b" */");
        if !version.is_empty() {
            out.extend_from_slice(b" /*!");
            out.extend_from_slice(version);
        }
        copied = found.end;
    }
    match out {
        None => Cow::Borrowed(sql),
        Some(mut out) => {
            out.extend_from_slice(&sql[copied..]);
            Cow::Owned(out)
        }
    }
}

/// The text of ANALYZE TABLE with UPDATE HISTOGRAM or DROP HISTOGRAM in a comment for MySQL from version 8: others analyse the table.
#[must_use]
pub fn set_histograms_aside<'a>(sql: &'a [u8], options: &ParseOptions) -> Cow<'a, [u8]> {
    let mut lexer = Lexer::new(sql, 0, options);
    let mut before = lexer.next();
    loop {
        let token = lexer.next();
        if matches!(token.kind, Tok::Eof | Tok::Invalid) || lexer.version_comment().is_some() {
            return Cow::Borrowed(sql);
        }
        let text = |token: &Token| &sql[token.start as usize..token.end as usize];
        let (first, rest) = (text(&before), &sql[before.start as usize..]);
        let changes = [&b"UPDATE"[..], b"DROP"].iter().any(|word| first.eq_ignore_ascii_case(word));
        if changes && text(&token).eq_ignore_ascii_case(b"HISTOGRAM") {
            // A comment inside would end the one around it.
            let comment = rest.windows(2).any(|pair| pair == b"*/");
            let wrapped = [&sql[..before.start as usize], b"/*!80000 ", rest, b" */"].concat();
            return if comment { Cow::Borrowed(sql) } else { Cow::Owned(wrapped) };
        }
        before = token;
    }
}

/// An engine option's place.
struct Found<'a> {
    start: usize,
    end: usize,
    name: String,
    /// The version digits, if a version comment is around it.
    comment: Option<&'a [u8]>,
    /// That comment is of this server already.
    ours: bool,
}

struct Search<'a> {
    sql: &'a [u8],
    lexer: Lexer<'a>,
    depth: usize,
    /// The comma right before the next token.
    comma: Option<usize>,
}

impl<'a> Search<'a> {
    fn next_engine(&mut self) -> Option<Found<'a>> {
        loop {
            let token = self.lexer.next();
            let comma = self.comma.take();
            match token.kind {
                Tok::Eof | Tok::Invalid => return None,
                Tok::LParen => self.depth += 1,
                Tok::RParen => self.depth = self.depth.saturating_sub(1),
                Tok::Comma => self.comma = Some(token.start as usize),
                Tok::Word if self.depth == 0 && self.is(&token, b"SELECT") => return None,
                Tok::Word if self.depth == 0 && self.is(&token, b"ENGINE") => {
                    if let Some(found) = self.option(&token, comma) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
    }

    fn is(&self, token: &Token, word: &[u8]) -> bool {
        self.sql[token.start as usize..token.end as usize].eq_ignore_ascii_case(word)
    }

    fn option(&mut self, engine: &Token, comma: Option<usize>) -> Option<Found<'a>> {
        let comment = self.lexer.version_comment();
        let mut ahead = self.lexer;
        let mut token = ahead.next();
        if token.kind == Tok::Eq {
            token = ahead.next();
        }
        if !matches!(token.kind, Tok::Word | Tok::Quoted | Tok::Str) {
            return None;
        }
        let text = &self.sql[token.start as usize..token.end as usize];
        let name = String::from_utf8_lossy(text).trim_matches(['`', '\'', '"']).to_owned();
        self.lexer = ahead;
        let behind = ahead.next();
        let (start, end) = match (behind.kind, comma) {
            (Tok::Comma, _) => (engine.start as usize, behind.end as usize),
            (_, Some(comma)) => (comma, token.end as usize),
            _ => (engine.start as usize, token.end as usize),
        };
        if behind.kind == Tok::Comma {
            self.lexer = ahead;
        }
        let own = OWN_VERSION.to_string();
        let ours = comment.is_some_and(|version| version.starts_with(own.as_bytes()));
        Some(Found { start, end, name, comment, ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aside(sql: &str) -> String {
        let own = |name: &str| ["lsm", "btree"].iter().any(|own| own.eq_ignore_ascii_case(name));
        String::from_utf8_lossy(&set_engines_aside(sql.as_bytes(), &ParseOptions::default(), own))
            .into_owned()
    }

    #[test]
    fn own_engines_go_into_a_comment_that_leaves_a_list_behind() {
        for (sql, expected) in [
            ("CREATE TABLE t (a INT) ENGINE=LSM", "CREATE TABLE t (a INT) /*!999999 ENGINE=LSM */"),
            (
                "create table t (a int) engine = `btree`, comment 'x'",
                "create table t (a int) /*!999999 engine = `btree`, */ comment 'x'",
            ),
            ("ALTER TABLE t ADD b INT, ENGINE BTREE", "ALTER TABLE t ADD b INT/*!999999 , ENGINE BTREE */"),
            ("ALTER TABLE t ENGINE=LSM, ADD b INT", "ALTER TABLE t /*!999999 ENGINE=LSM, */ ADD b INT"),
            (
                "CREATE TABLE t (a INT) /*!40100 ENGINE=LSM DEFAULT CHARSET=utf8mb4 */",
                "CREATE TABLE t (a INT) /*!40100 */ /*!999999 ENGINE=LSM */ /*!40100 DEFAULT CHARSET=utf8mb4 */",
            ),
        ] {
            assert_eq!(aside(sql), expected, "{sql}");
        }
    }

    #[test]
    fn histograms_are_for_those_who_have_them() {
        for (sql, expected) in [
            ("ANALYZE TABLE t update histogram ON a", "ANALYZE TABLE t /*!80000 update histogram ON a */"),
            (
                "ANALYZE TABLE `drop` DROP HISTOGRAM ON a",
                "ANALYZE TABLE `drop` /*!80000 DROP HISTOGRAM ON a */",
            ),
            ("ANALYZE TABLE t", "ANALYZE TABLE t"),
            (
                "ANALYZE TABLE t /*!80000 DROP HISTOGRAM ON a */",
                "ANALYZE TABLE t /*!80000 DROP HISTOGRAM ON a */",
            ),
            ("ANALYZE TABLE t DROP HISTOGRAM /* x */ ON a", "ANALYZE TABLE t DROP HISTOGRAM /* x */ ON a"),
        ] {
            let found = set_histograms_aside(sql.as_bytes(), &ParseOptions::default()).into_owned();
            assert_eq!(String::from_utf8_lossy(&found), expected, "{sql}");
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for sql in [
            "CREATE TABLE t (a INT) ENGINE=InnoDB",
            "CREATE TABLE t (engine INT) COMMENT 'ENGINE=LSM'",
            "CREATE TABLE t (a INT) /*!999999 ENGINE=LSM */ DEFAULT CHARSET=utf8mb4",
            "CREATE TABLE t SELECT engine lsm FROM e",
            "ALTER TABLE t /* ENGINE=LSM */ ADD engine INT",
            "DROP TABLE engine",
        ] {
            assert_eq!(aside(sql), sql);
        }
    }
}
