//! The SQL parser: bytes in, statement tree out.
//!
//! Pure: no catalog, no session, no I/O. MySQL 8.4's grammar with the MariaDB spellings that clients send;
//! precedence is MySQL's own table. Called by sessions on their own thread. No input can make it panic or
//! overflow the stack: nesting is bounded (`ParseError::TooDeep`).

pub mod ast;
mod digest;
mod error;
mod grammar;
mod lexer;
mod options;
mod params;
pub mod print;
mod redact;
mod roles;
mod template;
mod version_comments;

pub use digest::Digest;
pub use error::ParseError;
pub use options::ParseOptions;
pub use params::{fill_params, load_file_span};
pub use print::{Facts, Meaning, Stored, ViewText};
pub use redact::{redact, redact_with};
pub use roles::{accounts_and_roles, name_current_role};
pub use template::{Constant, Template};
pub use version_comments::{OWN_VERSION, set_engines_aside, set_histograms_aside};

use ast::{Spanned, Statement};
use grammar::Parser;

/// Parses every statement of a text, separated by `;`.
///
/// Fails with [`ParseError::Empty`] when there is none, and with the first error otherwise.
pub fn parse(sql: &[u8], options: &ParseOptions) -> Result<Vec<Spanned<Statement>>, ParseError> {
    let mut parser = parser(sql, 0, options)?;
    let mut statements = Vec::with_capacity(1);
    while let Some(statement) = grammar::next_statement(&mut parser)? {
        statements.push(statement);
    }
    if statements.is_empty() { Err(ParseError::Empty) } else { Ok(statements) }
}

fn parser<'a>(sql: &'a [u8], at: usize, options: &ParseOptions) -> Result<Parser<'a>, ParseError> {
    // Token positions are 32 bits; a packet cannot be this long.
    if sql.len() > u32::MAX as usize - 1 {
        Err(ParseError::TooDeep)
    } else {
        Ok(Parser::new(sql, at, options))
    }
}

/// Parses the first statement of a text and says where the next one starts, if there is one.
///
/// This is what runs a multi-statement: MySQL executes the first statement before it reads the
/// second, so an error in the second does not undo the first. Without CLIENT_MULTI_STATEMENTS a
/// next statement is a syntax error at its start: `ParseError::at(sql, offset)`.
pub fn parse_first(
    sql: &[u8],
    options: &ParseOptions,
) -> Result<(Spanned<Statement>, Option<usize>), ParseError> {
    parse_first_asking(sql, options, &mut |_| true)
}

/// As [`parse_first`], asking `has_room` for the tree while it grows: whether there is memory for what so many more words make.
/// All words of the statement are told, those that were read twice twice.
pub fn parse_first_asking(
    sql: &[u8],
    options: &ParseOptions,
    has_room: &mut dyn FnMut(usize) -> bool,
) -> Result<(Spanned<Statement>, Option<usize>), ParseError> {
    let mut parser = parser(sql, 0, options)?.asking(has_room);
    let parsed = grammar::next_statement(&mut parser);
    if !parser.ask() {
        return Err(ParseError::NoMemory);
    }
    let Some(statement) = parsed? else { return Err(ParseError::Empty) };
    Ok((statement, grammar::rest(&mut parser)))
}

/// Whether a word cannot be a name unless it is quoted.
pub fn is_reserved(word: &str) -> bool {
    use lexer::keyword;
    let hash = word.bytes().fold(keyword::HASH_START, keyword::hash_step);
    keyword::lookup(word.as_bytes(), hash) != keyword::Kw::NONE
}

/// Parses one expression: stored DEFAULT, generated column and CHECK texts.
pub fn parse_expr(sql: &[u8], options: &ParseOptions) -> Result<ast::Expr, ParseError> {
    grammar::whole_expr(&mut parser(sql, 0, options)?)
}
