//! LOAD DATA, and the FIELDS/LINES clauses it shares with SELECT .. INTO OUTFILE.

use super::{Parser, Rule, column, dml, from, names, statement};
use crate::ast::{FileFormat, LoadData, LoadPriority, LoadTarget, OnDuplicate, Statement};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At LOAD.
pub(super) fn load(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    if p.is_word("XML") || p.is_kw(Kw::INDEX) {
        let what = if p.is_word("XML") { "LOAD XML" } else { "LOAD INDEX INTO CACHE" };
        return Ok(statement::unsupported(p, what, "load"));
    }
    p.expect_word("DATA")?;
    let priority = if p.eat_kw(Kw::LOW_PRIORITY) {
        LoadPriority::Low
    } else if p.eat_word("CONCURRENT") {
        LoadPriority::Concurrent
    } else {
        LoadPriority::Normal
    };
    let local = p.eat_word("LOCAL");
    p.expect_kw(Kw::INFILE)?;
    let file = names::string(p)?;
    let duplicates = if p.eat_kw(Kw::REPLACE) {
        OnDuplicate::Replace
    } else if p.eat_kw(Kw::IGNORE) {
        OnDuplicate::Ignore
    } else {
        OnDuplicate::Error
    };
    p.expect_kw(Kw::INTO)?;
    p.expect_kw(Kw::TABLE)?;
    let table = names::object_name(p)?;
    let partitions = from::partitions(p)?;
    let charset = column::type_charset(p)?;
    let format = file_format(p)?;
    let ignore_lines = ignore_lines(p)?;
    let columns = load_targets(p)?;
    let assignments = if p.eat_kw(Kw::SET) { dml::assignments(p)? } else { Vec::new() };
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

fn ignore_lines(p: &mut Parser<'_>) -> Rule<u64> {
    if !p.eat_kw(Kw::IGNORE) {
        return Ok(0);
    }
    let lines = names::number(p)?;
    if !p.eat_kw(Kw::LINES) {
        p.expect_kw(Kw::ROWS)?;
    }
    Ok(lines)
}

fn load_targets(p: &mut Parser<'_>) -> Rule<Vec<LoadTarget>> {
    let mut targets = Vec::new();
    if !p.eat(Tok::LParen) {
        return Ok(targets);
    }
    while !p.eat(Tok::RParen) {
        if !targets.is_empty() {
            p.expect(Tok::Comma)?;
        }
        targets.push(match p.token.kind {
            Tok::UserVar => LoadTarget::Variable(names::user_var(p)?),
            _ => LoadTarget::Column(names::column_ref(p)?.name),
        });
    }
    Ok(targets)
}

/// `[FIELDS ..] [LINES ..]`
pub(super) fn file_format(p: &mut Parser<'_>) -> Rule<FileFormat> {
    let mut format = FileFormat::default();
    if p.eat_word("FIELDS") || p.eat_word("COLUMNS") {
        loop {
            if p.eat_words(&["TERMINATED", "BY"]) {
                format.fields_terminated = Some(names::text_value(p)?);
            } else if p.eat_words(&["OPTIONALLY", "ENCLOSED", "BY"]) {
                format.fields_optionally = true;
                format.fields_enclosed = Some(names::text_value(p)?);
            } else if p.eat_words(&["ENCLOSED", "BY"]) {
                format.fields_enclosed = Some(names::text_value(p)?);
            } else if p.eat_words(&["ESCAPED", "BY"]) {
                format.fields_escaped = Some(names::text_value(p)?);
            } else {
                break;
            }
        }
    }
    if p.eat_kw(Kw::LINES) {
        loop {
            if p.eat_words(&["TERMINATED", "BY"]) {
                format.lines_terminated = Some(names::text_value(p)?);
            } else if p.eat_words(&["STARTING", "BY"]) {
                format.lines_starting = Some(names::text_value(p)?);
            } else {
                break;
            }
        }
    }
    Ok(format)
}
