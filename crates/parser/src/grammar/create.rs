//! CREATE, DROP, RENAME: the dispatch, and CREATE TABLE.

use super::{
    Parser, Rule, column, event, index, names, options, query, routine, sequence, statement, user, view,
};
use crate::ast::{
    CreateIndex, CreateTable, DropIndex, DropTable, Ident, OnDuplicate, OnlineOptions, ProgramKind, Statement,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// A word as it is written, reserved or not.
fn any_word(parser: &mut Parser<'_>) -> Rule<Ident> {
    let token = parser.expect(Tok::Word)?;
    Ok(String::from_utf8_lossy(parser.text(&token)).into_owned().into())
}

/// At CREATE.
pub(super) fn create(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let or_replace = p.eat_words(&["OR", "REPLACE"]);
    match p.token.kw {
        Kw::TABLE => create_table(p, or_replace, false),
        Kw::DATABASE | Kw::SCHEMA => {
            p.advance();
            statement::create_database(p, or_replace)
        }
        Kw::SPATIAL if p.peek_is_word("REFERENCE") => {
            Ok(statement::unsupported(p, "CREATE SPATIAL REFERENCE SYSTEM", "create_srs"))
        }
        Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL | Kw::INDEX => create_index(p, or_replace),
        Kw::PROCEDURE | Kw::FUNCTION => routine::create_routine(p, or_replace, None),
        Kw::TRIGGER => routine::create_trigger(p, or_replace, None),
        Kw::SQL => view::view(p, or_replace, false, None, None),
        _ => create_other(p, or_replace),
    }
}

fn create_other(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    if p.eat_word("TEMPORARY") {
        if p.options.mariadb && p.is_word("SEQUENCE") {
            return Ok(statement::unsupported(p, "CREATE TEMPORARY SEQUENCE", "create_sequence"));
        }
        return create_table(p, or_replace, true);
    }
    if p.is_word("ONLINE") || p.is_word("OFFLINE") {
        p.advance();
        return create_index(p, or_replace);
    }
    if p.eat_word("USER") {
        return user::create_user(p, or_replace);
    }
    if p.options.mariadb && p.eat_word("SEQUENCE") {
        return sequence::create_sequence(p, or_replace);
    }
    if p.eat_word("ROLE") {
        return user::create_role(p, or_replace);
    }
    let algorithm = view::view_algorithm(p)?;
    let definer = view::definer(p)?;
    if algorithm.is_some() || view::at_view(p) {
        return view::view(p, or_replace, false, algorithm, definer);
    }
    match p.token.kw {
        Kw::PROCEDURE | Kw::FUNCTION => routine::create_routine(p, or_replace, definer),
        Kw::TRIGGER => routine::create_trigger(p, or_replace, definer),
        _ if p.is_word("EVENT") => event::create_event(p, or_replace, definer),
        _ => create_unsupported(p),
    }
}

/// Kinds of object that are known and not had.
fn create_unsupported(p: &mut Parser<'_>) -> Rule<Statement> {
    let known = [
        ("AGGREGATE", "CREATE FUNCTION", "create_function"),
        ("SERVER", "CREATE SERVER", "create_server"),
        ("TABLESPACE", "CREATE TABLESPACE", "alter_tablespace"),
        ("UNDO", "CREATE UNDO TABLESPACE", "alter_tablespace"),
        ("LOGFILE", "CREATE LOGFILE GROUP", "alter_tablespace"),
        ("LIBRARY", "CREATE LIBRARY", "create_library"),
        ("RESOURCE", "CREATE RESOURCE GROUP", "create_resource_group"),
        ("SEQUENCE", "CREATE SEQUENCE", "create_sequence"),
        ("PACKAGE", "CREATE PACKAGE", "create_package"),
    ];
    statement::unsupported_of(p, &known)
}

/// At TABLE.
fn create_table(p: &mut Parser<'_>, or_replace: bool, temporary: bool) -> Rule<Statement> {
    p.expect_kw(Kw::TABLE)?;
    let if_not_exists = names::if_not_exists(p);
    let name = names::object_name(p)?;
    let mut table = CreateTable {
        or_replace,
        temporary,
        if_not_exists,
        name,
        like: None,
        columns: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        options: Vec::new(),
        partition: None,
        query: None,
        on_duplicate: OnDuplicate::Error,
    };
    if p.eat_kw(Kw::LIKE) {
        table.like = Some(names::object_name(p)?);
        return Ok(Statement::CreateTable(Box::new(table)));
    }
    if p.is(Tok::LParen) && !query::query_follows_paren(p) && p.peek().kind != Tok::LParen {
        p.advance();
        if p.eat_kw(Kw::LIKE) {
            table.like = Some(names::object_name(p)?);
            p.expect(Tok::RParen)?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        p.comma_list(|p| table_element(p, &mut table))?;
        p.expect(Tok::RParen)?;
    }
    create_table_tail(p, &mut table)?;
    Ok(Statement::CreateTable(Box::new(table)))
}

/// Options and the query. A table without a list of columns is refused by what it is, not as a text.
fn create_table_tail(p: &mut Parser<'_>, table: &mut CreateTable) -> Rule<()> {
    while let Some(option) = options::table_option(p)? {
        table.options.push(option);
        p.eat(Tok::Comma);
    }
    if p.is_kw(Kw::PARTITION) {
        table.partition = Some(partition_text(p));
    }
    if p.eat_kw(Kw::REPLACE) {
        table.on_duplicate = OnDuplicate::Replace;
    } else if p.eat_kw(Kw::IGNORE) {
        table.on_duplicate = OnDuplicate::Ignore;
    }
    if p.eat_kw(Kw::AS) || query::at_query(p) {
        table.query = Some(Box::new(query::query(p)?));
    } else if table.on_duplicate != OnDuplicate::Error {
        return Err(p.error());
    }
    Ok(())
}

/// PARTITION BY up to a query or the end, as text.
fn partition_text(p: &mut Parser<'_>) -> bytes::Bytes {
    let start = p.token.start;
    let mut depth = 0;
    loop {
        match p.token.kind {
            Tok::LParen => depth += 1,
            Tok::RParen => depth -= 1,
            Tok::Eof | Tok::Invalid | Tok::Semicolon => break,
            Tok::Word if depth == 0 => match p.token.kw {
                Kw::SELECT | Kw::AS | Kw::REPLACE | Kw::IGNORE | Kw::WITH => break,
                _ => {}
            },
            _ => {}
        }
        p.advance();
    }
    p.text_since(start)
}

/// A column, an index, a key or a check.
fn table_element(p: &mut Parser<'_>, table: &mut CreateTable) -> Rule<()> {
    match index::constraint(p)? {
        Some(Constraint::Index(index)) => table.indexes.push(*index),
        Some(Constraint::ForeignKey(key)) => table.foreign_keys.push(*key),
        Some(Constraint::Check(check)) => table.checks.push(*check),
        None => {
            let name = names::ident(p)?;
            table.columns.push(column::column_def(p, name)?);
        }
    }
    Ok(())
}

/// At UNIQUE, FULLTEXT, SPATIAL or INDEX.
fn create_index(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    let kind = index::index_kind(p);
    p.expect_kw(Kw::INDEX)?;
    let if_not_exists = names::if_not_exists(p);
    let name = names::ident(p)?;
    let algorithm = index::index_algorithm(p)?;
    p.expect_kw(Kw::ON)?;
    let table = names::object_name(p)?;
    let mut index = index::index_body(p, kind, Some(name))?;
    index.if_not_exists = if_not_exists;
    index.algorithm = index.algorithm.or(algorithm);
    let online = online_options(p)?;
    Ok(Statement::CreateIndex(Box::new(CreateIndex { or_replace, table, index, online })))
}

/// ALGORITHM= and LOCK= behind an index statement.
fn online_options(p: &mut Parser<'_>) -> Rule<OnlineOptions> {
    let mut online = OnlineOptions::default();
    while online_option(p, &mut online)? {
        p.eat(Tok::Comma);
    }
    Ok(online)
}

/// One of them, if it is there.
pub(super) fn online_option(p: &mut Parser<'_>, online: &mut OnlineOptions) -> Rule<bool> {
    if p.eat_word("ALGORITHM") {
        names::optional_eq(p);
        online.algorithm = Some(any_word(p)?);
    } else if p.eat_kw(Kw::LOCK) {
        names::optional_eq(p);
        online.lock = Some(any_word(p)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// At DROP.
pub(super) fn drop(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    match p.token.kw {
        Kw::TABLE => drop_table(p, false),
        Kw::DATABASE | Kw::SCHEMA => {
            p.advance();
            let if_exists = names::if_exists(p);
            Ok(Statement::DropDatabase { if_exists, name: names::ident(p)? })
        }
        Kw::INDEX => {
            p.advance();
            let if_exists = names::if_exists(p);
            let name = if p.eat_kw(Kw::PRIMARY) { "PRIMARY".into() } else { names::ident(p)? };
            p.expect_kw(Kw::ON)?;
            let table = names::object_name(p)?;
            let online = online_options(p)?;
            Ok(Statement::DropIndex(Box::new(DropIndex { if_exists, name, table, online })))
        }
        Kw::PROCEDURE => routine::drop_program(p, ProgramKind::Procedure),
        Kw::FUNCTION => routine::drop_program(p, ProgramKind::Function),
        Kw::TRIGGER => routine::drop_program(p, ProgramKind::Trigger),
        _ => drop_other(p),
    }
}

fn drop_other(p: &mut Parser<'_>) -> Rule<Statement> {
    if p.eat_word("TEMPORARY") {
        if p.eat_word("TABLES") {
            return Ok(Statement::DropTable(drop_names(p, true)?));
        }
        return drop_table(p, true);
    }
    if p.eat_word("TABLES") {
        return Ok(Statement::DropTable(drop_names(p, false)?));
    }
    if p.eat_word("VIEW") {
        return Ok(Statement::DropView(drop_names(p, false)?));
    }
    if p.options.mariadb && p.eat_word("SEQUENCE") {
        return Ok(Statement::DropSequence(drop_names(p, false)?));
    }
    if p.is_word("EVENT") {
        return routine::drop_program(p, ProgramKind::Event);
    }
    if p.eat_word("PREPARE") {
        return Ok(Statement::Deallocate(names::ident(p)?));
    }
    if p.eat_word("USER") {
        let if_exists = names::if_exists(p);
        return Ok(Statement::DropUser { if_exists, users: p.comma_list(names::user_name)? });
    }
    if p.eat_word("ROLE") {
        let if_exists = names::if_exists(p);
        return Ok(Statement::DropRole { if_exists, roles: p.comma_list(names::user_or_role)? });
    }
    let known = [
        ("SERVER", "DROP SERVER", "drop_server"),
        ("TABLESPACE", "DROP TABLESPACE", "alter_tablespace"),
        ("UNDO", "DROP UNDO TABLESPACE", "alter_tablespace"),
        ("LOGFILE", "DROP LOGFILE GROUP", "alter_tablespace"),
        ("RESOURCE", "DROP RESOURCE GROUP", "drop_resource_group"),
        ("SPATIAL", "DROP SPATIAL REFERENCE SYSTEM", "drop_srs"),
        ("SEQUENCE", "DROP SEQUENCE", "drop_sequence"),
        ("PACKAGE", "DROP PACKAGE", "drop_package"),
    ];
    statement::unsupported_of(p, &known)
}

/// At TABLE.
fn drop_table(p: &mut Parser<'_>, temporary: bool) -> Rule<Statement> {
    p.expect_kw(Kw::TABLE)?;
    Ok(Statement::DropTable(drop_names(p, temporary)?))
}

fn drop_names(p: &mut Parser<'_>, temporary: bool) -> Rule<DropTable> {
    let if_exists = names::if_exists(p);
    let tables = p.comma_list(names::object_name)?;
    let _ = p.eat_kw(Kw::RESTRICT) || p.eat_kw(Kw::CASCADE);
    Ok(DropTable { temporary, if_exists, tables })
}

/// At RENAME.
pub(super) fn rename(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.eat_word("USER") {
        return Ok(Statement::RenameUser(p.comma_list(|p| {
            let old = names::user_name(p)?;
            p.expect_kw(Kw::TO)?;
            Ok((old, names::user_name(p)?))
        })?));
    }
    if !p.eat_kw(Kw::TABLE) {
        p.expect_word("TABLES")?;
    }
    Ok(Statement::RenameTable(p.comma_list(|p| {
        let old = names::object_name(p)?;
        p.expect_kw(Kw::TO)?;
        Ok((old, names::object_name(p)?))
    })?))
}

/// A table element that is not a column.
pub(super) enum Constraint {
    Index(Box<crate::ast::IndexDef>),
    ForeignKey(Box<crate::ast::ForeignKey>),
    Check(Box<crate::ast::Check>),
}
