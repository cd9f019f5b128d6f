//! Recursive descent over tokens: a grammar rule is a function of a [`Parser`].
//!
//! This file is the machinery: advancing, expecting, errors, nesting bounds. Rules of each statement family are
//! in the files beside it. A rule is entered with its first token current and leaves the token after it
//! current. Recursion ends before the thread's stack does, and the height of trees is bounded by
//! `MAX_HEIGHT`, so that those who walk or drop a tree are bounded too.

mod admin;
mod alter;
mod column;
mod condition;
mod create;
mod dml;
mod event;
mod expr;
mod from;
mod function;
mod handler;
mod hints;
mod index;
mod json_table;
mod load;
mod names;
mod options;
mod primary;
mod program;
mod query;
mod replication;
mod room;
mod routine;
mod sequence;
mod set;
mod show;
mod statement;
mod transaction;
mod user;
mod view;

pub(crate) use expr::whole_expr;
pub(crate) use statement::{next_statement, rest};

use bytes::Bytes;
use omnibus_value::stack;
use room::Room;

use crate::lexer::keyword::Kw;
use crate::lexer::{Lexer, Tok, Token};
use crate::{ParseError, ParseOptions};

/// Height of an expression or table tree.
pub(crate) const MAX_HEIGHT: u32 = 1000;

/// The result of a rule.
pub(crate) type Rule<T> = Result<T, ParseError>;

/// The parser's state: a lexer and one token.
pub(crate) struct Parser<'a> {
    src: &'a [u8],
    lexer: Lexer<'a>,
    token: Token,
    /// Where the last consumed token ended.
    last_end: u32,
    /// Where it started.
    last_start: u32,
    params: u32,
    /// Height of the tree being built, see `nest`.
    height: u32,
    /// A shared copy of the text, made when a literal first needs a slice of it.
    shared: Option<Bytes>,
    scratch: Vec<u8>,
    options: ParseOptions,
    /// The names in sight in the body of a stored program.
    program: Option<Box<program::Scopes>>,
    room: Room<'a>,
}

/// A place to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark<'a> {
    lexer: Lexer<'a>,
    token: Token,
    last_end: u32,
    params: u32,
}

impl<'a> Parser<'a> {
    /// Over `src`, from byte `at`.
    pub(crate) fn new(src: &'a [u8], at: usize, options: &ParseOptions) -> Self {
        let mut lexer = Lexer::new(src, at, options);
        let token = lexer.next();
        Self {
            src,
            lexer,
            token,
            last_end: at as u32,
            last_start: at as u32,
            params: 0,
            height: 0,
            shared: None,
            scratch: Vec::new(),
            options: *options,
            program: None,
            room: Room::default(),
        }
    }

    /// With somebody to ask for the memory of what it makes.
    pub(crate) fn asking(mut self, has_room: &'a mut dyn FnMut(usize) -> bool) -> Self {
        self.room = Room::of(has_room);
        self
    }

    /// Asks for what the words so far make. False if there was no room for it, or for what was before: then all that is left is an end.
    #[cold]
    pub(crate) fn ask(&mut self) -> bool {
        let granted = self.room.ask();
        if !granted {
            self.lexer = Lexer::new(self.src, self.src.len(), &self.options);
        }
        granted
    }

    #[inline]
    fn advance(&mut self) -> Token {
        let token = self.token;
        self.last_end = token.end;
        self.last_start = token.start;
        if self.room.is_due() {
            self.ask();
        }
        self.token = self.lexer.next();
        token
    }

    /// The token after the current one.
    fn peek(&self) -> Token {
        let mut lexer = self.lexer;
        lexer.next()
    }

    fn mark(&self) -> Mark<'a> {
        Mark { lexer: self.lexer, token: self.token, last_end: self.last_end, params: self.params }
    }

    fn reset(&mut self, mark: Mark<'a>) {
        self.lexer = mark.lexer;
        self.token = mark.token;
        self.last_end = mark.last_end;
        self.params = mark.params;
    }

    #[inline]
    fn text(&self, token: &Token) -> &'a [u8] {
        &self.src[token.start as usize..token.end as usize]
    }

    #[inline]
    fn is(&self, kind: Tok) -> bool {
        self.token.kind == kind
    }

    #[inline]
    fn is_kw(&self, kw: Kw) -> bool {
        self.token.kw == kw
    }

    #[inline]
    fn eat(&mut self, kind: Tok) -> bool {
        let found = self.token.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    #[inline]
    fn eat_kw(&mut self, kw: Kw) -> bool {
        let found = self.token.kw == kw;
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: Tok) -> Rule<Token> {
        if self.token.kind == kind { Ok(self.advance()) } else { Err(self.error()) }
    }

    fn expect_kw(&mut self, kw: Kw) -> Rule<()> {
        if self.eat_kw(kw) { Ok(()) } else { Err(self.error()) }
    }

    fn token_is_word(&self, token: &Token, word: &str) -> bool {
        token.kind == Tok::Word && self.text(token).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether the current token is this unquoted word.
    fn is_word(&self, word: &str) -> bool {
        self.token_is_word(&self.token, word)
    }

    fn peek_is_word(&self, word: &str) -> bool {
        self.token_is_word(&self.peek(), word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes one of several words and says which.
    fn eat_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().copied().find(|w| self.is_word(w))?;
        self.advance();
        Some(found)
    }

    fn expect_word(&mut self, word: &str) -> Rule<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error()) }
    }

    /// Consumes all of these words, or none.
    fn eat_words(&mut self, words: &[&str]) -> bool {
        let mark = self.mark();
        for word in words {
            if !self.eat_word(word) {
                self.reset(mark);
                return false;
            }
        }
        true
    }

    fn expect_words(&mut self, words: &[&str]) -> Rule<()> {
        words.iter().try_for_each(|w| self.expect_word(w))
    }

    /// `item, item, ...`
    fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Rule<T>) -> Rule<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.eat(Tok::Comma) {
            list.push(item(self)?);
        }
        Ok(list)
    }

    /// `(item, item, ...)`
    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Rule<T>) -> Rule<Vec<T>> {
        self.expect(Tok::LParen)?;
        let list = self.comma_list(item)?;
        self.expect(Tok::RParen)?;
        Ok(list)
    }

    /// Runs a rule one level deeper. The height afterwards is the greater of what it was and the rule's own
    /// plus one.
    fn nest<T>(&mut self, rule: impl FnOnce(&mut Self) -> Rule<T>) -> Rule<T> {
        if !stack::has_room() {
            return Err(ParseError::TooDeep);
        }
        let outer = std::mem::take(&mut self.height);
        let result = rule(self);
        self.height = outer.max(self.height + 1);
        if self.height > MAX_HEIGHT { Err(ParseError::TooDeep) } else { result }
    }

    /// A loop put one more node on top of the tree.
    fn grow(&mut self) -> Rule<()> {
        self.height += 1;
        if self.height > MAX_HEIGHT { Err(ParseError::TooDeep) } else { Ok(()) }
    }

    /// A slice of the text that outlives it.
    fn slice(&mut self, start: usize, end: usize) -> Bytes {
        if start >= end {
            return Bytes::new();
        }
        let src = self.src;
        self.shared.get_or_insert_with(|| Bytes::copy_from_slice(src)).slice(start..end)
    }

    /// The text from a token's start to the last consumed token's end.
    fn text_since(&mut self, start: u32) -> Bytes {
        self.slice(start as usize, self.last_end as usize)
    }

    /// A syntax error at the current token.
    #[cold]
    fn error(&self) -> ParseError {
        ParseError::at(self.src, self.token.start as usize)
    }
}
