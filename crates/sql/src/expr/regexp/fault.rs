//! Errors of regular expressions, with MySQL's numbers and texts.

use crate::error::SqlError;

/// A pattern, a replacement or a search that fails.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// An escape that is cut or stands for no character.
    Escape,
    /// A part of the syntax that is known and not built.
    NotImplemented,
    /// Parentheses that have no other.
    Parenthesis,
    /// `{` without a count.
    Interval,
    /// A count that ends before it begins.
    IntervalOrder,
    /// A reference to a group that is not there.
    BackReference,
    /// A look behind that has no end.
    LookBehind,
    /// A set that does not end.
    Bracket,
    /// A range that ends before it begins.
    RangeOrder,
    /// More branches than there is room for.
    Stack,
    /// More steps than `regexp_time_limit` allows.
    Time,
    /// A group's name that is none.
    GroupName,
    /// A count beyond 31 bits.
    Number,
    /// A group's number beyond the groups.
    Index,
    /// A pattern that is too long, or too large when it is compiled.
    Large,
    /// Everything else.
    Illegal,
}

/// The error of a fault.
pub fn of(fault: Fault) -> SqlError {
    let (code, text) = match fault {
        Fault::Illegal => (3685, "Illegal argument to a regular expression."),
        Fault::Index => (3686, "Index out of bounds in regular expression search."),
        Fault::Escape => (3689, "Unrecognized escape sequence in regular expression."),
        Fault::NotImplemented => (
            3690,
            "The regular expression contains a feature that is not implemented in this library version.",
        ),
        Fault::Parenthesis => (3691, "Mismatched parenthesis in regular expression."),
        Fault::Interval => (3692, "Incorrect description of a {min,max} interval."),
        Fault::IntervalOrder => (3693, "The maximum is less than the minumum in a {min,max} interval."),
        Fault::BackReference => (3694, "Invalid back-reference in regular expression."),
        Fault::LookBehind => (3695, "The look-behind assertion exceeds the limit in regular expression."),
        Fault::Bracket => (3696, "The regular expression contains an unclosed bracket expression."),
        Fault::RangeOrder => {
            (3697, "The regular expression contains an [x-y] character range where x comes after y.")
        }
        Fault::Stack => (3698, "Overflow in the regular expression backtrack stack."),
        Fault::Time => (3699, "Timeout exceeded in regular expression match."),
        Fault::Large => (3700, "The regular expression pattern exceeds limits on size or complexity."),
        Fault::GroupName => (3887, "A capture group has an invalid name."),
        Fault::Number => (4007, "Decimal number in regular expression is too large."),
    };
    SqlError::new(code, b"HY000", text)
}

/// Error 3688 at the character before `at`, counted from 1 in its line.
pub fn syntax(text: &[char], at: usize) -> SqlError {
    let before = &text[..at.saturating_sub(1)];
    let line = 1 + before.iter().filter(|c| **c == '\n').count();
    let character = 1 + before.iter().rev().take_while(|c| **c != '\n').count();
    let message = format!("Syntax error in regular expression on line {line}, character {character}.");
    SqlError::new(3688, b"HY000", message)
}

/// The error of what an engine refuses, by what it says at the bottom.
pub fn refused(error: &dyn std::error::Error) -> SqlError {
    match error.source() {
        Some(deeper) => refused(deeper),
        None if error.to_string().contains("invalid character class range") => of(Fault::RangeOrder),
        None if error.to_string().contains("exceeded limit") => of(Fault::Large),
        None => of(Fault::Illegal),
    }
}
