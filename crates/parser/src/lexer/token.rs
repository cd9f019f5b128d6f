//! The tokens that the lexer produces: kinds and byte ranges, no text of their own.

use super::keyword::Kw;

/// Token kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tok {
    Eof,
    /// Not lexable: an unterminated string or comment, or a byte no token starts with.
    Invalid,
    /// An unquoted word, reserved or not.
    Word,
    /// A backquoted identifier (or double-quoted, under ANSI_QUOTES).
    Quoted,
    /// `'..'` or `".."`.
    Str,
    /// `N'..'`
    NStr,
    /// `x'..'`
    HexStr,
    /// `0x..`
    HexNum,
    /// `b'..'`
    BitStr,
    /// `0b..`
    BitNum,
    Int,
    Decimal,
    Float,
    /// `@name`, with its quotes if it has them.
    UserVar,
    At,
    AtAt,
    Param,
    LParen,
    RParen,
    LBrace,
    RBrace,
    Comma,
    Dot,
    /// `..`, between the bounds of MariaDB's FOR.
    DotDot,
    Semicolon,
    Colon,
    Assign,
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    ShiftLeft,
    ShiftRight,
    Bang,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Plus,
    Minus,
    Arrow,
    LongArrow,
    Star,
    Slash,
    Percent,
    Caret,
    Tilde,
}

/// One token. 12 bytes, copied freely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Tok,
    /// A quoted token holds escapes or doubled quotes, so it is not its own text.
    pub(crate) escaped: bool,
    /// Reserved word, for `Tok::Word`.
    pub(crate) kw: Kw,
    pub(crate) start: u32,
    pub(crate) end: u32,
}
