//! `gtid_next`: a session's next transaction has an id that it was given.
//!
//! The id lies in the transaction's `Applied` until a commit takes it along, so that whatever commits (a statement, COMMIT, a
//! definition) does so with it, also when nothing has changed. Here is the rest: a transaction that is over already is
//! skipped, what only reads does not use the id up, and after it was used the session must say what comes next (1837).
//! On the session's thread. Without an id it costs one comparison a statement.

use super::SqlSession;
use super::dispatch::starts_transaction;
use crate::api::Outcome;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::{Applied, Trx};
use omnibus_commit::GtidGuard;
use omnibus_format::{AnyGtid, Origin};
use omnibus_parser::ast::{Logged, Statement};

/// The GTID that SET gives.
#[derive(Debug)]
pub enum GivenGtid {
    /// The log gives ids.
    Automatic,
    /// The next transaction's id, which this session owns.
    Owned {
        /// It, and whose events these are.
        origin: Origin,
        /// The right to commit it.
        guard: GtidGuard,
    },
    /// The transaction of this id is over: what is sent of it is skipped.
    Executed(AnyGtid),
    /// MariaDB's `gtid_seq_no`: the next transaction's id; those behind it get theirs from the log again.
    Once(Origin),
}

/// The state of `gtid_next`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Given {
    #[default]
    Automatic,
    Owned(AnyGtid),
    Executed(AnyGtid),
    Spent(AnyGtid),
    Once,
}

/// The id that the next transaction was given.
#[derive(Default)]
pub(super) struct NextGtid {
    pub(super) given: Given,
    pub(super) commits: GivenCommit,
}

/// The commit of the running statement that uses the id up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GivenCommit {
    #[default]
    None,
    /// Whichever comes first.
    First,
    /// The one behind the statement, if it took the id along nowhere: a definition first commits what was open.
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Uses nothing up.
    Reading,
    Begin,
    Commit,
    Rollback,
    Changing,
}

impl Class {
    fn of(statement: &Statement) -> Class {
        match statement {
            Statement::Begin(_) => Class::Begin,
            Statement::Commit(_) => Class::Commit,
            Statement::Rollback(_) => Class::Rollback,
            other if other.traits().logged == Logged::Nothing => Class::Reading,
            _ => Class::Changing,
        }
    }
}

/// Whether a statement is run.
enum Decision {
    Run(Class),
    Done(ExecResult<Outcome>),
}

/// `gtid_next`, as the server sets it and runs statements of its own under it.
pub struct ServerGtid<'s> {
    gtid: &'s mut NextGtid,
    state: &'s mut SessionState,
    trx: &'s mut Trx,
}

impl ServerGtid<'_> {
    /// Sets the next transaction's id.
    ///
    /// # Errors
    /// 1790 while a transaction with a given id is open.
    pub fn give(&mut self, given: GivenGtid) -> SqlResult<()> {
        if let (Given::Owned(gtid), true) = (self.gtid.given, self.trx.is_open()) {
            let message = format!(
                "@@SESSION.GTID_NEXT cannot be changed by a client that owns a GTID. The client owns {gtid}. Ownership \
                 is released on COMMIT or ROLLBACK."
            );
            return Err(SqlError::new(1790, b"HY000", message));
        }
        if self.gtid.given != Given::Automatic {
            self.trx.log.take_applied();
        }
        self.gtid.given = match given {
            GivenGtid::Automatic => Given::Automatic,
            GivenGtid::Executed(gtid) => Given::Executed(gtid),
            GivenGtid::Owned { origin, guard } => {
                let gtid = guard.gtid();
                let guard = Some(guard);
                self.trx.log.set_applied(Applied {
                    origin: Some(origin),
                    guard,
                    even_empty: true,
                    ..Applied::default()
                });
                Given::Owned(gtid)
            }
            GivenGtid::Once(origin) => {
                self.trx.log.set_applied(Applied { origin: Some(origin), ..Applied::default() });
                Given::Once
            }
        };
        Ok(())
    }

    /// Whether an id of `gtid_seq_no` waits for its transaction.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.gtid.given == Given::Once
    }

    /// Before a statement that changes something and that the server executes itself. `false`: its transaction is over
    /// already, and it is not to be run.
    ///
    /// # Errors
    /// 1837 after the id was used, 1778 inside a transaction.
    pub fn enter_server_statement(&mut self) -> SqlResult<bool> {
        if self.gtid.given == Given::Automatic {
            return Ok(true);
        }
        match self.gtid.judge(Class::Changing, (true, false), self.state, self.trx) {
            Decision::Run(_) => Ok(true),
            Decision::Done(Err(Interrupt::Error(error))) => Err(error),
            Decision::Done(_) => Ok(false),
        }
    }

    /// After it. `true`: nothing has changed, and the id is to be committed all the same.
    pub fn leave_server_statement(&mut self, failed: bool) -> bool {
        if self.gtid.given == Given::Automatic {
            return false;
        }
        self.gtid.follow(self.trx);
        if failed {
            self.gtid.failed(self.trx);
        }
        matches!(self.gtid.given, Given::Owned(_))
    }
}

impl SqlSession {
    /// The id of the next transaction.
    pub fn gtid_next(&mut self) -> ServerGtid<'_> {
        ServerGtid { gtid: &mut self.gtid, state: &mut self.state, trx: &mut self.trx }
    }

    /// Runs `body`, which is this statement, with the id that the next transaction was given.
    pub(super) fn with_given_gtid(
        &mut self,
        statement: &Statement,
        body: impl FnOnce(&mut SqlSession) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        if self.gtid.given == Given::Automatic {
            return body(self);
        }
        match self.gtid.decide(statement, &mut self.state, &mut self.trx) {
            Decision::Done(result) => result,
            Decision::Run(class) => {
                let result = body(self);
                self.gtid.passed(class, &result, &mut self.trx);
                result
            }
        }
    }
}

impl NextGtid {
    /// Whether the next commit takes an id along that was given.
    pub(super) fn is_used_up_now(&self) -> bool {
        self.given != Given::Automatic && self.commits == GivenCommit::First
    }

    /// Before a statement. Only with an id given.
    fn decide(&mut self, statement: &Statement, state: &mut SessionState, trx: &mut Trx) -> Decision {
        // As logs have it: between BEGIN and the table's rows.
        let belongs = matches!(statement, Statement::CreateTable(tree) if starts_transaction(tree))
            && !trx.log.has_events();
        let implicit = super::dispatch::commits_implicitly(statement);
        self.judge(Class::of(statement), (implicit, belongs), state, trx)
    }

    /// `implicit`: the statement commits what is open; `belongs`: but not where the id's own transaction is.
    fn judge(
        &mut self,
        class: Class,
        (implicit, belongs): (bool, bool),
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> Decision {
        self.follow(trx);
        self.commits = match class {
            // A definition takes the id along itself; one that changed nothing leaves it behind.
            Class::Changing if implicit => GivenCommit::Last,
            Class::Changing | Class::Commit => GivenCommit::First,
            Class::Begin if trx.is_open() => GivenCommit::First,
            Class::Begin | Class::Reading | Class::Rollback => GivenCommit::None,
        };
        match (self.given, class) {
            (Given::Spent(gtid), Class::Changing) => {
                let message = format!(
                    "When @@SESSION.GTID_NEXT is set to a GTID, you must explicitly set it to a different value after a \
                     COMMIT or ROLLBACK. Please check GTID_NEXT variable manual page for detailed explanation. Current \
                     @@SESSION.GTID_NEXT is '{gtid}'."
                );
                Decision::Done(Err(SqlError::new(1837, b"HY000", message).into()))
            }
            (Given::Executed(gtid), Class::Changing) => {
                if !trx.is_open() && state.settings.transactions.autocommit {
                    self.given = Given::Spent(gtid);
                }
                state.diagnostics.clear();
                Decision::Done(Ok(Outcome::ok()))
            }
            (Given::Owned(_), Class::Changing | Class::Begin) if trx.is_open() && implicit && !belongs => {
                let message = "Cannot execute statements with implicit commit inside a transaction when @@SESSION.GTID_NEXT \
                     == 'UUID:NUMBER'.";
                Decision::Done(Err(SqlError::new(1778, b"HY000", message).into()))
            }
            _ => Decision::Run(class),
        }
    }

    /// After a statement that was run with an id given.
    fn passed(&mut self, class: Class, result: &ExecResult<Outcome>, trx: &mut Trx) {
        if matches!(result, Err(Interrupt::LockWait(_) | Interrupt::NeedBlocking)) {
            return;
        }
        self.follow(trx);
        let ended = class == Class::Rollback || class == Class::Commit || result.is_err() && !trx.is_open();
        match self.given {
            Given::Owned(gtid) | Given::Executed(gtid) if ended => {
                trx.log.take_applied();
                self.given = Given::Spent(gtid);
            }
            _ => {}
        }
    }

    /// A statement failed while it waited for a lock.
    pub(super) fn failed(&mut self, trx: &mut Trx) {
        if let (Given::Owned(gtid), false) = (self.given, trx.is_open()) {
            trx.log.take_applied();
            self.given = Given::Spent(gtid);
        }
    }

    /// The statement has done what it does: its own commit follows.
    pub(super) fn before_last_commit(&mut self) {
        if self.commits == GivenCommit::Last {
            self.commits = GivenCommit::First;
        }
    }

    /// A commit has taken the id along.
    fn follow(&mut self, trx: &Trx) {
        match self.given {
            Given::Owned(gtid) if !trx.log.has_applied() => self.given = Given::Spent(gtid),
            Given::Once if !trx.log.has_applied() => self.given = Given::Automatic,
            _ => {}
        }
    }
}
