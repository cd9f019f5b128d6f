//! The first words of a statement choose its rule.

use super::{Parser, Rule};
use crate::ast::{CreateDatabase, DatabaseOptions, Explain, ExplainTarget, Expr, PrepareSource, Statement};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// One statement, up to but not including its `;`.
    pub(super) fn statement(&mut self) -> Rule<Statement> {
        match self.token.kw {
            Kw::SELECT | Kw::VALUES | Kw::TABLE => Ok(Statement::Select(Box::new(self.whole_query()?))),
            Kw::INSERT | Kw::REPLACE => self.insert(),
            Kw::UPDATE => self.update(None),
            Kw::DELETE => self.delete(None),
            Kw::WITH => self.with_statement(),
            Kw::SET => self.set(),
            Kw::SHOW => self.show(),
            Kw::USE => {
                self.advance();
                Ok(Statement::Use(self.ident()?))
            }
            Kw::CREATE => self.create(),
            Kw::ALTER => self.alter(),
            Kw::DROP => self.drop(),
            Kw::RENAME => self.rename(),
            Kw::DESC | Kw::DESCRIBE | Kw::EXPLAIN => self.explain(),
            Kw::ANALYZE if !matches!(self.peek().kw, Kw::TABLE | Kw::NO_WRITE_TO_BINLOG) => self.analyze(),
            Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE => self.maintenance(),
            Kw::LOAD => self.load(),
            Kw::CALL => self.call_procedure(),
            Kw::LOCK => self.lock_statement(),
            Kw::UNLOCK => self.unlock_statement(),
            Kw::RELEASE => {
                self.advance();
                self.expect_word("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.ident()?))
            }
            Kw::KILL => self.kill(),
            Kw::PURGE => self.purge(),
            Kw::CHANGE => self.change(),
            Kw::GRANT => self.grant(),
            Kw::REVOKE => self.revoke(),
            Kw::SIGNAL | Kw::RESIGNAL => self.signal(),
            Kw::GET => self.get_diagnostics(),
            Kw::NONE => self.word_statement(),
            _ => Err(self.error()),
        }
    }

    /// Statements whose first word is not reserved.
    fn word_statement(&mut self) -> Rule<Statement> {
        if self.is(Tok::LParen) {
            return Ok(Statement::Select(Box::new(self.whole_query()?)));
        }
        if !self.is(Tok::Word) {
            return Err(self.error());
        }
        let mut buffer = [0u8; 12];
        let text = self.text(&self.token);
        let Some(word) = buffer.get_mut(..text.len()) else { return Err(self.error()) };
        word.copy_from_slice(text);
        word.make_ascii_uppercase();
        match &*word {
            b"BEGIN" | b"START" | b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"XA" => self.transaction(),
            b"STOP" => self.stop(),
            b"PREPARE" => self.prepare(),
            b"EXECUTE" => self.execute(),
            b"DEALLOCATE" => {
                self.advance();
                self.expect_word("PREPARE")?;
                Ok(Statement::Deallocate(self.ident()?))
            }
            b"DO" => {
                self.advance();
                Ok(Statement::Do(self.comma_list(|p| {
                    let expr = p.expr()?;
                    p.select_alias()?;
                    Ok(expr)
                })?))
            }
            b"TRUNCATE" => {
                self.advance();
                self.eat_kw(Kw::TABLE);
                Ok(Statement::Truncate(self.object_name()?))
            }
            b"FLUSH" => self.flush(),
            b"RESET" => self.reset_statement(),
            b"BINLOG" => {
                self.advance();
                Ok(Statement::Binlog(self.string()?))
            }
            b"SHUTDOWN" => {
                self.advance();
                self.eat_words(&["WAIT", "FOR", "ALL", "SLAVES"]);
                Ok(Statement::Shutdown)
            }
            b"RESTART" => {
                self.advance();
                Ok(Statement::Restart)
            }
            b"BACKUP" => self.backup(),
            b"CHECKSUM" | b"REPAIR" => self.maintenance(),
            b"HELP" => {
                self.advance();
                let topic = self.ident_or_text()?;
                Ok(Statement::Help(bytes::Bytes::from(topic.into_string())))
            }
            b"HANDLER" => super::handler::statement(self),
            b"INSTALL" => Ok(self.unsupported("INSTALL PLUGIN", "install_plugin")),
            b"UNINSTALL" => Ok(self.unsupported("UNINSTALL PLUGIN", "uninstall_plugin")),
            b"CLONE" => Ok(self.unsupported("CLONE", "clone")),
            b"IMPORT" => Ok(self.unsupported("IMPORT TABLE", "import")),
            b"CACHE" => Ok(self.unsupported("CACHE INDEX", "assign_to_keycache")),
            _ => Err(self.error()),
        }
    }

    fn select_alias(&mut self) -> Rule<()> {
        if self.eat_kw(Kw::AS) || self.is_ident() {
            self.ident_or_text()?;
        }
        Ok(())
    }

    /// WITH before SELECT, UPDATE or DELETE.
    fn with_statement(&mut self) -> Rule<Statement> {
        let start = self.mark();
        let with = self.with()?;
        match self.token.kw {
            Kw::UPDATE => self.update(with),
            Kw::DELETE => self.delete(with),
            _ => {
                self.reset(start);
                Ok(Statement::Select(Box::new(self.whole_query()?)))
            }
        }
    }

    fn call_procedure(&mut self) -> Rule<Statement> {
        self.advance();
        let name = self.object_name()?;
        let mut args = Vec::new();
        if self.eat(Tok::LParen) && !self.eat(Tok::RParen) {
            args = self.comma_list(Self::expr)?;
            self.expect(Tok::RParen)?;
        }
        Ok(Statement::Call { name, args })
    }

    /// At PREPARE.
    fn prepare(&mut self) -> Rule<Statement> {
        self.advance();
        let name = self.ident()?;
        self.expect_kw(Kw::FROM)?;
        let source = match self.token.kind {
            Tok::UserVar => PrepareSource::Variable(self.user_var()?),
            _ => PrepareSource::Text(self.string()?),
        };
        Ok(Statement::Prepare { name, source })
    }

    /// At EXECUTE.
    fn execute(&mut self) -> Rule<Statement> {
        self.advance();
        let immediate = self.is_word("IMMEDIATE") && !matches!(self.peek().kind, Tok::Eof | Tok::Semicolon);
        if immediate && self.peek().kw != Kw::USING {
            self.advance();
            let source = self.expr()?;
            return Ok(Statement::ExecuteImmediate { source, using: self.using()? });
        }
        let name = self.ident()?;
        let using = if self.options.mariadb {
            self.using()?
        } else if self.eat_kw(Kw::USING) {
            // MySQL takes variables alone.
            self.comma_list(|p| Ok(Expr::UserVar(p.user_var()?)))?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, using })
    }

    fn using(&mut self) -> Rule<Vec<Expr>> {
        if self.eat_kw(Kw::USING) { self.comma_list(Self::expr) } else { Ok(Vec::new()) }
    }

    /// At DESCRIBE, DESC or EXPLAIN: a table's columns, or a statement's plan.
    fn explain(&mut self) -> Rule<Statement> {
        self.advance();
        let analyze = self.eat_kw(Kw::ANALYZE);
        let mut format = None;
        if self.is_word("FORMAT") && self.peek().kind == Tok::Eq {
            self.advance();
            self.advance();
            format = Some(self.charset_name()?);
        }
        let _ = self.eat_word("EXTENDED") || self.eat_word("PARTITIONS");
        let mut into = None;
        if self.is_kw(Kw::INTO) && self.peek().kind == Tok::UserVar {
            self.advance();
            into = Some(self.user_var()?);
        }
        let mut schema = None;
        if self.is_kw(Kw::FOR) && matches!(self.peek().kw, Kw::SCHEMA | Kw::DATABASE) {
            self.advance();
            self.advance();
            schema = Some(self.ident()?);
        }
        if self.eat_words(&["FOR", "CONNECTION"]) {
            let target = ExplainTarget::Connection(self.number()?);
            return Ok(Statement::Explain(Box::new(Explain { analyze, format, into, schema, target })));
        }
        if self.explainable() || into.is_some() || schema.is_some() {
            let target = ExplainTarget::Statement(Box::new(self.nest(Self::statement)?));
            return Ok(Statement::Explain(Box::new(Explain { analyze, format, into, schema, target })));
        }
        let table = self.object_name()?;
        let column = match self.token.kind {
            Tok::Str => Some(self.string()?),
            _ if self.is_ident() => Some(bytes::Bytes::from(self.ident()?.into_string())),
            _ => None,
        };
        Ok(Statement::Describe { table, column })
    }

    fn explainable(&self) -> bool {
        matches!(
            self.token.kw,
            Kw::SELECT
                | Kw::WITH
                | Kw::VALUES
                | Kw::TABLE
                | Kw::INSERT
                | Kw::REPLACE
                | Kw::UPDATE
                | Kw::DELETE
        ) || self.is(Tok::LParen)
    }

    /// MariaDB's ANALYZE [FORMAT=..] statement.
    fn analyze(&mut self) -> Rule<Statement> {
        let next = self.peek();
        if self.token_is_word(&next, "LOCAL") {
            return self.maintenance();
        }
        self.advance();
        let mut format = None;
        if self.eat_word("FORMAT") {
            self.expect(Tok::Eq)?;
            format = Some(self.charset_name()?);
        }
        if !self.explainable() {
            return Err(self.error());
        }
        let target = ExplainTarget::Statement(Box::new(self.nest(Self::statement)?));
        Ok(Statement::Explain(Box::new(Explain { analyze: true, format, into: None, schema: None, target })))
    }

    /// CREATE DATABASE, with `CREATE [OR REPLACE] DATABASE` consumed.
    pub(super) fn create_database(&mut self, or_replace: bool) -> Rule<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.ident()?;
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase(Box::new(CreateDatabase { or_replace, if_not_exists, name, options })))
    }

    /// The options of CREATE and ALTER DATABASE.
    pub(super) fn database_options(&mut self) -> Rule<DatabaseOptions> {
        let mut options = DatabaseOptions {
            charset: None,
            collation: None,
            encryption: None,
            read_only: None,
            comment: None,
        };
        loop {
            let mark = self.mark();
            self.eat_kw(Kw::DEFAULT);
            if let Some(charset) = self.type_charset()? {
                if let Some(other) = options.charset.filter(|other| !same_charset(other, &charset)) {
                    let message = format!(
                        "Conflicting declarations: 'CHARACTER SET {other}' and 'CHARACTER SET {charset}'"
                    );
                    return Err(super::program::other(1302, "HY000", message));
                }
                options.charset = Some(charset);
            } else if self.eat_kw(Kw::COLLATE) {
                self.optional_eq();
                options.collation = Some(self.charset_name()?);
            } else if self.eat_word("ENCRYPTION") {
                self.optional_eq();
                options.encryption = Some(self.string()?);
            } else if self.eat_words(&["READ", "ONLY"]) {
                self.optional_eq();
                options.read_only = if self.eat_kw(Kw::DEFAULT) { None } else { Some(self.number()? != 0) };
            } else if self.eat_word("COMMENT") {
                self.optional_eq();
                options.comment = Some(self.string()?);
            } else {
                self.reset(mark);
                return Ok(options);
            }
        }
    }
}

/// Whether two names mean one character set; `utf8` is `utf8mb3`.
fn same_charset(one: &str, other: &str) -> bool {
    let full =
        |name: &str| if name.eq_ignore_ascii_case("utf8") { "utf8mb3".into() } else { name.to_lowercase() };
    full(one) == full(other)
}
