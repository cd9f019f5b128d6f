//! ALTER: the dispatch, and every action of ALTER TABLE.

use super::create::Constraint;
use super::{
    Parser, Rule, column, create, event, index, names, options, routine, sequence, statement, user, view,
};
use crate::ParseError;
use crate::ast::{
    AlterAction, AlterDatabase, AlterTable, ColumnPosition, Expr, Ident, OnlineOptions, OrderItem,
    ProgramKind, Statement,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// Words that start a partition action.
const PARTITION_WORDS: &[&str] = &["COALESCE", "REORGANIZE", "EXCHANGE", "REBUILD", "TRUNCATE", "REMOVE"];

/// At ALTER.
pub(super) fn alter(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    match p.token.kw {
        Kw::TABLE => return alter_table(p, false),
        Kw::IGNORE => {
            p.advance();
            return alter_table(p, true);
        }
        Kw::DATABASE | Kw::SCHEMA => {
            p.advance();
            // The options' own words are not reserved, so the name is what is not an option.
            let option = p.is_word("CHARSET") || p.is_word("ENCRYPTION") || p.is_word("COMMENT");
            let name = if names::is_ident(p) && !option { Some(names::ident(p)?) } else { None };
            let options = statement::database_options(p)?;
            return Ok(Statement::AlterDatabase(Box::new(AlterDatabase { name, options })));
        }
        Kw::PROCEDURE => return routine::alter_routine(p, ProgramKind::Procedure),
        Kw::FUNCTION => return routine::alter_routine(p, ProgramKind::Function),
        _ => {}
    }
    if p.eat_word("USER") {
        return user::alter_user(p);
    }
    if p.options.mariadb && p.eat_word("SEQUENCE") {
        return sequence::alter_sequence(p);
    }
    if p.is_word("ONLINE") {
        p.advance();
        let ignore = p.eat_kw(Kw::IGNORE);
        return alter_table(p, ignore);
    }
    let algorithm = view::view_algorithm(p)?;
    let definer = view::definer(p)?;
    if algorithm.is_some() || view::at_view(p) {
        return view::view(p, false, true, algorithm, definer);
    }
    if p.is_word("EVENT") {
        return event::alter_event(p, definer);
    }
    if p.is_word("INSTANCE") && p.peek_is_word("ROTATE") {
        p.advance();
        if p.peek_is_word("BINLOG") {
            return rotate_master_key(p, Statement::RotateBinlogMasterKey);
        }
        if p.peek_is_word("INNODB") {
            return rotate_master_key(p, Statement::RotateTableMasterKey);
        }
        return Ok(statement::unsupported(p, "ALTER INSTANCE", "alter_instance"));
    }
    let known = [
        ("SERVER", "ALTER SERVER", "alter_server"),
        ("TABLESPACE", "ALTER TABLESPACE", "alter_tablespace"),
        ("UNDO", "ALTER UNDO TABLESPACE", "alter_tablespace"),
        ("LOGFILE", "ALTER LOGFILE GROUP", "alter_tablespace"),
        ("RESOURCE", "ALTER RESOURCE GROUP", "alter_resource_group"),
        ("INSTANCE", "ALTER INSTANCE", "alter_instance"),
        ("SEQUENCE", "ALTER SEQUENCE", "alter_sequence"),
    ];
    statement::unsupported_of(p, &known)
}

/// ALTER INSTANCE ROTATE .. MASTER KEY, from ROTATE on.
fn rotate_master_key(p: &mut Parser<'_>, of: Statement) -> Rule<Statement> {
    p.advance();
    p.advance();
    if p.eat_word("MASTER") && (p.eat_kw(Kw::KEY) || p.eat_word("KEY")) {
        return Ok(of);
    }
    Err(p.error())
}

/// At TABLE.
fn alter_table(p: &mut Parser<'_>, ignore: bool) -> Rule<Statement> {
    p.expect_kw(Kw::TABLE)?;
    let if_exists = names::if_exists(p);
    let table = names::object_name(p)?;
    // MariaDB: WAIT n | NOWAIT
    if p.eat_word("WAIT") {
        names::number(p)?;
    } else {
        p.eat_word("NOWAIT");
    }
    let mut alter =
        AlterTable { if_exists, ignore, table, actions: Vec::new(), online: OnlineOptions::default() };
    if !matches!(p.token.kind, Tok::Eof | Tok::Semicolon) {
        loop {
            alter_item(p, &mut alter)?;
            let more = p.eat(Tok::Comma);
            let option = matches!(alter.actions.last(), Some(AlterAction::Option(_)));
            let end = matches!(p.token.kind, Tok::Eof | Tok::Semicolon);
            if !more && (end || !(option || p.is_kw(Kw::PARTITION) || p.is_word("REMOVE"))) {
                break;
            }
        }
    }
    Ok(Statement::AlterTable(Box::new(alter)))
}

fn alter_item(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    if create::online_option(p, &mut alter.online)? {
        return Ok(());
    }
    if p.eat_words(&["WITH", "VALIDATION"]) || p.eat_words(&["WITHOUT", "VALIDATION"]) {
        return Ok(());
    }
    if at_partition_action(p) {
        let text = rest_text(p);
        alter.actions.push(AlterAction::Partition(text));
        return Ok(());
    }
    match p.token.kw {
        Kw::ADD => alter_add(p, alter),
        Kw::DROP => alter_drop(p, alter),
        Kw::CHANGE => alter_change(p, alter),
        Kw::ALTER => alter_alter(p, alter),
        Kw::RENAME => alter_rename(p, alter),
        Kw::CONVERT => alter_convert(p, alter),
        Kw::FORCE => {
            p.advance();
            alter.actions.push(AlterAction::Force);
            Ok(())
        }
        Kw::ORDER => {
            p.advance();
            p.expect_kw(Kw::BY)?;
            let list = p.comma_list(ordering_column)?;
            alter.actions.push(AlterAction::OrderBy(list));
            Ok(())
        }
        _ => alter_word(p, alter),
    }
}

/// Actions whose word is not reserved, and table options.
fn alter_word(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    let action = if p.eat_word("MODIFY") {
        p.eat_kw(Kw::COLUMN);
        let if_exists = names::if_exists(p);
        let name = names::ident(p)?;
        let column = Box::new(column::column_def(p, name)?);
        AlterAction::ModifyColumn { column, position: column_position(p)?, if_exists }
    } else if p.eat_words(&["DISABLE", "KEYS"]) {
        AlterAction::DisableKeys
    } else if p.eat_words(&["ENABLE", "KEYS"]) {
        AlterAction::EnableKeys
    } else if p.eat_words(&["DISCARD", "TABLESPACE"]) {
        AlterAction::DiscardTablespace
    } else if p.eat_words(&["IMPORT", "TABLESPACE"]) {
        AlterAction::ImportTablespace
    } else if p.is_word("SECONDARY_LOAD") || p.is_word("SECONDARY_UNLOAD") {
        return Err(ParseError::NotSupported("secondary engines"));
    } else if let Some(option) = options::table_option(p)? {
        AlterAction::Option(option)
    } else {
        return Err(p.error());
    };
    alter.actions.push(action);
    Ok(())
}

fn at_partition_action(p: &Parser<'_>) -> bool {
    let next = p.peek();
    match p.token.kw {
        Kw::PARTITION => next.kw == Kw::BY,
        Kw::ADD | Kw::DROP | Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE => next.kw == Kw::PARTITION,
        _ => {
            (PARTITION_WORDS.iter().any(|w| p.is_word(w)) || p.is_word("REPAIR"))
                && (next.kw == Kw::PARTITION || p.token_is_word(&next, "PARTITIONING"))
                || ((p.is_word("DISCARD") || p.is_word("IMPORT")) && next.kw == Kw::PARTITION)
        }
    }
}

/// The statement's remaining text.
fn rest_text(p: &mut Parser<'_>) -> bytes::Bytes {
    let start = p.token.start;
    while !matches!(p.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
        p.advance();
    }
    p.text_since(start)
}

fn column_position(p: &mut Parser<'_>) -> Rule<ColumnPosition> {
    if p.eat_word("FIRST") {
        Ok(ColumnPosition::First)
    } else if p.eat_word("AFTER") {
        Ok(ColumnPosition::After(names::ident(p)?))
    } else {
        Ok(ColumnPosition::Default)
    }
}

fn alter_add(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    let column = p.eat_kw(Kw::COLUMN);
    if !column && let Some(constraint) = index::constraint(p)? {
        alter.actions.push(match constraint {
            Constraint::Index(index) => AlterAction::AddIndex(index),
            Constraint::ForeignKey(key) => AlterAction::AddForeignKey(key),
            Constraint::Check(check) => AlterAction::AddCheck(check),
        });
        return Ok(());
    }
    let if_not_exists = names::if_not_exists(p);
    if p.eat(Tok::LParen) {
        p.comma_list(|p| added_element(p, alter, if_not_exists))?;
        p.expect(Tok::RParen)?;
        return Ok(());
    }
    let name = names::ident(p)?;
    let column = Box::new(column::column_def(p, name)?);
    let position = column_position(p)?;
    alter.actions.push(AlterAction::AddColumn { column, position, if_not_exists });
    Ok(())
}

fn added_element(p: &mut Parser<'_>, alter: &mut AlterTable, if_not_exists: bool) -> Rule<()> {
    let action = match index::constraint(p)? {
        Some(Constraint::Index(index)) => AlterAction::AddIndex(index),
        Some(Constraint::ForeignKey(key)) => AlterAction::AddForeignKey(key),
        Some(Constraint::Check(check)) => AlterAction::AddCheck(check),
        None => {
            let name = names::ident(p)?;
            let column = Box::new(column::column_def(p, name)?);
            AlterAction::AddColumn { column, position: ColumnPosition::Default, if_not_exists }
        }
    };
    alter.actions.push(action);
    Ok(())
}

fn alter_drop(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    let action = match p.token.kw {
        Kw::PRIMARY => {
            p.advance();
            p.expect_kw(Kw::KEY)?;
            AlterAction::DropPrimaryKey
        }
        Kw::INDEX | Kw::KEY => {
            p.advance();
            let if_exists = names::if_exists(p);
            if p.eat_kw(Kw::PRIMARY) {
                AlterAction::DropPrimaryKey
            } else {
                let name = names::ident(p)?;
                if name.is("PRIMARY") {
                    AlterAction::DropPrimaryKey
                } else {
                    AlterAction::DropIndex { name, if_exists }
                }
            }
        }
        Kw::FOREIGN => {
            p.advance();
            p.expect_kw(Kw::KEY)?;
            let if_exists = names::if_exists(p);
            AlterAction::DropForeignKey { name: names::ident(p)?, if_exists }
        }
        Kw::CHECK => {
            p.advance();
            AlterAction::DropCheck { name: names::ident(p)? }
        }
        Kw::CONSTRAINT => {
            p.advance();
            let if_exists = names::if_exists(p);
            let name = if p.eat_kw(Kw::PRIMARY) { "PRIMARY".into() } else { names::ident(p)? };
            AlterAction::DropConstraint { name, if_exists }
        }
        _ => {
            p.eat_kw(Kw::COLUMN);
            let if_exists = names::if_exists(p);
            let name = names::ident(p)?;
            let _ = p.eat_kw(Kw::RESTRICT) || p.eat_kw(Kw::CASCADE);
            AlterAction::DropColumn { name, if_exists }
        }
    };
    alter.actions.push(action);
    Ok(())
}

fn alter_change(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    p.eat_kw(Kw::COLUMN);
    let if_exists = names::if_exists(p);
    let old = names::ident(p)?;
    let new = names::ident(p)?;
    let column = Box::new(column::column_def(p, new)?);
    let position = column_position(p)?;
    alter.actions.push(AlterAction::ChangeColumn { old, column, position, if_exists });
    Ok(())
}

/// ALTER [COLUMN] c ..., ALTER INDEX i ..., ALTER CHECK c ...
fn alter_alter(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    if p.eat_kw(Kw::INDEX) || p.eat_kw(Kw::KEY) {
        names::if_exists(p);
        let name = names::ident(p)?;
        let invisible = visibility(p)?;
        alter.actions.push(AlterAction::SetIndexVisibility { name, invisible });
        return Ok(());
    }
    let constraint = p.is_kw(Kw::CONSTRAINT);
    if constraint || p.is_kw(Kw::CHECK) {
        p.advance();
        let name = names::ident(p)?;
        let enforced = !p.eat_kw(Kw::NOT);
        p.expect_word("ENFORCED")?;
        alter.actions.push(match constraint {
            true => AlterAction::AlterConstraint { name, enforced },
            false => AlterAction::AlterCheck { name, enforced },
        });
        return Ok(());
    }
    p.eat_kw(Kw::COLUMN);
    names::if_exists(p);
    let column: Ident = names::ident(p)?;
    let action = if p.eat_words(&["DROP", "DEFAULT"]) {
        AlterAction::DropDefault { column }
    } else {
        p.expect_kw(Kw::SET)?;
        if p.eat_kw(Kw::DEFAULT) {
            AlterAction::SetDefault { column, default: column::default_clause(p)? }
        } else {
            AlterAction::SetColumnVisibility { column, invisible: visibility(p)? }
        }
    };
    alter.actions.push(action);
    Ok(())
}

fn visibility(p: &mut Parser<'_>) -> Rule<bool> {
    if p.eat_words(&["NOT", "IGNORED"]) {
        return Ok(false);
    }
    match p.eat_any(&["VISIBLE", "INVISIBLE", "IGNORED"]) {
        Some(word) => Ok(word != "VISIBLE"),
        None => Err(p.error()),
    }
}

fn alter_rename(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    let action = if p.eat_kw(Kw::COLUMN) {
        names::if_exists(p);
        let old = names::ident(p)?;
        p.expect_kw(Kw::TO)?;
        AlterAction::RenameColumn { old, new: names::ident(p)? }
    } else if p.eat_kw(Kw::INDEX) || p.eat_kw(Kw::KEY) {
        names::if_exists(p);
        let old = names::ident(p)?;
        p.expect_kw(Kw::TO)?;
        AlterAction::RenameIndex { old, new: names::ident(p)? }
    } else {
        let _ = p.eat_kw(Kw::TO) || p.eat_kw(Kw::AS) || p.eat(Tok::Eq);
        AlterAction::Rename(names::object_name(p)?)
    };
    alter.actions.push(action);
    Ok(())
}

fn alter_convert(p: &mut Parser<'_>, alter: &mut AlterTable) -> Rule<()> {
    p.advance();
    p.expect_kw(Kw::TO)?;
    let Some(charset) = column::type_charset(p)? else { return Err(p.error()) };
    let charset = (!charset.is("DEFAULT")).then_some(charset);
    let collation = if p.eat_kw(Kw::COLLATE) {
        names::optional_eq(p);
        Some(names::charset_name(p)?)
    } else {
        None
    };
    alter.actions.push(AlterAction::ConvertCharset { charset, collation });
    Ok(())
}

/// A column in ORDER BY: there are no expressions there.
fn ordering_column(parser: &mut Parser<'_>) -> Rule<OrderItem> {
    let expr = Expr::Column(names::column_ref(parser)?);
    let descending = parser.eat_kw(Kw::DESC);
    if !descending {
        parser.eat_kw(Kw::ASC);
    }
    Ok(OrderItem { expr, descending })
}
