//! The value of an expression in an administration statement: literals and variables directly, anything else by having the SQL layer select it;
//! and the transactions that such statements end.

use super::Admin;
use crate::connection::evaluate_plain;
use bytes::Bytes;
use omnibus_parser::ast::{Expr, Limit, Query, QueryBody, Span, Spanned, Statement};
use omnibus_sql::{Interrupt, Mode, ResultColumn, RowSink, SqlError, SqlResult};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;
use std::time::Duration;

/// Keeps the first value of the first row.
#[derive(Default)]
struct FirstValue {
    ty: Option<ColumnType>,
    value: Option<Value>,
}

impl RowSink for FirstValue {
    fn columns(&mut self, columns: &[ResultColumn]) -> SqlResult<()> {
        self.ty = columns.first().map(|c| c.ty.clone());
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        if self.value.is_none() {
            self.value = values.first().cloned();
        }
        Ok(())
    }
}

impl Admin<'_> {
    /// As `connection::evaluate_plain`.
    pub(crate) fn evaluate_plain(&self, expr: &Expr) -> Option<SqlResult<(Value, ColumnType)>> {
        evaluate_plain(&self.settings.shared, &self.sql.state, expr)
    }

    /// The value of any expression.
    pub(crate) async fn evaluate(&mut self, expr: &Expr) -> SqlResult<(Value, ColumnType)> {
        if let Some(plain) = self.evaluate_plain(expr) {
            return plain;
        }
        let query = Query {
            with: None,
            // A row of values and not a SELECT, which may have aggregates.
            body: QueryBody::Values(vec![vec![expr.clone()]]),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
        };
        let mut sink = FirstValue::default();
        self.run_internal(Statement::Select(Box::new(query)), &mut sink)?;
        let ty = sink.ty.ok_or_else(|| SqlError::internal("an expression without a type"))?;
        Ok((sink.value.unwrap_or(Value::Null), ty))
    }

    /// Runs a statement that the server made, where it may block.
    pub(super) fn run_internal(&mut self, statement: Statement, sink: &mut dyn RowSink) -> SqlResult<()> {
        let statement = Arc::new(Spanned { node: statement, span: Span::default(), params: 0 });
        let outcome = crate::net::blocking(|| {
            self.sql.execute(&statement, &Bytes::new(), &[], Mode::Blocking, &self.login.access, sink)
        });
        match outcome {
            Ok(outcome) => match outcome.wait {
                Some(ticket) => crate::net::blocking(|| self.sql.settle(ticket)).map(drop),
                None => Ok(()),
            },
            Err(Interrupt::Error(error)) => Err(error),
            Err(_) => Err(SqlError::internal("an inner statement that cannot wait")),
        }
    }

    /// Statements of administration commit what is open, as MySQL's do.
    pub(super) async fn commit_first(&mut self) -> SqlResult<()> {
        if self.sql.in_transaction() {
            self.commit_now()?;
        }
        Ok(())
    }

    /// Waits until no other session has LOCK INSTANCE FOR BACKUP: for what removes files, or changes accounts.
    pub(super) async fn await_backups(&mut self) -> SqlResult<()> {
        let begun = tokio::time::Instant::now();
        let patience = self.sql.state.settings.metadata_lock_wait_timeout_ms;
        while self.sql.others_back_up() {
            self.client.process.kill.check()?;
            if begun.elapsed() >= Duration::from_millis(patience) {
                return Err(SqlError::lock_wait_timeout());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// COMMIT.
    pub(super) fn commit_now(&mut self) -> SqlResult<()> {
        let how = omnibus_parser::ast::Completion { chain: Some(false), release: Some(false) };
        self.run_internal(Statement::Commit(how), &mut FirstValue::default())
    }

    /// (offset, count) of a LIMIT clause.
    pub(super) async fn limit(&mut self, limit: &Limit) -> SqlResult<(u64, u64)> {
        let count = self.evaluate(&limit.count).await?.0;
        let offset = match &limit.offset {
            Some(expr) => self.evaluate(expr).await?.0,
            None => Value::Int(0),
        };
        let number = |v: Value| match v {
            Value::Int(n) => u64::try_from(n).map_err(|_| SqlError::wrong_arguments("LIMIT")),
            Value::UInt(n) => Ok(n),
            _ => Err(SqlError::wrong_arguments("LIMIT")),
        };
        Ok((number(offset)?, number(count)?))
    }
}
