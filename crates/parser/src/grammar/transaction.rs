//! Transactions: START, BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA; table locks.

use bytes::Bytes;

use super::{Parser, Rule, from, names, primary, replication, statement};
use crate::ast::{Completion, Literal, StartTransaction, Statement, TableLock, Xa, XaId};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At BEGIN, START, COMMIT, ROLLBACK, SAVEPOINT or XA.
pub(super) fn transaction(p: &mut Parser<'_>) -> Rule<Statement> {
    if p.is_word("START") {
        return start(p);
    }
    if p.is_word("XA") {
        return xa(p);
    }
    if p.eat_word("BEGIN") {
        if p.is_kw(Kw::NOT) {
            return Ok(statement::unsupported(p, "BEGIN NOT ATOMIC", "compound_sql"));
        }
        p.eat_word("WORK");
        return Ok(Statement::Begin(StartTransaction::default()));
    }
    if p.eat_word("SAVEPOINT") {
        return Ok(Statement::Savepoint(names::ident(p)?));
    }
    if p.eat_word("COMMIT") {
        p.eat_word("WORK");
        return Ok(Statement::Commit(completion(p)?));
    }
    p.expect_word("ROLLBACK")?;
    p.eat_word("WORK");
    if p.eat_kw(Kw::TO) {
        // SAVEPOINT may be left out, and may be the savepoint's name.
        let next = p.peek();
        if p.is_word("SAVEPOINT") && names::token_is_ident(&next) {
            p.advance();
        }
        return Ok(Statement::RollbackTo(names::ident(p)?));
    }
    Ok(Statement::Rollback(completion(p)?))
}

fn completion(p: &mut Parser<'_>) -> Rule<Completion> {
    let mut completion = Completion::default();
    if p.eat_kw(Kw::AND) {
        let no = p.eat_word("NO");
        p.expect_word("CHAIN")?;
        completion.chain = Some(!no);
    }
    if p.eat_kw(Kw::RELEASE) {
        completion.release = Some(true);
    } else if p.eat_words(&["NO", "RELEASE"]) {
        completion.release = Some(false);
    }
    if completion.chain == Some(true) && completion.release == Some(true) {
        return Err(p.error());
    }
    Ok(completion)
}

/// At START: a transaction, or a replica.
fn start(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if !p.eat_word("TRANSACTION") {
        return replication::start_replica(p);
    }
    let mut options = StartTransaction::default();
    while !matches!(p.token.kind, Tok::Eof | Tok::Semicolon) {
        if p.eat_words(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
            options.consistent_snapshot = true;
        } else if p.eat_words(&["READ", "ONLY"]) {
            if options.read_only == Some(false) {
                return Err(p.error());
            }
            options.read_only = Some(true);
        } else if p.eat_words(&["READ", "WRITE"]) {
            if options.read_only == Some(true) {
                return Err(p.error());
            }
            options.read_only = Some(false);
        } else {
            return Err(p.error());
        }
        if !p.eat(Tok::Comma) {
            break;
        }
    }
    Ok(Statement::Begin(options))
}

/// At XA.
fn xa(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let word = names::upper_word(p)?;
    let xa = match word.as_str() {
        "START" | "BEGIN" => {
            let xid = xa_id(p)?;
            let join = p.eat_kw(Kw::JOIN);
            let resume = !join && p.eat_word("RESUME");
            Xa::Start { xid, join, resume }
        }
        "END" => {
            let xid = xa_id(p)?;
            let suspend = p.eat_word("SUSPEND");
            let for_migrate = suspend && p.eat_words(&["FOR", "MIGRATE"]);
            Xa::End { xid, suspend, for_migrate }
        }
        "PREPARE" => Xa::Prepare(xa_id(p)?),
        "COMMIT" => {
            let xid = xa_id(p)?;
            Xa::Commit { xid, one_phase: p.eat_words(&["ONE", "PHASE"]) }
        }
        "ROLLBACK" => Xa::Rollback(xa_id(p)?),
        "RECOVER" => {
            let convert_xid = p.eat_words(&["CONVERT", "XID"]);
            Xa::Recover { convert_xid }
        }
        _ => return Err(p.error()),
    };
    Ok(Statement::Xa(Box::new(xa)))
}

/// `gtrid [, bqual [, formatID]]`; parts are at most 64 bytes.
fn xa_id(p: &mut Parser<'_>) -> Rule<XaId> {
    let gtrid = xa_part(p)?;
    let mut xid = XaId { gtrid, bqual: Bytes::new(), format_id: 1 };
    if p.eat(Tok::Comma) {
        xid.bqual = xa_part(p)?;
        if p.eat(Tok::Comma) {
            xid.format_id = names::number_u32(p)?;
        }
    }
    Ok(xid)
}

fn xa_part(p: &mut Parser<'_>) -> Rule<Bytes> {
    let start = p.mark();
    let part = match p.token.kind {
        Tok::Str => names::string(p)?,
        _ => match primary::special_literal(p)? {
            Literal::Hex(bytes) | Literal::Bit(bytes) => bytes,
            _ => return Err(p.error()),
        },
    };
    if part.len() > 64 {
        p.reset(start);
        return Err(p.error());
    }
    Ok(part)
}

/// At LOCK.
pub(super) fn lock_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.eat_words(&["INSTANCE", "FOR", "BACKUP"]) {
        return Ok(Statement::LockInstance);
    }
    if !p.eat_kw(Kw::TABLE) {
        p.expect_word("TABLES")?;
    }
    Ok(Statement::LockTables(p.comma_list(table_lock)?))
}

fn table_lock(p: &mut Parser<'_>) -> Rule<TableLock> {
    let table = names::object_name(p)?;
    let alias = from::table_alias(p)?;
    if p.eat_kw(Kw::READ) {
        let local = p.eat_word("LOCAL");
        return Ok(TableLock { table, alias, write: false, local });
    }
    let local = p.eat_kw(Kw::LOW_PRIORITY) || p.eat_word("CONCURRENT");
    p.expect_kw(Kw::WRITE)?;
    Ok(TableLock { table, alias, write: true, local })
}

/// At UNLOCK.
pub(super) fn unlock_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.eat_word("INSTANCE") {
        return Ok(Statement::UnlockInstance);
    }
    if !p.eat_kw(Kw::TABLE) {
        p.expect_word("TABLES")?;
    }
    Ok(Statement::UnlockTables)
}
