//! CREATE, DROP, RENAME: the dispatch, and CREATE TABLE.

use super::{Parser, Rule};
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

impl Parser<'_> {
    /// At CREATE.
    pub(super) fn create(&mut self) -> Rule<Statement> {
        self.advance();
        let or_replace = self.eat_words(&["OR", "REPLACE"]);
        match self.token.kw {
            Kw::TABLE => self.create_table(or_replace, false),
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                self.create_database(or_replace)
            }
            Kw::SPATIAL if self.peek_is_word("REFERENCE") => {
                Ok(self.unsupported("CREATE SPATIAL REFERENCE SYSTEM", "create_srs"))
            }
            Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL | Kw::INDEX => self.create_index(or_replace),
            Kw::PROCEDURE | Kw::FUNCTION => self.create_routine(or_replace, None),
            Kw::TRIGGER => self.create_trigger(or_replace, None),
            Kw::SQL => self.view(or_replace, false, None, None),
            _ => self.create_other(or_replace),
        }
    }

    fn create_other(&mut self, or_replace: bool) -> Rule<Statement> {
        if self.eat_word("TEMPORARY") {
            if self.options.mariadb && self.is_word("SEQUENCE") {
                return Ok(self.unsupported("CREATE TEMPORARY SEQUENCE", "create_sequence"));
            }
            return self.create_table(or_replace, true);
        }
        if self.is_word("ONLINE") || self.is_word("OFFLINE") {
            self.advance();
            return self.create_index(or_replace);
        }
        if self.eat_word("USER") {
            return self.create_user(or_replace);
        }
        if self.options.mariadb && self.eat_word("SEQUENCE") {
            return self.create_sequence(or_replace);
        }
        if self.eat_word("ROLE") {
            return self.create_role(or_replace);
        }
        let algorithm = self.view_algorithm()?;
        let definer = self.definer()?;
        if algorithm.is_some() || self.at_view() {
            return self.view(or_replace, false, algorithm, definer);
        }
        match self.token.kw {
            Kw::PROCEDURE | Kw::FUNCTION => self.create_routine(or_replace, definer),
            Kw::TRIGGER => self.create_trigger(or_replace, definer),
            _ if self.is_word("EVENT") => self.create_event(or_replace, definer),
            _ => self.create_unsupported(),
        }
    }

    /// Kinds of object that are known and not had.
    fn create_unsupported(&mut self) -> Rule<Statement> {
        if self.eat_word("AGGREGATE") {
            return Ok(self.unsupported("CREATE FUNCTION", "create_function"));
        }
        for (word, what, kind) in [
            ("AGGREGATE", "CREATE FUNCTION", "create_function"),
            ("SERVER", "CREATE SERVER", "create_server"),
            ("TABLESPACE", "CREATE TABLESPACE", "alter_tablespace"),
            ("UNDO", "CREATE UNDO TABLESPACE", "alter_tablespace"),
            ("LOGFILE", "CREATE LOGFILE GROUP", "alter_tablespace"),
            ("LIBRARY", "CREATE LIBRARY", "create_library"),
            ("RESOURCE", "CREATE RESOURCE GROUP", "create_resource_group"),
            ("SEQUENCE", "CREATE SEQUENCE", "create_sequence"),
            ("PACKAGE", "CREATE PACKAGE", "create_package"),
        ] {
            if self.is_word(word) {
                return Ok(self.unsupported(what, kind));
            }
        }
        Err(self.error())
    }

    /// At TABLE.
    fn create_table(&mut self, or_replace: bool, temporary: bool) -> Rule<Statement> {
        self.expect_kw(Kw::TABLE)?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
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
        if self.eat_kw(Kw::LIKE) {
            table.like = Some(self.object_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.is(Tok::LParen) && !self.query_follows_paren() && self.peek().kind != Tok::LParen {
            self.advance();
            if self.eat_kw(Kw::LIKE) {
                table.like = Some(self.object_name()?);
                self.expect(Tok::RParen)?;
                return Ok(Statement::CreateTable(Box::new(table)));
            }
            self.comma_list(|p| p.table_element(&mut table))?;
            self.expect(Tok::RParen)?;
        }
        self.create_table_tail(&mut table)?;
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// Options and the query. A table without a list of columns is refused by what it is, not as a text.
    fn create_table_tail(&mut self, table: &mut CreateTable) -> Rule<()> {
        while let Some(option) = self.table_option()? {
            table.options.push(option);
            self.eat(Tok::Comma);
        }
        if self.is_kw(Kw::PARTITION) {
            table.partition = Some(self.partition_text());
        }
        if self.eat_kw(Kw::REPLACE) {
            table.on_duplicate = OnDuplicate::Replace;
        } else if self.eat_kw(Kw::IGNORE) {
            table.on_duplicate = OnDuplicate::Ignore;
        }
        if self.eat_kw(Kw::AS) || self.at_query() {
            table.query = Some(Box::new(self.query()?));
        } else if table.on_duplicate != OnDuplicate::Error {
            return Err(self.error());
        }
        Ok(())
    }

    /// PARTITION BY up to a query or the end, as text.
    fn partition_text(&mut self) -> bytes::Bytes {
        let start = self.token.start;
        let mut depth = 0;
        loop {
            match self.token.kind {
                Tok::LParen => depth += 1,
                Tok::RParen => depth -= 1,
                Tok::Eof | Tok::Invalid | Tok::Semicolon => break,
                Tok::Word if depth == 0 => match self.token.kw {
                    Kw::SELECT | Kw::AS | Kw::REPLACE | Kw::IGNORE | Kw::WITH => break,
                    _ => {}
                },
                _ => {}
            }
            self.advance();
        }
        self.text_since(start)
    }

    /// A column, an index, a key or a check.
    fn table_element(&mut self, table: &mut CreateTable) -> Rule<()> {
        match self.constraint()? {
            Some(Constraint::Index(index)) => table.indexes.push(*index),
            Some(Constraint::ForeignKey(key)) => table.foreign_keys.push(*key),
            Some(Constraint::Check(check)) => table.checks.push(*check),
            None => {
                let name = self.ident()?;
                table.columns.push(self.column_def(name)?);
            }
        }
        Ok(())
    }

    /// At UNIQUE, FULLTEXT, SPATIAL or INDEX.
    fn create_index(&mut self, or_replace: bool) -> Rule<Statement> {
        let kind = self.index_kind();
        self.expect_kw(Kw::INDEX)?;
        let if_not_exists = self.if_not_exists();
        let name = self.ident()?;
        let algorithm = self.index_algorithm()?;
        self.expect_kw(Kw::ON)?;
        let table = self.object_name()?;
        let mut index = self.index_body(kind, Some(name))?;
        index.if_not_exists = if_not_exists;
        index.algorithm = index.algorithm.or(algorithm);
        let online = self.online_options()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex { or_replace, table, index, online })))
    }

    /// ALGORITHM= and LOCK= behind an index statement.
    fn online_options(&mut self) -> Rule<OnlineOptions> {
        let mut online = OnlineOptions::default();
        while self.online_option(&mut online)? {
            self.eat(Tok::Comma);
        }
        Ok(online)
    }

    /// One of them, if it is there.
    pub(super) fn online_option(&mut self, online: &mut OnlineOptions) -> Rule<bool> {
        if self.eat_word("ALGORITHM") {
            self.optional_eq();
            online.algorithm = Some(any_word(self)?);
        } else if self.eat_kw(Kw::LOCK) {
            self.optional_eq();
            online.lock = Some(any_word(self)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// At DROP.
    pub(super) fn drop(&mut self) -> Rule<Statement> {
        self.advance();
        match self.token.kw {
            Kw::TABLE => self.drop_table(false),
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase { if_exists, name: self.ident()? })
            }
            Kw::INDEX => {
                self.advance();
                let if_exists = self.if_exists();
                let name = if self.eat_kw(Kw::PRIMARY) { "PRIMARY".into() } else { self.ident()? };
                self.expect_kw(Kw::ON)?;
                let table = self.object_name()?;
                let online = self.online_options()?;
                Ok(Statement::DropIndex(Box::new(DropIndex { if_exists, name, table, online })))
            }
            Kw::PROCEDURE => self.drop_program(ProgramKind::Procedure),
            Kw::FUNCTION => self.drop_program(ProgramKind::Function),
            Kw::TRIGGER => self.drop_program(ProgramKind::Trigger),
            _ => self.drop_other(),
        }
    }

    fn drop_other(&mut self) -> Rule<Statement> {
        if self.eat_word("TEMPORARY") {
            if self.eat_word("TABLES") {
                return Ok(Statement::DropTable(self.drop_names(true)?));
            }
            return self.drop_table(true);
        }
        if self.eat_word("TABLES") {
            return Ok(Statement::DropTable(self.drop_names(false)?));
        }
        if self.eat_word("VIEW") {
            return Ok(Statement::DropView(self.drop_names(false)?));
        }
        if self.options.mariadb && self.eat_word("SEQUENCE") {
            return Ok(Statement::DropSequence(self.drop_names(false)?));
        }
        if self.is_word("EVENT") {
            return self.drop_program(ProgramKind::Event);
        }
        if self.eat_word("PREPARE") {
            return Ok(Statement::Deallocate(self.ident()?));
        }
        if self.eat_word("USER") {
            let if_exists = self.if_exists();
            return Ok(Statement::DropUser { if_exists, users: self.comma_list(Self::user_name)? });
        }
        if self.eat_word("ROLE") {
            let if_exists = self.if_exists();
            return Ok(Statement::DropRole { if_exists, roles: self.comma_list(Self::user_or_role)? });
        }
        for (word, what, kind) in [
            ("SERVER", "DROP SERVER", "drop_server"),
            ("TABLESPACE", "DROP TABLESPACE", "alter_tablespace"),
            ("UNDO", "DROP UNDO TABLESPACE", "alter_tablespace"),
            ("LOGFILE", "DROP LOGFILE GROUP", "alter_tablespace"),
            ("RESOURCE", "DROP RESOURCE GROUP", "drop_resource_group"),
            ("SPATIAL", "DROP SPATIAL REFERENCE SYSTEM", "drop_srs"),
            ("SEQUENCE", "DROP SEQUENCE", "drop_sequence"),
            ("PACKAGE", "DROP PACKAGE", "drop_package"),
        ] {
            if self.is_word(word) {
                return Ok(self.unsupported(what, kind));
            }
        }
        Err(self.error())
    }

    /// At TABLE.
    fn drop_table(&mut self, temporary: bool) -> Rule<Statement> {
        self.expect_kw(Kw::TABLE)?;
        Ok(Statement::DropTable(self.drop_names(temporary)?))
    }

    fn drop_names(&mut self, temporary: bool) -> Rule<DropTable> {
        let if_exists = self.if_exists();
        let tables = self.comma_list(Self::object_name)?;
        let _ = self.eat_kw(Kw::RESTRICT) || self.eat_kw(Kw::CASCADE);
        Ok(DropTable { temporary, if_exists, tables })
    }

    /// At RENAME.
    pub(super) fn rename(&mut self) -> Rule<Statement> {
        self.advance();
        if self.eat_word("USER") {
            return Ok(Statement::RenameUser(self.comma_list(|p| {
                let old = p.user_name()?;
                p.expect_kw(Kw::TO)?;
                Ok((old, p.user_name()?))
            })?));
        }
        if !self.eat_kw(Kw::TABLE) {
            self.expect_word("TABLES")?;
        }
        Ok(Statement::RenameTable(self.comma_list(|p| {
            let old = p.object_name()?;
            p.expect_kw(Kw::TO)?;
            Ok((old, p.object_name()?))
        })?))
    }
}

/// A table element that is not a column.
pub(super) enum Constraint {
    Index(Box<crate::ast::IndexDef>),
    ForeignKey(Box<crate::ast::ForeignKey>),
    Check(Box<crate::ast::Check>),
}
