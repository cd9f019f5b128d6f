//! ALTER: the dispatch, and every action of ALTER TABLE.

use super::create::Constraint;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    AlterAction, AlterDatabase, AlterTable, ColumnPosition, Expr, Ident, OnlineOptions, OrderItem,
    ProgramKind, Statement,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// Words that start a partition action.
const PARTITION_WORDS: &[&str] = &["COALESCE", "REORGANIZE", "EXCHANGE", "REBUILD", "TRUNCATE", "REMOVE"];

impl Parser<'_> {
    /// At ALTER.
    pub(super) fn alter(&mut self) -> Rule<Statement> {
        self.advance();
        match self.token.kw {
            Kw::TABLE => return self.alter_table(false),
            Kw::IGNORE => {
                self.advance();
                return self.alter_table(true);
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                // The options' own words are not reserved, so the name is what is not an option.
                let option = self.is_word("CHARSET") || self.is_word("ENCRYPTION") || self.is_word("COMMENT");
                let name = if self.is_ident() && !option { Some(self.ident()?) } else { None };
                let options = self.database_options()?;
                return Ok(Statement::AlterDatabase(Box::new(AlterDatabase { name, options })));
            }
            Kw::PROCEDURE => return self.alter_routine(ProgramKind::Procedure),
            Kw::FUNCTION => return self.alter_routine(ProgramKind::Function),
            _ => {}
        }
        if self.eat_word("USER") {
            return self.alter_user();
        }
        if self.options.mariadb && self.eat_word("SEQUENCE") {
            return self.alter_sequence();
        }
        if self.is_word("ONLINE") {
            self.advance();
            let ignore = self.eat_kw(Kw::IGNORE);
            return self.alter_table(ignore);
        }
        let algorithm = self.view_algorithm()?;
        let definer = self.definer()?;
        if algorithm.is_some() || self.at_view() {
            return self.view(false, true, algorithm, definer);
        }
        if self.is_word("EVENT") {
            return self.alter_event(definer);
        }
        if self.is_word("INSTANCE") && self.peek_is_word("ROTATE") {
            self.advance();
            if self.peek_is_word("BINLOG") {
                return self.rotate_master_key(Statement::RotateBinlogMasterKey);
            }
            if self.peek_is_word("INNODB") {
                return self.rotate_master_key(Statement::RotateTableMasterKey);
            }
            return Ok(self.unsupported("ALTER INSTANCE", "alter_instance"));
        }
        for (word, what, kind) in [
            ("SERVER", "ALTER SERVER", "alter_server"),
            ("TABLESPACE", "ALTER TABLESPACE", "alter_tablespace"),
            ("UNDO", "ALTER UNDO TABLESPACE", "alter_tablespace"),
            ("LOGFILE", "ALTER LOGFILE GROUP", "alter_tablespace"),
            ("RESOURCE", "ALTER RESOURCE GROUP", "alter_resource_group"),
            ("INSTANCE", "ALTER INSTANCE", "alter_instance"),
            ("SEQUENCE", "ALTER SEQUENCE", "alter_sequence"),
        ] {
            if self.is_word(word) {
                return Ok(self.unsupported(what, kind));
            }
        }
        Err(self.error())
    }

    /// At ROTATE.
    fn rotate_master_key(&mut self, of: Statement) -> Rule<Statement> {
        self.advance();
        self.advance();
        if self.eat_word("MASTER") && (self.eat_kw(Kw::KEY) || self.eat_word("KEY")) {
            return Ok(of);
        }
        Err(self.error())
    }

    /// At TABLE.
    fn alter_table(&mut self, ignore: bool) -> Rule<Statement> {
        self.expect_kw(Kw::TABLE)?;
        let if_exists = self.if_exists();
        let table = self.object_name()?;
        // MariaDB: WAIT n | NOWAIT
        if self.eat_word("WAIT") {
            self.number()?;
        } else {
            self.eat_word("NOWAIT");
        }
        let mut alter =
            AlterTable { if_exists, ignore, table, actions: Vec::new(), online: OnlineOptions::default() };
        if !matches!(self.token.kind, Tok::Eof | Tok::Semicolon) {
            loop {
                self.alter_item(&mut alter)?;
                let more = self.eat(Tok::Comma);
                let option = matches!(alter.actions.last(), Some(AlterAction::Option(_)));
                let end = matches!(self.token.kind, Tok::Eof | Tok::Semicolon);
                if !more && (end || !(option || self.is_kw(Kw::PARTITION) || self.is_word("REMOVE"))) {
                    break;
                }
            }
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    fn alter_item(&mut self, alter: &mut AlterTable) -> Rule<()> {
        if self.online_option(&mut alter.online)? {
            return Ok(());
        }
        if self.eat_words(&["WITH", "VALIDATION"]) || self.eat_words(&["WITHOUT", "VALIDATION"]) {
            return Ok(());
        }
        if self.at_partition_action() {
            let text = self.rest_text();
            alter.actions.push(AlterAction::Partition(text));
            return Ok(());
        }
        match self.token.kw {
            Kw::ADD => self.alter_add(alter),
            Kw::DROP => self.alter_drop(alter),
            Kw::CHANGE => self.alter_change(alter),
            Kw::ALTER => self.alter_alter(alter),
            Kw::RENAME => self.alter_rename(alter),
            Kw::CONVERT => self.alter_convert(alter),
            Kw::FORCE => {
                self.advance();
                alter.actions.push(AlterAction::Force);
                Ok(())
            }
            Kw::ORDER => {
                self.advance();
                self.expect_kw(Kw::BY)?;
                let list = self.comma_list(ordering_column)?;
                alter.actions.push(AlterAction::OrderBy(list));
                Ok(())
            }
            _ => self.alter_word(alter),
        }
    }

    /// Actions whose word is not reserved, and table options.
    fn alter_word(&mut self, alter: &mut AlterTable) -> Rule<()> {
        let action = if self.eat_word("MODIFY") {
            self.eat_kw(Kw::COLUMN);
            let if_exists = self.if_exists();
            let name = self.ident()?;
            let column = Box::new(self.column_def(name)?);
            AlterAction::ModifyColumn { column, position: self.column_position()?, if_exists }
        } else if self.eat_words(&["DISABLE", "KEYS"]) {
            AlterAction::DisableKeys
        } else if self.eat_words(&["ENABLE", "KEYS"]) {
            AlterAction::EnableKeys
        } else if self.eat_words(&["DISCARD", "TABLESPACE"]) {
            AlterAction::DiscardTablespace
        } else if self.eat_words(&["IMPORT", "TABLESPACE"]) {
            AlterAction::ImportTablespace
        } else if self.is_word("SECONDARY_LOAD") || self.is_word("SECONDARY_UNLOAD") {
            return Err(ParseError::NotSupported("secondary engines"));
        } else if let Some(option) = self.table_option()? {
            AlterAction::Option(option)
        } else {
            return Err(self.error());
        };
        alter.actions.push(action);
        Ok(())
    }

    fn at_partition_action(&self) -> bool {
        let next = self.peek();
        match self.token.kw {
            Kw::PARTITION => next.kw == Kw::BY,
            Kw::ADD | Kw::DROP | Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE => next.kw == Kw::PARTITION,
            _ => {
                (PARTITION_WORDS.iter().any(|w| self.is_word(w)) || self.is_word("REPAIR"))
                    && (next.kw == Kw::PARTITION || self.token_is_word(&next, "PARTITIONING"))
                    || ((self.is_word("DISCARD") || self.is_word("IMPORT")) && next.kw == Kw::PARTITION)
            }
        }
    }

    /// The statement's remaining text.
    fn rest_text(&mut self) -> bytes::Bytes {
        let start = self.token.start;
        while !matches!(self.token.kind, Tok::Eof | Tok::Semicolon | Tok::Invalid) {
            self.advance();
        }
        self.text_since(start)
    }

    fn column_position(&mut self) -> Rule<ColumnPosition> {
        if self.eat_word("FIRST") {
            Ok(ColumnPosition::First)
        } else if self.eat_word("AFTER") {
            Ok(ColumnPosition::After(self.ident()?))
        } else {
            Ok(ColumnPosition::Default)
        }
    }

    fn alter_add(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        let column = self.eat_kw(Kw::COLUMN);
        if !column && let Some(constraint) = self.constraint()? {
            alter.actions.push(match constraint {
                Constraint::Index(index) => AlterAction::AddIndex(index),
                Constraint::ForeignKey(key) => AlterAction::AddForeignKey(key),
                Constraint::Check(check) => AlterAction::AddCheck(check),
            });
            return Ok(());
        }
        let if_not_exists = self.if_not_exists();
        if self.eat(Tok::LParen) {
            self.comma_list(|p| p.added_element(alter, if_not_exists))?;
            self.expect(Tok::RParen)?;
            return Ok(());
        }
        let name = self.ident()?;
        let column = Box::new(self.column_def(name)?);
        let position = self.column_position()?;
        alter.actions.push(AlterAction::AddColumn { column, position, if_not_exists });
        Ok(())
    }

    fn added_element(&mut self, alter: &mut AlterTable, if_not_exists: bool) -> Rule<()> {
        let action = match self.constraint()? {
            Some(Constraint::Index(index)) => AlterAction::AddIndex(index),
            Some(Constraint::ForeignKey(key)) => AlterAction::AddForeignKey(key),
            Some(Constraint::Check(check)) => AlterAction::AddCheck(check),
            None => {
                let name = self.ident()?;
                let column = Box::new(self.column_def(name)?);
                AlterAction::AddColumn { column, position: ColumnPosition::Default, if_not_exists }
            }
        };
        alter.actions.push(action);
        Ok(())
    }

    fn alter_drop(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        let action = match self.token.kw {
            Kw::PRIMARY => {
                self.advance();
                self.expect_kw(Kw::KEY)?;
                AlterAction::DropPrimaryKey
            }
            Kw::INDEX | Kw::KEY => {
                self.advance();
                let if_exists = self.if_exists();
                if self.eat_kw(Kw::PRIMARY) {
                    AlterAction::DropPrimaryKey
                } else {
                    let name = self.ident()?;
                    if name.is("PRIMARY") {
                        AlterAction::DropPrimaryKey
                    } else {
                        AlterAction::DropIndex { name, if_exists }
                    }
                }
            }
            Kw::FOREIGN => {
                self.advance();
                self.expect_kw(Kw::KEY)?;
                let if_exists = self.if_exists();
                AlterAction::DropForeignKey { name: self.ident()?, if_exists }
            }
            Kw::CHECK => {
                self.advance();
                AlterAction::DropCheck { name: self.ident()? }
            }
            Kw::CONSTRAINT => {
                self.advance();
                let if_exists = self.if_exists();
                let name = if self.eat_kw(Kw::PRIMARY) { "PRIMARY".into() } else { self.ident()? };
                AlterAction::DropConstraint { name, if_exists }
            }
            _ => {
                self.eat_kw(Kw::COLUMN);
                let if_exists = self.if_exists();
                let name = self.ident()?;
                let _ = self.eat_kw(Kw::RESTRICT) || self.eat_kw(Kw::CASCADE);
                AlterAction::DropColumn { name, if_exists }
            }
        };
        alter.actions.push(action);
        Ok(())
    }

    fn alter_change(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        self.eat_kw(Kw::COLUMN);
        let if_exists = self.if_exists();
        let old = self.ident()?;
        let new = self.ident()?;
        let column = Box::new(self.column_def(new)?);
        let position = self.column_position()?;
        alter.actions.push(AlterAction::ChangeColumn { old, column, position, if_exists });
        Ok(())
    }

    /// ALTER [COLUMN] c ..., ALTER INDEX i ..., ALTER CHECK c ...
    fn alter_alter(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        if self.eat_kw(Kw::INDEX) || self.eat_kw(Kw::KEY) {
            self.if_exists();
            let name = self.ident()?;
            let invisible = self.visibility()?;
            alter.actions.push(AlterAction::SetIndexVisibility { name, invisible });
            return Ok(());
        }
        let constraint = self.is_kw(Kw::CONSTRAINT);
        if constraint || self.is_kw(Kw::CHECK) {
            self.advance();
            let name = self.ident()?;
            let enforced = !self.eat_kw(Kw::NOT);
            self.expect_word("ENFORCED")?;
            alter.actions.push(match constraint {
                true => AlterAction::AlterConstraint { name, enforced },
                false => AlterAction::AlterCheck { name, enforced },
            });
            return Ok(());
        }
        self.eat_kw(Kw::COLUMN);
        self.if_exists();
        let column: Ident = self.ident()?;
        let action = if self.eat_words(&["DROP", "DEFAULT"]) {
            AlterAction::DropDefault { column }
        } else {
            self.expect_kw(Kw::SET)?;
            if self.eat_kw(Kw::DEFAULT) {
                AlterAction::SetDefault { column, default: self.default_clause()? }
            } else {
                AlterAction::SetColumnVisibility { column, invisible: self.visibility()? }
            }
        };
        alter.actions.push(action);
        Ok(())
    }

    fn visibility(&mut self) -> Rule<bool> {
        if self.eat_words(&["NOT", "IGNORED"]) {
            return Ok(false);
        }
        match self.eat_any(&["VISIBLE", "INVISIBLE", "IGNORED"]) {
            Some(word) => Ok(word != "VISIBLE"),
            None => Err(self.error()),
        }
    }

    fn alter_rename(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        let action = if self.eat_kw(Kw::COLUMN) {
            self.if_exists();
            let old = self.ident()?;
            self.expect_kw(Kw::TO)?;
            AlterAction::RenameColumn { old, new: self.ident()? }
        } else if self.eat_kw(Kw::INDEX) || self.eat_kw(Kw::KEY) {
            self.if_exists();
            let old = self.ident()?;
            self.expect_kw(Kw::TO)?;
            AlterAction::RenameIndex { old, new: self.ident()? }
        } else {
            let _ = self.eat_kw(Kw::TO) || self.eat_kw(Kw::AS) || self.eat(Tok::Eq);
            AlterAction::Rename(self.object_name()?)
        };
        alter.actions.push(action);
        Ok(())
    }

    fn alter_convert(&mut self, alter: &mut AlterTable) -> Rule<()> {
        self.advance();
        self.expect_kw(Kw::TO)?;
        let Some(charset) = self.type_charset()? else { return Err(self.error()) };
        let charset = (!charset.is("DEFAULT")).then_some(charset);
        let collation = if self.eat_kw(Kw::COLLATE) {
            self.optional_eq();
            Some(self.charset_name()?)
        } else {
            None
        };
        alter.actions.push(AlterAction::ConvertCharset { charset, collation });
        Ok(())
    }
}

/// A column in ORDER BY: there are no expressions there.
fn ordering_column(parser: &mut Parser<'_>) -> Rule<OrderItem> {
    let expr = Expr::Column(parser.column_ref()?);
    let descending = parser.eat_kw(Kw::DESC);
    if !descending {
        parser.eat_kw(Kw::ASC);
    }
    Ok(OrderItem { expr, descending })
}
