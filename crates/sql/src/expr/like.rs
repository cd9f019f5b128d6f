//! LIKE. A constant pattern is taken apart once (`omnibus_value::collation`).

use super::charset;
use super::context::Context;
use super::node::{Expr, LikeExpr};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_value::Value;
use omnibus_value::collation::LikePattern;
use std::sync::Arc;

/// The escape character where none is given.
pub(crate) const DEFAULT_ESCAPE: u32 = b'\\' as u32;

/// The escape character that a value is; none if it is empty.
///
/// # Errors
/// 1210 for more than a character.
pub(crate) fn escape_of(e: &Expr, value: &Value) -> SqlResult<Option<u32>> {
    if matches!(value, Value::Null) {
        return Ok(Some(DEFAULT_ESCAPE));
    }
    let text =
        charset::convert(&e.to_str(value), e.ty.column.collation, crate::catalog::charset::server_default());
    match std::str::from_utf8(&text).unwrap_or_default().chars().collect::<Vec<_>>()[..] {
        [] if text.is_empty() => Ok(None),
        [c] => Ok(Some(u32::from(c))),
        _ => Err(SqlError::wrong_arguments("ESCAPE")),
    }
}

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

    /// Whether a text matches that is too short to look for KILL.
    pub(super) fn matches_short(&self, text: &[u8]) -> bool {
        self.0.matches(text, |_| Ok::<(), std::convert::Infallible>(())).is_ok_and(|matches| matches)
    }

    /// Whether `text` matches.
    ///
    /// # Errors
    /// KILL.
    pub fn matches(&self, text: &[u8], cx: &mut Context<'_>) -> ExecResult<bool> {
        self.0.matches(text, |bytes| cx.compared(bytes))
    }
}

impl LikeExpr {
    /// Whether the text matches; `None` if either side is NULL.
    ///
    /// # Errors
    /// As evaluation of the operands.
    pub fn matches(&self, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        if let Some(matcher) = &self.matcher {
            let found =
                cx.with_text(&self.text, |text, cx| text.map(|t| matcher.matches(t, cx)).transpose())?;
            if let Some(found) = found {
                return Ok(found.map(|found| found != self.negated));
            }
        }
        let Some(text) = self.text.eval_str(cx)? else { return Ok(None) };
        let found = match &self.matcher {
            Some(matcher) => matcher.matches(&text, cx)?,
            None => {
                let Some(pattern) = self.pattern.eval_str(cx)? else { return Ok(None) };
                let escape = match &self.given_escape {
                    Some(given) => escape_of(given, &given.eval(cx)?)?,
                    None => self.escape,
                };
                LikeMatcher::new(&pattern, escape, self.collation).matches(&text, cx)?
            }
        };
        Ok(Some(found != self.negated))
    }
}
