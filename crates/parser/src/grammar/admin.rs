//! KILL, FLUSH, BACKUP, and table maintenance.

use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    Backup, Flush, FlushTarget, HistogramChange, Histograms, Kill, KillTarget, Maintenance, MaintenanceKind,
    Statement,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At KILL.
    pub(super) fn kill(&mut self) -> Rule<Statement> {
        self.advance();
        let soft = self.eat_word("SOFT");
        if !soft {
            self.eat_word("HARD");
        }
        let query = self.eat_word("QUERY");
        if !query {
            self.eat_word("CONNECTION");
        }
        let target = if query && self.is_word("ID") {
            self.advance();
            KillTarget::QueryId(self.expr()?)
        } else if self.is_word("USER") && self.peek().kind != Tok::LParen {
            self.advance();
            KillTarget::User(self.user_name()?)
        } else {
            KillTarget::Connection(self.expr()?)
        };
        Ok(Statement::Kill(Kill { query, soft, target }))
    }

    /// NO_WRITE_TO_BINLOG or LOCAL.
    fn local(&mut self) -> bool {
        self.eat_kw(Kw::NO_WRITE_TO_BINLOG) || self.eat_word("LOCAL")
    }

    /// At FLUSH.
    pub(super) fn flush(&mut self) -> Rule<Statement> {
        self.advance();
        let local = self.local();
        if self.eat_kw(Kw::TABLE) || self.eat_word("TABLES") {
            let target = self.flush_tables()?;
            return Ok(Statement::Flush(Box::new(Flush { local, targets: vec![target] })));
        }
        let targets = self.comma_list(Self::flush_target)?;
        Ok(Statement::Flush(Box::new(Flush { local, targets })))
    }

    fn flush_tables(&mut self) -> Rule<FlushTarget> {
        let at_name = self.is_ident();
        let tables = if at_name { self.comma_list(Self::object_name)? } else { Vec::new() };
        let again = |at: usize| tables[..at].contains(&tables[at]);
        if let Some(at) = (1..tables.len()).find(|at| again(*at)) {
            let message = format!("Not unique table/alias: '{}'", tables[at].name);
            return Err(ParseError::Other { code: 1066, state: "42000", message });
        }
        let read_lock = self.eat_words(&["WITH", "READ", "LOCK"]);
        if read_lock {
            // MariaDB: AND DISABLE CHECKPOINT
            self.eat_words(&["AND", "DISABLE", "CHECKPOINT"]);
        }
        let for_export = !read_lock && self.eat_words(&["FOR", "EXPORT"]);
        Ok(FlushTarget::Tables { tables, read_lock, for_export })
    }

    fn flush_target(&mut self) -> Rule<FlushTarget> {
        let mark = self.mark();
        let word = self.upper_word()?;
        Ok(match word.as_str() {
            "BINARY" | "ENGINE" | "ERROR" | "GENERAL" | "SLOW" => {
                self.expect_word("LOGS")?;
                match word.as_str() {
                    "BINARY" => FlushTarget::BinaryLogs,
                    "ENGINE" => FlushTarget::EngineLogs,
                    "ERROR" => FlushTarget::ErrorLogs,
                    "GENERAL" => FlushTarget::GeneralLogs,
                    _ => FlushTarget::SlowLogs,
                }
            }
            "RELAY" => {
                self.expect_word("LOGS")?;
                FlushTarget::RelayLogs { channel: self.channel()? }
            }
            "LOGS" => FlushTarget::Logs,
            "PRIVILEGES" => FlushTarget::Privileges,
            "STATUS" => FlushTarget::Status,
            "GLOBAL" | "SESSION" if self.eat_word("STATUS") => FlushTarget::Status,
            "HOSTS" => FlushTarget::Hosts,
            "USER_RESOURCES" => FlushTarget::UserResources,
            "OPTIMIZER_COSTS" => FlushTarget::OptimizerCosts,
            "QUERY" => {
                self.expect_word("CACHE")?;
                FlushTarget::QueryCache
            }
            "DES_KEY_FILE" => FlushTarget::DesKeyFile,
            "MASTER" => FlushTarget::Master,
            "SLAVE" | "REPLICA" => FlushTarget::Replica,
            "SSL" => FlushTarget::Ssl,
            "TABLE_STATISTICS" | "INDEX_STATISTICS" | "USER_STATISTICS" | "CLIENT_STATISTICS" => {
                FlushTarget::Statistics
            }
            "TABLE" | "TABLES" => self.flush_tables()?,
            _ if self.options.mariadb => FlushTarget::Other(word),
            _ => {
                self.reset(mark);
                return Err(self.error());
            }
        })
    }

    /// At BACKUP.
    pub(super) fn backup(&mut self) -> Rule<Statement> {
        self.advance();
        let backup = if self.eat_kw(Kw::TO) {
            Backup::To(self.string()?)
        } else if self.eat_word("STAGE") {
            Backup::Stage(self.upper_word()?)
        } else if self.eat_kw(Kw::LOCK) {
            Backup::Lock(self.object_name()?)
        } else {
            self.expect_kw(Kw::UNLOCK)?;
            Backup::Unlock
        };
        Ok(Statement::Backup(backup))
    }

    /// At ANALYZE, CHECK, CHECKSUM, OPTIMIZE or REPAIR.
    pub(super) fn maintenance(&mut self) -> Rule<Statement> {
        let word = self.upper_word()?;
        let kind = match word.as_str() {
            "ANALYZE" => MaintenanceKind::Analyze,
            "CHECK" => MaintenanceKind::Check,
            "CHECKSUM" => MaintenanceKind::Checksum,
            "OPTIMIZE" => MaintenanceKind::Optimize,
            _ => MaintenanceKind::Repair,
        };
        let local = self.local();
        if matches!(kind, MaintenanceKind::Check | MaintenanceKind::Repair) && self.is_word("VIEW") {
            self.advance();
        } else if !self.eat_kw(Kw::TABLE) {
            self.expect_word("TABLES")?;
        }
        let tables = self.comma_list(Self::object_name)?;
        let (mut options, mut histograms) = (Vec::new(), None);
        while self.is(Tok::Word) {
            if self.is_word("PERSISTENT") {
                // MariaDB's engine-independent statistics: the rest of the text says of what.
                while !matches!(self.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
                    self.advance();
                }
                break;
            }
            if kind == MaintenanceKind::Analyze && (self.is_kw(Kw::UPDATE) || self.is_kw(Kw::DROP)) {
                histograms = Some(self.histograms()?);
                break;
            }
            if self.eat_words(&["FOR", "UPGRADE"]) {
                options.push("FOR UPGRADE".into());
            } else if let Some(option) =
                self.eat_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM", "FORCE"])
            {
                options.push(option.into());
            } else {
                return Err(self.error());
            }
        }
        Ok(Statement::Maintenance(Maintenance { kind, local, tables, options, histograms }))
    }

    /// At UPDATE or DROP behind the tables of ANALYZE TABLE.
    fn histograms(&mut self) -> Rule<Histograms> {
        let update = self.eat_kw(Kw::UPDATE);
        if !update {
            self.advance();
        }
        self.expect_word("HISTOGRAM")?;
        self.expect_kw(Kw::ON)?;
        let columns = self.comma_list(Self::ident)?;
        if !update {
            return Ok(Histograms { columns, change: HistogramChange::Drop });
        }
        if self.eat_words(&["USING", "DATA"]) {
            return Ok(Histograms { columns, change: HistogramChange::Given(self.string()?) });
        }
        let mut buckets = None;
        if self.eat_kw(Kw::WITH) {
            buckets = Some(self.number()?);
            self.expect_word("BUCKETS")?;
        }
        let auto = self.eat_words(&["AUTO", "UPDATE"]);
        if !auto {
            self.eat_words(&["MANUAL", "UPDATE"]);
        }
        Ok(Histograms { columns, change: HistogramChange::Update { buckets, auto } })
    }
}
