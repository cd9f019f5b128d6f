//! JSON_TABLE in FROM.

use bytes::Bytes;

use super::{Parser, Rule, column, expr, from, names};
use crate::ast::{JsonColumn, JsonInstead, JsonPlace, JsonTable, TableRef};
use crate::error::ParseError;
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At JSON_TABLE.
pub(super) fn json_table(p: &mut Parser<'_>) -> Rule<TableRef> {
    p.advance();
    p.expect(Tok::LParen)?;
    let doc = expr::expr(p)?;
    p.expect(Tok::Comma)?;
    let path = names::string(p)?;
    let columns = json_columns(p)?;
    p.expect(Tok::RParen)?;
    let alias = from::table_alias(p)?;
    Ok(TableRef::JsonTable(Box::new(JsonTable { doc, path, columns, alias })))
}

fn json_columns(p: &mut Parser<'_>) -> Rule<Vec<JsonColumn>> {
    p.expect_word("COLUMNS")?;
    p.nest(|parser| parser.paren_list(json_column))
}

fn json_column(p: &mut Parser<'_>) -> Rule<JsonColumn> {
    if p.is_word("NESTED") && (p.peek().kind == Tok::Str || p.eat_words(&["NESTED", "PATH"])) {
        p.eat_word("NESTED");
        let path = names::string(p)?;
        return Ok(JsonColumn::Nested { path, columns: json_columns(p)? });
    }
    let name = names::ident(p)?;
    if p.eat_words(&["FOR", "ORDINALITY"]) {
        return Ok(JsonColumn::Ordinality(name));
    }
    let start = p.token.start;
    let ty = column::data_type(p)?;
    let ty_text = p.text_since(start);
    let exists = p.eat_kw(Kw::EXISTS);
    p.expect_word("PATH")?;
    let path = names::string(p)?;
    let (on_empty, on_error) = if exists { Default::default() } else { json_instead_of(p)? };
    Ok(JsonColumn::Place(JsonPlace { name, ty, ty_text, path, exists, on_empty, on_error }))
}

/// ON EMPTY and ON ERROR, in any order, each once at most.
fn json_instead_of(p: &mut Parser<'_>) -> Rule<(JsonInstead, JsonInstead)> {
    let (mut on_empty, mut on_error) = (None, None);
    while let Some(instead) = json_instead(p)? {
        p.expect_kw(Kw::ON)?;
        let place = match p.eat_any(&["EMPTY", "ERROR"]) {
            Some("EMPTY") => &mut on_empty,
            Some(_) => &mut on_error,
            None => return Err(p.error()),
        };
        if place.replace(instead).is_some() {
            return Err(p.error());
        }
    }
    Ok((on_empty.unwrap_or_default(), on_error.unwrap_or_default()))
}

fn json_instead(p: &mut Parser<'_>) -> Rule<Option<JsonInstead>> {
    Ok(Some(if p.eat_kw(Kw::NULL) {
        JsonInstead::Null
    } else if p.eat_word("ERROR") {
        JsonInstead::Error
    } else if p.eat_kw(Kw::DEFAULT) {
        if !p.options.mariadb && !p.is(Tok::Str) && !p.is_kw(Kw::NULL) {
            return Err(ParseError::NotSupported(
                "non-string DEFAULT value for a column in a JSON_TABLE expression",
            ));
        }
        let text: Bytes = names::string(p)?;
        JsonInstead::Default(text)
    } else {
        return Ok(None);
    }))
}
