//! LIKE and REGEXP.
//!
//! A constant LIKE pattern is taken apart once (`omnibus_value::collation`). Regular expressions are the `regex` crate's, which has no back-references (an
//! unsupported pattern is error 3685) but cannot take exponential time.

use super::charset;
use super::exec::Exec;
use super::node::{LikeExpr, RegexpExpr};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_value::collation::LikePattern;
use std::sync::Arc;

/// A LIKE pattern.
#[derive(Clone, Debug)]
pub struct LikeMatcher(Arc<LikePattern>);

impl LikeMatcher {
    /// Takes a pattern apart; `escape` is a character's code.
    #[must_use]
    pub fn new(pattern: &[u8], escape: Option<u32>, collation: u16) -> LikeMatcher {
        LikeMatcher(Arc::new(LikePattern::new(charset::collation(collation), pattern, escape)))
    }

    /// The characters before the first wildcard: an index range can be made of them.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        self.0.prefix()
    }

    /// Whether `text` matches.
    ///
    /// # Errors
    /// KILL.
    pub fn matches(&self, text: &[u8], cx: &mut Exec<'_>) -> ExecResult<bool> {
        self.0.matches(text, |bytes| cx.compared(bytes))
    }
}

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct RegexpMatcher(Arc<regex::bytes::Regex>);

impl RegexpMatcher {
    /// Compiles a pattern; `_ci` collations ignore case.
    ///
    /// # Errors
    /// 3685 for what is no regular expression.
    pub fn new(pattern: &[u8], collation: u16) -> SqlResult<RegexpMatcher> {
        Self::with_options(pattern, !charset::is_binary_order(collation), false, false)
    }

    /// Compiles a pattern with the options of REGEXP_LIKE's match type.
    ///
    /// # Errors
    /// 3685 for what is no regular expression.
    pub fn with_options(
        pattern: &[u8],
        ignore_case: bool,
        multi_line: bool,
        dot_newline: bool,
    ) -> SqlResult<RegexpMatcher> {
        let pattern = std::str::from_utf8(pattern).map_err(|_| bad_regexp("the pattern is not UTF-8"))?;
        regex::bytes::RegexBuilder::new(&unicode_classes(pattern))
            .case_insensitive(ignore_case)
            .multi_line(multi_line)
            .dot_matches_new_line(dot_newline)
            .size_limit(4 << 20)
            .build()
            .map(|regex| RegexpMatcher(Arc::new(regex)))
            .map_err(|error| bad_regexp(&error.to_string()))
    }

    /// The compiled expression.
    #[must_use]
    pub fn regex(&self) -> &regex::bytes::Regex {
        &self.0
    }
}

/// The pattern with POSIX's classes as those of Unicode: `[[:alpha:]]` has ä in it.
fn unicode_classes(pattern: &str) -> std::borrow::Cow<'_, str> {
    const CLASSES: [(&str, &str); 6] = [
        ("alpha", "Alphabetic"),
        ("digit", "Nd"),
        ("lower", "Lowercase"),
        ("upper", "Uppercase"),
        ("space", "White_Space"),
        ("punct", "P"),
    ];
    if !pattern.contains("[:") {
        return pattern.into();
    }
    let pattern = pattern.replace("[:alnum:]", "\\p{Alphabetic}\\p{Nd}");
    let replaced = CLASSES.iter().fold(pattern, |pattern, (posix, unicode)| {
        pattern
            .replace(&format!("[:{posix}:]"), &format!("\\p{{{unicode}}}"))
            .replace(&format!("[:^{posix}:]"), &format!("\\P{{{unicode}}}"))
    });
    replaced.into()
}

fn bad_regexp(detail: &str) -> SqlError {
    let detail = detail.lines().last().unwrap_or_default();
    SqlError::new(3685, b"HY000", format!("Illegal argument to a regular expression: {detail}."))
}

impl LikeExpr {
    /// Whether the text matches; `None` if either side is NULL.
    ///
    /// # Errors
    /// As evaluation of the operands.
    pub fn matches(&self, cx: &mut Exec<'_>) -> ExecResult<Option<bool>> {
        let Some(text) = self.text.eval_str(cx)? else { return Ok(None) };
        let found = match &self.matcher {
            Some(matcher) => matcher.matches(&text, cx)?,
            None => {
                let Some(pattern) = self.pattern.eval_str(cx)? else { return Ok(None) };
                LikeMatcher::new(&pattern, self.escape, self.collation).matches(&text, cx)?
            }
        };
        Ok(Some(found != self.negated))
    }
}

impl RegexpExpr {
    /// Whether the text matches; `None` if either side is NULL.
    ///
    /// # Errors
    /// As evaluation of the operands, and 3685.
    pub fn matches(&self, cx: &mut Exec<'_>) -> ExecResult<Option<bool>> {
        let Some(text) = self.text.eval_str(cx)? else { return Ok(None) };
        let found = match &self.matcher {
            Some(matcher) => matcher.regex().is_match(&text),
            None => {
                let Some(pattern) = self.pattern.eval_str(cx)? else { return Ok(None) };
                RegexpMatcher::new(&pattern, self.collation)?.regex().is_match(&text)
            }
        };
        Ok(Some(found != self.negated))
    }
}
