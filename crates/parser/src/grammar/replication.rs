//! CHANGE SOURCE, START/STOP REPLICA, PURGE, RESET.

use super::{Parser, Rule, expr, names, show, statement};
use crate::ast::{ChangeSource, Ident, Purge, Reset, SourceValue, StartReplica, Statement, StopReplica};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At CHANGE.
pub(super) fn change(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.eat_words(&["REPLICATION", "FILTER"]) {
        let start = p.token.start;
        while !matches!(p.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
            p.advance();
        }
        return Ok(Statement::ChangeReplicationFilter(p.text_since(start)));
    }
    if !p.eat_words(&["REPLICATION", "SOURCE"]) {
        p.expect_word("MASTER")?;
    }
    let mut channel = if p.is(Tok::Str) { Some(names::string(p)?) } else { None };
    p.expect_kw(Kw::TO)?;
    let options = p.comma_list(source_option)?;
    if channel.is_none() {
        channel = show::for_channel(p)?;
    }
    Ok(Statement::ChangeSource(Box::new(ChangeSource { channel, options })))
}

/// `NAME = value`, with the name in its 8.4 spelling.
fn source_option(p: &mut Parser<'_>) -> Rule<(Ident, SourceValue)> {
    let word = names::upper_word(p)?;
    let name = match word.strip_prefix("MASTER_") {
        Some(rest) => format!("SOURCE_{rest}").into(),
        None => word,
    };
    p.expect(Tok::Eq)?;
    Ok((name, source_value(p)?))
}

fn source_value(p: &mut Parser<'_>) -> Rule<SourceValue> {
    Ok(match p.token.kind {
        Tok::Str => SourceValue::Str(names::string(p)?),
        Tok::Int | Tok::HexNum => SourceValue::Int(names::number(p)?),
        Tok::Decimal | Tok::Float => {
            let token = p.advance();
            SourceValue::Decimal(p.slice(token.start as usize, token.end as usize))
        }
        Tok::LParen => {
            p.advance();
            let mut ids = Vec::new();
            while !p.eat(Tok::RParen) {
                if !ids.is_empty() {
                    p.expect(Tok::Comma)?;
                }
                ids.push(names::number(p)?);
            }
            SourceValue::Ids(ids)
        }
        Tok::Word | Tok::Quoted => {
            let word = names::ident_after_dot(p)?;
            if matches!(p.token.kind, Tok::At | Tok::UserVar) {
                // PRIVILEGE_CHECKS_USER = u@h
                let host = if p.eat(Tok::At) { names::ident_or_text(p)? } else { names::user_var(p)? };
                return Ok(SourceValue::Word(format!("{word}@{host}").into()));
            }
            SourceValue::Word(word)
        }
        _ => return Err(p.error()),
    })
}

/// REPLICA, SLAVE, or MariaDB's ALL SLAVES; says whether it was ALL.
fn replica_word(p: &mut Parser<'_>) -> Rule<bool> {
    if p.eat_kw(Kw::ALL) {
        if p.eat_any(&["SLAVES", "REPLICAS"]).is_none() {
            return Err(p.error());
        }
        return Ok(true);
    }
    if p.eat_any(&["REPLICA", "SLAVE"]).is_none() {
        return Err(p.error());
    }
    Ok(false)
}

/// `[IO_THREAD | SQL_THREAD], ...`
fn replica_threads(p: &mut Parser<'_>) -> Rule<(bool, bool)> {
    let (mut io, mut sql) = (false, false);
    loop {
        match p.eat_any(&["IO_THREAD", "RELAY_THREAD", "SQL_THREAD"]) {
            Some("SQL_THREAD") => sql = true,
            Some(_) => io = true,
            None if !io && !sql => return Ok((false, false)),
            None => return Err(p.error()),
        }
        if !p.eat(Tok::Comma) {
            return Ok((io, sql));
        }
    }
}

/// Behind START.
pub(super) fn start_replica(p: &mut Parser<'_>) -> Rule<Statement> {
    if p.is_word("GROUP_REPLICATION") {
        return Ok(statement::unsupported(p, "START GROUP_REPLICATION", "group_replication_start"));
    }
    let all = replica_word(p)?;
    let mut start = StartReplica { all, ..StartReplica::default() };
    if p.is(Tok::Str) {
        start.channel = Some(names::string(p)?);
    }
    (start.io_thread, start.sql_thread) = replica_threads(p)?;
    if p.eat_word("UNTIL") {
        if let Some(condition) = p.eat_any(&["SQL_AFTER_MTS_GAPS"]) {
            start.until.push((condition.into(), SourceValue::Int(1)));
        } else {
            start.until = p.comma_list(source_option)?;
        }
    }
    while p.is(Tok::Word) && !p.is_kw(Kw::FOR) {
        let option = source_option(p)?;
        start.connection.push(option);
    }
    if start.channel.is_none() {
        start.channel = show::for_channel(p)?;
    }
    Ok(Statement::StartReplica(Box::new(start)))
}

/// At STOP.
pub(super) fn stop(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.is_word("GROUP_REPLICATION") {
        return Ok(statement::unsupported(p, "STOP GROUP_REPLICATION", "group_replication_stop"));
    }
    let all = replica_word(p)?;
    let mut stop = StopReplica { all, ..StopReplica::default() };
    if p.is(Tok::Str) {
        stop.channel = Some(names::string(p)?);
    }
    (stop.io_thread, stop.sql_thread) = replica_threads(p)?;
    if stop.channel.is_none() {
        stop.channel = show::for_channel(p)?;
    }
    Ok(Statement::StopReplica(stop))
}

/// At PURGE.
pub(super) fn purge(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if !p.eat_kw(Kw::BINARY) {
        p.expect_word("MASTER")?;
    }
    p.expect_word("LOGS")?;
    if p.eat_kw(Kw::BEFORE) {
        return Ok(Statement::Purge(Purge::Before(expr::expr(p)?)));
    }
    p.expect_kw(Kw::TO)?;
    Ok(Statement::Purge(Purge::To(names::string(p)?)))
}

/// At RESET.
pub(super) fn reset_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.eat_word("PERSIST") {
        let if_exists = names::if_exists(p);
        let name = if p.is(Tok::Word) || p.is(Tok::Quoted) { Some(names::ident_after_dot(p)?) } else { None };
        return Ok(Statement::Reset(vec![Reset::Persist { if_exists, name }]));
    }
    Ok(Statement::Reset(p.comma_list(reset_target)?))
}

fn reset_target(p: &mut Parser<'_>) -> Rule<Reset> {
    if p.eat_word("MASTER") || p.eat_words(&["BINARY", "LOGS", "AND", "GTIDS"]) {
        let to = if p.eat_kw(Kw::TO) { Some(names::number(p)?) } else { None };
        return Ok(Reset::BinaryLogs { to });
    }
    if p.eat_words(&["QUERY", "CACHE"]) {
        return Ok(Reset::QueryCache);
    }
    if p.eat_any(&["REPLICA", "SLAVE"]).is_none() {
        return Err(p.error());
    }
    let mut channel = if p.is(Tok::Str) { Some(names::string(p)?) } else { None };
    let all = p.eat_kw(Kw::ALL);
    if channel.is_none() {
        channel = show::for_channel(p)?;
    }
    Ok(Reset::Replica { all, channel })
}
