//! Regular expressions: REGEXP and what its functions search with.
//!
//! The engine is the `regex` crate's, taken one floor down: its lazy automaton is driven byte by byte from here, so that a
//! search ends when its statement must, however long the text and however large the pattern. It has no back references,
//! so no pattern takes exponential time; but a step of a large one may take a millisecond, and a text has millions of steps.
//!
//! Two things can't be driven so: groups of a match, and word boundaries in texts beyond ASCII. They get `STEPS_MAX`
//! steps, like the limit that MySQL has on its engine's, and error 3699 beyond.
//!
//! Patterns that no automaton can match (back references, look-around, atomic groups) have another engine, in `backtrack`; so have
//! patterns that ask for the ends of lines, in texts where these are not newlines alone.

mod backtrack;
mod fault;
mod pattern;
mod posix;
mod replacement;

pub use fault::Fault;
pub use pattern::Letters;
pub use replacement::Replacement;

use self::backtrack::Backtracking;
use self::pattern::Pattern;
use self::replacement::Piece;
use super::charset;
use super::context::Context;
use super::node::RegexpExpr;
use crate::error::{ExecResult, Interrupt, SqlResult};
use crate::memory::{Account, MemoryLimits};
use crate::state::SessionState;
use parking_lot::Mutex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match, MatchKind, Span, meta};
use std::sync::{Arc, OnceLock};

/// Bytes of a pattern. Its tree takes some hundred for each while it is compiled, which nothing stops.
const PATTERN_MAX: usize = 128 << 10;
/// Bytes of a compiled pattern. The worst that fits takes 20 ms to compile.
const COMPILED_MAX: usize = 4 << 20;
/// Bytes of an automaton's states that are kept; older ones are made again.
const CACHE: usize = 4 << 20;
/// Bytes of the engine for groups while it searches, beside what it has.
const SCRATCH: usize = 256 << 10;
/// Bytes times states of a search that can't be stopped: some milliseconds, for the worst pattern a third of a second.
const STEPS_MAX: usize = 32_000_000;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct RegexpMatcher(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    pattern: Pattern,
    syntax: syntax::Config,
    /// `None` if the pattern needs the other engine.
    forward: Option<Automaton>,
    backtracking: Backtracking,
    /// Finds where a match begins; made when somebody asks.
    backward: OnceLock<Option<Automaton>>,
    /// Finds groups, and what `forward` gives up on; made when somebody asks.
    whole: OnceLock<Option<(meta::Regex, Account)>>,
}

#[derive(Debug)]
struct Automaton {
    dfa: DFA,
    states: Mutex<States>,
}

/// The states that searches have made so far, and what they take with the automaton: a few letters can make megabytes.
#[derive(Debug, Default)]
struct States {
    cache: Option<Box<Cache>>,
    account: Option<Account>,
}

impl States {
    /// Asks for so many bytes, as long as the automaton is there.
    fn count(&mut self, bytes: usize, session: &SessionState) -> SqlResult<()> {
        let account = self.account.get_or_insert_with(|| Account::new(&session.connection.memory));
        let more = bytes.saturating_sub(account.used() as usize);
        if more == 0 { Ok(()) } else { account.grow_exactly(more, MemoryLimits::of(&session.settings)) }
    }
}

/// Why a search has no answer yet.
enum Stopped {
    /// The automaton can't go on at a character beyond ASCII.
    Quit,
    Interrupt(Interrupt),
}

impl From<Interrupt> for Stopped {
    fn from(interrupt: Interrupt) -> Stopped {
        Stopped::Interrupt(interrupt)
    }
}

fn limits(reverse: bool) -> thompson::Config {
    thompson::Config::new().utf8(false).reverse(reverse).nfa_size_limit(Some(COMPILED_MAX)).which_captures(
        if reverse { thompson::WhichCaptures::None } else { thompson::WhichCaptures::Implicit },
    )
}

fn automaton(pattern: &str, syntax: syntax::Config, reverse: bool) -> SqlResult<Automaton> {
    let kind = if reverse { MatchKind::All } else { MatchKind::LeftmostFirst };
    let config = DFA::config()
        .match_kind(kind)
        .cache_capacity(CACHE)
        .skip_cache_capacity_check(true)
        .unicode_word_boundary(true);
    let built = DFA::builder().configure(config).thompson(limits(reverse)).syntax(syntax).build(pattern);
    built.map(|dfa| Automaton { dfa, states: Mutex::default() }).map_err(|error| fault::refused(&error))
}

impl RegexpMatcher {
    /// Compiles a pattern; `_ci` collations ignore case.
    ///
    /// # Errors
    /// 3685 and its neighbours for what is no regular expression.
    pub fn new(pattern: &[u8], collation: u16) -> SqlResult<RegexpMatcher> {
        let ignore_case = !charset::is_binary_order(collation);
        Self::with_letters(pattern, Letters { ignore_case, ..Letters::default() })
    }

    /// Compiles a pattern with the options of REGEXP_LIKE's match type.
    ///
    /// # Errors
    /// As `new`.
    pub fn with_letters(pattern: &[u8], letters: Letters) -> SqlResult<RegexpMatcher> {
        if pattern.len() > PATTERN_MAX {
            return Err(fault::of(Fault::Large));
        }
        let pattern = std::str::from_utf8(pattern).map_err(|_| fault::of(Fault::Illegal))?;
        let pattern = Pattern::read(pattern, letters)?;
        let backtracking = Backtracking::new(&pattern, letters);
        let syntax = syntax::Config::new()
            .utf8(false)
            .case_insensitive(letters.ignore_case)
            .multi_line(letters.multi_line)
            .dot_matches_new_line(letters.dot_newline);
        let forward = if pattern.backtracks {
            backtracking.check()?;
            None
        } else {
            Some(automaton(&pattern.linear, syntax, false)?)
        };
        let (backward, whole) = (OnceLock::new(), OnceLock::new());
        Ok(RegexpMatcher(Arc::new(Compiled { pattern, syntax, forward, backtracking, backward, whole })))
    }

    /// The same, counted with the session's memory before it is used: for those that a plan keeps.
    ///
    /// # Errors
    /// 3170: a limit says no.
    pub fn counted(self, session: &SessionState) -> SqlResult<RegexpMatcher> {
        if let Some(forward) = &self.0.forward {
            forward.states.lock().count(forward.dfa.get_nfa().memory_usage(), session)?;
        }
        Ok(self)
    }

    /// The names of its groups, in order.
    #[must_use]
    pub fn groups(&self) -> &[Option<String>] {
        &self.0.pattern.groups
    }

    /// A text to search, with what is known of all of it.
    #[must_use]
    pub fn searched<'t>(&self, text: &'t [u8]) -> Searched<'t> {
        let Pattern { asks_lines, asks_end, .. } = self.0.pattern;
        let other = (asks_lines || asks_end) && ends_line(text) || asks_lines && has_other_line_ends(text);
        Searched { text, other }
    }

    /// The automaton, where it finds in this text what the pattern asks for.
    fn automaton(&self, searched: Searched<'_>) -> Option<&Automaton> {
        self.0.forward.as_ref().filter(|_| !searched.other)
    }

    /// Whether a text has a match.
    ///
    /// # Errors
    /// The statement must stop; 3698, 3699.
    pub fn is_match(&self, text: &[u8], cx: &Context<'_>) -> ExecResult<bool> {
        let Some(forward) = self.automaton(self.searched(text)) else {
            return Ok(self.0.backtracking.groups(text, 0, false, cx)?.is_some());
        };
        match forward.end(text, 0, true, cx) {
            Ok(found) => Ok(found.is_some()),
            Err(Stopped::Interrupt(interrupt)) => Err(interrupt),
            Err(Stopped::Quit) => Ok(self.bounded(text.len(), cx)?.is_match(text)),
        }
    }

    /// The first match at or behind byte `from`.
    ///
    /// # Errors
    /// As `is_match`.
    pub fn find(&self, searched: Searched<'_>, from: usize, cx: &Context<'_>) -> ExecResult<Option<Span>> {
        let text = searched.text;
        let Some(forward) = self.automaton(searched) else {
            let groups = self.0.backtracking.groups(text, from, false, cx)?;
            return Ok(groups.and_then(|groups| groups.first().copied().flatten()));
        };
        match self.driven(forward, text, from, cx) {
            Ok(found) => Ok(found),
            Err(Stopped::Interrupt(interrupt)) => Err(interrupt),
            Err(Stopped::Quit) => {
                let found =
                    self.bounded(text.len() - from, cx)?.find(Input::new(text).span(from..text.len()));
                Ok(found.map(|found: Match| found.span()))
            }
        }
    }

    fn driven(
        &self,
        forward: &Automaton,
        text: &[u8],
        from: usize,
        cx: &Context<'_>,
    ) -> Result<Option<Span>, Stopped> {
        let Some(end) = forward.end(text, from, false, cx)? else { return Ok(None) };
        let Compiled { pattern, syntax, backward, .. } = &*self.0;
        let backward = backward.get_or_init(|| automaton(&pattern.linear, *syntax, true).ok());
        let Some(automaton) = backward else { return Err(Stopped::Quit) };
        let start = automaton.start(text, Span { start: from, end }, cx)?;
        Ok(start.map(|start| Span { start, end }))
    }

    /// The first match at or behind byte `from`, or behind another one: it begins where that ends, or behind it if both are
    /// empty.
    ///
    /// # Errors
    /// As `find`.
    pub fn find_behind(
        &self,
        searched: Searched<'_>,
        from: usize,
        last: Option<Span>,
        collation: u16,
        cx: &Context<'_>,
    ) -> ExecResult<Option<Span>> {
        let text = searched.text;
        let mut at = last.map_or(from, |last| last.end);
        loop {
            if at > text.len() {
                return Ok(None);
            }
            let found = self.find(searched, at, cx)?;
            match (found, last) {
                // An empty match right behind the last one is no new one.
                (Some(found), Some(last)) if found.is_empty() && found.start == last.end => {
                    at = last.end + charset::char_width(&text[last.end..], collation).max(1);
                }
                _ => return Ok(found),
            }
        }
    }

    /// Appends the replacement of a match.
    ///
    /// # Errors
    /// As `is_match`.
    pub fn expand(
        &self,
        searched: Searched<'_>,
        found: Span,
        replacement: &Replacement,
        out: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> ExecResult<()> {
        let text = searched.text;
        let groups = match (replacement.has_groups(), self.automaton(searched)) {
            (false, _) => vec![Some(found)],
            (true, None) => self.0.backtracking.groups(text, found.start, true, cx)?.unwrap_or_default(),
            (true, Some(_)) => {
                let engine = self.bounded(found.len(), cx)?;
                let mut captures = engine.create_captures();
                let input = Input::new(text).span(found.start..text.len()).anchored(Anchored::Yes);
                engine.captures(input, &mut captures);
                captures.iter().collect()
            }
        };
        for piece in &replacement.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Group(group) => {
                    let span = groups.get(*group).copied().flatten();
                    out.extend_from_slice(span.map_or(&[], |span| &text[span.range()]));
                }
            }
        }
        Ok(())
    }

    /// The engine that can't be stopped, for `bytes` of a text.
    fn bounded(&self, bytes: usize, cx: &Context<'_>) -> ExecResult<&meta::Regex> {
        let Compiled { pattern, syntax, whole, forward, .. } = &*self.0;
        let states = forward.as_ref().map_or(0, |forward| forward.dfa.get_nfa().states().len());
        if bytes.saturating_mul(states) > STEPS_MAX {
            return Err(fault::of(Fault::Time).into());
        }
        let build = || {
            let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(COMPILED_MAX));
            meta::Builder::new().configure(config).syntax(*syntax).build(&pattern.linear).ok()
        };
        if whole.get().is_none() {
            let mut account = Account::new(&cx.session.connection.memory);
            let made = build();
            let bytes = made.as_ref().map_or(0, |engine| engine.memory_usage() + SCRATCH);
            account.grow_exactly(bytes, MemoryLimits::of(&cx.session.settings))?;
            let _ = whole.set(made.map(|engine| (engine, account)));
        }
        let engine = whole.get().and_then(|made| made.as_ref()).map(|(engine, _)| engine);
        Ok(engine.ok_or_else(|| fault::of(Fault::Illegal))?)
    }
}

/// A text that is searched, perhaps many times.
#[derive(Clone, Copy)]
pub struct Searched<'t> {
    text: &'t [u8],
    /// It has line ends that the pattern asks for and the automaton does not know.
    other: bool,
}

/// Whether the last character ends a line.
fn ends_line(text: &[u8]) -> bool {
    matches!(text, [.., b'\n'..=b'\r'] | [.., 0xC2, 0x85] | [.., 0xE2, 0x80, 0xA8 | 0xA9])
}

/// Whether something but a newline ends a line.
fn has_other_line_ends(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, 0x0B..=b'\r'))
        || text.windows(2).any(|pair| pair == [0xC2, 0x85])
        || text.windows(3).any(|three| matches!(three, [0xE2, 0x80, 0xA8 | 0xA9]))
}

/// Ticks that a search counts when it looks: about as long as other work between two looks.
const LOOK: u32 = 128;

impl Automaton {
    /// Steps between two looks: fewer in a large automaton, whose single step may look at all its states.
    fn stride(&self) -> usize {
        (1_000_000 / self.dfa.get_nfa().states().len().max(1)).clamp(16, 8192)
    }

    fn states(&self) -> Box<Cache> {
        self.states.lock().cache.take().unwrap_or_else(|| Box::new(self.dfa.create_cache()))
    }

    /// Keeps states for the next search, if there is memory for them.
    fn keep(&self, cache: Box<Cache>, cx: &Context<'_>) -> SqlResult<()> {
        let mut states = self.states.lock();
        states.count(self.dfa.get_nfa().memory_usage() + cache.memory_usage(), cx.session)?;
        states.cache = Some(cache);
        Ok(())
    }

    /// Where the first match ends; with `earliest`, where it is certain that there is one.
    fn end(
        &self,
        text: &[u8],
        from: usize,
        earliest: bool,
        cx: &Context<'_>,
    ) -> Result<Option<usize>, Stopped> {
        let mut states = self.states();
        let found = self.forward(&mut states, text, from, earliest, cx);
        self.keep(states, cx).map_err(Interrupt::from)?;
        found
    }

    fn forward(
        &self,
        states: &mut Cache,
        text: &[u8],
        from: usize,
        earliest: bool,
        cx: &Context<'_>,
    ) -> Result<Option<usize>, Stopped> {
        let input = Input::new(text).span(from..text.len());
        let mut state = self.dfa.start_state_forward(states, &input).map_err(|_| Stopped::Quit)?;
        let stride = self.stride();
        let mut found = None;
        let mut at = from;
        for piece in text[from..].chunks(stride) {
            for byte in piece {
                state = self.dfa.next_state(states, state, *byte).map_err(|_| Stopped::Quit)?;
                if state.is_tagged() {
                    if state.is_match() {
                        // It is seen one byte late.
                        found = Some(at);
                        if earliest {
                            return Ok(found);
                        }
                    } else if state.is_dead() {
                        return Ok(found);
                    } else if state.is_quit() {
                        return Err(Stopped::Quit);
                    }
                }
                at += 1;
            }
            if piece.len() == stride {
                cx.session.budget.spend(LOOK)?;
            }
        }
        state = self.dfa.next_eoi_state(states, state).map_err(|_| Stopped::Quit)?;
        Ok(if state.is_match() { Some(text.len()) } else { found })
    }

    /// Where the match that ends at `span.end` begins.
    fn start(&self, text: &[u8], span: Span, cx: &Context<'_>) -> Result<Option<usize>, Stopped> {
        let mut states = self.states();
        let found = self.backward(&mut states, text, span, cx);
        self.keep(states, cx).map_err(Interrupt::from)?;
        found
    }

    fn backward(
        &self,
        states: &mut Cache,
        text: &[u8],
        span: Span,
        cx: &Context<'_>,
    ) -> Result<Option<usize>, Stopped> {
        let input = Input::new(text).span(span).anchored(Anchored::Yes);
        let mut state = self.dfa.start_state_reverse(states, &input).map_err(|_| Stopped::Quit)?;
        let stride = self.stride();
        let mut found = None;
        let mut at = span.end;
        for piece in text[span.range()].rchunks(stride) {
            for byte in piece.iter().rev() {
                state = self.dfa.next_state(states, state, *byte).map_err(|_| Stopped::Quit)?;
                if state.is_tagged() {
                    if state.is_match() {
                        found = Some(at);
                    } else if state.is_dead() {
                        return Ok(found);
                    } else if state.is_quit() {
                        return Err(Stopped::Quit);
                    }
                }
                at -= 1;
            }
            if piece.len() == stride {
                cx.session.budget.spend(LOOK)?;
            }
        }
        // The last step looks at what stands in front.
        state = match span.start.checked_sub(1) {
            Some(before) => self.dfa.next_state(states, state, text[before]),
            None => self.dfa.next_eoi_state(states, state),
        }
        .map_err(|_| Stopped::Quit)?;
        match state {
            state if state.is_quit() => Err(Stopped::Quit),
            state if state.is_match() => Ok(Some(span.start)),
            _ => Ok(found),
        }
    }
}

impl RegexpExpr {
    /// Whether the text matches; `None` if either side is NULL.
    ///
    /// # Errors
    /// As evaluation of the operands, and 3685.
    pub fn matches(&self, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        let Some(text) = self.text.eval_str(cx)? else { return Ok(None) };
        let found = match &self.matcher {
            Some(matcher) => matcher.is_match(&text, cx)?,
            None => {
                let Some(pattern) = self.pattern.eval_str(cx)? else { return Ok(None) };
                RegexpMatcher::new(&pattern, self.collation)?.is_match(&text, cx)?
            }
        };
        Ok(Some(found != self.negated))
    }
}
