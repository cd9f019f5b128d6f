//! The backtracking engine: back references, look-around, atomic groups, possessive counts, and line ends other than a newline.
//!
//! A search of the library runs until it has gone back so many times, and can't be stopped before that. So it runs with a
//! small bound first, in some milliseconds however long the text, and again with a bound four times as large each time, as
//! long as `regexp_time_limit` allows; between two the statement looks whether it must end. What is done twice is a third
//! of the whole.

use super::fault::{self, Fault};
use super::pattern::{Letters, Pattern};
use crate::error::{ExecResult, SqlResult};
use crate::expr::context::Context;
use crate::memory::{Account, MemoryLimits};
use fancy_regex::{BytesMode, Error, Regex, RegexInput, RegexOptionsBuilder, RuntimeError};
use regex_automata::Span;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Steps back of the first bound, and how many bounds there are, each four times the one before.
const FIRST: usize = 16;
const BOUNDS: usize = 14;
/// The units of `regexp_time_limit`: steps, and the time that they may take where each looks at much of a long text, and
/// so takes longer than others do.
const STEPS_A_UNIT: u64 = 10_000;
const TIME_A_UNIT: Duration = Duration::from_millis(30);
const LONG_STEP: Duration = Duration::from_micros(10);
/// Bytes that may be looked at by a search with the first bound, if each step looks at all of the text.
const FIRST_BYTES: usize = 64 << 20;
/// Bytes of a compiled pattern, of one of its parts, and of its instructions.
const COMPILED: usize = 1 << 20;
const PART_MAX: usize = 1 << 20;
const PROGRAM_MAX: usize = 50_000;
/// Branches that the library keeps at most, and the bytes of one with what it saves.
const BRANCHES_MAX: usize = 1_000_000;
const BRANCH: usize = 64;

/// A pattern compiled with each of the bounds that a search has asked for.
#[derive(Debug)]
pub struct Backtracking {
    pattern: String,
    letters: Letters,
    branches: usize,
    engines: [OnceLock<(Regex, Account)>; BOUNDS],
}

impl Backtracking {
    /// The engine of a pattern; nothing is compiled yet.
    pub fn new(pattern: &Pattern, letters: Letters) -> Backtracking {
        let engines = std::array::from_fn(|_| OnceLock::new());
        Backtracking { pattern: pattern.full.clone(), letters, branches: pattern.branches, engines }
    }

    /// Compiles it, to see whether it can be.
    ///
    /// # Errors
    /// 3685 and its neighbours.
    pub fn check(&self) -> SqlResult<()> {
        self.compiled(0).map(|_| ())
    }

    fn compiled(&self, bound: usize) -> SqlResult<Regex> {
        let mut options = RegexOptionsBuilder::new();
        options
            .bytes_mode(BytesMode::UnicodeBytes)
            .case_insensitive(self.letters.ignore_case)
            .multi_line(self.letters.multi_line)
            .dot_matches_new_line(self.letters.dot_newline)
            .backtrack_limit(FIRST << (2 * bound))
            .delegate_size_limit(PART_MAX)
            .delegate_dfa_size_limit(PART_MAX)
            .max_prog_size(PROGRAM_MAX);
        options.build(self.pattern.clone()).map_err(|error| match &error {
            Error::CompileError(inner) => match &**inner {
                fancy_regex::CompileError::InnerError(engine) => fault::refused(engine),
                _ => fault::of(Fault::Illegal),
            },
            _ => fault::of(Fault::Illegal),
        })
    }

    fn engine(&self, bound: usize, cx: &Context<'_>) -> ExecResult<&Regex> {
        if self.engines[bound].get().is_none() {
            let mut account = Account::new(&cx.session.connection.memory);
            account.grow_exactly(COMPILED, MemoryLimits::of(&cx.session.settings))?;
            let _ = self.engines[bound].set((self.compiled(bound)?, account));
        }
        let engine = self.engines[bound].get().map(|(engine, _)| engine);
        Ok(engine.ok_or_else(|| fault::of(Fault::Illegal))?)
    }

    /// The groups of the first match at or behind byte `from`, the whole match first; `anchored`: exactly there.
    ///
    /// # Errors
    /// The statement must stop; 3698, 3699.
    pub fn groups(
        &self,
        text: &[u8],
        from: usize,
        anchored: bool,
        cx: &Context<'_>,
    ) -> ExecResult<Option<Vec<Option<Span>>>> {
        let limit = cx.session.settings.time_limits.regexp_units;
        let units = if limit == 0 { u64::MAX } else { limit };
        // A step back is taken at each place where a match does not begin, too, which ICU does not count.
        let steps = units.saturating_mul(STEPS_A_UNIT).saturating_add(2 * text.len() as u64);
        let time = TIME_A_UNIT.checked_mul(u32::try_from(units).unwrap_or(u32::MAX));
        let mut stack = Account::new(&cx.session.connection.memory);
        let branches = (text.len() - from + 1).saturating_mul(self.branches).min(BRANCHES_MAX);
        stack.grow_exactly(branches * BRANCH, MemoryLimits::of(&cx.session.settings))?;
        let small = FIRST_BYTES / (text.len() - from + 1) / FIRST;
        let begun = Instant::now();
        for bound in (small.max(1).ilog2() as usize / 2).min(5)..BOUNDS {
            let input = RegexInput::new(text).range(from..text.len()).anchored(anchored);
            match self.engine(bound, cx)?.captures_input(input) {
                Ok(found) => {
                    let spans = |found: fancy_regex::Captures<'_, [u8]>| {
                        let span = |found: fancy_regex::MatchBytes<'_>| Span::from(found.range());
                        found.iter().map(|group| group.map(span)).collect()
                    };
                    return Ok(found.map(spans));
                }
                Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded)) => {}
                Err(Error::RuntimeError(RuntimeError::StackOverflow)) => {
                    return Err(fault::of(Fault::Stack).into());
                }
                Err(_) => return Err(fault::of(Fault::Illegal).into()),
            }
            cx.session.budget.look(super::LOOK)?;
            let taken = (FIRST << (2 * bound)) as u64;
            let usual = LONG_STEP * u32::try_from(taken).unwrap_or(u32::MAX);
            if taken >= steps || time.is_some_and(|time| begun.elapsed() > time.max(usual)) {
                break;
            }
        }
        Err(fault::of(Fault::Time).into())
    }
}
