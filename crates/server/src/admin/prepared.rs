//! Prepared statements of the server's own kind: SET, KILL and their like run as the text that their parameters make of them.

use crate::runner::Parsed;
use crate::session::Session;
use bytes::Bytes;
use omnibus_parser::ast::{Expr, Literal, Spanned, Statement};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;
use std::sync::Arc;

impl Session {
    /// As `administration`, for a statement with parameters.
    pub(crate) async fn administration_with(
        &mut self,
        parsed: &Arc<Parsed>,
        params: &[Value],
    ) -> Option<SqlResult<()>> {
        if params.is_empty() || !is_administration(&parsed.statement.node) {
            return self.administration(parsed, false).await;
        }
        let text = self.runner.with_params(&parsed.text, params);
        match self.parse(&text) {
            Ok((filled, _)) => self.administration(&filled, false).await,
            Err(error) => Some(Err(error)),
        }
    }

    /// EXECUTE IMMEDIATE of an expression, with the text that it gives in its place; computed once, here, since what the text
    /// says decides who runs it.
    pub(crate) async fn with_text(&mut self, parsed: &Arc<Parsed>) -> SqlResult<Arc<Parsed>> {
        let Statement::ExecuteImmediate { source, using } = &parsed.statement.node else {
            return Ok(parsed.clone());
        };
        if self.evaluate_plain(source).is_some() {
            return Ok(parsed.clone());
        }
        let Value::Bytes(text) = self.evaluate(source).await?.0 else { return Ok(parsed.clone()) };
        let source = Expr::Literal(Literal::Str(text));
        let node = Statement::ExecuteImmediate { source, using: using.clone() };
        let statement =
            Arc::new(Spanned { node, span: parsed.statement.span, params: parsed.statement.params });
        Ok(Arc::new(Parsed { text: parsed.text.clone(), statement, kind: parsed.kind }))
    }

    /// EXECUTE and EXECUTE IMMEDIATE of such a statement. `None`: it is another one.
    pub(crate) async fn named_administration(
        &mut self,
        parsed: &Arc<Parsed>,
        more: bool,
    ) -> Option<SqlResult<()>> {
        let (text, using) = match &parsed.statement.node {
            Statement::Execute { name, using } => (self.runner.prepared_text(name)?, using),
            Statement::ExecuteImmediate { source, using } => match self.evaluate_plain(source)? {
                Ok((Value::Bytes(text), _)) => (text, using),
                _ => return None,
            },
            _ => return None,
        };
        let (inner, _) = crate::session::query::parse_to_prepare(self, &text).ok()?;
        if !is_administration(&inner.statement.node) {
            return None;
        }
        if using.len() != inner.statement.params as usize {
            return Some(Err(SqlError::wrong_arguments("EXECUTE")));
        }
        match self.filled(&text, using).await {
            Ok(filled) => self.administration(&filled, more).await,
            Err(error) => Some(Err(error)),
        }
    }

    async fn filled(&mut self, text: &Bytes, using: &[Expr]) -> SqlResult<Arc<Parsed>> {
        let mut params = Vec::with_capacity(using.len());
        for expr in using {
            params.push(self.evaluate(expr).await?.0);
        }
        let text = self.runner.with_params(text, &params);
        Ok(self.parse(&text)?.0)
    }
}

/// Whether the server runs it, and not the SQL layer. Statements about accounts keep to their text, which is logged.
fn is_administration(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Set(_)
            | Statement::SetRole(_)
            | Statement::Kill(_)
            | Statement::Purge(_)
            | Statement::Reset(_)
    )
}
