//! Values into the places of `?`: a prepared statement as a plain one, for the binary log.

use crate::ParseOptions;
use crate::lexer::{Lexer, Tok};

/// The text with what `write` appends for each parameter, by its number, in the place of its `?`.
#[must_use]
pub fn fill_params(
    sql: &[u8],
    options: &ParseOptions,
    mut write: impl FnMut(usize, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 64);
    if sql.len() > u32::MAX as usize - 1 {
        return sql.to_vec();
    }
    let mut lexer = Lexer::new(sql, 0, options);
    let (mut copied, mut number) = (0, 0);
    loop {
        let token = lexer.next();
        match token.kind {
            Tok::Eof | Tok::Invalid => break,
            Tok::Param => {
                out.extend_from_slice(&sql[copied..token.start as usize]);
                write(number, &mut out);
                copied = token.end as usize;
                number += 1;
            }
            _ => {}
        }
    }
    out.extend_from_slice(&sql[copied..]);
    out
}

/// The bytes of a LOAD DATA statement that name its file: from LOCAL or INFILE to behind INTO.
#[must_use]
pub fn load_file_span(sql: &[u8], options: &ParseOptions) -> Option<(u32, u32)> {
    if sql.len() > u32::MAX as usize - 1 {
        return None;
    }
    let mut lexer = Lexer::new(sql, 0, options);
    let mut from = None;
    loop {
        let token = lexer.next();
        let text = &sql[token.start as usize..token.end as usize];
        let is = |word: &[u8]| token.kind == Tok::Word && text.eq_ignore_ascii_case(word);
        match token.kind {
            Tok::Eof | Tok::Invalid => return None,
            _ if from.is_none() && (is(b"LOCAL") || is(b"INFILE")) => from = Some(token.start),
            _ if is(b"INTO") => return Some((from?, token.end)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_file_of_load_data_is_found() {
        let span = |sql: &str| {
            let (from, to) = load_file_span(sql.as_bytes(), &ParseOptions::default())?;
            Some(sql[from as usize..to as usize].to_owned())
        };
        let file = "LOCAL INFILE 'into' REPLACE INTO";
        assert_eq!(span(&format!("LOAD DATA /* INTO */ CONCURRENT {file} TABLE t")).as_deref(), Some(file));
        assert_eq!(span("load data infile \"x\" into table t").as_deref(), Some("infile \"x\" into"));
        assert_eq!(span("SELECT 1 INTO @a"), None);
    }

    #[test]
    fn only_parameters_are_replaced() {
        let fill = |sql: &str| {
            let filled = fill_params(sql.as_bytes(), &ParseOptions::default(), |n, out| {
                out.extend_from_slice(format!("<{n}>").as_bytes());
            });
            String::from_utf8(filled).unwrap()
        };
        assert_eq!(fill("INSERT INTO t VALUES (?,?)"), "INSERT INTO t VALUES (<0>,<1>)");
        assert_eq!(fill("SELECT '?', `a?`, ? /* ? */ -- ?"), "SELECT '?', `a?`, <0> /* ? */ -- ?");
        assert_eq!(fill("SELECT \"it''s?\", /*!80000 ? */ 1"), "SELECT \"it''s?\", /*!80000 <0> */ 1");
        assert_eq!(fill("SELECT 1"), "SELECT 1");
    }
}
