//! SHOW.

use bytes::Bytes;

use super::{Parser, Rule, names, query};
use crate::ParseError;
use crate::ast::{EngineReport, Ident, ObjectName, Show, ShowEvents, ShowFilter, Statement, VarScope};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At SHOW.
pub(super) fn show(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    Ok(Statement::Show(Box::new(show_what(p)?)))
}

fn show_what(p: &mut Parser<'_>) -> Rule<Show> {
    let start = p.mark();
    let word = names::upper_word(p)?;
    let next_is_word = p.is(Tok::Word);
    Ok(match word.as_str() {
        "PARSE_TREE" => return Err(ParseError::NotSupported("SHOW PARSE_TREE")),
        "LIBRARY" if p.is_word("STATUS") => {
            return Err(ParseError::NotSupported("SHOW LIBRARY STATUS"));
        }
        "DATABASES" | "SCHEMAS" => Show::Databases(show_filter(p)?),
        "TABLES" | "COLUMNS" | "FIELDS" | "FULL" | "EXTENDED" | "INDEX" | "INDEXES" | "KEYS" => {
            p.reset(start);
            show_schema_objects(p)?
        }
        "TABLE" => {
            p.expect_word("STATUS")?;
            let (schema, filter) = in_schema(p)?;
            Show::TableStatus { schema, filter }
        }
        "OPEN" => {
            p.expect_word("TABLES")?;
            let (schema, filter) = in_schema(p)?;
            Show::OpenTables { schema, filter }
        }
        "TRIGGERS" => {
            let (schema, filter) = in_schema(p)?;
            Show::Triggers { schema, filter }
        }
        "EVENTS" => {
            let (schema, filter) = in_schema(p)?;
            Show::Events { schema, filter }
        }
        "CREATE" => show_create(p)?,
        "PROCEDURE" => routine(p, Show::ProcedureStatus, Show::ProcedureCode)?,
        "FUNCTION" => routine(p, Show::FunctionStatus, Show::FunctionCode)?,
        "PACKAGE" => {
            p.eat_word("BODY");
            p.expect_word("STATUS")?;
            Show::PackageStatus(show_filter(p)?)
        }
        "GLOBAL" => scoped(p, VarScope::Global)?,
        "SESSION" | "LOCAL" => scoped(p, VarScope::Session)?,
        "VARIABLES" => Show::Variables { scope: VarScope::Session, filter: show_filter(p)? },
        "STATUS" => Show::Status { scope: VarScope::Session, filter: show_filter(p)? },
        "PROCESSLIST" => Show::ProcessList { full: false },
        "ENGINES" => Show::Engines,
        "STORAGE" => {
            p.expect_word("ENGINES")?;
            Show::Engines
        }
        "ENGINE" => engine(p)?,
        "CHARACTER" | "CHAR" => {
            p.expect_kw(Kw::SET)?;
            Show::CharacterSet(show_filter(p)?)
        }
        "CHARSET" => Show::CharacterSet(show_filter(p)?),
        "COLLATION" => Show::Collation(show_filter(p)?),
        "WARNINGS" => Show::Warnings { count: false, limit: query::limit(p)? },
        "ERRORS" => Show::Errors { count: false, limit: query::limit(p)? },
        "COUNT" => show_count(p)?,
        "PRIVILEGES" => Show::Privileges,
        "PLUGINS" if p.eat_word("SONAME") => {
            Show::PluginsSoname(if p.is(Tok::Str) { Some(names::string(p)?) } else { None })
        }
        "PLUGINS" => Show::Plugins,
        "GRANTS" => {
            let user = if p.eat_kw(Kw::FOR) { Some(names::user_or_role(p)?) } else { None };
            let using = if p.eat_kw(Kw::USING) { p.comma_list(names::user_name)? } else { Vec::new() };
            Show::Grants { user, using }
        }
        "BINARY" => show_binary(p)?,
        "MASTER" => match p.eat_any(&["LOGS", "STATUS"]) {
            Some("LOGS") => Show::BinaryLogs,
            Some(_) => Show::BinaryLogStatus,
            None => return Err(p.error()),
        },
        "BINLOG" if p.eat_word("STATUS") => Show::BinaryLogStatus,
        "BINLOG" => {
            p.expect_word("EVENTS")?;
            Show::BinlogEvents(show_events(p)?)
        }
        "RELAYLOG" => {
            p.expect_word("EVENTS")?;
            Show::RelayLogEvents(show_events(p)?)
        }
        "REPLICA" | "SLAVE" | "ALL" => replica_status(p, word.as_str())?,
        "REPLICAS" => Show::Replicas { old_names: false },
        "PROFILES" => Show::Profiles,
        "PROFILE" => {
            while !matches!(p.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
                p.advance();
            }
            Show::Profile
        }
        "AUTHORS" => Show::Authors,
        "CONTRIBUTORS" => Show::Contributors,
        "LOCALES" => Show::Locales,
        "EXPLAIN" | "ANALYZE" => {
            p.expect_kw(Kw::FOR)?;
            Show::Explain { connection: names::number(p)? }
        }
        "USER_STATISTICS" | "INDEX_STATISTICS" | "TABLE_STATISTICS" | "CLIENT_STATISTICS"
            if !next_is_word =>
        {
            Show::UserStatistics(word)
        }
        _ => {
            p.reset(start);
            return Err(p.error());
        }
    })
}

/// `[EXTENDED] [FULL] TABLES | COLUMNS | PROCESSLIST`, INDEX.
fn show_schema_objects(p: &mut Parser<'_>) -> Rule<Show> {
    let extended = p.eat_word("EXTENDED");
    let full = p.eat_word("FULL");
    if p.eat_word("TABLES") {
        let (schema, filter) = in_schema(p)?;
        return Ok(Show::Tables { extended, full, schema, filter });
    }
    if full && p.eat_word("PROCESSLIST") {
        return Ok(Show::ProcessList { full: true });
    }
    if p.eat_word("COLUMNS") || p.eat_word("FIELDS") {
        let table = of_table(p)?;
        return Ok(Show::Columns { extended, full, table, filter: show_filter(p)? });
    }
    if !full && p.eat_any(&["INDEX", "INDEXES", "KEYS"]).is_some() {
        let table = of_table(p)?;
        return Ok(Show::Index { extended, table, filter: query::filter(p)? });
    }
    Err(p.error())
}

/// `{FROM | IN} t [{FROM | IN} schema]`
fn of_table(p: &mut Parser<'_>) -> Rule<ObjectName> {
    if !p.eat_kw(Kw::FROM) {
        p.expect_kw(Kw::IN)?;
    }
    let mut table = names::object_name(p)?;
    if p.eat_kw(Kw::FROM) || p.eat_kw(Kw::IN) {
        table.schema = Some(names::ident(p)?);
    }
    Ok(table)
}

/// `[{FROM | IN} schema] [LIKE | WHERE]`
fn in_schema(p: &mut Parser<'_>) -> Rule<(Option<Ident>, Option<ShowFilter>)> {
    let schema = if p.eat_kw(Kw::FROM) || p.eat_kw(Kw::IN) { Some(names::ident(p)?) } else { None };
    Ok((schema, show_filter(p)?))
}

fn show_filter(p: &mut Parser<'_>) -> Rule<Option<ShowFilter>> {
    if p.eat_kw(Kw::LIKE) {
        return Ok(Some(ShowFilter::Like(names::string(p)?)));
    }
    Ok(query::filter(p)?.map(ShowFilter::Where))
}

fn show_create(p: &mut Parser<'_>) -> Rule<Show> {
    let word = names::upper_word(p)?;
    Ok(match word.as_str() {
        "TABLE" => Show::CreateTable(names::object_name(p)?),
        "VIEW" => Show::CreateView(names::object_name(p)?),
        "DATABASE" | "SCHEMA" => {
            let if_not_exists = names::if_not_exists(p);
            Show::CreateDatabase { if_not_exists, name: names::ident(p)? }
        }
        "USER" if matches!(p.token.kind, Tok::Eof | Tok::Semicolon) => {
            Show::CreateUser(crate::ast::UserName::CurrentUser)
        }
        "USER" => Show::CreateUser(names::user_name(p)?),
        "PROCEDURE" => Show::CreateProcedure(names::object_name(p)?),
        "FUNCTION" => Show::CreateFunction(names::object_name(p)?),
        "TRIGGER" => Show::CreateTrigger(names::object_name(p)?),
        "EVENT" => Show::CreateEvent(names::object_name(p)?),
        "SEQUENCE" if p.options.mariadb => Show::CreateSequence(names::object_name(p)?),
        "SEQUENCE" => return Err(ParseError::NotSupported("sequences")),
        "PACKAGE" => return Err(ParseError::NotSupported("packages")),
        _ => return Err(p.error()),
    })
}

fn routine(
    p: &mut Parser<'_>,
    status: fn(Option<ShowFilter>) -> Show,
    code: fn(ObjectName) -> Show,
) -> Rule<Show> {
    if p.eat_word("CODE") {
        return Ok(code(names::object_name(p)?));
    }
    p.expect_word("STATUS")?;
    Ok(status(show_filter(p)?))
}

fn scoped(p: &mut Parser<'_>, scope: VarScope) -> Rule<Show> {
    match p.eat_any(&["VARIABLES", "STATUS"]) {
        Some("VARIABLES") => Ok(Show::Variables { scope, filter: show_filter(p)? }),
        Some(_) => Ok(Show::Status { scope, filter: show_filter(p)? }),
        None => Err(p.error()),
    }
}

fn engine(p: &mut Parser<'_>) -> Rule<Show> {
    let engine = names::ident_or_text(p).or_else(|_| names::upper_word(p))?;
    let what = match p.eat_any(&["STATUS", "MUTEX", "LOGS"]) {
        Some("STATUS") => EngineReport::Status,
        Some("MUTEX") => EngineReport::Mutex,
        Some(_) => EngineReport::Logs,
        None => return Err(p.error()),
    };
    Ok(Show::EngineStatus { engine, what })
}

/// `COUNT(*) WARNINGS | ERRORS`
fn show_count(p: &mut Parser<'_>) -> Rule<Show> {
    p.expect(Tok::LParen)?;
    p.expect(Tok::Star)?;
    p.expect(Tok::RParen)?;
    match p.eat_any(&["WARNINGS", "ERRORS"]) {
        Some("WARNINGS") => Ok(Show::Warnings { count: true, limit: None }),
        Some(_) => Ok(Show::Errors { count: true, limit: None }),
        None => Err(p.error()),
    }
}

fn show_binary(p: &mut Parser<'_>) -> Rule<Show> {
    if p.eat_word("LOGS") {
        return Ok(Show::BinaryLogs);
    }
    p.expect_word("LOG")?;
    p.expect_word("STATUS")?;
    Ok(Show::BinaryLogStatus)
}

/// `[IN 'file'] [FROM pos] [LIMIT ..] [FOR CHANNEL ..]`
fn show_events(p: &mut Parser<'_>) -> Rule<ShowEvents> {
    let mut events = ShowEvents::default();
    if p.is(Tok::Str) {
        // MariaDB: SHOW RELAYLOG 'name' EVENTS has its name elsewhere; here it is not one.
        return Err(p.error());
    }
    if p.eat_kw(Kw::IN) {
        events.file = Some(names::string(p)?);
    }
    if p.eat_kw(Kw::FROM) {
        events.position = Some(names::number(p)?);
    }
    events.limit = query::limit(p)?;
    events.channel = for_channel(p)?;
    Ok(events)
}

/// `FOR CHANNEL 'name'` or nothing.
pub(super) fn for_channel(p: &mut Parser<'_>) -> Rule<Option<Bytes>> {
    if p.eat_words(&["FOR", "CHANNEL"]) {
        return Ok(Some(names::ident_or_text(p)?.into_string().into_bytes().into()));
    }
    Ok(None)
}

/// Behind REPLICA, SLAVE or ALL.
fn replica_status(p: &mut Parser<'_>, first: &str) -> Rule<Show> {
    let all = first == "ALL";
    let mut old_names = first == "SLAVE";
    if all {
        old_names = p.eat_word("SLAVES");
        if !old_names {
            p.expect_word("REPLICAS")?;
        }
    } else if p.eat_word("HOSTS") {
        return Ok(Show::Replicas { old_names });
    }
    // MariaDB names a connection between the words.
    let mut channel = if p.is(Tok::Str) { Some(names::string(p)?) } else { None };
    p.expect_word("STATUS")?;
    p.eat_word("NONBLOCKING");
    if channel.is_none() {
        channel = for_channel(p)?;
    }
    Ok(Show::ReplicaStatus { all, channel, old_names })
}
