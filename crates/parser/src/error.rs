//! Why a text is not a statement.

/// A parse error with its MySQL code and message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// 1064, 42000.
    #[error(
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{near}' at line {line}"
    )]
    Syntax {
        /// The text from the offending token on, at most 80 characters.
        near: String,
        /// Line of the token, from 1.
        line: u32,
    },
    /// 1065, 42000.
    #[error("Query was empty")]
    Empty,
    /// 1436, HY000: parentheses or subqueries nested too deep.
    #[error("Thread stack overrun: the statement is nested too deeply")]
    TooDeep,
    /// 3170, HY000: whoever was asked has no memory for the tree. Its own error says more.
    #[error("There is no memory for a statement of so many words")]
    NoMemory,
    /// 1059, 42000.
    #[error("Identifier name '{0}' is too long")]
    IdentifierTooLong(String),
    /// 1300, HY000: an identifier that is not UTF-8.
    #[error("Invalid utf8mb4 character string: '{0}'")]
    InvalidIdentifier(String),
    /// 1235, 42000: what is known, and not offered.
    #[error("This version of Omnibus doesn't yet support '{0}'")]
    NotSupported(&'static str),
    /// Any other error found while parsing, with its MySQL code.
    #[error("{message}")]
    Other {
        /// MySQL error number.
        code: u16,
        /// SQLSTATE.
        state: &'static str,
        /// Text.
        message: String,
    },
}

impl ParseError {
    /// An error of MySQL's by its number.
    pub(crate) fn other(code: u16, state: &'static str, message: impl std::fmt::Display) -> ParseError {
        ParseError::Other { code, state, message: message.to_string() }
    }

    /// The syntax error at a byte of a text: where a second statement starts that may not be there.
    pub fn at(sql: &[u8], offset: usize) -> Self {
        syntax_error(sql, offset)
    }

    /// The MySQL error number.
    pub fn code(&self) -> u16 {
        match self {
            Self::Syntax { .. } => 1064,
            Self::Empty => 1065,
            Self::TooDeep => 1436,
            Self::NoMemory => 3170,
            Self::IdentifierTooLong(_) => 1059,
            Self::InvalidIdentifier(_) => 1300,
            Self::NotSupported(_) => 1235,
            Self::Other { code, .. } => *code,
        }
    }

    /// The SQLSTATE.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Syntax { .. } | Self::Empty | Self::IdentifierTooLong(_) | Self::NotSupported(_) => "42000",
            Self::TooDeep | Self::NoMemory | Self::InvalidIdentifier(_) => "HY000",
            Self::Other { state, .. } => state,
        }
    }
}

/// Characters of `near '..'` in an error.
const NEAR_CHARS: usize = 80;

/// A syntax error at a byte of a text.
#[cold]
fn syntax_error(src: &[u8], at: usize) -> ParseError {
    let at = at.min(src.len());
    let line = 1 + src[..at].iter().filter(|&&b| b == b'\n').count() as u32;
    let end = src.len().min(at + NEAR_CHARS * 4);
    let near: String = String::from_utf8_lossy(&src[at..end]).chars().take(NEAR_CHARS).collect();
    let before = String::from_utf8_lossy(&src[at.saturating_sub(NEAR_CHARS)..at]);
    match unsupported_clause(&near).or_else(|| unsupported_before(&before, &near)) {
        Some(what) => ParseError::Other {
            code: 1235,
            state: "42000",
            message: format!("This version of Omnibus doesn't yet support '{what}'"),
        },
        None => ParseError::Syntax { near, line },
    }
}

/// MariaDB's clauses of temporal tables, by the words where the grammar meets them: what they are is more helpful than that they
/// are no syntax here.
fn unsupported_clause(near: &str) -> Option<&'static str> {
    let words = near.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words: Vec<_> = words.take(3).map(str::to_ascii_uppercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["SYSTEM", "VERSIONING", ..] | ["WITH" | "WITHOUT", "SYSTEM", "VERSIONING"] | ["VERSIONING", ..] => {
            Some("SYSTEM VERSIONING")
        }
        ["SYSTEM_TIME", ..] | ["FOR", "SYSTEM_TIME", ..] => Some("FOR SYSTEM_TIME"),
        ["ROW", "START" | "END", ..] => Some("SYSTEM VERSIONING"),
        ["BEFORE", "SYSTEM_TIME", ..] => Some("DELETE HISTORY"),
        ["WITHOUT", "OVERLAPS", ..] => Some("WITHOUT OVERLAPS"),
        ["COMPRESSED", ..] => Some("COMPRESSED columns"),
        ["FOR", "PORTION", "OF"] => Some("FOR PORTION OF"),
        _ => None,
    }
}

/// The same, where the words before tell it.
fn unsupported_before(before: &str, near: &str) -> Option<&'static str> {
    let word = |text: &str| text.to_ascii_uppercase();
    let mut last =
        before.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let last = [last.next_back(), last.next_back()].map(|found| found.map(word).unwrap_or_default());
    let next =
        near.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().map(word).unwrap_or_default();
    match (last[1].as_str(), last[0].as_str(), next.as_str()) {
        ("NEXT" | "PREVIOUS", "VALUE", "FOR") => Some("sequences"),
        (_, "PERIOD", "FOR") | ("PERIOD", "FOR", _) => Some("PERIOD FOR"),
        (_, "CONVERT", "PARTITION" | "TABLE") => Some("CONVERT PARTITION"),
        _ => None,
    }
}
