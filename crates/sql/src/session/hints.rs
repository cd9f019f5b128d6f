//! SET_VAR: variables that a statement's hints set while it runs.

use super::SqlSession;
use crate::api::AccessCheck;
use crate::error::{ExecResult, Interrupt};
use crate::logical::hints::passed_over;
use omnibus_parser::ast::{ExplainTarget, Hint, HintValue, Ident, Statement};

/// The hints of a whole statement.
fn hints(statement: &Statement) -> &[Hint] {
    match statement {
        Statement::Select(query) => query.body.first_select().map_or(&[], |select| &select.hints),
        Statement::Insert(insert) => &insert.hints,
        Statement::Update(update) => &update.hints,
        Statement::Delete(delete) => &delete.hints,
        Statement::Explain(explain) => match &explain.target {
            ExplainTarget::Statement(statement) => hints(statement),
            ExplainTarget::Connection(_) => &[],
        },
        _ => &[],
    }
}

/// The milliseconds that a hint gives a query; 0 is no limit.
pub(super) fn hinted_time(statement: &Statement) -> Option<u32> {
    hints(statement).iter().find_map(|hint| match hint {
        Hint::MaxExecutionTime(time) => Some(*time),
        _ => None,
    })
}

impl SqlSession {
    /// Runs `body`, which is one attempt to run a statement, under the variables that its hints set. Those of a source's statement are
    /// passed over, as MySQL's replicas do: its context has what it was run with.
    pub(super) fn hinted<T>(
        &mut self,
        statement: &Statement,
        access: &dyn AccessCheck,
        body: impl FnOnce(&mut SqlSession) -> ExecResult<T>,
    ) -> ExecResult<T> {
        let hints = hints(statement);
        let sets = hints.iter().any(|hint| matches!(hint, Hint::SetVar { .. }));
        if !sets || self.state.settings.replicated {
            return body(self);
        }
        let before = self.state.settings.clone();
        let mut warnings = Vec::new();
        let mut wanted: Vec<(&Ident, &HintValue)> = Vec::new();
        for hint in hints {
            let Hint::SetVar { name, value } = hint else { continue };
            match wanted.iter().any(|(known, _)| known.is(name)) {
                true => warnings.push(passed_over(name, value)),
                false => wanted.push((name, value)),
            }
        }
        let host = self.state.connection.host.clone();
        let (settings, wrong) = host.hint(&wanted, access, &before);
        self.state.settings = settings;
        if self.state.settings.timestamp_us != before.timestamp_us {
            self.state.statement.now_us =
                self.state.settings.timestamp_us.unwrap_or(self.state.statement.now_us);
        }
        if !self.attempts.resumed {
            warnings.into_iter().chain(wrong).for_each(|warning| self.state.diagnostics.warn(warning));
        }
        let result = body(self);
        let goes_on = matches!(&result, Err(interrupt) if !matches!(interrupt, Interrupt::Error(_)));
        let used = !goes_on && self.state.settings.insert_id.is_none();
        self.state.settings = host.unhint(&before);
        if used {
            self.state.settings.insert_id = None;
        }
        result
    }
}
