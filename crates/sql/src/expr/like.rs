//! LIKE. A constant pattern is taken apart once (`omnibus_value::collation`).

use super::charset;
use super::context::Context;
use super::node::LikeExpr;
use crate::error::ExecResult;
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
                LikeMatcher::new(&pattern, self.escape, self.collation).matches(&text, cx)?
            }
        };
        Ok(Some(found != self.negated))
    }
}
