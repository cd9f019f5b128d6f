//! Parsed statements that a session keeps: recent texts, templates of texts that differ in their values, and PREPAREd ones by name.
//!
//! A text that has a template (`omnibus_parser::Template`) runs as the template's statement, prepared, with its values as the parameters: the same way the
//! first time as later, when nothing is left to parse and to plan. A template whose plan is not as good as that of each text (`plan::physical::any_values`) is refused.

use super::prepared::Prepared;
use super::prepared::is_planned;
use crate::api::{KillFlag, SessionSettings, client_text};
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory, tree};
use crate::state::SessionState;
use bytes::Bytes;
use omnibus_parser::ast::{Span, Spanned, Statement};
use omnibus_parser::{Constant, ParseError, ParseOptions, Template};
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use std::collections::HashMap;
use std::sync::Arc;

/// Texts and templates kept.
const KEPT: usize = 64;
/// Plans of programs' statements kept.
const KEPT_OF_PROGRAMS: usize = 512;
/// Longer texts are counted while they run.
const LONGEST: usize = 4096;
/// Most bytes of the texts kept, with their trees and plans: they are held as long as the connection lives, and mostly for nothing.
const MOST_KEPT: usize = 256 << 10;
/// A text that takes more is not kept: it would be instead of too many others.
const LARGEST: usize = MOST_KEPT / 4;
/// Statements of fewer words are not counted while they run.
const SHORT: usize = 256;

/// A text that was read: the first statement of it.
#[derive(Debug)]
pub struct ReadText {
    /// The statement. Its places are those of another text if there are `values`.
    pub statement: Arc<Spanned<Statement>>,
    /// The part of the text that it is.
    pub span: Span,
    /// Where the next statement begins.
    pub next: Option<usize>,
    /// The values of its parameters, which the text has.
    pub values: Vec<Value>,
}

impl ReadText {
    fn plain((statement, next): (Arc<Spanned<Statement>>, Option<usize>)) -> ReadText {
        ReadText { span: statement.span, statement, next, values: Vec::new() }
    }
}

/// See the module's remarks.
#[derive(Default)]
pub(super) struct StatementCache {
    recent: Vec<Recent>,
    /// Of the text that was read last.
    template: Template,
    clock: u64,
    /// Words of the statement that was parsed last.
    pub(super) words: usize,
    pub(super) prepared: HashMap<String, Prepared>,
    /// Plans of statements of programs, by where their trees are.
    programs: HashMap<usize, Prepared>,
    /// Ends what reads a long text.
    kill: Arc<KillFlag>,
}

struct Recent {
    /// A text, or that of a template.
    text: Bytes,
    /// Its plan is no better than one of each text: texts run as they are written.
    refused: bool,
    /// The kinds of a template's values.
    kinds: Option<Box<[Kind]>>,
    form: Form,
    statement: Arc<Spanned<Statement>>,
    used: u64,
    /// Its plan, kept from the second use on.
    plan: Option<Prepared>,
    repeated: bool,
    words: usize,
    account: Account,
}

impl StatementCache {
    /// Of a session whose statements `kill` ends.
    pub(super) fn new(kill: &Arc<KillFlag>) -> StatementCache {
        StatementCache { kill: kill.clone(), ..StatementCache::default() }
    }

    /// Reads a text: finds the statement of its template, or parses it.
    pub(super) fn read(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        account: &mut Account,
    ) -> SqlResult<ReadText> {
        let form = Form::of(settings, false);
        self.clock += 1;
        if let Some(recent) = self.find(text, None, form) {
            return Ok(ReadText::plain((recent.statement.clone(), None)));
        }
        if text.len() <= LONGEST {
            let mut template = std::mem::take(&mut self.template);
            let is_one = template.read(text, &form.options);
            let read = is_one.then(|| self.of_template(&template, settings, account)).flatten();
            self.template = template;
            if let Some(read) = read {
                return Ok(read);
            }
        }
        self.parse_new(text, settings, form, account).map(ReadText::plain)
    }

    fn of_template(
        &mut self,
        template: &Template,
        settings: &SessionSettings,
        account: &Account,
    ) -> Option<ReadText> {
        let statement = match self.find(&template.text, Some(&template.values), Form::of(settings, true)) {
            Some(recent) if recent.refused => return None,
            Some(recent) => recent.statement.clone(),
            None => self.keep_template(template, settings, account)?,
        };
        let span = Span { start: template.start as u32, end: template.end as u32 };
        Some(ReadText { statement, span, next: None, values: template.values.iter().map(value_of).collect() })
    }

    fn keep_template(
        &mut self,
        template: &Template,
        settings: &SessionSettings,
        account: &Account,
    ) -> Option<Arc<Spanned<Statement>>> {
        let form = Form::of(settings, true);
        let mut words = 0;
        let mut count = |more| {
            words += more;
            tree(words) <= LARGEST
        };
        let (statement, next) =
            client_text::parse_first(&template.text, &form.options, form.client, &mut count).ok()?;
        if next.is_some()
            || statement.params as usize != template.values.len()
            || !is_planned(&statement.node)
        {
            return None;
        }
        let statement = Arc::new(statement);
        self.words = words;
        let kinds = template.values.iter().map(Kind::of).collect();
        self.keep(&template.text, Some(kinds), form, &statement, account, MemoryLimits::of(settings))
            .then_some(statement)
    }

    /// Finds the same text, or the same template with values of the same kinds.
    fn find(&mut self, text: &[u8], values: Option<&[Constant]>, form: Form) -> Option<&Recent> {
        let same = |kinds: Option<&[Kind]>| match (kinds, values) {
            (Some(kinds), Some(values)) => values.iter().map(Kind::of).eq(kinds.iter().copied()),
            (None, None) => true,
            _ => false,
        };
        let recent = self
            .recent
            .iter_mut()
            .find(|recent| recent.text == *text && recent.form == form && same(recent.kinds.as_deref()))?;
        recent.used = self.clock;
        recent.repeated = true;
        self.words = recent.words;
        Some(recent)
    }

    /// Parses, or finds what the same text gave before. Only texts of one statement are kept. `account` has what a tree takes that is not
    /// kept, and its plan. Where there is no room for it the texts that are kept go.
    pub(super) fn parse(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        markers: bool,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let form = Form::of(settings, markers);
        self.clock += 1;
        match self.find(text, None, form) {
            Some(recent) => Ok((recent.statement.clone(), None)),
            None => self.parse_new(text, settings, form, account),
        }
    }

    /// As `parse`, of a text that a running statement prepares: it may have `?`.
    pub(super) fn parse_within(
        &mut self,
        text: &Bytes,
        state: &mut SessionState,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let SessionState { settings, command, .. } = state;
        self.parse(text, settings, true, &mut command.account)
    }

    /// As `parse`, of a text that was not found.
    fn parse_new(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        form: Form,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let before = account.used();
        match self.try_parse(text, settings, form, account) {
            Err(error) if error.is_memory_exceeded() && !self.recent.is_empty() => {
                account.shrink_to(before);
                self.recent.clear();
                self.try_parse(text, settings, form, account)
            }
            parsed => parsed,
        }
    }

    fn try_parse(
        &mut self,
        text: &Bytes,
        settings: &SessionSettings,
        form: Form,
        account: &mut Account,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let limits = MemoryLimits::of(settings);
        if text.len() > LONGEST {
            // The session has a copy of it, and the tree's literals are parts of another.
            account.grow_within(2 * text.len(), limits)?;
        }
        let (mut words, mut refused) = (0, None);
        let mut has_room = |more| {
            words += more;
            // A short one is nothing to speak of.
            let asked = match words < SHORT {
                true => Ok(()),
                false if self.kill.is_killed() => Err(SqlError::query_interrupted()),
                false => account.grow_within(tree(more), limits),
            };
            refused = asked.err();
            refused.is_none()
        };
        let parsed = client_text::parse_first(text, &form.options, form.client, &mut has_room);
        let (statement, next) = match (refused, parsed) {
            (Some(refused), _) => return Err(refused),
            (None, parsed) => parsed.map_err(parse_error)?,
        };
        let statement = Arc::new(statement);
        self.words = words;
        if next.is_none() {
            self.keep(text, None, form, &statement, account, limits);
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

    /// Keeps a statement of `self.words` words; false if it takes too much.
    fn keep(
        &mut self,
        text: &[u8],
        kinds: Option<Box<[Kind]>>,
        form: Form,
        statement: &Arc<Spanned<Statement>>,
        account: &Account,
        limits: MemoryLimits,
    ) -> bool {
        let memory = text.len() + tree(self.words);
        if memory > LARGEST {
            return false;
        }
        self.make_place(memory as u64);
        let mut account = account.like();
        if account.grow_exactly(memory, limits).is_err() {
            return false;
        }
        self.recent.push(Recent {
            text: Bytes::copy_from_slice(text),
            kinds,
            form,
            statement: statement.clone(),
            used: self.clock,
            plan: None,
            refused: false,
            repeated: false,
            words: self.words,
            account,
        });
        true
    }

    /// The plan of a statement that comes again and again, to be given back with `keep_plan`; `None` for others. One of a template always has one: its
    /// values are only in the plan's parameters.
    pub(super) fn take_plan(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        of_template: bool,
        database: Option<&Arc<str>>,
    ) -> Option<Prepared> {
        let unplanned =
            |text: &Bytes| Prepared::unplanned(text.clone(), statement.clone(), database.cloned());
        let recent = self.recent.iter_mut().find(|recent| Arc::ptr_eq(&recent.statement, statement));
        let Some(recent) = recent else { return of_template.then(|| unplanned(text)) };
        if !of_template && (!recent.repeated || statement.params > 0) {
            return None;
        }
        let kept = recent.plan.take().filter(|plan| plan.database.as_ref() == database);
        Some(kept.unwrap_or_else(|| unplanned(&recent.text)))
    }

    /// From now on texts of a template run as they are written.
    pub(super) fn refuse(&mut self, statement: &Arc<Spanned<Statement>>) {
        if let Some(recent) = self.recent.iter_mut().find(|recent| Arc::ptr_eq(&recent.statement, statement))
        {
            recent.refused = true;
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
}

/// The settings of a session that say what a text means.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    options: ParseOptions,
    /// `collation_client`.
    client: u16,
}

impl Form {
    fn of(settings: &SessionSettings, markers: bool) -> Form {
        let options = ParseOptions { markers, ..settings.parse_options() };
        Form { options, client: settings.collation_client }
    }
}

/// The kind of a value, for which a plan is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Decimal,
    Str,
}

impl Kind {
    fn of(constant: &Constant) -> Kind {
        match constant {
            Constant::Int(_) => Kind::Int,
            Constant::Decimal(_) => Kind::Decimal,
            Constant::Str(_) => Kind::Str,
        }
    }
}

/// The value of a constant. ASCII is the same in the client's character set and the connection's.
fn value_of(constant: &Constant) -> Value {
    match constant {
        Constant::Int(number) => Value::Int(*number),
        Constant::Decimal(text) => Value::Decimal(Decimal::parse(text).value),
        Constant::Str(text) => Value::Bytes(text.clone()),
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
        drop(cache);
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
        settings.memory_limits.connection = MOST_KEPT as u64 + (128 << 10);
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
