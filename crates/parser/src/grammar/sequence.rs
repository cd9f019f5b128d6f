//! MariaDB's sequences: CREATE, ALTER and DROP SEQUENCE, and the long forms of NEXTVAL() and LASTVAL().

use super::{Parser, Rule, names, options};
use crate::ast::{AlterSequence, ColumnRef, CreateSequence, Expr, FunctionCall, SequenceOptions, Statement};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// Behind CREATE [OR REPLACE] SEQUENCE.
pub(super) fn create_sequence(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    let if_not_exists = names::if_not_exists(p);
    let name = names::object_name(p)?;
    let mut create = CreateSequence {
        or_replace,
        if_not_exists,
        name,
        options: SequenceOptions::default(),
        table: Vec::new(),
    };
    loop {
        if sequence_option(p, &mut create.options)? {
            continue;
        }
        match options::table_option(p)? {
            Some(option) => create.table.push(option),
            None => return Ok(Statement::CreateSequence(Box::new(create))),
        }
    }
}

/// Behind ALTER SEQUENCE.
pub(super) fn alter_sequence(p: &mut Parser<'_>) -> Rule<Statement> {
    let if_exists = names::if_exists(p);
    let name = names::object_name(p)?;
    let mut options = SequenceOptions::default();
    while sequence_option(p, &mut options)? {}
    if options == SequenceOptions::default() {
        return Err(p.error());
    }
    Ok(Statement::AlterSequence(Box::new(AlterSequence { if_exists, name, options })))
}

/// One option, if there is another one.
fn sequence_option(p: &mut Parser<'_>, options: &mut SequenceOptions) -> Rule<bool> {
    if p.eat_word("START") {
        options.start = Some(sequence_number(p)?);
    } else if p.eat_word("INCREMENT") {
        if !p.eat_kw(Kw::BY) {
            p.eat(Tok::Eq);
        }
        options.increment = Some(signed(p)?);
    } else if p.eat_word("MINVALUE") {
        p.eat(Tok::Eq);
        options.minimum = Some(Some(signed(p)?));
    } else if p.eat_kw(Kw::MAXVALUE) {
        p.eat(Tok::Eq);
        options.maximum = Some(Some(signed(p)?));
    } else if p.eat_word("NOMINVALUE") {
        options.minimum = Some(None);
    } else if p.eat_word("NOMAXVALUE") {
        options.maximum = Some(None);
    } else if p.eat_word("CACHE") {
        p.eat(Tok::Eq);
        options.cache = Some(names::number(p)?);
    } else if p.eat_word("NOCACHE") {
        options.cache = Some(0);
    } else if p.eat_word("CYCLE") {
        options.cycle = Some(true);
    } else if p.eat_word("NOCYCLE") {
        options.cycle = Some(false);
    } else if p.eat_word("NO") {
        if p.eat_kw(Kw::MAXVALUE) {
            options.maximum = Some(None);
        } else {
            p.expect_word("MINVALUE")?;
            options.minimum = Some(None);
        }
    } else if p.eat_word("RESTART") {
        let number = matches!(p.token.kind, Tok::Int | Tok::Minus | Tok::Eq) || p.is_kw(Kw::WITH);
        options.restart = Some(if number { Some(sequence_number(p)?) } else { None });
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `[WITH | =] number`
fn sequence_number(p: &mut Parser<'_>) -> Rule<i64> {
    if !p.eat_kw(Kw::WITH) {
        p.eat(Tok::Eq);
    }
    signed(p)
}

fn signed(p: &mut Parser<'_>) -> Rule<i64> {
    let mark = p.mark();
    let negative = p.eat(Tok::Minus);
    let number = i128::from(names::number(p)?);
    match i64::try_from(if negative { -number } else { number }) {
        Ok(number) => Ok(number),
        Err(_) => {
            p.reset(mark);
            Err(p.error())
        }
    }
}

/// `NEXT VALUE FOR s` and `PREVIOUS VALUE FOR s`, as the calls that they are.
pub(super) fn value_for(p: &mut Parser<'_>) -> Rule<Option<Expr>> {
    let name = if p.eat_words(&["NEXT", "VALUE"]) {
        "nextval"
    } else if p.eat_words(&["PREVIOUS", "VALUE"]) {
        "lastval"
    } else {
        return Ok(None);
    };
    p.expect_kw(Kw::FOR)?;
    let sequence = names::object_name(p)?;
    let qualifier = sequence.schema.map(|table| Box::new(crate::ast::Qualifier { schema: None, table }));
    let args = vec![Expr::Column(ColumnRef { qualifier, name: sequence.name })];
    Ok(Some(Expr::Function(Box::new(FunctionCall::built_in(name, args)))))
}
