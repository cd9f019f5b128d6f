//! SHOW.

use bytes::Bytes;

use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{EngineReport, Ident, ObjectName, Show, ShowEvents, ShowFilter, Statement, VarScope};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At SHOW.
    pub(super) fn show(&mut self) -> Rule<Statement> {
        self.advance();
        Ok(Statement::Show(Box::new(self.show_what()?)))
    }

    fn show_what(&mut self) -> Rule<Show> {
        let start = self.mark();
        let word = self.upper_word()?;
        let next_is_word = self.is(Tok::Word);
        Ok(match word.as_str() {
            "PARSE_TREE" => return Err(ParseError::NotSupported("SHOW PARSE_TREE")),
            "LIBRARY" if self.is_word("STATUS") => {
                return Err(ParseError::NotSupported("SHOW LIBRARY STATUS"));
            }
            "DATABASES" | "SCHEMAS" => Show::Databases(self.show_filter()?),
            "TABLES" | "COLUMNS" | "FIELDS" | "FULL" | "EXTENDED" | "INDEX" | "INDEXES" | "KEYS" => {
                self.reset(start);
                self.show_schema_objects()?
            }
            "TABLE" => {
                self.expect_word("STATUS")?;
                let (schema, filter) = self.in_schema()?;
                Show::TableStatus { schema, filter }
            }
            "OPEN" => {
                self.expect_word("TABLES")?;
                let (schema, filter) = self.in_schema()?;
                Show::OpenTables { schema, filter }
            }
            "TRIGGERS" => {
                let (schema, filter) = self.in_schema()?;
                Show::Triggers { schema, filter }
            }
            "EVENTS" => {
                let (schema, filter) = self.in_schema()?;
                Show::Events { schema, filter }
            }
            "CREATE" => self.show_create()?,
            "PROCEDURE" => self.routine(Show::ProcedureStatus, Show::ProcedureCode)?,
            "FUNCTION" => self.routine(Show::FunctionStatus, Show::FunctionCode)?,
            "PACKAGE" => {
                self.eat_word("BODY");
                self.expect_word("STATUS")?;
                Show::PackageStatus(self.show_filter()?)
            }
            "GLOBAL" => self.scoped(VarScope::Global)?,
            "SESSION" | "LOCAL" => self.scoped(VarScope::Session)?,
            "VARIABLES" => Show::Variables { scope: VarScope::Session, filter: self.show_filter()? },
            "STATUS" => Show::Status { scope: VarScope::Session, filter: self.show_filter()? },
            "PROCESSLIST" => Show::ProcessList { full: false },
            "ENGINES" => Show::Engines,
            "STORAGE" => {
                self.expect_word("ENGINES")?;
                Show::Engines
            }
            "ENGINE" => self.engine()?,
            "CHARACTER" | "CHAR" => {
                self.expect_kw(Kw::SET)?;
                Show::CharacterSet(self.show_filter()?)
            }
            "CHARSET" => Show::CharacterSet(self.show_filter()?),
            "COLLATION" => Show::Collation(self.show_filter()?),
            "WARNINGS" => Show::Warnings { count: false, limit: self.limit()? },
            "ERRORS" => Show::Errors { count: false, limit: self.limit()? },
            "COUNT" => self.show_count()?,
            "PRIVILEGES" => Show::Privileges,
            "PLUGINS" if self.eat_word("SONAME") => {
                Show::PluginsSoname(if self.is(Tok::Str) { Some(self.string()?) } else { None })
            }
            "PLUGINS" => Show::Plugins,
            "GRANTS" => {
                let user = if self.eat_kw(Kw::FOR) { Some(self.user_or_role()?) } else { None };
                let using =
                    if self.eat_kw(Kw::USING) { self.comma_list(Self::user_name)? } else { Vec::new() };
                Show::Grants { user, using }
            }
            "BINARY" => self.show_binary()?,
            "MASTER" => match self.eat_any(&["LOGS", "STATUS"]) {
                Some("LOGS") => Show::BinaryLogs,
                Some(_) => Show::BinaryLogStatus,
                None => return Err(self.error()),
            },
            "BINLOG" if self.eat_word("STATUS") => Show::BinaryLogStatus,
            "BINLOG" => {
                self.expect_word("EVENTS")?;
                Show::BinlogEvents(self.show_events()?)
            }
            "RELAYLOG" => {
                self.expect_word("EVENTS")?;
                Show::RelayLogEvents(self.show_events()?)
            }
            "REPLICA" | "SLAVE" | "ALL" => self.replica_status(word.as_str())?,
            "REPLICAS" => Show::Replicas { old_names: false },
            "PROFILES" => Show::Profiles,
            "PROFILE" => {
                while !matches!(self.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
                    self.advance();
                }
                Show::Profile
            }
            "AUTHORS" => Show::Authors,
            "CONTRIBUTORS" => Show::Contributors,
            "LOCALES" => Show::Locales,
            "EXPLAIN" | "ANALYZE" => {
                self.expect_kw(Kw::FOR)?;
                Show::Explain { connection: self.number()? }
            }
            "USER_STATISTICS" | "INDEX_STATISTICS" | "TABLE_STATISTICS" | "CLIENT_STATISTICS"
                if !next_is_word =>
            {
                Show::UserStatistics(word)
            }
            _ => {
                self.reset(start);
                return Err(self.error());
            }
        })
    }

    /// `[EXTENDED] [FULL] TABLES | COLUMNS | PROCESSLIST`, INDEX.
    fn show_schema_objects(&mut self) -> Rule<Show> {
        let extended = self.eat_word("EXTENDED");
        let full = self.eat_word("FULL");
        if self.eat_word("TABLES") {
            let (schema, filter) = self.in_schema()?;
            return Ok(Show::Tables { extended, full, schema, filter });
        }
        if full && self.eat_word("PROCESSLIST") {
            return Ok(Show::ProcessList { full: true });
        }
        if self.eat_word("COLUMNS") || self.eat_word("FIELDS") {
            let table = self.of_table()?;
            return Ok(Show::Columns { extended, full, table, filter: self.show_filter()? });
        }
        if !full && self.eat_any(&["INDEX", "INDEXES", "KEYS"]).is_some() {
            let table = self.of_table()?;
            return Ok(Show::Index { extended, table, filter: self.filter()? });
        }
        Err(self.error())
    }

    /// `{FROM | IN} t [{FROM | IN} schema]`
    fn of_table(&mut self) -> Rule<ObjectName> {
        if !self.eat_kw(Kw::FROM) {
            self.expect_kw(Kw::IN)?;
        }
        let mut table = self.object_name()?;
        if self.eat_kw(Kw::FROM) || self.eat_kw(Kw::IN) {
            table.schema = Some(self.ident()?);
        }
        Ok(table)
    }

    /// `[{FROM | IN} schema] [LIKE | WHERE]`
    fn in_schema(&mut self) -> Rule<(Option<Ident>, Option<ShowFilter>)> {
        let schema = if self.eat_kw(Kw::FROM) || self.eat_kw(Kw::IN) { Some(self.ident()?) } else { None };
        Ok((schema, self.show_filter()?))
    }

    fn show_filter(&mut self) -> Rule<Option<ShowFilter>> {
        if self.eat_kw(Kw::LIKE) {
            return Ok(Some(ShowFilter::Like(self.string()?)));
        }
        Ok(self.filter()?.map(ShowFilter::Where))
    }

    fn show_create(&mut self) -> Rule<Show> {
        let word = self.upper_word()?;
        Ok(match word.as_str() {
            "TABLE" => Show::CreateTable(self.object_name()?),
            "VIEW" => Show::CreateView(self.object_name()?),
            "DATABASE" | "SCHEMA" => {
                let if_not_exists = self.if_not_exists();
                Show::CreateDatabase { if_not_exists, name: self.ident()? }
            }
            "USER" if matches!(self.token.kind, Tok::Eof | Tok::Semicolon) => {
                Show::CreateUser(crate::ast::UserName::CurrentUser)
            }
            "USER" => Show::CreateUser(self.user_name()?),
            "PROCEDURE" => Show::CreateProcedure(self.object_name()?),
            "FUNCTION" => Show::CreateFunction(self.object_name()?),
            "TRIGGER" => Show::CreateTrigger(self.object_name()?),
            "EVENT" => Show::CreateEvent(self.object_name()?),
            "SEQUENCE" if self.options.mariadb => Show::CreateSequence(self.object_name()?),
            "SEQUENCE" => return Err(ParseError::NotSupported("sequences")),
            "PACKAGE" => return Err(ParseError::NotSupported("packages")),
            _ => return Err(self.error()),
        })
    }

    fn routine(
        &mut self,
        status: fn(Option<ShowFilter>) -> Show,
        code: fn(ObjectName) -> Show,
    ) -> Rule<Show> {
        if self.eat_word("CODE") {
            return Ok(code(self.object_name()?));
        }
        self.expect_word("STATUS")?;
        Ok(status(self.show_filter()?))
    }

    fn scoped(&mut self, scope: VarScope) -> Rule<Show> {
        match self.eat_any(&["VARIABLES", "STATUS"]) {
            Some("VARIABLES") => Ok(Show::Variables { scope, filter: self.show_filter()? }),
            Some(_) => Ok(Show::Status { scope, filter: self.show_filter()? }),
            None => Err(self.error()),
        }
    }

    fn engine(&mut self) -> Rule<Show> {
        let engine = self.ident_or_text().or_else(|_| self.upper_word())?;
        let what = match self.eat_any(&["STATUS", "MUTEX", "LOGS"]) {
            Some("STATUS") => EngineReport::Status,
            Some("MUTEX") => EngineReport::Mutex,
            Some(_) => EngineReport::Logs,
            None => return Err(self.error()),
        };
        Ok(Show::EngineStatus { engine, what })
    }

    /// `COUNT(*) WARNINGS | ERRORS`
    fn show_count(&mut self) -> Rule<Show> {
        self.expect(Tok::LParen)?;
        self.expect(Tok::Star)?;
        self.expect(Tok::RParen)?;
        match self.eat_any(&["WARNINGS", "ERRORS"]) {
            Some("WARNINGS") => Ok(Show::Warnings { count: true, limit: None }),
            Some(_) => Ok(Show::Errors { count: true, limit: None }),
            None => Err(self.error()),
        }
    }

    fn show_binary(&mut self) -> Rule<Show> {
        if self.eat_word("LOGS") {
            return Ok(Show::BinaryLogs);
        }
        self.expect_word("LOG")?;
        self.expect_word("STATUS")?;
        Ok(Show::BinaryLogStatus)
    }

    /// `[IN 'file'] [FROM pos] [LIMIT ..] [FOR CHANNEL ..]`
    fn show_events(&mut self) -> Rule<ShowEvents> {
        let mut events = ShowEvents::default();
        if self.is(Tok::Str) {
            // MariaDB: SHOW RELAYLOG 'name' EVENTS has its name elsewhere; here it is not one.
            return Err(self.error());
        }
        if self.eat_kw(Kw::IN) {
            events.file = Some(self.string()?);
        }
        if self.eat_kw(Kw::FROM) {
            events.position = Some(self.number()?);
        }
        events.limit = self.limit()?;
        events.channel = self.channel()?;
        Ok(events)
    }

    /// `FOR CHANNEL 'name'` or nothing.
    pub(super) fn channel(&mut self) -> Rule<Option<Bytes>> {
        if self.eat_words(&["FOR", "CHANNEL"]) {
            return Ok(Some(self.ident_or_text()?.into_string().into_bytes().into()));
        }
        Ok(None)
    }

    /// Behind REPLICA, SLAVE or ALL.
    fn replica_status(&mut self, first: &str) -> Rule<Show> {
        let all = first == "ALL";
        let mut old_names = first == "SLAVE";
        if all {
            old_names = self.eat_word("SLAVES");
            if !old_names {
                self.expect_word("REPLICAS")?;
            }
        } else if self.eat_word("HOSTS") {
            return Ok(Show::Replicas { old_names });
        }
        // MariaDB names a connection between the words.
        let mut channel = if self.is(Tok::Str) { Some(self.string()?) } else { None };
        self.expect_word("STATUS")?;
        self.eat_word("NONBLOCKING");
        if channel.is_none() {
            channel = self.channel()?;
        }
        Ok(Show::ReplicaStatus { all, channel, old_names })
    }
}
