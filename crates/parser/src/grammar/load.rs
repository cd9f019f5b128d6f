//! LOAD DATA, and the FIELDS/LINES clauses it shares with SELECT .. INTO OUTFILE.

use super::{Parser, Rule};
use crate::ast::{
    FileFormat, Ident, LoadData, LoadPriority, LoadTarget, OnDuplicate, Statement, Unsupported,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At LOAD.
    pub(super) fn load(&mut self) -> Rule<Statement> {
        self.advance();
        if self.is_word("XML") || self.is_kw(Kw::INDEX) {
            let what = if self.is_word("XML") { "LOAD XML" } else { "LOAD INDEX INTO CACHE" };
            return Ok(self.unsupported(what, "load"));
        }
        self.expect_word("DATA")?;
        let priority = if self.eat_kw(Kw::LOW_PRIORITY) {
            LoadPriority::Low
        } else if self.eat_word("CONCURRENT") {
            LoadPriority::Concurrent
        } else {
            LoadPriority::Normal
        };
        let local = self.eat_word("LOCAL");
        self.expect_kw(Kw::INFILE)?;
        let file = self.string()?;
        let duplicates = if self.eat_kw(Kw::REPLACE) {
            OnDuplicate::Replace
        } else if self.eat_kw(Kw::IGNORE) {
            OnDuplicate::Ignore
        } else {
            OnDuplicate::Error
        };
        self.expect_kw(Kw::INTO)?;
        self.expect_kw(Kw::TABLE)?;
        let table = self.object_name()?;
        let partitions = self.partitions()?;
        let charset = self.type_charset()?;
        let format = self.file_format()?;
        let ignore_lines = self.ignore_lines()?;
        let columns = self.load_targets()?;
        let assignments = if self.eat_kw(Kw::SET) { self.assignments()? } else { Vec::new() };
        Ok(Statement::LoadData(Box::new(LoadData {
            priority,
            local,
            file,
            duplicates,
            table,
            partitions,
            charset,
            format,
            ignore_lines,
            columns,
            assignments,
        })))
    }

    fn ignore_lines(&mut self) -> Rule<u64> {
        if !self.eat_kw(Kw::IGNORE) {
            return Ok(0);
        }
        let lines = self.number()?;
        if !self.eat_kw(Kw::LINES) {
            self.expect_kw(Kw::ROWS)?;
        }
        Ok(lines)
    }

    fn load_targets(&mut self) -> Rule<Vec<LoadTarget>> {
        let mut targets = Vec::new();
        if !self.eat(Tok::LParen) {
            return Ok(targets);
        }
        while !self.eat(Tok::RParen) {
            if !targets.is_empty() {
                self.expect(Tok::Comma)?;
            }
            targets.push(match self.token.kind {
                Tok::UserVar => LoadTarget::Variable(self.user_var()?),
                _ => LoadTarget::Column(self.column_ref()?.name),
            });
        }
        Ok(targets)
    }

    /// `[CHARACTER SET cs | CHARSET cs]` and the short forms ASCII, UNICODE, BYTE.
    pub(super) fn type_charset(&mut self) -> Rule<Option<Ident>> {
        if self.eat_words(&["CHARACTER", "SET"])
            || self.eat_words(&["CHAR", "SET"])
            || self.eat_word("CHARSET")
        {
            self.optional_eq();
            return self.charset_name().map(Some);
        }
        Ok(match self.eat_any(&["ASCII", "UNICODE", "BYTE"]) {
            Some("ASCII") => Some("latin1".into()),
            Some("UNICODE") => Some("ucs2".into()),
            Some(_) => Some("binary".into()),
            None => None,
        })
    }

    /// `[FIELDS ..] [LINES ..]`
    pub(super) fn file_format(&mut self) -> Rule<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat_word("FIELDS") || self.eat_word("COLUMNS") {
            loop {
                if self.eat_words(&["TERMINATED", "BY"]) {
                    format.fields_terminated = Some(self.text_value()?);
                } else if self.eat_words(&["OPTIONALLY", "ENCLOSED", "BY"]) {
                    format.fields_optionally = true;
                    format.fields_enclosed = Some(self.text_value()?);
                } else if self.eat_words(&["ENCLOSED", "BY"]) {
                    format.fields_enclosed = Some(self.text_value()?);
                } else if self.eat_words(&["ESCAPED", "BY"]) {
                    format.fields_escaped = Some(self.text_value()?);
                } else {
                    break;
                }
            }
        }
        if self.eat_kw(Kw::LINES) {
            loop {
                if self.eat_words(&["TERMINATED", "BY"]) {
                    format.lines_terminated = Some(self.text_value()?);
                } else if self.eat_words(&["STARTING", "BY"]) {
                    format.lines_starting = Some(self.text_value()?);
                } else {
                    break;
                }
            }
        }
        Ok(format)
    }

    /// A string, hex or bit literal's bytes.
    pub(super) fn text_value(&mut self) -> Rule<bytes::Bytes> {
        if self.is(Tok::Str) {
            return self.string();
        }
        match self.special_literal()? {
            crate::ast::Literal::Hex(b) | crate::ast::Literal::Bit(b) | crate::ast::Literal::National(b) => {
                Ok(b)
            }
            _ => Err(self.error()),
        }
    }

    /// A statement known by its first words: skips the rest of the text, which may hold `;` of its own.
    pub(super) fn unsupported(&mut self, what: &'static str, kind: &'static str) -> Statement {
        while !matches!(self.token.kind, Tok::Eof | Tok::Invalid) {
            self.advance();
        }
        if self.is(Tok::Invalid) {
            self.token.kind = Tok::Eof;
        }
        Statement::Unsupported(Unsupported { what, kind })
    }
}
