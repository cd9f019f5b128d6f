//! Parsed statements that a session keeps: recent texts, and PREPAREd ones by name.

use super::prepared::Prepared;
use crate::api::{SessionSettings, client_text};
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, tree};
use bytes::Bytes;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_parser::{ParseError, ParseOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// Texts kept.
const KEPT: usize = 32;
/// Plans of programs' statements kept.
const KEPT_OF_PROGRAMS: usize = 512;
/// Longer texts are not kept.
const LONGEST: usize = 4096;
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
    _account: Account,
}

impl StatementCache {
    /// Parses, or finds what the same text gave before. Only texts of one statement are kept. `account` has what a tree takes that is not
    /// kept, and its plan.
    pub(super) fn parse(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let (options, client) = (settings.parse_options(), settings.collation_client);
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
        if next.is_none() && text.len() <= LONGEST {
            let mut account = account.like();
            if account.grow_exactly(text.len() + tree(words), limits).is_ok() {
                self.keep(text, options, client, &statement, account);
            }
        }
        Ok((statement, next))
    }

    fn keep(
        &mut self,
        text: &Bytes,
        options: ParseOptions,
        client: u16,
        statement: &Arc<Spanned<Statement>>,
        account: Account,
    ) {
        let recent = Recent {
            text: Bytes::copy_from_slice(text),
            options,
            client,
            statement: statement.clone(),
            used: self.clock,
            plan: None,
            repeated: false,
            words: self.words,
            _account: account,
        };
        if self.recent.len() < KEPT {
            self.recent.push(recent);
        } else if let Some(oldest) = self.recent.iter_mut().min_by_key(|recent| recent.used) {
            *oldest = recent;
        }
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

    /// Gives it back.
    pub(super) fn keep_program(&mut self, plan: Prepared) {
        if self.programs.len() >= KEPT_OF_PROGRAMS {
            self.programs.clear();
        }
        self.programs.insert(Arc::as_ptr(&plan.statement) as usize, plan);
    }

    pub(super) fn clear_prepared(&mut self) {
        self.programs.clear();
        self.prepared.clear();
    }
}

/// A parse error as the client sees it.
pub(super) fn parse_error(error: ParseError) -> SqlError {
    let state = error.state().as_bytes().try_into().unwrap_or(*b"42000");
    SqlError::new(error.code(), &state, error.to_string())
}
