//! The wait of every reply before its first byte leaves: the floor of the session (SESSION-1, COMMIT-2).
//!
//! The one place: behind every statement, so that what follows in the same text sees what was told, and behind every
//! command, whatever it is. Rows that leave while their statement still runs wait in the sink, for the same floor.

use super::client::Client;
use crate::process::Stage;
use crate::status::Counter;
use omnibus_sql::{SqlError, SqlSession};
use omnibus_wire::OutMark;

/// Where a reply began.
#[derive(Clone, Copy)]
pub(crate) struct ReplyStart {
    mark: OutMark,
    /// Bytes sent by then: what has left can not be taken back.
    sent: u64,
}

impl Client {
    pub(crate) fn reply_start(&self) -> ReplyStart {
        ReplyStart { mark: self.packets.out.mark(), sent: self.packets.sent }
    }

    /// Waits until what the reply tells of is durable. False if it never will be: then there is an error instead.
    pub(crate) async fn settle(&mut self, sql: &mut SqlSession, start: ReplyStart) -> bool {
        let failed = std::mem::take(&mut self.replies.failed);
        let Some(ticket) = self.replies.floor.ticket() else { return true };
        self.process.stage(Stage::CommitWait);
        self.process.counters.add(Counter::CommitWaits, 1);
        let settled = tokio::select! {
            biased;
            result = ticket => result.map_err(SqlError::of_commit),
            // Another error in place of an error tells of nothing. In place of an OK it would say that nothing was done.
            () = self.process.interrupted(failed) => Err(SqlError::query_interrupted()),
        };
        // Asserts SESSION-1: a reply whose floor is never durable is taken back, or its connection ends.
        let Err(error) = settled else { return true };
        if self.packets.sent == start.sent {
            self.packets.out.rollback(start.mark);
            self.failed(sql, error);
        } else {
            self.cut();
        }
        false
    }
}
