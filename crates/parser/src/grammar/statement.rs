//! The first words of a statement choose its rule.

use super::{
    Parser, Rule, admin, alter, column, condition, create, dml, expr, load, names, query, replication, set,
    show, transaction, user,
};
use crate::ParseError;
use crate::ast::{
    CreateDatabase, DatabaseOptions, Explain, ExplainTarget, Expr, PrepareSource, Span, Spanned, Statement,
    Unsupported,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// The statement that starts here, up to its `;` or the end; `None` when only `;` and blanks are left.
pub(crate) fn next_statement(p: &mut Parser<'_>) -> Rule<Option<Spanned<Statement>>> {
    let mut from = p.last_end as usize;
    while p.token.kind == Tok::Semicolon {
        from = p.token.end as usize;
        p.advance();
    }
    if p.token.kind == Tok::Eof {
        return Ok(None);
    }
    p.params = 0;
    let node = statement(p)?;
    if !matches!(p.token.kind, Tok::Semicolon | Tok::Eof) {
        return Err(p.error());
    }
    let end = p.token.start as usize;
    let text = &p.src[from.min(end)..end];
    let start = from + (text.len() - text.trim_ascii_start().len());
    let span = Span { start: start as u32, end: (start + text.trim_ascii().len()) as u32 };
    p.last_end = p.token.start;
    Ok(Some(Spanned { node, span, params: p.params }))
}

/// After a statement: where the next one's text starts, if any token follows the `;`.
pub(crate) fn rest(p: &mut Parser<'_>) -> Option<usize> {
    let mut at = p.token.start as usize;
    while p.token.kind == Tok::Semicolon {
        at = p.token.end as usize;
        p.advance();
    }
    let blank = p.src.get(at..).unwrap_or(&[]);
    at += blank.len() - blank.trim_ascii_start().len();
    (p.token.kind != Tok::Eof).then_some(at)
}

/// One statement, up to but not including its `;`.
pub(super) fn statement(p: &mut Parser<'_>) -> Rule<Statement> {
    match p.token.kw {
        Kw::SELECT | Kw::VALUES | Kw::TABLE => Ok(Statement::Select(Box::new(query::whole_query(p)?))),
        Kw::INSERT | Kw::REPLACE => dml::insert(p),
        Kw::UPDATE => dml::update(p, None),
        Kw::DELETE => dml::delete(p, None),
        Kw::WITH => with_statement(p),
        Kw::SET => set::set(p),
        Kw::SHOW => show::show(p),
        Kw::USE => {
            p.advance();
            Ok(Statement::Use(names::ident(p)?))
        }
        Kw::CREATE => create::create(p),
        Kw::ALTER => alter::alter(p),
        Kw::DROP => create::drop(p),
        Kw::RENAME => create::rename(p),
        Kw::DESC | Kw::DESCRIBE | Kw::EXPLAIN => explain(p),
        Kw::ANALYZE if !matches!(p.peek().kw, Kw::TABLE | Kw::NO_WRITE_TO_BINLOG) => analyze(p),
        Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE => admin::maintenance(p),
        Kw::LOAD => load::load(p),
        Kw::CALL => call_procedure(p),
        Kw::LOCK => transaction::lock_statement(p),
        Kw::UNLOCK => transaction::unlock_statement(p),
        Kw::RELEASE => {
            p.advance();
            p.expect_word("SAVEPOINT")?;
            Ok(Statement::ReleaseSavepoint(names::ident(p)?))
        }
        Kw::KILL => admin::kill(p),
        Kw::PURGE => replication::purge(p),
        Kw::CHANGE => replication::change(p),
        Kw::GRANT => user::grant(p),
        Kw::REVOKE => user::revoke(p),
        Kw::SIGNAL | Kw::RESIGNAL => condition::signal(p),
        Kw::GET => condition::get_diagnostics(p),
        Kw::NONE => word_statement(p),
        _ => Err(p.error()),
    }
}

/// Statements whose first word is not reserved.
fn word_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    if p.is(Tok::LParen) {
        return Ok(Statement::Select(Box::new(query::whole_query(p)?)));
    }
    if !p.is(Tok::Word) {
        return Err(p.error());
    }
    let mut buffer = [0u8; 12];
    let text = p.text(&p.token);
    let Some(word) = buffer.get_mut(..text.len()) else { return Err(p.error()) };
    word.copy_from_slice(text);
    word.make_ascii_uppercase();
    match &*word {
        b"BEGIN" | b"START" | b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"XA" => transaction::transaction(p),
        b"STOP" => replication::stop(p),
        b"PREPARE" => prepare(p),
        b"EXECUTE" => execute(p),
        b"DEALLOCATE" => {
            p.advance();
            p.expect_word("PREPARE")?;
            Ok(Statement::Deallocate(names::ident(p)?))
        }
        b"DO" => {
            p.advance();
            Ok(Statement::Do(p.comma_list(|p| {
                let expr = expr::expr(p)?;
                select_alias(p)?;
                Ok(expr)
            })?))
        }
        b"TRUNCATE" => {
            p.advance();
            p.eat_kw(Kw::TABLE);
            Ok(Statement::Truncate(names::object_name(p)?))
        }
        b"FLUSH" => admin::flush(p),
        b"RESET" => replication::reset_statement(p),
        b"BINLOG" => {
            p.advance();
            Ok(Statement::Binlog(names::string(p)?))
        }
        b"SHUTDOWN" => {
            p.advance();
            p.eat_words(&["WAIT", "FOR", "ALL", "SLAVES"]);
            Ok(Statement::Shutdown)
        }
        b"RESTART" => {
            p.advance();
            Ok(Statement::Restart)
        }
        b"BACKUP" => admin::backup(p),
        b"CHECKSUM" | b"REPAIR" => admin::maintenance(p),
        b"HELP" => {
            p.advance();
            let topic = names::ident_or_text(p)?;
            Ok(Statement::Help(bytes::Bytes::from(topic.into_string())))
        }
        b"HANDLER" => super::handler::statement(p),
        b"INSTALL" => Ok(unsupported(p, "INSTALL PLUGIN", "install_plugin")),
        b"UNINSTALL" => Ok(unsupported(p, "UNINSTALL PLUGIN", "uninstall_plugin")),
        b"CLONE" => Ok(unsupported(p, "CLONE", "clone")),
        b"IMPORT" => Ok(unsupported(p, "IMPORT TABLE", "import")),
        b"CACHE" => Ok(unsupported(p, "CACHE INDEX", "assign_to_keycache")),
        _ => Err(p.error()),
    }
}

fn select_alias(p: &mut Parser<'_>) -> Rule<()> {
    if p.eat_kw(Kw::AS) || names::is_ident(p) {
        names::ident_or_text(p)?;
    }
    Ok(())
}

/// WITH before SELECT, UPDATE or DELETE.
fn with_statement(p: &mut Parser<'_>) -> Rule<Statement> {
    let start = p.mark();
    let with = query::with(p)?;
    match p.token.kw {
        Kw::UPDATE => dml::update(p, with),
        Kw::DELETE => dml::delete(p, with),
        _ => {
            p.reset(start);
            Ok(Statement::Select(Box::new(query::whole_query(p)?)))
        }
    }
}

fn call_procedure(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let name = names::object_name(p)?;
    let mut args = Vec::new();
    if p.eat(Tok::LParen) && !p.eat(Tok::RParen) {
        args = p.comma_list(expr::expr)?;
        p.expect(Tok::RParen)?;
    }
    Ok(Statement::Call { name, args })
}

/// At PREPARE.
fn prepare(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let name = names::ident(p)?;
    p.expect_kw(Kw::FROM)?;
    let source = match p.token.kind {
        Tok::UserVar => PrepareSource::Variable(names::user_var(p)?),
        _ => PrepareSource::Text(names::string(p)?),
    };
    Ok(Statement::Prepare { name, source })
}

/// At EXECUTE.
fn execute(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let immediate = p.is_word("IMMEDIATE") && !matches!(p.peek().kind, Tok::Eof | Tok::Semicolon);
    if immediate && p.peek().kw != Kw::USING {
        p.advance();
        let source = expr::expr(p)?;
        return Ok(Statement::ExecuteImmediate { source, using: using(p)? });
    }
    let name = names::ident(p)?;
    let using = if p.options.mariadb {
        using(p)?
    } else if p.eat_kw(Kw::USING) {
        // MySQL takes variables alone.
        p.comma_list(|p| Ok(Expr::UserVar(names::user_var(p)?)))?
    } else {
        Vec::new()
    };
    Ok(Statement::Execute { name, using })
}

fn using(p: &mut Parser<'_>) -> Rule<Vec<Expr>> {
    if p.eat_kw(Kw::USING) { p.comma_list(expr::expr) } else { Ok(Vec::new()) }
}

/// At DESCRIBE, DESC or EXPLAIN: a table's columns, or a statement's plan.
fn explain(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let analyze = p.eat_kw(Kw::ANALYZE);
    let mut format = None;
    if p.is_word("FORMAT") && p.peek().kind == Tok::Eq {
        p.advance();
        p.advance();
        format = Some(names::charset_name(p)?);
    }
    let _ = p.eat_word("EXTENDED") || p.eat_word("PARTITIONS");
    let mut into = None;
    if p.is_kw(Kw::INTO) && p.peek().kind == Tok::UserVar {
        p.advance();
        into = Some(names::user_var(p)?);
    }
    let mut schema = None;
    if p.is_kw(Kw::FOR) && matches!(p.peek().kw, Kw::SCHEMA | Kw::DATABASE) {
        p.advance();
        p.advance();
        schema = Some(names::ident(p)?);
    }
    if p.eat_words(&["FOR", "CONNECTION"]) {
        let target = ExplainTarget::Connection(names::number(p)?);
        return Ok(Statement::Explain(Box::new(Explain { analyze, format, into, schema, target })));
    }
    if explainable(p) || into.is_some() || schema.is_some() {
        let target = ExplainTarget::Statement(Box::new(p.nest(statement)?));
        return Ok(Statement::Explain(Box::new(Explain { analyze, format, into, schema, target })));
    }
    let table = names::object_name(p)?;
    let column = match p.token.kind {
        Tok::Str => Some(names::string(p)?),
        _ if names::is_ident(p) => Some(bytes::Bytes::from(names::ident(p)?.into_string())),
        _ => None,
    };
    Ok(Statement::Describe { table, column })
}

fn explainable(p: &Parser<'_>) -> bool {
    matches!(
        p.token.kw,
        Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE
    ) || p.is(Tok::LParen)
}

/// MariaDB's ANALYZE [FORMAT=..] statement.
fn analyze(p: &mut Parser<'_>) -> Rule<Statement> {
    let next = p.peek();
    if p.token_is_word(&next, "LOCAL") || p.token_is_word(&next, "TABLES") {
        return admin::maintenance(p);
    }
    p.advance();
    let mut format = None;
    if p.eat_word("FORMAT") {
        p.expect(Tok::Eq)?;
        format = Some(names::charset_name(p)?);
    }
    if !explainable(p) {
        return Err(p.error());
    }
    let target = ExplainTarget::Statement(Box::new(p.nest(statement)?));
    Ok(Statement::Explain(Box::new(Explain { analyze: true, format, into: None, schema: None, target })))
}

/// CREATE DATABASE, with `CREATE [OR REPLACE] DATABASE` consumed.
pub(super) fn create_database(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    let if_not_exists = names::if_not_exists(p);
    let name = names::ident(p)?;
    let options = database_options(p)?;
    Ok(Statement::CreateDatabase(Box::new(CreateDatabase { or_replace, if_not_exists, name, options })))
}

/// The options of CREATE and ALTER DATABASE.
pub(super) fn database_options(p: &mut Parser<'_>) -> Rule<DatabaseOptions> {
    let mut options =
        DatabaseOptions { charset: None, collation: None, encryption: None, read_only: None, comment: None };
    loop {
        let mark = p.mark();
        p.eat_kw(Kw::DEFAULT);
        if let Some(charset) = column::type_charset(p)? {
            if let Some(other) = options.charset.filter(|other| !same_charset(other, &charset)) {
                let message = format!(
                    "Conflicting declarations: 'CHARACTER SET {other}' and 'CHARACTER SET {charset}'"
                );
                return Err(ParseError::other(1302, "HY000", message));
            }
            options.charset = Some(charset);
        } else if p.eat_kw(Kw::COLLATE) {
            names::optional_eq(p);
            options.collation = Some(names::charset_name(p)?);
        } else if p.eat_word("ENCRYPTION") {
            names::optional_eq(p);
            options.encryption = Some(names::string(p)?);
        } else if p.eat_words(&["READ", "ONLY"]) {
            names::optional_eq(p);
            options.read_only = if p.eat_kw(Kw::DEFAULT) { None } else { Some(names::number(p)? != 0) };
        } else if p.eat_word("COMMENT") {
            names::optional_eq(p);
            options.comment = Some(names::string(p)?);
        } else {
            p.reset(mark);
            return Ok(options);
        }
    }
}

/// Whether two names mean one character set; `utf8` is `utf8mb3`.
fn same_charset(one: &str, other: &str) -> bool {
    let full =
        |name: &str| if name.eq_ignore_ascii_case("utf8") { "utf8mb3".into() } else { name.to_lowercase() };
    full(one) == full(other)
}

/// A statement known by its first words: skips the rest of the text, which may hold `;` of its own.
pub(super) fn unsupported(p: &mut Parser<'_>, what: &'static str, kind: &'static str) -> Statement {
    while !matches!(p.token.kind, Tok::Eof | Tok::Invalid) {
        p.advance();
    }
    if p.is(Tok::Invalid) {
        p.token.kind = Tok::Eof;
    }
    Statement::Unsupported(Unsupported { what, kind })
}

/// A kind of object that is known by its word and not had: of `(word, what it is called, its kind)` the one that is next.
pub(super) fn unsupported_of(
    p: &mut Parser<'_>,
    known: &[(&str, &'static str, &'static str)],
) -> Rule<Statement> {
    match known.iter().find(|(word, ..)| p.is_word(word)) {
        Some((_, what, kind)) => Ok(unsupported(p, what, kind)),
        None => Err(p.error()),
    }
}
