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
    /// The syntax error at a byte of a text: where a second statement starts that may not be there.
    pub fn at(sql: &[u8], offset: usize) -> Self {
        crate::grammar::syntax_error(sql, offset)
    }

    /// The MySQL error number.
    pub fn code(&self) -> u16 {
        match self {
            Self::Syntax { .. } => 1064,
            Self::Empty => 1065,
            Self::TooDeep => 1436,
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
            Self::TooDeep | Self::InvalidIdentifier(_) => "HY000",
            Self::Other { state, .. } => state,
        }
    }
}
