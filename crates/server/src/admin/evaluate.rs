//! The value of an expression in an administration statement: literals and variables directly,
//! anything else by having the SQL layer select it.

use crate::runner::{Parsed, RunContext};
use crate::session::Session;
use crate::sysvars::{double_type, integer_type, text_type};
use bytes::Bytes;
use omnibus_parser::ast::{
    Expr, Limit, Literal, Query, QueryBody, Span, Spanned, Statement, UnaryOp, VarScope,
};
use omnibus_sql::{Interrupt, Mode, ResultColumn, RowSink, SessionHost, SqlError, SqlResult, VariableScope};
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

fn literal(literal: &Literal) -> Option<(Value, ColumnType)> {
    Some(match literal {
        Literal::Null => (Value::Null, text_type(0)),
        Literal::True => (Value::Int(1), integer_type(false)),
        Literal::False => (Value::Int(0), integer_type(false)),
        Literal::Int(n) => match i64::try_from(*n) {
            Ok(n) => (Value::Int(n), integer_type(false)),
            Err(_) => (Value::UInt(*n), integer_type(true)),
        },
        Literal::Float(x) => (Value::Double(*x), double_type()),
        Literal::Str(s) => (Value::Bytes(s.clone()), text_type(s.len() as u32)),
        _ => return None,
    })
}

impl Session {
    /// The value without asking the SQL layer, where that is plain.
    pub(crate) fn evaluate_plain(&self, expr: &Expr) -> Option<SqlResult<(Value, ColumnType)>> {
        match expr {
            Expr::Literal(l) => literal(l).map(Ok),
            Expr::Unary { op: UnaryOp::Minus, expr } => match self.evaluate_plain(expr)? {
                Ok((Value::Int(n), ty)) => Some(Ok((Value::Int(-n), ty))),
                Ok((Value::Double(x), ty)) => Some(Ok((Value::Double(-x), ty))),
                _ => None,
            },
            Expr::SysVar { scope, name } => {
                let scope = match scope {
                    None => VariableScope::Either,
                    Some(VarScope::Session) => VariableScope::Session,
                    Some(_) => VariableScope::Global,
                };
                Some(self.shared.variable(scope, name))
            }
            Expr::UserVar(name) => {
                let known = self.runner.state().user_variables.get(&name.to_ascii_lowercase());
                Some(Ok(known.cloned().unwrap_or((Value::Null, text_type(0)))))
            }
            _ => None,
        }
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
        let kind = crate::status::com_index(statement.kind());
        let statement = Arc::new(Spanned { node: statement, span: Span::default(), params: 0 });
        let parsed = Arc::new(Parsed { text: Bytes::new(), statement, kind });
        let context = RunContext { mode: Mode::Blocking, access: &self.identity.access };
        let outcome = tokio::task::block_in_place(|| self.runner.execute(&parsed, &context, sink));
        match outcome {
            Ok(outcome) => match outcome.wait {
                Some(ticket) => tokio::task::block_in_place(|| self.process.kill.settle(ticket)).map(drop),
                None => Ok(()),
            },
            Err(Interrupt::Error(error)) => Err(error),
            Err(_) => Err(SqlError::internal("an inner statement that cannot wait")),
        }
    }

    /// Statements of administration commit what is open, as MySQL's do.
    pub(super) async fn commit_first(&mut self) -> SqlResult<()> {
        if self.runner.trx().open {
            self.commit_now()?;
        }
        Ok(())
    }

    /// Waits until no other session has LOCK INSTANCE FOR BACKUP: for what removes files, or changes accounts.
    pub(super) async fn await_backups(&mut self) -> SqlResult<()> {
        let begun = tokio::time::Instant::now();
        let patience = self.runner.state().settings.metadata_lock_wait_timeout_ms;
        while self.runner.others_back_up() {
            self.process.kill.check()?;
            if begun.elapsed() >= Duration::from_millis(patience) {
                return Err(SqlError::lock_wait_timeout());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// COMMIT.
    pub(super) fn commit_now(&mut self) -> SqlResult<()> {
        let commit = Statement::Commit(omnibus_parser::ast::Completion::default());
        self.run_internal(commit, &mut FirstValue::default())
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
