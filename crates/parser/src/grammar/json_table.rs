//! JSON_TABLE in FROM.

use bytes::Bytes;

use super::{Parser, Rule};
use crate::ast::{JsonColumn, JsonInstead, JsonPlace, JsonTable, TableRef};
use crate::error::ParseError;
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At JSON_TABLE.
    pub(super) fn json_table(&mut self) -> Rule<TableRef> {
        self.advance();
        self.expect(Tok::LParen)?;
        let doc = self.expr()?;
        self.expect(Tok::Comma)?;
        let path = self.string()?;
        let columns = self.json_columns()?;
        self.expect(Tok::RParen)?;
        let alias = self.table_alias()?;
        Ok(TableRef::JsonTable(Box::new(JsonTable { doc, path, columns, alias })))
    }

    fn json_columns(&mut self) -> Rule<Vec<JsonColumn>> {
        self.expect_word("COLUMNS")?;
        self.nest(|parser| parser.paren_list(Self::json_column))
    }

    fn json_column(&mut self) -> Rule<JsonColumn> {
        if self.is_word("NESTED") && (self.peek().kind == Tok::Str || self.eat_words(&["NESTED", "PATH"])) {
            self.eat_word("NESTED");
            let path = self.string()?;
            return Ok(JsonColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.ident()?;
        if self.eat_words(&["FOR", "ORDINALITY"]) {
            return Ok(JsonColumn::Ordinality(name));
        }
        let start = self.token.start;
        let ty = self.data_type()?;
        let ty_text = self.text_since(start);
        let exists = self.eat_kw(Kw::EXISTS);
        self.expect_word("PATH")?;
        let path = self.string()?;
        let (on_empty, on_error) = if exists { Default::default() } else { self.json_instead_of()? };
        Ok(JsonColumn::Place(JsonPlace { name, ty, ty_text, path, exists, on_empty, on_error }))
    }

    /// ON EMPTY and ON ERROR, in any order, each once at most.
    fn json_instead_of(&mut self) -> Rule<(JsonInstead, JsonInstead)> {
        let (mut on_empty, mut on_error) = (None, None);
        while let Some(instead) = self.json_instead()? {
            self.expect_kw(Kw::ON)?;
            let place = match self.eat_any(&["EMPTY", "ERROR"]) {
                Some("EMPTY") => &mut on_empty,
                Some(_) => &mut on_error,
                None => return Err(self.error()),
            };
            if place.replace(instead).is_some() {
                return Err(self.error());
            }
        }
        Ok((on_empty.unwrap_or_default(), on_error.unwrap_or_default()))
    }

    fn json_instead(&mut self) -> Rule<Option<JsonInstead>> {
        Ok(Some(if self.eat_kw(Kw::NULL) {
            JsonInstead::Null
        } else if self.eat_word("ERROR") {
            JsonInstead::Error
        } else if self.eat_kw(Kw::DEFAULT) {
            if !self.options.mariadb && !self.is(Tok::Str) && !self.is_kw(Kw::NULL) {
                return Err(ParseError::NotSupported(
                    "non-string DEFAULT value for a column in a JSON_TABLE expression",
                ));
            }
            let text: Bytes = self.string()?;
            JsonInstead::Default(text)
        } else {
            return Ok(None);
        }))
    }
}
