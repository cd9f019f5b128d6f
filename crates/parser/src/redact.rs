//! Passwords out of statement texts, for the general log, the slow log and the process list.
//!
//! Works on tokens, not on the tree, so that a statement that does not parse leaks nothing either.

use std::borrow::Cow;

use crate::ParseOptions;
use crate::lexer::{Lexer, Tok, Token};

/// The stand-in for a secret.
const SECRET: &[u8] = b"'<secret>'";

/// Replaces the passwords of account and replication statements by `<secret>`, for logs. Works on
/// any text, also one that does not parse; everything else is returned untouched.
pub fn redact(sql: &[u8]) -> Cow<'_, [u8]> {
    redact_with(sql, SECRET)
}

/// The same, with something else in their place.
pub fn redact_with<'a>(sql: &'a [u8], secret: &[u8]) -> Cow<'a, [u8]> {
    // Almost every statement is none of these: look at the words before lexing.
    if !mentions_secret(sql) || sql.len() > u32::MAX as usize - 1 {
        return Cow::Borrowed(sql);
    }
    let mut lexer = Lexer::new(sql, 0, &ParseOptions::default());
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut seen = Seen::default();
    loop {
        let token = lexer.next();
        if token.kind == Tok::Eof {
            break;
        }
        if seen.is_secret(sql, &token) {
            let out = out.get_or_insert_with(|| Vec::with_capacity(sql.len()));
            out.extend_from_slice(&sql[copied..token.start as usize]);
            out.extend_from_slice(secret);
            copied = token.end as usize;
        }
        seen.push(sql, &token);
    }
    match out {
        None => Cow::Borrowed(sql),
        Some(mut out) => {
            out.extend_from_slice(&sql[copied..]);
            Cow::Owned(out)
        }
    }
}

/// A statement with a secret has IDENTIFIED or PASSWORD in it.
fn mentions_secret(sql: &[u8]) -> bool {
    let found = |word: &[u8]| sql.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word));
    sql.len() >= 10 && (found(b"identified") || found(b"password"))
}

/// The tokens before the current one.
#[derive(Default)]
struct Seen {
    /// The statement's first word, upper case.
    first: Option<Vec<u8>>,
    /// Behind IDENTIFIED, before the account's next clause.
    identified: bool,
    /// Behind a PASSWORD word, an option that ends in PASSWORD, or its `=` or `(`.
    password: bool,
}

impl Seen {
    fn is_secret(&self, sql: &[u8], token: &Token) -> bool {
        let stringy = matches!(token.kind, Tok::Str | Tok::HexNum | Tok::HexStr | Tok::NStr)
            // A string that never ends may be a password too.
            || (token.kind == Tok::Invalid && matches!(sql.get(token.start as usize), Some(b'\'' | b'"')));
        let account = self.in_account_statement() && (self.identified || self.password);
        stringy && (account || self.in_statement_of_text())
    }

    /// The text of PREPARE and EXECUTE IMMEDIATE may be such a statement: all of it goes.
    fn in_statement_of_text(&self) -> bool {
        self.first.as_ref().is_some_and(|first| [&b"PREPARE"[..], b"EXECUTE"].contains(&first.as_slice()))
    }

    fn in_account_statement(&self) -> bool {
        let words: [&[u8]; 7] = [b"CREATE", b"ALTER", b"SET", b"GRANT", b"CHANGE", b"START", b"SELECT"];
        self.first.as_ref().is_some_and(|first| words.contains(&first.as_slice()))
    }

    fn push(&mut self, sql: &[u8], token: &Token) {
        let text = &sql[token.start as usize..token.end as usize];
        match token.kind {
            Tok::Semicolon => *self = Self::default(),
            Tok::Word => {
                let word = text.to_ascii_uppercase();
                match word.as_slice() {
                    b"IDENTIFIED" => self.identified = true,
                    b"REQUIRE" | b"ACCOUNT" | b"COMMENT" | b"ATTRIBUTE" | b"TO" | b"EXPIRE" => {
                        self.identified = false;
                        self.password = word == b"TO" && self.password;
                    }
                    w if w.ends_with(b"PASSWORD") => self.password = true,
                    b"FOR" | b"REPLACE" => {}
                    _ if !self.identified && !self.set_password() => self.password = false,
                    _ => {}
                }
                if self.first.is_none() {
                    self.first = Some(word);
                }
            }
            Tok::Comma => {
                self.identified = false;
                self.password = false;
            }
            _ => {}
        }
    }

    /// `SET PASSWORD FOR user = '..'`: the account's words stand between.
    fn set_password(&self) -> bool {
        self.password && self.first.as_deref() == Some(b"SET")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(sql: &str) -> String {
        String::from_utf8_lossy(&redact(sql.as_bytes())).into_owned()
    }

    #[test]
    fn no_password_survives() {
        for sql in [
            "CREATE USER u@h IDENTIFIED BY 'hunter2'",
            "create user 'u'@'h' identified with caching_sha2_password by 'hunter2' require ssl",
            "CREATE USER u IDENTIFIED WITH mysql_native_password AS 'hunter2', v IDENTIFIED BY \"hunter2\"",
            "ALTER USER u IDENTIFIED BY 'hunter2' REPLACE 'hunter2'",
            "ALTER USER CURRENT_USER() IDENTIFIED WITH x AS 0x68756e74657232",
            "SET PASSWORD = 'hunter2'",
            "SET PASSWORD FOR 'u'@'h' = PASSWORD('hunter2')",
            "set password for u@h='hunter2'",
            "GRANT ALL ON *.* TO u IDENTIFIED BY 'hunter2' WITH GRANT OPTION",
            "GRANT ALL ON *.* TO u IDENTIFIED BY PASSWORD 'hunter2'",
            "CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='hunter2', MASTER_PORT=3306",
            "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'hunter2'",
            "SET PASSWORD = 'hunter2' REPLACE 'hunter2'",
            "SET PASSWORD FOR u@h TO RANDOM REPLACE 'hunter2'",
            "ALTER USER u IDENTIFIED BY 'hunter2' REPLACE 'hunter2' RETAIN CURRENT PASSWORD",
            "ALTER USER USER() IDENTIFIED BY 'hunter2' REPLACE 'hunter2', v IDENTIFIED BY 'hunter2' REPLACE \"hunter2\"",
            "PREPARE s FROM 'ALTER USER u IDENTIFIED BY \"hunter2\"'",
            "EXECUTE IMMEDIATE 'CREATE USER u IDENTIFIED BY \"hunter2\"'",
            "START REPLICA USER='u' PASSWORD='hunter2'",
            "/* x */ CREATE USER u IDENTIFIED BY 'hunter2",
            "SELECT 1; CREATE USER u IDENTIFIED BY 'hunter2'",
        ] {
            let text = redacted(sql);
            assert!(!text.contains("hunter2") && !text.contains("68756e74657232"), "{text}");
            assert!(text.contains("<secret>"), "{text}");
        }
    }

    #[test]
    fn the_rest_is_untouched() {
        assert_eq!(
            redacted("CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='x', MASTER_USER='u'"),
            "CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='<secret>', MASTER_USER='u'"
        );
        assert_eq!(
            redacted("CREATE USER 'u'@'h' IDENTIFIED BY 'x' COMMENT 'c'"),
            "CREATE USER 'u'@'h' IDENTIFIED BY '<secret>' COMMENT 'c'"
        );
        for sql in [
            "INSERT INTO users (password) VALUES ('x')",
            "UPDATE t SET password='x' WHERE identified='y'",
            "SELECT 1",
            "",
        ] {
            assert!(matches!(redact(sql.as_bytes()), Cow::Borrowed(_)), "{sql}");
        }
    }
}
