//! MariaDB's sequences: CREATE, ALTER and DROP SEQUENCE, and the long forms of NEXTVAL() and LASTVAL().

use super::{Parser, Rule};
use crate::ast::{AlterSequence, ColumnRef, CreateSequence, Expr, FunctionCall, SequenceOptions, Statement};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// Behind CREATE [OR REPLACE] SEQUENCE.
    pub(super) fn create_sequence(&mut self, or_replace: bool) -> Rule<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let mut create = CreateSequence {
            or_replace,
            if_not_exists,
            name,
            options: SequenceOptions::default(),
            table: Vec::new(),
        };
        loop {
            if self.sequence_option(&mut create.options)? {
                continue;
            }
            match self.table_option()? {
                Some(option) => create.table.push(option),
                None => return Ok(Statement::CreateSequence(Box::new(create))),
            }
        }
    }

    /// Behind ALTER SEQUENCE.
    pub(super) fn alter_sequence(&mut self) -> Rule<Statement> {
        let if_exists = self.if_exists();
        let name = self.object_name()?;
        let mut options = SequenceOptions::default();
        while self.sequence_option(&mut options)? {}
        if options == SequenceOptions::default() {
            return Err(self.error());
        }
        Ok(Statement::AlterSequence(Box::new(AlterSequence { if_exists, name, options })))
    }

    /// One option, if there is another one.
    fn sequence_option(&mut self, options: &mut SequenceOptions) -> Rule<bool> {
        if self.eat_word("START") {
            options.start = Some(self.sequence_number()?);
        } else if self.eat_word("INCREMENT") {
            if !self.eat_kw(Kw::BY) {
                self.eat(Tok::Eq);
            }
            options.increment = Some(self.signed()?);
        } else if self.eat_word("MINVALUE") {
            self.eat(Tok::Eq);
            options.minimum = Some(Some(self.signed()?));
        } else if self.eat_kw(Kw::MAXVALUE) {
            self.eat(Tok::Eq);
            options.maximum = Some(Some(self.signed()?));
        } else if self.eat_word("NOMINVALUE") {
            options.minimum = Some(None);
        } else if self.eat_word("NOMAXVALUE") {
            options.maximum = Some(None);
        } else if self.eat_word("CACHE") {
            self.eat(Tok::Eq);
            options.cache = Some(self.number()?);
        } else if self.eat_word("NOCACHE") {
            options.cache = Some(0);
        } else if self.eat_word("CYCLE") {
            options.cycle = Some(true);
        } else if self.eat_word("NOCYCLE") {
            options.cycle = Some(false);
        } else if self.eat_word("NO") {
            if self.eat_kw(Kw::MAXVALUE) {
                options.maximum = Some(None);
            } else {
                self.expect_word("MINVALUE")?;
                options.minimum = Some(None);
            }
        } else if self.eat_word("RESTART") {
            let number = matches!(self.token.kind, Tok::Int | Tok::Minus | Tok::Eq) || self.is_kw(Kw::WITH);
            options.restart = Some(if number { Some(self.sequence_number()?) } else { None });
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// `[WITH | =] number`
    fn sequence_number(&mut self) -> Rule<i64> {
        if !self.eat_kw(Kw::WITH) {
            self.eat(Tok::Eq);
        }
        self.signed()
    }

    fn signed(&mut self) -> Rule<i64> {
        let mark = self.mark();
        let negative = self.eat(Tok::Minus);
        let number = i128::from(self.number()?);
        match i64::try_from(if negative { -number } else { number }) {
            Ok(number) => Ok(number),
            Err(_) => {
                self.reset(mark);
                Err(self.error())
            }
        }
    }

    /// `NEXT VALUE FOR s` and `PREVIOUS VALUE FOR s`, as the calls that they are.
    pub(super) fn value_for(&mut self) -> Rule<Option<Expr>> {
        let name = if self.eat_words(&["NEXT", "VALUE"]) {
            "nextval"
        } else if self.eat_words(&["PREVIOUS", "VALUE"]) {
            "lastval"
        } else {
            return Ok(None);
        };
        self.expect_kw(Kw::FOR)?;
        let sequence = self.object_name()?;
        let qualifier = sequence.schema.map(|table| Box::new(crate::ast::Qualifier { schema: None, table }));
        let args = vec![Expr::Column(ColumnRef { qualifier, name: sequence.name })];
        Ok(Some(Expr::Function(Box::new(FunctionCall::built_in(name, args)))))
    }
}
