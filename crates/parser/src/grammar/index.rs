//! Indexes, foreign keys and checks, as table elements.

use super::create::Constraint;
use super::{Parser, Rule};
use crate::ast::{
    ForeignKey, Ident, IndexAlgorithm, IndexDef, IndexKind, KeyPart, KeyTarget, ReferenceAction, References,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// An index, foreign key or check if one starts here; else nothing is consumed.
    pub(super) fn constraint(&mut self) -> Rule<Option<Constraint>> {
        let mut name = None;
        let mut constrained = false;
        if self.eat_kw(Kw::CONSTRAINT) {
            constrained = true;
            if self.is_ident() {
                name = Some(self.ident()?);
            }
        }
        match self.token.kw {
            Kw::PRIMARY | Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL | Kw::INDEX | Kw::KEY => {
                let mut index = self.index_element()?;
                index.constraint = name;
                Ok(Some(Constraint::Index(Box::new(index))))
            }
            Kw::FOREIGN => Ok(Some(Constraint::ForeignKey(Box::new(self.foreign_key(name)?)))),
            Kw::CHECK => Ok(Some(Constraint::Check(Box::new(self.check(name)?)))),
            _ if constrained => Err(self.error()),
            _ => Ok(None),
        }
    }

    /// The words PRIMARY KEY, UNIQUE [KEY], FULLTEXT [KEY], ...; for INDEX alone nothing is consumed.
    pub(super) fn index_kind(&mut self) -> IndexKind {
        let kind = match self.token.kw {
            Kw::PRIMARY => IndexKind::Primary,
            Kw::UNIQUE => IndexKind::Unique,
            Kw::FULLTEXT => IndexKind::FullText,
            Kw::SPATIAL => IndexKind::Spatial,
            _ => return IndexKind::Index,
        };
        self.advance();
        kind
    }

    fn index_element(&mut self) -> Rule<IndexDef> {
        let kind = self.index_kind();
        let word = self.eat_kw(Kw::KEY) || (kind != IndexKind::Primary && self.eat_kw(Kw::INDEX));
        if kind == IndexKind::Primary && !word {
            return Err(self.error());
        }
        let if_not_exists = self.if_not_exists();
        // USING is reserved and TYPE is not: `KEY TYPE BTREE (a)` is not worth its ambiguity.
        let name = if self.is_ident() { Some(self.ident()?) } else { None };
        let algorithm = self.index_algorithm()?;
        let mut index = self.index_body(kind, name)?;
        index.if_not_exists = if_not_exists;
        index.algorithm = index.algorithm.or(algorithm);
        Ok(index)
    }

    /// `USING BTREE` or nothing.
    pub(super) fn index_algorithm(&mut self) -> Rule<Option<IndexAlgorithm>> {
        if !self.eat_kw(Kw::USING) && !self.eat_word("TYPE") {
            return Ok(None);
        }
        match self.eat_any(&["BTREE", "HASH", "RTREE"]) {
            Some("BTREE") => Ok(Some(IndexAlgorithm::BTree)),
            Some("HASH") => Ok(Some(IndexAlgorithm::Hash)),
            Some(_) => Ok(Some(IndexAlgorithm::RTree)),
            None => Err(self.error()),
        }
    }

    /// `(parts) options`
    pub(super) fn index_body(&mut self, kind: IndexKind, name: Option<Ident>) -> Rule<IndexDef> {
        let parts = self.paren_list(Self::key_part)?;
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
            if let Some(algorithm) = self.index_algorithm()? {
                index.algorithm = Some(algorithm);
            } else if self.eat_word("COMMENT") {
                index.comment = Some(self.string()?);
            } else if self.eat_word("INVISIBLE") || self.eat_word("IGNORED") {
                index.invisible = true;
            } else if self.eat_word("VISIBLE") || self.eat_words(&["NOT", "IGNORED"]) {
                index.invisible = false;
            } else if self.eat_words(&["OF", "FOREIGN", "KEY"]) {
                index.of_foreign_key = true;
            } else if self.eat_word("KEY_BLOCK_SIZE") {
                self.optional_eq();
                index.key_block_size = Some(self.number()?);
            } else if self.eat_words(&["WITH", "PARSER"]) {
                index.parser = Some(self.ident()?);
            } else if self.eat_word("ENGINE_ATTRIBUTE") || self.eat_word("SECONDARY_ENGINE_ATTRIBUTE") {
                self.optional_eq();
                self.string()?;
            } else {
                return Ok(index);
            }
        }
    }

    fn key_part(&mut self) -> Rule<KeyPart> {
        let target = if self.is(Tok::LParen) {
            self.advance();
            let expr = self.expr()?;
            self.expect(Tok::RParen)?;
            KeyTarget::Expression(expr)
        } else {
            let name = self.ident()?;
            KeyTarget::Column { name, prefix: self.optional_length()? }
        };
        let descending = self.eat_kw(Kw::DESC);
        if !descending {
            self.eat_kw(Kw::ASC);
        }
        Ok(KeyPart { target, descending })
    }

    /// At FOREIGN.
    fn foreign_key(&mut self, constraint: Option<Ident>) -> Rule<ForeignKey> {
        self.advance();
        self.expect_kw(Kw::KEY)?;
        self.if_not_exists();
        let name = if self.is_ident() { Some(self.ident()?) } else { None };
        let columns = self.key_columns()?;
        let references = self.references()?;
        Ok(ForeignKey { constraint, name, columns, references })
    }

    fn key_columns(&mut self) -> Rule<Vec<Ident>> {
        self.paren_list(|p| {
            let name = p.ident()?;
            p.optional_length()?;
            let _ = p.eat_kw(Kw::ASC) || p.eat_kw(Kw::DESC);
            Ok(name)
        })
    }

    /// At REFERENCES.
    pub(super) fn references(&mut self) -> Rule<References> {
        self.expect_kw(Kw::REFERENCES)?;
        let table = self.object_name()?;
        let columns = if self.is(Tok::LParen) { self.key_columns()? } else { Vec::new() };
        let mut references = References { table, columns, on_delete: None, on_update: None };
        loop {
            if self.eat_kw(Kw::MATCH) {
                self.upper_word()?;
            } else if self.eat_words(&["ON", "DELETE"]) {
                references.on_delete = Some(self.reference_action()?);
            } else if self.is_kw(Kw::ON) && self.on_update_is_reference() {
                self.eat_words(&["ON", "UPDATE"]);
                references.on_update = Some(self.reference_action()?);
            } else {
                return Ok(references);
            }
        }
    }

    /// `ON UPDATE` here is a foreign key's, not a column's `ON UPDATE CURRENT_TIMESTAMP`.
    fn on_update_is_reference(&self) -> bool {
        let mut lexer = self.lexer;
        lexer.next().kw == Kw::UPDATE
            && !matches!(lexer.next().kw, Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP)
    }

    fn reference_action(&mut self) -> Rule<ReferenceAction> {
        if self.eat_kw(Kw::RESTRICT) {
            Ok(ReferenceAction::Restrict)
        } else if self.eat_kw(Kw::CASCADE) {
            Ok(ReferenceAction::Cascade)
        } else if self.eat_words(&["SET", "NULL"]) {
            Ok(ReferenceAction::SetNull)
        } else if self.eat_words(&["SET", "DEFAULT"]) {
            Ok(ReferenceAction::SetDefault)
        } else if self.eat_words(&["NO", "ACTION"]) {
            Ok(ReferenceAction::NoAction)
        } else {
            Err(self.error())
        }
    }
}
