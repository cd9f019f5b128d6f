//! Parsed statements that a session keeps: recent texts, and PREPAREd ones by name.

use super::prepared::Prepared;
use crate::api::{SessionSettings, client_text};
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory, tree};
use bytes::Bytes;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_parser::{ParseError, ParseOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// Texts kept.
const KEPT: usize = 32;
/// Plans of programs' statements kept.
const KEPT_OF_PROGRAMS: usize = 512;
/// Longer texts are counted while they run.
const LONGEST: usize = 4096;
/// What the texts kept may take with their trees and plans: as long as the connection lives, and mostly for nothing.
const MOST_KEPT: usize = 256 << 10;
/// A text that takes more is not kept: it would be instead of too many others.
const LARGEST: usize = MOST_KEPT / 4;
/// Statements of fewer words are not counted while they run.
const SHORT: usize = 256;

/// See the module's remarks.
#[derive(Default)]
pub(super) struct StatementCache {
    recent: Vec<Recent>,
    clock: u64,
    /// Words of the statement that was parsed last.
    pub(super) words: usize,
    pub(super) prepared: HashMap<String, Prepared>,
    /// Plans of statements of programs, by where their trees are.
    programs: HashMap<usize, Prepared>,
}

struct Recent {
    text: Bytes,
    options: ParseOptions,
    client: u16,
    statement: Arc<Spanned<Statement>>,
    used: u64,
    /// Its plan, kept from the second use on.
    plan: Option<Prepared>,
    repeated: bool,
    words: usize,
    account: Account,
}

impl StatementCache {
    /// Parses, or finds what the same text gave before. Only texts of one statement are kept. `account` has what a tree takes that is not
    /// kept, and its plan. Where there is no room for it the texts that are kept go.
    pub(super) fn parse(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        markers: bool,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let before = account.used();
        match self.try_parse(text, settings, markers, account) {
            Err(error) if error.is_memory_exceeded() && !self.recent.is_empty() => {
                account.shrink_to(before);
                self.recent.clear();
                self.try_parse(text, settings, markers, account)
            }
            parsed => parsed,
        }
    }

    fn try_parse(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        markers: bool,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let options = ParseOptions { markers, ..settings.parse_options() };
        let client = settings.collation_client;
        self.clock += 1;
        let hit = self
            .recent
            .iter_mut()
            .find(|recent| recent.text == *text && recent.options == options && recent.client == client);
        if let Some(recent) = hit {
            recent.used = self.clock;
            recent.repeated = true;
            self.words = recent.words;
            return Ok((recent.statement.clone(), None));
        }
        let limits = MemoryLimits::of(settings);
        if text.len() > LONGEST {
            // The session has a copy of it, and the tree's literals are parts of another.
            account.grow_within(2 * text.len(), limits)?;
        }
        let (mut words, mut refused) = (0, None);
        let mut has_room = |more| {
            words += more;
            // A short one is nothing to speak of.
            let asked = if words < SHORT { Ok(()) } else { account.grow_within(tree(more), limits) };
            refused = asked.err();
            refused.is_none()
        };
        let parsed = client_text::parse_first(text, &options, client, &mut has_room);
        let (statement, next) = match (refused, parsed) {
            (Some(refused), _) => return Err(refused),
            (None, parsed) => parsed.map_err(parse_error)?,
        };
        let statement = Arc::new(statement);
        self.words = words;
        let memory = text.len() + tree(words);
        if next.is_none() && memory <= LARGEST {
            self.make_place(memory as u64);
            let mut account = account.like();
            if account.grow_exactly(memory, limits).is_ok() {
                self.keep(text, options, client, &statement, account);
            }
        }
        Ok((statement, next))
    }

    /// Lets texts go that were not used for longest, so that one more may be kept that takes so much.
    fn make_place(&mut self, memory: u64) {
        let mut held: u64 = self.recent.iter().map(|recent| recent.account.used()).sum();
        while self.recent.len() >= KEPT || held + memory > MOST_KEPT as u64 {
            let by_use = self.recent.iter().enumerate().min_by_key(|(_, recent)| recent.used);
            let Some((oldest, _)) = by_use else { return };
            held -= self.recent.swap_remove(oldest).account.used();
        }
    }

    fn keep(
        &mut self,
        text: &Bytes,
        options: ParseOptions,
        client: u16,
        statement: &Arc<Spanned<Statement>>,
        account: Account,
    ) {
        self.recent.push(Recent {
            text: Bytes::copy_from_slice(text),
            options,
            client,
            statement: statement.clone(),
            used: self.clock,
            plan: None,
            repeated: false,
            words: self.words,
            account,
        });
    }

    /// A text that comes again and again: its plan, to be given back with `keep_plan`. `None` for
    /// other texts.
    pub(super) fn take_plan(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        database: Option<&Arc<str>>,
    ) -> Option<Prepared> {
        let recent = self.recent.iter_mut().find(|recent| Arc::ptr_eq(&recent.statement, statement))?;
        if !recent.repeated || statement.params > 0 {
            return None;
        }
        match recent.plan.take() {
            Some(plan) if plan.database.as_ref() == database => Some(plan),
            _ => Some(Prepared::unplanned(recent.text.clone(), statement.clone(), database.cloned())),
        }
    }

    /// Gives a plan back.
    pub(super) fn keep_plan(&mut self, plan: Prepared) {
        let of = |recent: &&mut Recent| Arc::ptr_eq(&recent.statement, &plan.statement);
        if let Some(recent) = self.recent.iter_mut().find(of) {
            recent.plan = Some(plan);
        }
    }

    /// The plan of a statement of a program, to be given back with `keep_program`.
    pub(super) fn take_program(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        database: Option<&Arc<str>>,
    ) -> Prepared {
        let known = self.programs.remove(&(Arc::as_ptr(statement) as usize));
        known
            .filter(|plan| plan.database.as_ref() == database)
            .unwrap_or_else(|| Prepared::unplanned(text.clone(), statement.clone(), database.cloned()))
    }

    /// Gives it back. It is kept if there is room for it.
    pub(super) fn keep_program(
        &mut self,
        mut plan: Prepared,
        memory: &Arc<SessionMemory>,
        limits: MemoryLimits,
    ) {
        if self.programs.len() >= KEPT_OF_PROGRAMS {
            self.programs.clear();
        }
        if plan.count_plan(memory, limits).is_ok() {
            self.programs.insert(Arc::as_ptr(&plan.statement) as usize, plan);
        }
    }

    /// Nothing is kept of what the session was for.
    pub(super) fn clear(&mut self) {
        self.programs.clear();
        self.prepared.clear();
        self.recent.clear();
    }
}

/// A parse error as the client sees it.
pub(super) fn parse_error(error: ParseError) -> SqlError {
    let state = error.state().as_bytes().try_into().unwrap_or(*b"42000");
    SqlError::new(error.code(), &state, error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// A list of so many constants, which no other `number` has.
    fn list(number: usize, constants: usize) -> Bytes {
        format!("SELECT {number} IN (0{})", ", 1".repeat(constants)).into()
    }

    #[test]
    fn texts_kept_take_no_more_than_they_may() {
        let memory = Arc::new(SessionMemory::default());
        let settings = SessionSettings::default();
        let (mut cache, mut account) = (StatementCache::default(), Account::new(&memory));
        for number in 0..100 {
            cache.parse(&list(number, number % 50), &settings, false, &mut account).unwrap();
            assert!(memory.used() <= MOST_KEPT as u64, "{} bytes", memory.used());
        }
        let kept = cache.recent.len();
        assert!(kept > 1, "some are kept");
        assert!(cache.recent.iter().any(|recent| recent.text == list(99, 49)), "the last one is");
        account.clear();
        let before = memory.used();
        cache.parse(&list(100, 200), &settings, false, &mut account).unwrap();
        account.clear();
        assert_eq!((cache.recent.len(), memory.used()), (kept, before), "a large one is not kept");
        cache.clear();
        assert_eq!(memory.used(), 0, "a session that is reset holds none");
    }

    #[test]
    fn texts_kept_go_where_there_is_no_room_for_a_statement() {
        let memory = Arc::new(SessionMemory::default());
        let (mut cache, mut account) = (StatementCache::default(), Account::new(&memory));
        let mut settings = SessionSettings::default();
        while memory.used() < MOST_KEPT as u64 * 3 / 4 {
            cache.parse(&list(cache.recent.len(), 20), &settings, false, &mut account).unwrap();
        }
        settings.connection_memory_limit = MOST_KEPT as u64 + (128 << 10);
        let large = list(0, 300);
        cache.parse(&large, &settings, false, &mut account).unwrap();
        assert!(cache.recent.is_empty());
        account.clear();
        let much = list(0, 900);
        assert_eq!(
            cache.parse(&much, &settings, false, &mut account).unwrap_err().code,
            3170,
            "more than there is"
        );
    }
}
