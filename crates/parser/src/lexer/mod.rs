//! Bytes to tokens, one at a time, without allocation.
//!
//! Not a tokenizer of whole texts: the parser asks for the next token and may copy the lexer to look
//! further, so the state is a few words. Version comments (`/*!80000 .. */`) are entered or skipped here.
//! A client character set whose multi-byte characters contain `\` or a quote (gbk, sjis) must be converted before.

pub(crate) mod keyword;
pub(crate) mod literal;
pub(crate) mod token;

use crate::ParseOptions;
use keyword::{HASH_START, Kw, hash_step, lookup};
pub(crate) use token::{Tok, Token};

/// The version of comments that only this server executes. MySQL and MariaDB skip what is newer than they are, and accept
/// six digits at most.
pub const OWN_VERSION: u32 = 999_999;

/// Bytes that may be part of an unquoted identifier: letters, digits, `_`, `$`, and everything past ASCII.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        i += 1;
    }
    table
};

/// The lexer. Copying it is how the parser looks ahead.
#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    src: &'a [u8],
    pos: usize,
    /// Where the version of an executed version comment begins, whose `*/` is white space; 0 outside of one.
    in_version: u32,
    /// The previous token was an identifier ending at `pos`: a dot here separates names.
    after_name: bool,
    /// The previous token was such a dot: digits here are a name.
    after_dot: bool,
    options: ParseOptions,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(src: &'a [u8], pos: usize, options: &ParseOptions) -> Self {
        Self { src, pos, in_version: 0, after_name: false, after_dot: false, options: *options }
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.src.get(at).copied().unwrap_or(0)
    }

    /// The next token.
    #[inline]
    pub(crate) fn next(&mut self) -> Token {
        let before = self.pos;
        if let Some(bad) = self.skip_blank() {
            return bad;
        }
        let adjacent = before == self.pos;
        let after_name = self.after_name && adjacent;
        let after_dot = self.after_dot && adjacent;
        self.after_name = false;
        self.after_dot = false;
        let start = self.pos;
        let Some(&b) = self.src.get(start) else {
            // Said once, so that whoever reads on comes to the end.
            let kind = if std::mem::take(&mut self.in_version) > 0 { Tok::Invalid } else { Tok::Eof };
            return self.token(kind, start);
        };
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => {
                if self.byte(start + 1) == b'\''
                    && let Some(token) = self.prefixed_string(b, start)
                {
                    return token;
                }
                self.word(start)
            }
            b'0'..=b'9' => {
                if after_dot {
                    self.word(start)
                } else {
                    self.number(start)
                }
            }
            b'.' if self.byte(start + 1) == b'.' => {
                self.pos += 2;
                self.token(Tok::DotDot, start)
            }
            b'.' => {
                if !after_name && self.byte(start + 1).is_ascii_digit() {
                    return self.number(start);
                }
                self.pos += 1;
                self.after_dot = after_name;
                self.token(Tok::Dot, start)
            }
            b'\'' => self.quoted(start, start, Tok::Str),
            b'"' if self.options.ansi_quotes => self.quoted_name(start),
            b'"' => self.quoted(start, start, Tok::Str),
            b'`' => self.quoted_name(start),
            b'@' => self.at(start),
            _ => self.operator(b, start),
        }
    }

    fn token(&self, kind: Tok, start: usize) -> Token {
        Token { kind, escaped: false, kw: Kw::NONE, start: start as u32, end: self.pos as u32 }
    }

    #[inline]
    fn word(&mut self, start: usize) -> Token {
        let mut hash = HASH_START;
        let mut pos = start;
        while let Some(&b) = self.src.get(pos) {
            if !WORD[b as usize] {
                break;
            }
            hash = hash_step(hash, b);
            pos += 1;
        }
        self.pos = pos;
        self.after_name = true;
        let kw = lookup(&self.src[start..pos], hash);
        Token { kind: Tok::Word, escaped: false, kw, start: start as u32, end: pos as u32 }
    }

    /// `N'..'`, `x'..'`, `b'..'`; `None` when the letter is another word.
    fn prefixed_string(&mut self, letter: u8, start: usize) -> Option<Token> {
        let kind = match letter {
            b'n' | b'N' => Tok::NStr,
            b'x' | b'X' => Tok::HexStr,
            b'b' | b'B' => Tok::BitStr,
            _ => return None,
        };
        Some(self.quoted(start, start + 1, kind))
    }

    /// A string whose opening quote is at `open`.
    fn quoted(&mut self, start: usize, open: usize, kind: Tok) -> Token {
        let quote = self.src[open];
        let escapes = !self.options.no_backslash_escapes;
        let mut escaped = false;
        let mut pos = open + 1;
        loop {
            let Some(&b) = self.src.get(pos) else {
                self.pos = self.src.len();
                return self.token(Tok::Invalid, start);
            };
            pos += 1;
            if b == quote {
                if self.byte(pos) != quote || pos >= self.src.len() {
                    break;
                }
                escaped = true;
                pos += 1;
            } else if b == b'\\' && escapes {
                escaped = true;
                pos += 1;
            }
        }
        self.pos = pos;
        let mut token = self.token(kind, start);
        token.escaped = escaped;
        if matches!(kind, Tok::HexStr | Tok::BitStr)
            && !literal::digits_ok(kind, &self.src[open + 1..pos - 1])
        {
            token.kind = Tok::Invalid;
        }
        token
    }

    fn quoted_name(&mut self, start: usize) -> Token {
        let quote = self.src[start];
        let mut escaped = false;
        let mut pos = start + 1;
        loop {
            match self.src.get(pos) {
                None => {
                    self.pos = self.src.len();
                    return self.token(Tok::Invalid, start);
                }
                Some(&b) if b == quote => {
                    pos += 1;
                    if self.src.get(pos) != Some(&quote) {
                        break;
                    }
                    escaped = true;
                    pos += 1;
                }
                Some(_) => pos += 1,
            }
        }
        self.pos = pos;
        self.after_name = true;
        let mut token = self.token(Tok::Quoted, start);
        token.escaped = escaped;
        token
    }

    fn at(&mut self, start: usize) -> Token {
        match self.byte(start + 1) {
            b'@' => {
                self.pos = start + 2;
                self.token(Tok::AtAt, start)
            }
            b'`' => {
                let mut token = self.quoted_name(start + 1);
                self.after_name = false;
                if token.kind != Tok::Invalid {
                    token.kind = Tok::UserVar;
                }
                token.start = start as u32;
                token
            }
            b'\'' | b'"' => self.quoted(start, start + 1, Tok::UserVar),
            b if WORD[b as usize] || b == b'.' => {
                let mut pos = start + 1;
                while let Some(&b) = self.src.get(pos)
                    && (WORD[b as usize] || b == b'.')
                {
                    pos += 1;
                }
                self.pos = pos;
                self.token(Tok::UserVar, start)
            }
            _ => {
                self.pos = start + 1;
                self.token(Tok::At, start)
            }
        }
    }

    fn number(&mut self, start: usize) -> Token {
        if self.src[start] == b'0'
            && let Some(token) = self.radix_number(start)
        {
            return token;
        }
        let mut pos = self.digits(start);
        let mut kind = Tok::Int;
        if self.byte(pos) == b'.' && self.byte(pos + 1) != b'.' {
            kind = Tok::Decimal;
            pos = self.digits(pos + 1);
        }
        if matches!(self.byte(pos), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(pos + 1), b'+' | b'-'));
            if self.byte(pos + 1 + sign).is_ascii_digit() {
                kind = Tok::Float;
                pos = self.digits(pos + 1 + sign);
            }
        }
        if kind == Tok::Int && WORD[self.byte(pos) as usize] {
            return self.word(start);
        }
        self.pos = pos;
        self.token(kind, start)
    }

    /// `0x41` and `0b01`, unless they go on as an identifier.
    fn radix_number(&mut self, start: usize) -> Option<Token> {
        let (kind, digit): (_, fn(&u8) -> bool) = match self.byte(start + 1) {
            b'x' => (Tok::HexNum, u8::is_ascii_hexdigit),
            b'b' => (Tok::BitNum, |b| matches!(b, b'0' | b'1')),
            _ => return None,
        };
        let mut pos = start + 2;
        while self.src.get(pos).is_some_and(digit) {
            pos += 1;
        }
        if pos == start + 2 || WORD[self.byte(pos) as usize] {
            return None;
        }
        self.pos = pos;
        Some(self.token(kind, start))
    }

    fn digits(&self, mut pos: usize) -> usize {
        while self.byte(pos).is_ascii_digit() {
            pos += 1;
        }
        pos
    }

    fn operator(&mut self, b: u8, start: usize) -> Token {
        let (one, two) = (self.byte(start + 1), self.byte(start + 2));
        let (kind, len) = match (b, one, two) {
            (b'(', ..) => (Tok::LParen, 1),
            (b')', ..) => (Tok::RParen, 1),
            (b',', ..) => (Tok::Comma, 1),
            (b'=', ..) => (Tok::Eq, 1),
            (b';', ..) => (Tok::Semicolon, 1),
            (b'?', ..) => (Tok::Param, 1),
            (b'+', ..) => (Tok::Plus, 1),
            (b'*', ..) => (Tok::Star, 1),
            (b'-', b'>', b'>') => (Tok::LongArrow, 3),
            (b'-', b'>', _) => (Tok::Arrow, 2),
            (b'-', ..) => (Tok::Minus, 1),
            (b'/', ..) => (Tok::Slash, 1),
            (b'<', b'=', b'>') => (Tok::NullSafeEq, 3),
            (b'<', b'=', _) => (Tok::Le, 2),
            (b'<', b'>', _) => (Tok::Ne, 2),
            (b'<', b'<', _) => (Tok::ShiftLeft, 2),
            (b'<', ..) => (Tok::Lt, 1),
            (b'>', b'=', _) => (Tok::Ge, 2),
            (b'>', b'>', _) => (Tok::ShiftRight, 2),
            (b'>', ..) => (Tok::Gt, 1),
            (b'!', b'=', _) => (Tok::Ne, 2),
            (b'!', ..) => (Tok::Bang, 1),
            (b':', b'=', _) => (Tok::Assign, 2),
            (b':', ..) => (Tok::Colon, 1),
            (b'&', b'&', _) => (Tok::AmpAmp, 2),
            (b'&', ..) => (Tok::Amp, 1),
            (b'|', b'|', _) => (Tok::PipePipe, 2),
            (b'|', ..) => (Tok::Pipe, 1),
            (b'%', ..) => (Tok::Percent, 1),
            (b'^', ..) => (Tok::Caret, 1),
            (b'~', ..) => (Tok::Tilde, 1),
            (b'{', ..) => (Tok::LBrace, 1),
            (b'}', ..) => (Tok::RBrace, 1),
            _ => (Tok::Invalid, 1),
        };
        self.pos = start + len;
        self.token(kind, start)
    }

    /// Skips white space and comments; gives an `Invalid` token for a comment without an end.
    #[inline]
    fn skip_blank(&mut self) -> Option<Token> {
        while let Some(&b) = self.src.get(self.pos) {
            match b {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.pos += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(self.pos + 1) == b'-' => {
                    // A control character or the end also makes it a comment; an operand does not.
                    if self.src.get(self.pos + 2).is_some_and(|&b| b > b' ' && b != 0x7f) {
                        return None;
                    }
                    self.skip_line();
                }
                b'/' if self.byte(self.pos + 1) == b'*' => {
                    let start = self.pos;
                    if !self.skip_comment() {
                        self.pos = self.src.len();
                        return Some(self.token(Tok::Invalid, start));
                    }
                }
                b'*' if self.in_version > 0 && self.byte(self.pos + 1) == b'/' => {
                    self.in_version = 0;
                    self.pos += 2;
                }
                _ => return None,
            }
        }
        None
    }

    fn skip_line(&mut self) {
        while let Some(&b) = self.src.get(self.pos)
            && b != b'\n'
        {
            self.pos += 1;
        }
    }

    /// At `/*`. Enters an executed version comment, or skips to the end; false when there is no end.
    fn skip_comment(&mut self) -> bool {
        let mut pos = self.pos + 2;
        let mariadb = matches!(self.byte(pos), b'M') && self.byte(pos + 1) == b'!';
        pos += usize::from(mariadb);
        if self.byte(pos) != b'!' {
            return self.skip_to_comment_end(pos, false);
        }
        pos += 1;
        let digits = self.version_digits(pos);
        let version = self.src[pos..pos + digits].iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
        if self.in_version > 0 || !self.runs(version, mariadb) {
            return self.skip_to_comment_end(pos, true);
        }
        self.in_version = pos as u32;
        self.pos = pos + digits;
        true
    }

    /// The digits of the version comment that the last token is in; empty if it names no version.
    pub(crate) fn version_comment(&self) -> Option<&'a [u8]> {
        let from = self.in_version as usize;
        (from > 0).then(|| &self.src[from..from + self.version_digits(from)])
    }

    /// How many digits at `pos` are a version: five, or six; to MySQL the sixth is one of the statement unless white space follows.
    fn version_digits(&self, pos: usize) -> usize {
        match self.digits(pos).min(pos + 6) - pos {
            6 if !self.options.mariadb && !matches!(self.byte(pos + 6), b' ' | b'\t'..=b'\r') => 5,
            digits @ 5.. => digits,
            _ => 0,
        }
    }

    /// Whether a version comment is executed here.
    fn runs(&self, version: u32, mariadb: bool) -> bool {
        if version == OWN_VERSION {
            !mariadb
        } else if self.options.mariadb {
            // MariaDB skips the versions MySQL took after the fork, unless the comment is its own.
            version <= self.options.version && (mariadb || !(50700..=99999).contains(&version))
        } else {
            !mariadb && version <= self.options.version
        }
    }

    fn skip_to_comment_end(&mut self, mut pos: usize, nested: bool) -> bool {
        let mut depth = 1;
        while pos + 1 < self.src.len() {
            match (self.src[pos], self.src[pos + 1]) {
                (b'*', b'/') => {
                    pos += 2;
                    depth -= 1;
                    if depth == 0 {
                        self.pos = pos;
                        return true;
                    }
                }
                (b'/', b'*') if nested => {
                    pos += 2;
                    depth += 1;
                }
                _ => pos += 1,
            }
        }
        false
    }
}
