//! Executes changes in the form of JSON lines (docs/use/json.md), the inverse of `crate::consume::JsonLines`.
//!
//! A line is read into views and passed to an [`ApplyTarget`]; nothing is lost or rounded on the way. The provider of
//! the lines may have edited them, so every line is checked, and an error names the offending part.

mod parse;
mod rows;
mod statement;

#[cfg(test)]
mod tests;

pub use rows::JsonRows;

use super::{ApplyError, ApplyTarget, Position, Step};
use crate::model::TrxHeader;
use omnibus_format::AnyGtid;
use omnibus_format::events::{MariadbGtid, XaPrepare};
use parse::Node;
use statement::{JsonStatement, flag, number};

/// The error of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadLine(String);

fn bad(what: &str) -> BadLine {
    BadLine(format!("wrong or missing: {what}"))
}

/// Executes JSON lines.
#[derive(Debug, Default)]
pub struct JsonReplay {
    open: bool,
    /// The transaction is one statement that commits by itself.
    standalone: bool,
}

impl From<BadLine> for ApplyError {
    fn from(error: BadLine) -> ApplyError {
        ApplyError::damaged(error)
    }
}

impl JsonReplay {
    /// Returns whether a transaction has begun that has not ended.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.open
    }

    /// Executes the next line; `position` becomes part of the transaction that it ends, if it ends one.
    ///
    /// # Errors
    /// 1594 if the line does not follow the schema; otherwise the target's error. The target is rolled back.
    pub fn line<T: ApplyTarget>(
        &mut self,
        line: &str,
        target: &mut T,
        position: Option<&Position>,
    ) -> Result<Step<T::Ticket>, ApplyError> {
        let result = self.apply(line, target, position);
        if result.is_err() && std::mem::take(&mut self.open) {
            target.rollback();
        }
        result
    }

    fn apply<T: ApplyTarget>(
        &mut self,
        line: &str,
        target: &mut T,
        position: Option<&Position>,
    ) -> Result<Step<T::Ticket>, ApplyError> {
        if line.trim().is_empty() {
            return Ok(Step::More);
        }
        let node = Node::parse(line).map_err(|error| BadLine(format!("no JSON at byte {}", error.0)))?;
        let kind = node.get("type").and_then(Node::text).ok_or_else(|| bad("type"))?;
        if self.open == (kind == "begin") {
            return Err(BadLine(format!("`{kind}` out of place")).into());
        }
        match kind {
            "begin" => {
                let trx = header(&node)?;
                target.begin(&trx)?;
                (self.open, self.standalone) = (true, trx.standalone);
            }
            "statement" => {
                let statement = JsonStatement::read(&node)?;
                if self.standalone {
                    target.ends_with(position);
                }
                target.statement(&statement)?;
            }
            "rows" => {
                for rows in JsonRows::read(&node)? {
                    target.rows(&rows)?;
                }
            }
            "commit" => {
                self.open = false;
                return Ok(Step::Committed(target.commit(position)?));
            }
            "prepare" => {
                let xid = node.get("xid").ok_or_else(|| bad("xid"))?;
                let part = |name: &str| xid.get(name).and_then(Node::bytes).ok_or_else(|| bad(name));
                let (gtrid, bqual) = (part("gtrid")?, part("bqual")?);
                let format_id = number(xid, "format_id")?.ok_or_else(|| bad("format_id"))?;
                self.open = false;
                let xid = XaPrepare { one_phase: false, format_id, gtrid: &gtrid, bqual: &bqual };
                return Ok(Step::Committed(target.prepare(&xid, position)?));
            }
            "rollback" => {
                self.open = false;
                target.rollback();
            }
            other => return Err(BadLine(format!("unknown type `{other}`")).into()),
        }
        Ok(Step::More)
    }
}

fn header(node: &Node<'_>) -> Result<TrxHeader, BadLine> {
    let gtid = match node.get("gtid") {
        None | Some(Node::Null) => None,
        Some(gtid) => Some(gtid.text().and_then(gtid_of).ok_or_else(|| bad("gtid"))?),
    };
    Ok(TrxHeader {
        gtid,
        server_id: number(node, "server_id")?.unwrap_or(0),
        timestamp: number(node, "timestamp")?.unwrap_or(0),
        original_commit_us: number(node, "original_commit_us")?.unwrap_or(0),
        immediate_commit_us: 0,
        skip: false,
        original_version: number(node, "original_version")?.unwrap_or(0),
        last_committed: number(node, "last_committed")?.unwrap_or(0),
        sequence_number: number(node, "sequence_number")?.unwrap_or(0),
        group_commit_id: number(node, "group_commit_id")?,
        standalone: flag(node, "standalone")?.unwrap_or(false),
        alter: None,
    })
}

fn gtid_of(text: &str) -> Option<AnyGtid> {
    if text.contains(':') {
        return AnyGtid::parse_mysql(text);
    }
    let mut parts = text.split('-');
    let gtid = MariadbGtid {
        domain: parts.next()?.parse().ok()?,
        server: parts.next()?.parse().ok()?,
        sequence: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(AnyGtid::Mariadb(gtid))
}
