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

#[cfg(test)]
mod tests {
    use super::*;

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
