//! CHANGE SOURCE, START/STOP REPLICA, PURGE, RESET.

use super::{Parser, Rule};
use crate::ast::{ChangeSource, Ident, Purge, Reset, SourceValue, StartReplica, Statement, StopReplica};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At CHANGE.
    pub(super) fn change(&mut self) -> Rule<Statement> {
        self.advance();
        if self.eat_words(&["REPLICATION", "FILTER"]) {
            let start = self.token.start;
            while !matches!(self.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
                self.advance();
            }
            return Ok(Statement::ChangeReplicationFilter(self.text_since(start)));
        }
        if !self.eat_words(&["REPLICATION", "SOURCE"]) {
            self.expect_word("MASTER")?;
        }
        let mut channel = if self.is(Tok::Str) { Some(self.string()?) } else { None };
        self.expect_kw(Kw::TO)?;
        let options = self.comma_list(Self::source_option)?;
        if channel.is_none() {
            channel = self.channel()?;
        }
        Ok(Statement::ChangeSource(Box::new(ChangeSource { channel, options })))
    }

    /// `NAME = value`, with the name in its 8.4 spelling.
    fn source_option(&mut self) -> Rule<(Ident, SourceValue)> {
        let word = self.upper_word()?;
        let name = match word.strip_prefix("MASTER_") {
            Some(rest) => format!("SOURCE_{rest}").into(),
            None => word,
        };
        self.expect(Tok::Eq)?;
        Ok((name, self.source_value()?))
    }

    fn source_value(&mut self) -> Rule<SourceValue> {
        Ok(match self.token.kind {
            Tok::Str => SourceValue::Str(self.string()?),
            Tok::Int | Tok::HexNum => SourceValue::Int(self.number()?),
            Tok::Decimal | Tok::Float => {
                let token = self.advance();
                SourceValue::Decimal(self.slice(token.start as usize, token.end as usize))
            }
            Tok::LParen => {
                self.advance();
                let mut ids = Vec::new();
                while !self.eat(Tok::RParen) {
                    if !ids.is_empty() {
                        self.expect(Tok::Comma)?;
                    }
                    ids.push(self.number()?);
                }
                SourceValue::Ids(ids)
            }
            Tok::Word | Tok::Quoted => {
                let word = self.ident_after_dot()?;
                if matches!(self.token.kind, Tok::At | Tok::UserVar) {
                    // PRIVILEGE_CHECKS_USER = u@h
                    let host = if self.eat(Tok::At) { self.ident_or_text()? } else { self.user_var()? };
                    return Ok(SourceValue::Word(format!("{word}@{host}").into()));
                }
                SourceValue::Word(word)
            }
            _ => return Err(self.error()),
        })
    }

    /// REPLICA, SLAVE, or MariaDB's ALL SLAVES; says whether it was ALL.
    fn replica_word(&mut self) -> Rule<bool> {
        if self.eat_kw(Kw::ALL) {
            if self.eat_any(&["SLAVES", "REPLICAS"]).is_none() {
                return Err(self.error());
            }
            return Ok(true);
        }
        if self.eat_any(&["REPLICA", "SLAVE"]).is_none() {
            return Err(self.error());
        }
        Ok(false)
    }

    /// `[IO_THREAD | SQL_THREAD], ...`
    fn replica_threads(&mut self) -> Rule<(bool, bool)> {
        let (mut io, mut sql) = (false, false);
        loop {
            match self.eat_any(&["IO_THREAD", "RELAY_THREAD", "SQL_THREAD"]) {
                Some("SQL_THREAD") => sql = true,
                Some(_) => io = true,
                None if !io && !sql => return Ok((false, false)),
                None => return Err(self.error()),
            }
            if !self.eat(Tok::Comma) {
                return Ok((io, sql));
            }
        }
    }

    /// Behind START.
    pub(super) fn start_replica(&mut self) -> Rule<Statement> {
        if self.is_word("GROUP_REPLICATION") {
            return Ok(self.unsupported("START GROUP_REPLICATION", "group_replication_start"));
        }
        let all = self.replica_word()?;
        let mut start = StartReplica { all, ..StartReplica::default() };
        if self.is(Tok::Str) {
            start.channel = Some(self.string()?);
        }
        (start.io_thread, start.sql_thread) = self.replica_threads()?;
        if self.eat_word("UNTIL") {
            if let Some(condition) = self.eat_any(&["SQL_AFTER_MTS_GAPS"]) {
                start.until.push((condition.into(), SourceValue::Int(1)));
            } else {
                start.until = self.comma_list(Self::source_option)?;
            }
        }
        while self.is(Tok::Word) && !self.is_kw(Kw::FOR) {
            let option = self.source_option()?;
            start.connection.push(option);
        }
        if start.channel.is_none() {
            start.channel = self.channel()?;
        }
        Ok(Statement::StartReplica(Box::new(start)))
    }

    /// At STOP.
    pub(super) fn stop(&mut self) -> Rule<Statement> {
        self.advance();
        if self.is_word("GROUP_REPLICATION") {
            return Ok(self.unsupported("STOP GROUP_REPLICATION", "group_replication_stop"));
        }
        let all = self.replica_word()?;
        let mut stop = StopReplica { all, ..StopReplica::default() };
        if self.is(Tok::Str) {
            stop.channel = Some(self.string()?);
        }
        (stop.io_thread, stop.sql_thread) = self.replica_threads()?;
        if stop.channel.is_none() {
            stop.channel = self.channel()?;
        }
        Ok(Statement::StopReplica(stop))
    }

    /// At PURGE.
    pub(super) fn purge(&mut self) -> Rule<Statement> {
        self.advance();
        if !self.eat_kw(Kw::BINARY) {
            self.expect_word("MASTER")?;
        }
        self.expect_word("LOGS")?;
        if self.eat_kw(Kw::BEFORE) {
            return Ok(Statement::Purge(Purge::Before(self.expr()?)));
        }
        self.expect_kw(Kw::TO)?;
        Ok(Statement::Purge(Purge::To(self.string()?)))
    }

    /// At RESET.
    pub(super) fn reset_statement(&mut self) -> Rule<Statement> {
        self.advance();
        if self.eat_word("PERSIST") {
            let if_exists = self.if_exists();
            let name =
                if self.is(Tok::Word) || self.is(Tok::Quoted) { Some(self.ident_after_dot()?) } else { None };
            return Ok(Statement::Reset(vec![Reset::Persist { if_exists, name }]));
        }
        Ok(Statement::Reset(self.comma_list(Self::reset_target)?))
    }

    fn reset_target(&mut self) -> Rule<Reset> {
        if self.eat_word("MASTER") || self.eat_words(&["BINARY", "LOGS", "AND", "GTIDS"]) {
            let to = if self.eat_kw(Kw::TO) { Some(self.number()?) } else { None };
            return Ok(Reset::BinaryLogs { to });
        }
        if self.eat_words(&["QUERY", "CACHE"]) {
            return Ok(Reset::QueryCache);
        }
        if self.eat_any(&["REPLICA", "SLAVE"]).is_none() {
            return Err(self.error());
        }
        let mut channel = if self.is(Tok::Str) { Some(self.string()?) } else { None };
        let all = self.eat_kw(Kw::ALL);
        if channel.is_none() {
            channel = self.channel()?;
        }
        Ok(Reset::Replica { all, channel })
    }
}
