//! Transactions: START, BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA; table locks.

use bytes::Bytes;

use super::{Parser, Rule};
use crate::ast::{Completion, Literal, StartTransaction, Statement, TableLock, Xa, XaId};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At BEGIN, START, COMMIT, ROLLBACK, SAVEPOINT or XA.
    pub(super) fn transaction(&mut self) -> Rule<Statement> {
        if self.is_word("START") {
            return self.start();
        }
        if self.is_word("XA") {
            return self.xa();
        }
        if self.eat_word("BEGIN") {
            if self.is_kw(Kw::NOT) {
                return Ok(self.unsupported("BEGIN NOT ATOMIC", "compound_sql"));
            }
            self.eat_word("WORK");
            return Ok(Statement::Begin(StartTransaction::default()));
        }
        if self.eat_word("SAVEPOINT") {
            return Ok(Statement::Savepoint(self.ident()?));
        }
        if self.eat_word("COMMIT") {
            self.eat_word("WORK");
            return Ok(Statement::Commit(self.completion()?));
        }
        self.expect_word("ROLLBACK")?;
        self.eat_word("WORK");
        if self.eat_kw(Kw::TO) {
            // SAVEPOINT may be left out, and may be the savepoint's name.
            let next = self.peek();
            if self.is_word("SAVEPOINT") && Self::token_is_ident(&next) {
                self.advance();
            }
            return Ok(Statement::RollbackTo(self.ident()?));
        }
        Ok(Statement::Rollback(self.completion()?))
    }

    fn completion(&mut self) -> Rule<Completion> {
        let mut completion = Completion::default();
        if self.eat_kw(Kw::AND) {
            let no = self.eat_word("NO");
            self.expect_word("CHAIN")?;
            completion.chain = Some(!no);
        }
        if self.eat_kw(Kw::RELEASE) {
            completion.release = Some(true);
        } else if self.eat_words(&["NO", "RELEASE"]) {
            completion.release = Some(false);
        }
        if completion.chain == Some(true) && completion.release == Some(true) {
            return Err(self.error());
        }
        Ok(completion)
    }

    /// At START: a transaction, or a replica.
    fn start(&mut self) -> Rule<Statement> {
        self.advance();
        if !self.eat_word("TRANSACTION") {
            return self.start_replica();
        }
        let mut options = StartTransaction::default();
        while !matches!(self.token.kind, Tok::Eof | Tok::Semicolon) {
            if self.eat_words(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                options.consistent_snapshot = true;
            } else if self.eat_words(&["READ", "ONLY"]) {
                if options.read_only == Some(false) {
                    return Err(self.error());
                }
                options.read_only = Some(true);
            } else if self.eat_words(&["READ", "WRITE"]) {
                if options.read_only == Some(true) {
                    return Err(self.error());
                }
                options.read_only = Some(false);
            } else {
                return Err(self.error());
            }
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        Ok(Statement::Begin(options))
    }

    /// At XA.
    fn xa(&mut self) -> Rule<Statement> {
        self.advance();
        let word = self.upper_word()?;
        let xa = match word.as_str() {
            "START" | "BEGIN" => {
                let xid = self.xa_id()?;
                let join = self.eat_kw(Kw::JOIN);
                let resume = !join && self.eat_word("RESUME");
                Xa::Start { xid, join, resume }
            }
            "END" => {
                let xid = self.xa_id()?;
                let suspend = self.eat_word("SUSPEND");
                let for_migrate = suspend && self.eat_words(&["FOR", "MIGRATE"]);
                Xa::End { xid, suspend, for_migrate }
            }
            "PREPARE" => Xa::Prepare(self.xa_id()?),
            "COMMIT" => {
                let xid = self.xa_id()?;
                Xa::Commit { xid, one_phase: self.eat_words(&["ONE", "PHASE"]) }
            }
            "ROLLBACK" => Xa::Rollback(self.xa_id()?),
            "RECOVER" => {
                let convert_xid = self.eat_words(&["CONVERT", "XID"]);
                Xa::Recover { convert_xid }
            }
            _ => return Err(self.error()),
        };
        Ok(Statement::Xa(Box::new(xa)))
    }

    /// `gtrid [, bqual [, formatID]]`; parts are at most 64 bytes.
    fn xa_id(&mut self) -> Rule<XaId> {
        let gtrid = self.xa_part()?;
        let mut xid = XaId { gtrid, bqual: Bytes::new(), format_id: 1 };
        if self.eat(Tok::Comma) {
            xid.bqual = self.xa_part()?;
            if self.eat(Tok::Comma) {
                xid.format_id = self.number_u32()?;
            }
        }
        Ok(xid)
    }

    fn xa_part(&mut self) -> Rule<Bytes> {
        let start = self.mark();
        let part = match self.token.kind {
            Tok::Str => self.string()?,
            _ => match self.special_literal()? {
                Literal::Hex(bytes) | Literal::Bit(bytes) => bytes,
                _ => return Err(self.error()),
            },
        };
        if part.len() > 64 {
            self.reset(start);
            return Err(self.error());
        }
        Ok(part)
    }

    /// At LOCK.
    pub(super) fn lock_statement(&mut self) -> Rule<Statement> {
        self.advance();
        if self.eat_words(&["INSTANCE", "FOR", "BACKUP"]) {
            return Ok(Statement::LockInstance);
        }
        if !self.eat_kw(Kw::TABLE) {
            self.expect_word("TABLES")?;
        }
        Ok(Statement::LockTables(self.comma_list(Self::table_lock)?))
    }

    fn table_lock(&mut self) -> Rule<TableLock> {
        let table = self.object_name()?;
        let alias = self.table_alias()?;
        if self.eat_kw(Kw::READ) {
            let local = self.eat_word("LOCAL");
            return Ok(TableLock { table, alias, write: false, local });
        }
        let local = self.eat_kw(Kw::LOW_PRIORITY) || self.eat_word("CONCURRENT");
        self.expect_kw(Kw::WRITE)?;
        Ok(TableLock { table, alias, write: true, local })
    }

    /// At UNLOCK.
    pub(super) fn unlock_statement(&mut self) -> Rule<Statement> {
        self.advance();
        if self.eat_word("INSTANCE") {
            return Ok(Statement::UnlockInstance);
        }
        if !self.eat_kw(Kw::TABLE) {
            self.expect_word("TABLES")?;
        }
        Ok(Statement::UnlockTables)
    }
}
