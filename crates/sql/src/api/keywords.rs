//! The words of MySQL's grammar, for information_schema.KEYWORDS and for the texts of digests.

use std::collections::HashSet;
use std::sync::LazyLock;

static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| keywords().collect());

/// All of them, in order.
pub(crate) fn keywords() -> impl Iterator<Item = &'static str> {
    include_str!("keywords.txt").lines().filter(|line| !line.starts_with('#'))
}

/// Whether MySQL's grammar has a word, given in upper case, be it reserved or not.
#[must_use]
pub fn is_keyword(word: &str) -> bool {
    WORDS.contains(word)
}
