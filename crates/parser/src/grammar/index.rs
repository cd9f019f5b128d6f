//! Indexes, foreign keys and checks, as table elements.

use super::create::Constraint;
use super::{Parser, Rule, column, expr, names, primary};
use crate::ast::{
    ForeignKey, Ident, IndexAlgorithm, IndexDef, IndexKind, KeyPart, KeyTarget, ReferenceAction, References,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// An index, foreign key or check if one starts here; else nothing is consumed.
pub(super) fn constraint(p: &mut Parser<'_>) -> Rule<Option<Constraint>> {
    let mut name = None;
    let mut constrained = false;
    if p.eat_kw(Kw::CONSTRAINT) {
        constrained = true;
        if names::is_ident(p) {
            name = Some(names::ident(p)?);
        }
    }
    match p.token.kw {
        Kw::PRIMARY | Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL | Kw::INDEX | Kw::KEY => {
            let mut index = index_element(p)?;
            index.constraint = name;
            Ok(Some(Constraint::Index(Box::new(index))))
        }
        Kw::FOREIGN => Ok(Some(Constraint::ForeignKey(Box::new(foreign_key(p, name)?)))),
        Kw::CHECK => Ok(Some(Constraint::Check(Box::new(column::check(p, name)?)))),
        _ if constrained => Err(p.error()),
        _ => Ok(None),
    }
}

/// The words PRIMARY KEY, UNIQUE [KEY], FULLTEXT [KEY], ...; for INDEX alone nothing is consumed.
pub(super) fn index_kind(p: &mut Parser<'_>) -> IndexKind {
    let kind = match p.token.kw {
        Kw::PRIMARY => IndexKind::Primary,
        Kw::UNIQUE => IndexKind::Unique,
        Kw::FULLTEXT => IndexKind::FullText,
        Kw::SPATIAL => IndexKind::Spatial,
        _ => return IndexKind::Index,
    };
    p.advance();
    kind
}

fn index_element(p: &mut Parser<'_>) -> Rule<IndexDef> {
    let kind = index_kind(p);
    let word = p.eat_kw(Kw::KEY) || (kind != IndexKind::Primary && p.eat_kw(Kw::INDEX));
    if kind == IndexKind::Primary && !word {
        return Err(p.error());
    }
    let if_not_exists = names::if_not_exists(p);
    // USING is reserved and TYPE is not: `KEY TYPE BTREE (a)` is not worth its ambiguity.
    let name = if names::is_ident(p) { Some(names::ident(p)?) } else { None };
    let algorithm = index_algorithm(p)?;
    let mut index = index_body(p, kind, name)?;
    index.if_not_exists = if_not_exists;
    index.algorithm = index.algorithm.or(algorithm);
    Ok(index)
}

/// `USING BTREE` or nothing.
pub(super) fn index_algorithm(p: &mut Parser<'_>) -> Rule<Option<IndexAlgorithm>> {
    if !p.eat_kw(Kw::USING) && !p.eat_word("TYPE") {
        return Ok(None);
    }
    match p.eat_any(&["BTREE", "HASH", "RTREE"]) {
        Some("BTREE") => Ok(Some(IndexAlgorithm::BTree)),
        Some("HASH") => Ok(Some(IndexAlgorithm::Hash)),
        Some(_) => Ok(Some(IndexAlgorithm::RTree)),
        None => Err(p.error()),
    }
}

/// `(parts) options`
pub(super) fn index_body(p: &mut Parser<'_>, kind: IndexKind, name: Option<Ident>) -> Rule<IndexDef> {
    let parts = p.paren_list(key_part)?;
    let mut index = IndexDef {
        kind,
        if_not_exists: false,
        constraint: None,
        name,
        parts,
        algorithm: None,
        comment: None,
        invisible: false,
        key_block_size: None,
        parser: None,
        of_foreign_key: false,
    };
    loop {
        if let Some(algorithm) = index_algorithm(p)? {
            index.algorithm = Some(algorithm);
        } else if p.eat_word("COMMENT") {
            index.comment = Some(names::string(p)?);
        } else if p.eat_word("INVISIBLE") || p.eat_word("IGNORED") {
            index.invisible = true;
        } else if p.eat_word("VISIBLE") || p.eat_words(&["NOT", "IGNORED"]) {
            index.invisible = false;
        } else if p.eat_words(&["OF", "FOREIGN", "KEY"]) {
            index.of_foreign_key = true;
        } else if p.eat_word("KEY_BLOCK_SIZE") {
            names::optional_eq(p);
            index.key_block_size = Some(names::number(p)?);
        } else if p.eat_words(&["WITH", "PARSER"]) {
            index.parser = Some(names::ident(p)?);
        } else if p.eat_word("ENGINE_ATTRIBUTE") || p.eat_word("SECONDARY_ENGINE_ATTRIBUTE") {
            names::optional_eq(p);
            names::string(p)?;
        } else {
            return Ok(index);
        }
    }
}

fn key_part(p: &mut Parser<'_>) -> Rule<KeyPart> {
    let target = if p.is(Tok::LParen) {
        p.advance();
        let expr = expr::expr(p)?;
        p.expect(Tok::RParen)?;
        KeyTarget::Expression(expr)
    } else {
        let name = names::ident(p)?;
        KeyTarget::Column { name, prefix: primary::optional_length(p)? }
    };
    let descending = p.eat_kw(Kw::DESC);
    if !descending {
        p.eat_kw(Kw::ASC);
    }
    Ok(KeyPart { target, descending })
}

/// At FOREIGN.
fn foreign_key(p: &mut Parser<'_>, constraint: Option<Ident>) -> Rule<ForeignKey> {
    p.advance();
    p.expect_kw(Kw::KEY)?;
    names::if_not_exists(p);
    let name = if names::is_ident(p) { Some(names::ident(p)?) } else { None };
    let columns = key_columns(p)?;
    let references = references(p)?;
    Ok(ForeignKey { constraint, name, columns, references })
}

fn key_columns(p: &mut Parser<'_>) -> Rule<Vec<Ident>> {
    p.paren_list(|p| {
        let name = names::ident(p)?;
        primary::optional_length(p)?;
        let _ = p.eat_kw(Kw::ASC) || p.eat_kw(Kw::DESC);
        Ok(name)
    })
}

/// At REFERENCES.
pub(super) fn references(p: &mut Parser<'_>) -> Rule<References> {
    p.expect_kw(Kw::REFERENCES)?;
    let table = names::object_name(p)?;
    let columns = if p.is(Tok::LParen) { key_columns(p)? } else { Vec::new() };
    let mut references = References { table, columns, on_delete: None, on_update: None };
    loop {
        if p.eat_kw(Kw::MATCH) {
            names::upper_word(p)?;
        } else if p.eat_words(&["ON", "DELETE"]) {
            references.on_delete = Some(reference_action(p)?);
        } else if p.is_kw(Kw::ON) && on_update_is_reference(p) {
            p.eat_words(&["ON", "UPDATE"]);
            references.on_update = Some(reference_action(p)?);
        } else {
            return Ok(references);
        }
    }
}

/// `ON UPDATE` here is a foreign key's, not a column's `ON UPDATE CURRENT_TIMESTAMP`.
fn on_update_is_reference(p: &Parser<'_>) -> bool {
    let mut lexer = p.lexer;
    lexer.next().kw == Kw::UPDATE
        && !matches!(lexer.next().kw, Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP)
}

fn reference_action(p: &mut Parser<'_>) -> Rule<ReferenceAction> {
    if p.eat_kw(Kw::RESTRICT) {
        Ok(ReferenceAction::Restrict)
    } else if p.eat_kw(Kw::CASCADE) {
        Ok(ReferenceAction::Cascade)
    } else if p.eat_words(&["SET", "NULL"]) {
        Ok(ReferenceAction::SetNull)
    } else if p.eat_words(&["SET", "DEFAULT"]) {
        Ok(ReferenceAction::SetDefault)
    } else if p.eat_words(&["NO", "ACTION"]) {
        Ok(ReferenceAction::NoAction)
    } else {
        Err(p.error())
    }
}
