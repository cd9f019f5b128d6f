//! KILL, FLUSH, BACKUP, and table maintenance.

use super::{Parser, Rule, expr, names, show};
use crate::ParseError;
use crate::ast::{
    Backup, Flush, FlushTarget, HistogramChange, Histograms, Kill, KillTarget, Maintenance, MaintenanceKind,
    Statement,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At KILL.
pub(super) fn kill(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let soft = p.eat_word("SOFT");
    if !soft {
        p.eat_word("HARD");
    }
    let query = p.eat_word("QUERY");
    if !query {
        p.eat_word("CONNECTION");
    }
    let target = if query && p.is_word("ID") {
        p.advance();
        KillTarget::QueryId(expr::expr(p)?)
    } else if p.is_word("USER") && p.peek().kind != Tok::LParen {
        p.advance();
        KillTarget::User(names::user_name(p)?)
    } else {
        KillTarget::Connection(expr::expr(p)?)
    };
    Ok(Statement::Kill(Kill { query, soft, target }))
}

/// NO_WRITE_TO_BINLOG or LOCAL.
fn local(p: &mut Parser<'_>) -> bool {
    p.eat_kw(Kw::NO_WRITE_TO_BINLOG) || p.eat_word("LOCAL")
}

/// At FLUSH.
pub(super) fn flush(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let local = local(p);
    if p.eat_kw(Kw::TABLE) || p.eat_word("TABLES") {
        let target = flush_tables(p)?;
        return Ok(Statement::Flush(Box::new(Flush { local, targets: vec![target] })));
    }
    let targets = p.comma_list(flush_target)?;
    Ok(Statement::Flush(Box::new(Flush { local, targets })))
}

fn flush_tables(p: &mut Parser<'_>) -> Rule<FlushTarget> {
    let at_name = names::is_ident(p);
    let tables = if at_name { p.comma_list(names::object_name)? } else { Vec::new() };
    let again = |at: usize| tables[..at].contains(&tables[at]);
    if let Some(at) = (1..tables.len()).find(|at| again(*at)) {
        let message = format!("Not unique table/alias: '{}'", tables[at].name);
        return Err(ParseError::Other { code: 1066, state: "42000", message });
    }
    let read_lock = p.eat_words(&["WITH", "READ", "LOCK"]);
    if read_lock {
        // MariaDB: AND DISABLE CHECKPOINT
        p.eat_words(&["AND", "DISABLE", "CHECKPOINT"]);
    }
    let for_export = !read_lock && p.eat_words(&["FOR", "EXPORT"]);
    Ok(FlushTarget::Tables { tables, read_lock, for_export })
}

fn flush_target(p: &mut Parser<'_>) -> Rule<FlushTarget> {
    let mark = p.mark();
    let word = names::upper_word(p)?;
    Ok(match word.as_str() {
        "BINARY" | "ENGINE" | "ERROR" | "GENERAL" | "SLOW" => {
            p.expect_word("LOGS")?;
            match word.as_str() {
                "BINARY" => FlushTarget::BinaryLogs,
                "ENGINE" => FlushTarget::EngineLogs,
                "ERROR" => FlushTarget::ErrorLogs,
                "GENERAL" => FlushTarget::GeneralLogs,
                _ => FlushTarget::SlowLogs,
            }
        }
        "RELAY" => {
            p.expect_word("LOGS")?;
            FlushTarget::RelayLogs { channel: show::for_channel(p)? }
        }
        "LOGS" => FlushTarget::Logs,
        "PRIVILEGES" => FlushTarget::Privileges,
        "STATUS" => FlushTarget::Status,
        "GLOBAL" | "SESSION" if p.eat_word("STATUS") => FlushTarget::Status,
        "HOSTS" => FlushTarget::Hosts,
        "USER_RESOURCES" => FlushTarget::UserResources,
        "OPTIMIZER_COSTS" => FlushTarget::OptimizerCosts,
        "QUERY" => {
            p.expect_word("CACHE")?;
            FlushTarget::QueryCache
        }
        "DES_KEY_FILE" => FlushTarget::DesKeyFile,
        "MASTER" => FlushTarget::Master,
        "SLAVE" | "REPLICA" => FlushTarget::Replica,
        "SSL" => FlushTarget::Ssl,
        "TABLE_STATISTICS" | "INDEX_STATISTICS" | "USER_STATISTICS" | "CLIENT_STATISTICS" => {
            FlushTarget::Statistics
        }
        "TABLE" | "TABLES" => flush_tables(p)?,
        _ if p.options.mariadb => FlushTarget::Other(word),
        _ => {
            p.reset(mark);
            return Err(p.error());
        }
    })
}

/// At BACKUP.
pub(super) fn backup(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let backup = if p.eat_kw(Kw::TO) {
        Backup::To(names::string(p)?)
    } else if p.eat_word("STAGE") {
        Backup::Stage(names::upper_word(p)?)
    } else if p.eat_kw(Kw::LOCK) {
        Backup::Lock(names::object_name(p)?)
    } else {
        p.expect_kw(Kw::UNLOCK)?;
        Backup::Unlock
    };
    Ok(Statement::Backup(backup))
}

/// At ANALYZE, CHECK, CHECKSUM, OPTIMIZE or REPAIR.
pub(super) fn maintenance(p: &mut Parser<'_>) -> Rule<Statement> {
    let word = names::upper_word(p)?;
    let kind = match word.as_str() {
        "ANALYZE" => MaintenanceKind::Analyze,
        "CHECK" => MaintenanceKind::Check,
        "CHECKSUM" => MaintenanceKind::Checksum,
        "OPTIMIZE" => MaintenanceKind::Optimize,
        _ => MaintenanceKind::Repair,
    };
    let local = local(p);
    if matches!(kind, MaintenanceKind::Check | MaintenanceKind::Repair) && p.is_word("VIEW") {
        p.advance();
    } else if !p.eat_kw(Kw::TABLE) {
        p.expect_word("TABLES")?;
    }
    let tables = p.comma_list(names::object_name)?;
    let (mut options, mut histograms) = (Vec::new(), None);
    while p.is(Tok::Word) {
        if p.is_word("PERSISTENT") {
            // MariaDB's engine-independent statistics: the rest of the text says of what.
            while !matches!(p.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
                p.advance();
            }
            break;
        }
        if kind == MaintenanceKind::Analyze && (p.is_kw(Kw::UPDATE) || p.is_kw(Kw::DROP)) {
            histograms = Some(histogram_change(p)?);
            break;
        }
        if p.eat_words(&["FOR", "UPGRADE"]) {
            options.push("FOR UPGRADE".into());
        } else if let Some(option) =
            p.eat_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM", "FORCE"])
        {
            options.push(option.into());
        } else {
            return Err(p.error());
        }
    }
    Ok(Statement::Maintenance(Maintenance { kind, local, tables, options, histograms }))
}

/// At UPDATE or DROP behind the tables of ANALYZE TABLE.
fn histogram_change(p: &mut Parser<'_>) -> Rule<Histograms> {
    let update = p.eat_kw(Kw::UPDATE);
    if !update {
        p.advance();
    }
    p.expect_word("HISTOGRAM")?;
    p.expect_kw(Kw::ON)?;
    let columns = p.comma_list(names::ident)?;
    if !update {
        return Ok(Histograms { columns, change: HistogramChange::Drop });
    }
    if p.eat_words(&["USING", "DATA"]) {
        return Ok(Histograms { columns, change: HistogramChange::Given(names::string(p)?) });
    }
    let mut buckets = None;
    if p.eat_kw(Kw::WITH) {
        buckets = Some(names::number(p)?);
        p.expect_word("BUCKETS")?;
    }
    let auto = p.eat_words(&["AUTO", "UPDATE"]);
    if !auto {
        p.eat_words(&["MANUAL", "UPDATE"]);
    }
    Ok(Histograms { columns, change: HistogramChange::Update { buckets, auto } })
}
