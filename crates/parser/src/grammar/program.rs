//! Bodies of stored programs: blocks, declarations, branches, loops, cursors.
//!
//! The meaning of names is decided here, where they are read: [`Scopes`] knows the variables, cursors, conditions and labels that
//! are in sight.

mod for_loop;

use std::collections::HashSet;
use std::sync::Arc;

use super::column::is_whole;
use super::{Parser, Rule, column, condition, expr, names, statement};
use crate::ParseError;
use crate::ast::{
    AssignTarget, Block, Branch, ColumnRef, Condition, Cursor, DataType, Declared, Expr, Handler,
    HandlerKind, Ident, InnerStatement, LoopKind, Program, ProgramKind, ProgramNode, Span, Spanned,
    Statement, TriggerEvent, TriggerTime,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// The names in sight while a body is parsed.
pub(crate) struct Scopes {
    kind: ProgramKind,
    /// Of a trigger, with the columns that it reads of its rows.
    trigger: Option<((TriggerTime, TriggerEvent), Vec<ColumnRef>)>,
    /// Names, and whether they are of whole numbers.
    variables: Vec<(Ident, bool)>,
    cursors: Vec<Cursor>,
    /// Innermost last.
    visible: Vec<(Ident, u32)>,
    visible_cursors: Vec<(Ident, u32)>,
    conditions: Vec<(Ident, Condition)>,
    labels: Vec<Label>,
    next_label: u32,
    /// Where the running statement names variables.
    references: Vec<(Span, u32)>,
    returns_rows: bool,
    has_return: bool,
}

struct Label {
    name: Ident,
    number: u32,
    is_loop: bool,
}

fn find<T: Copy>(list: &[(Ident, T)], name: &str) -> Option<T> {
    list.iter().rev().find(|(known, _)| known.is(name)).map(|(_, what)| *what)
}

/// Fails if a name is twice in a block.
fn once<T>(declared: &[(Ident, T)], name: &Ident, code: u16, what: &str) -> Rule<()> {
    if declared.iter().any(|(known, _)| known.is(name)) {
        return Err(ParseError::other(code, "42000", format!("Duplicate {what}: {name}")));
    }
    Ok(())
}

impl Scopes {
    /// Of a program with these parameters.
    pub(super) fn new(kind: ProgramKind, params: &[(Ident, bool)]) -> Scopes {
        Scopes {
            kind,
            trigger: None,
            variables: params.to_vec(),
            cursors: Vec::new(),
            visible: params.iter().map(|(name, _)| name.clone()).zip(0..).collect(),
            visible_cursors: Vec::new(),
            conditions: Vec::new(),
            labels: Vec::new(),
            next_label: 0,
            references: Vec::new(),
            returns_rows: false,
            has_return: false,
        }
    }

    /// The names in sight in the body of a trigger.
    pub(super) fn of_trigger(time: TriggerTime, event: TriggerEvent) -> Scopes {
        Scopes { trigger: Some(((time, event), Vec::new())), ..Scopes::new(ProgramKind::Trigger, &[]) }
    }
}

/// Lengths to go back to at a block's end.
struct Sight(usize, usize, usize);

/// A body and what it declares.
pub(super) fn program(p: &mut Parser<'_>, scopes: Scopes) -> Rule<Program> {
    if scopes.kind == ProgramKind::Event && p.program.is_some() {
        let message = "Recursion of EVENT DDL statements is forbidden when body is present";
        return Err(ParseError::other(1576, "HY000", message));
    }
    let outer = p.program.replace(Box::new(scopes));
    if let Some(outer) = outer {
        let what = outer.kind.name();
        p.program = Some(outer);
        let message = format!("Can't create a {what} from within another stored routine");
        return Err(ParseError::other(1303, "2F003", message));
    }
    let start = p.token.start;
    let body = program_node(p);
    let scopes = p.program.take();
    let (body, Some(scopes)) = (body?, scopes) else { return Err(p.error()) };
    Ok(Program {
        text: p.text_since(start),
        body: Box::new(body),
        variables: scopes.variables.into_iter().map(|(name, _)| name).collect(),
        cursors: scopes.cursors,
        returns_rows: scopes.returns_rows,
        returns: scopes.has_return,
        row_columns: scopes.trigger.map(|(_, reads)| reads).unwrap_or_default(),
    })
}

/// The variable of a name, which the last token was.
pub(super) fn variable_named(p: &mut Parser<'_>, name: &str) -> Option<u32> {
    let span = Span { start: p.last_start, end: p.last_end };
    let scopes = p.program.as_mut()?;
    let number = find(&scopes.visible, name)?;
    scopes.references.push((span, number));
    Some(number)
}

/// Whether the current token names a variable.
pub(super) fn at_local(p: &Parser<'_>) -> bool {
    let Some(scopes) = p.program.as_ref().filter(|_| names::is_ident(p)) else { return false };
    let text = p.text(&p.token);
    let name = match p.token.kind {
        Tok::Quoted => crate::lexer::literal::raw(&p.token, text),
        _ => text,
    };
    std::str::from_utf8(name).is_ok_and(|name| find(&scopes.visible, name).is_some())
}

/// Whether the current token is NEW (true) or OLD (false) of a trigger; checked against the kind of trigger.
pub(super) fn trigger_row(p: &Parser<'_>, name: &Ident) -> Rule<()> {
    let trigger = p.program.as_ref().and_then(|scopes| scopes.trigger.as_ref());
    let Some(&((_, event), _)) = trigger else { return Ok(()) };
    let (row, missing) = match (name.is("NEW"), name.is("OLD")) {
        (true, _) => ("NEW", event == TriggerEvent::Delete),
        (_, true) => ("OLD", event == TriggerEvent::Insert),
        _ => return Ok(()),
    };
    if missing {
        let message = format!("There is no {row} row in on {} trigger", event.name());
        return Err(ParseError::other(1363, "HY000", message));
    }
    Ok(())
}

/// The left side of `SET NEW.column`; checked. With the row's name and the dot consumed.
pub(super) fn new_column(p: &mut Parser<'_>, row: &Ident) -> Rule<Ident> {
    if !row.is("OLD") {
        trigger_row(p, row)?;
    }
    let column = names::ident_after_dot(p)?;
    let time = p.program.as_ref().and_then(|scopes| scopes.trigger.as_ref()).map(|((time, _), _)| *time);
    if row.is("OLD") || time == Some(TriggerTime::After) {
        let row = row.to_ascii_uppercase();
        let when = if row == "OLD" { "" } else { "after " };
        let message = format!("Updating of {row} row is not allowed in {when}trigger");
        return Err(ParseError::other(1362, "HY000", message));
    }
    Ok(column)
}

/// Whether this is a trigger's body.
pub(super) fn in_trigger(p: &Parser<'_>) -> bool {
    p.program.as_ref().is_some_and(|scopes| scopes.trigger.is_some())
}

/// `@name` or a variable of the program.
pub(super) fn target(p: &mut Parser<'_>) -> Rule<AssignTarget> {
    if p.is(Tok::UserVar) {
        return Ok(AssignTarget::User(names::user_var(p)?));
    }
    let name = names::ident(p)?;
    match variable_named(p, &name) {
        Some(number) => Ok(AssignTarget::Local(number)),
        None => Err(ParseError::other(1327, "42000", format!("Undeclared variable: {name}"))),
    }
}

/// One statement of a body, whatever it is.
fn program_node(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    p.nest(program_node_here)
}

fn program_node_here(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    if names::is_ident(p) && p.peek().kind == Tok::Colon {
        return labelled(p);
    }
    match p.token.kw {
        Kw::IF => if_node(p),
        Kw::CASE => case_node(p),
        Kw::LOOP | Kw::WHILE | Kw::REPEAT => loop_node(p, None),
        Kw::FOR => for_loop::for_node(p, None),
        Kw::LEAVE => jump(p, true),
        Kw::ITERATE => jump(p, false),
        Kw::RETURN => return_node(p),
        Kw::FETCH => fetch(p),
        Kw::NONE if p.is_word("BEGIN") => block(p, None),
        Kw::NONE if p.is_word("OPEN") => {
            p.advance();
            Ok(ProgramNode::Open(cursor(p)?))
        }
        Kw::NONE if p.is_word("CLOSE") => {
            p.advance();
            Ok(ProgramNode::Close(cursor(p)?))
        }
        _ => Ok(ProgramNode::Statement(inner_statement(p)?)),
    }
}

/// A statement with the places of its variables.
fn inner_statement(p: &mut Parser<'_>) -> Rule<Arc<InnerStatement>> {
    let (start, params) = (p.token.start, p.params);
    if let Some(scopes) = &mut p.program {
        scopes.references.clear();
    }
    let node = statement::statement(p)?;
    match &node {
        Statement::Unsupported(what) => return Err(ParseError::NotSupported(what.what)),
        Statement::SetStatement(_) => {
            return Err(ParseError::NotSupported("SET STATEMENT in stored programs"));
        }
        _ => {}
    }
    if p.params != params {
        return Err(ParseError::at(p.src, start as usize));
    }
    let span = Span { start, end: p.last_end };
    let rows = node.traits().gives_rows;
    let mut locals = Vec::new();
    if let Some(scopes) = &mut p.program {
        scopes.returns_rows |= rows;
        locals = std::mem::take(&mut scopes.references);
        // What was read twice is noted twice.
        locals.sort_by_key(|(span, _)| span.start);
        locals.dedup();
    }
    let statement = Arc::new(Spanned { node, span, params: 0 });
    Ok(Arc::new(InnerStatement { statement, locals }))
}

/// Statements up to a word that ends the list.
fn program_list(p: &mut Parser<'_>) -> Rule<Vec<ProgramNode>> {
    let mut list = Vec::new();
    loop {
        let ends = p.is_word("END") || p.is_word("UNTIL");
        if ends || matches!(p.token.kw, Kw::ELSE | Kw::ELSEIF | Kw::WHEN) {
            return Ok(list);
        }
        list.push(program_node(p)?);
        p.expect(Tok::Semicolon)?;
    }
}

/// A list that may not be empty.
fn program_statements(p: &mut Parser<'_>) -> Rule<Vec<ProgramNode>> {
    let list = program_list(p)?;
    if list.is_empty() { Err(p.error()) } else { Ok(list) }
}

fn labelled(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    let name = names::ident(p)?;
    p.expect(Tok::Colon)?;
    if find_label(p, &name).is_some() {
        return Err(ParseError::other(1309, "42000", format!("Redefining label {name}")));
    }
    match p.token.kw {
        Kw::LOOP | Kw::WHILE | Kw::REPEAT => loop_node(p, Some(name)),
        Kw::FOR => for_loop::for_node(p, Some(name)),
        _ if p.is_word("BEGIN") => block(p, Some(name)),
        _ => Err(p.error()),
    }
}

fn find_label(p: &Parser<'_>, name: &str) -> Option<(u32, bool)> {
    let labels = &p.program.as_ref()?.labels;
    let found = labels.iter().rev().find(|label| label.name.is(name))?;
    Some((found.number, found.is_loop))
}

/// A new label; one without a name is found by none.
fn push_label(p: &mut Parser<'_>, name: Option<&Ident>, is_loop: bool) -> u32 {
    let Some(scopes) = &mut p.program else { return 0 };
    let number = scopes.next_label;
    scopes.next_label += 1;
    let name = name.cloned().unwrap_or_else(|| Ident::from(""));
    scopes.labels.push(Label { name, number, is_loop });
    number
}

/// The label's name again, or nothing.
fn end_label(p: &mut Parser<'_>, name: Option<&Ident>) -> Rule<()> {
    if let Some(scopes) = &mut p.program {
        scopes.labels.pop();
    }
    if !names::is_ident(p) {
        return Ok(());
    }
    let end = names::ident(p)?;
    match name {
        Some(name) if name.is(&end) => Ok(()),
        _ => Err(ParseError::other(1310, "42000", format!("End-label {end} without match"))),
    }
}

fn jump(p: &mut Parser<'_>, leave: bool) -> Rule<ProgramNode> {
    p.advance();
    let name = names::ident(p)?;
    match find_label(p, &name) {
        Some((number, _)) if leave => Ok(ProgramNode::Leave(number)),
        Some((number, true)) => Ok(ProgramNode::Iterate(number)),
        _ => {
            let what = if leave { "LEAVE" } else { "ITERATE" };
            Err(ParseError::other(1308, "42000", format!("{what} with no matching label: {name}")))
        }
    }
}

fn return_node(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    p.advance();
    let Some(scopes) = &mut p.program else { return Err(p.error()) };
    if scopes.kind != ProgramKind::Function {
        return Err(ParseError::other(1313, "42000", "RETURN is only allowed in a FUNCTION"));
    }
    scopes.has_return = true;
    Ok(ProgramNode::Return(expr::expr(p)?))
}

fn branch(p: &mut Parser<'_>) -> Rule<Branch> {
    let condition = expr::expr(p)?;
    p.expect_kw(Kw::THEN)?;
    Ok((condition, program_statements(p)?))
}

fn if_node(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    p.advance();
    let mut branches = vec![branch(p)?];
    while p.eat_kw(Kw::ELSEIF) {
        branches.push(branch(p)?);
    }
    let otherwise = if p.eat_kw(Kw::ELSE) { program_statements(p)? } else { Vec::new() };
    p.expect_words(&["END", "IF"])?;
    Ok(ProgramNode::If { branches, otherwise })
}

fn case_node(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    p.advance();
    let operand = if p.is_kw(Kw::WHEN) { None } else { Some(expr::expr(p)?) };
    let mut whens = Vec::new();
    while p.eat_kw(Kw::WHEN) {
        whens.push(branch(p)?);
    }
    if whens.is_empty() {
        return Err(p.error());
    }
    let otherwise = if p.eat_kw(Kw::ELSE) { Some(program_statements(p)?) } else { None };
    p.expect_words(&["END", "CASE"])?;
    Ok(ProgramNode::Case { operand, whens, otherwise })
}

/// At LOOP, WHILE or REPEAT.
fn loop_node(p: &mut Parser<'_>, name: Option<Ident>) -> Rule<ProgramNode> {
    let label = push_label(p, name.as_ref(), true);
    let word = p.advance().kw;
    let condition = if word == Kw::WHILE { Some(expr::expr(p)?) } else { None };
    if condition.is_some() {
        p.expect_word("DO")?;
    }
    let body = program_statements(p)?;
    let kind = match (word, condition) {
        (_, Some(condition)) => LoopKind::While(condition),
        (Kw::REPEAT, _) => {
            p.expect_word("UNTIL")?;
            LoopKind::Repeat(expr::expr(p)?)
        }
        _ => LoopKind::Loop,
    };
    let end = match word {
        Kw::WHILE => "WHILE",
        Kw::REPEAT => "REPEAT",
        _ => "LOOP",
    };
    p.expect_words(&["END", end])?;
    end_label(p, name.as_ref())?;
    Ok(ProgramNode::Loop { label, kind, body })
}

/// At BEGIN.
fn block(p: &mut Parser<'_>, name: Option<Ident>) -> Rule<ProgramNode> {
    let label = push_label(p, name.as_ref(), false);
    p.advance();
    if p.eat_kw(Kw::NOT) {
        p.expect_word("ATOMIC")?;
    }
    let mut block = Block { label: name.is_some().then_some(label), ..Block::default() };
    let Some(scopes) = &p.program else { return Err(p.error()) };
    let sight = Sight(scopes.visible.len(), scopes.visible_cursors.len(), scopes.conditions.len());
    while p.eat_kw(Kw::DECLARE) {
        declare(p, &mut block, &sight)?;
        p.expect(Tok::Semicolon)?;
    }
    block.body = program_list(p)?;
    p.expect_word("END")?;
    if let Some(scopes) = &mut p.program {
        scopes.visible.truncate(sight.0);
        scopes.visible_cursors.truncate(sight.1);
        scopes.conditions.truncate(sight.2);
    }
    end_label(p, name.as_ref())?;
    Ok(ProgramNode::Block(Box::new(block)))
}

/// Behind DECLARE.
fn declare(p: &mut Parser<'_>, block: &mut Block, sight: &Sight) -> Rule<()> {
    let handler = match p.token.kw {
        Kw::CONTINUE => Some(HandlerKind::Continue),
        Kw::EXIT => Some(HandlerKind::Exit),
        Kw::UNDO => return Err(ParseError::NotSupported("UNDO handlers")),
        _ => None,
    };
    if let Some(kind) = handler {
        p.advance();
        let handler = handler_declaration(p, kind)?;
        let declared = |condition| block.handlers.iter().any(|other| other.conditions.contains(condition));
        if handler.conditions.iter().any(declared) {
            return Err(ParseError::other(1413, "42000", "Duplicate handler declared in the same block"));
        }
        block.handlers.push(handler);
        return Ok(());
    }
    let name = names::ident(p)?;
    if p.is_kw(Kw::CURSOR) {
        return declare_cursor(p, name, block, sight);
    }
    if !block.cursors.is_empty() || !block.handlers.is_empty() {
        let message = "Variable or condition declaration after cursor or handler declaration";
        return Err(ParseError::other(1337, "42000", message));
    }
    if p.eat_kw(Kw::CONDITION) {
        p.expect_kw(Kw::FOR)?;
        let condition = condition::condition_value(p)?;
        let Some(scopes) = &mut p.program else { return Err(p.error()) };
        once(&scopes.conditions[sight.2..], &name, 1332, "condition")?;
        scopes.conditions.push((name, condition));
        return Ok(());
    }
    declare_variables(p, name, block, sight)
}

fn declare_variables(p: &mut Parser<'_>, first: Ident, block: &mut Block, sight: &Sight) -> Rule<()> {
    let mut names = vec![first];
    while p.eat(Tok::Comma) {
        names.push(names::ident(p)?);
    }
    let ty: DataType = column::data_type(p)?;
    let default = if p.eat_kw(Kw::DEFAULT) { Some(expr::expr(p)?) } else { None };
    let Some(scopes) = &mut p.program else { return Err(p.error()) };
    let (number, count) = (scopes.variables.len() as u32, names.len() as u32);
    // Those before this DECLARE are few, or were read one by one, each with a look whether to go on.
    let before = scopes.visible.len();
    let mut own = HashSet::with_capacity(names.len());
    for name in names {
        once(&scopes.visible[sight.0..before], &name, 1331, "variable")?;
        if !own.insert(name.to_ascii_lowercase()) {
            return Err(ParseError::other(1331, "42000", format!("Duplicate variable: {name}")));
        }
        scopes.visible.push((name.clone(), scopes.variables.len() as u32));
        scopes.variables.push((name, is_whole(ty.name)));
    }
    block.variables.push(Declared { first: number, count, ty, default });
    Ok(())
}

/// At CURSOR.
fn declare_cursor(p: &mut Parser<'_>, name: Ident, block: &mut Block, sight: &Sight) -> Rule<()> {
    p.advance();
    if !block.handlers.is_empty() {
        return Err(ParseError::other(1338, "42000", "Cursor declaration after handler declaration"));
    }
    p.expect_kw(Kw::FOR)?;
    let rows = p.program.as_ref().is_some_and(|scopes| scopes.returns_rows);
    let query = inner_statement(p)?;
    match query.query() {
        None => return Err(ParseError::other(1322, "42000", "Cursor statement must be a SELECT")),
        Some(query) if query.into.is_some() => {
            return Err(ParseError::other(1323, "42000", "Cursor SELECT must not have INTO"));
        }
        Some(_) => {}
    }
    let Some(scopes) = &mut p.program else { return Err(p.error()) };
    scopes.returns_rows = rows;
    once(&scopes.visible_cursors[sight.1..], &name, 1333, "cursor")?;
    let number = scopes.cursors.len() as u32;
    scopes.visible_cursors.push((name.clone(), number));
    scopes.cursors.push(Cursor { name, query });
    block.cursors.push(number);
    Ok(())
}

/// Behind CONTINUE or EXIT.
fn handler_declaration(p: &mut Parser<'_>, kind: HandlerKind) -> Rule<Handler> {
    p.expect_word("HANDLER")?;
    p.expect_kw(Kw::FOR)?;
    let mut conditions = Vec::new();
    loop {
        let condition = handled_condition(p)?;
        if conditions.contains(&condition) {
            return Err(ParseError::other(1413, "42000", "Duplicate handler declared in the same block"));
        }
        conditions.push(condition);
        if !p.eat(Tok::Comma) {
            break;
        }
    }
    // Labels around the block are out of a handler's sight.
    let labels = p.program.as_mut().map(|scopes| std::mem::take(&mut scopes.labels));
    let body = program_node(p);
    if let (Some(scopes), Some(labels)) = (&mut p.program, labels) {
        scopes.labels = labels;
    }
    Ok(Handler { kind, conditions, body: body? })
}

fn handled_condition(p: &mut Parser<'_>) -> Rule<Condition> {
    match p.token.kw {
        Kw::SQLWARNING => {
            p.advance();
            Ok(Condition::Warning)
        }
        Kw::SQLEXCEPTION => {
            p.advance();
            Ok(Condition::Exception)
        }
        Kw::NOT => {
            p.advance();
            p.expect_word("FOUND")?;
            Ok(Condition::NotFound)
        }
        _ if names::is_ident(p) => named_condition(p),
        _ => condition::condition_value(p),
    }
}

/// A condition by its name.
pub(super) fn named_condition(p: &mut Parser<'_>) -> Rule<Condition> {
    let name = names::ident(p)?;
    let found = p.program.as_ref().and_then(|scopes| find(&scopes.conditions, &name));
    found.ok_or_else(|| ParseError::other(1319, "42000", format!("Undefined CONDITION: {name}")))
}

fn cursor(p: &mut Parser<'_>) -> Rule<u32> {
    let name = names::ident(p)?;
    let found = p.program.as_ref().and_then(|scopes| find(&scopes.visible_cursors, &name));
    found.ok_or_else(|| ParseError::other(1324, "42000", format!("Undefined CURSOR: {name}")))
}

/// At FETCH.
fn fetch(p: &mut Parser<'_>) -> Rule<ProgramNode> {
    p.advance();
    let _ = p.eat_words(&["NEXT", "FROM"]) || p.eat_kw(Kw::FROM);
    let cursor = cursor(p)?;
    p.expect_kw(Kw::INTO)?;
    let into =
        p.comma_list(|parser| if parser.is(Tok::UserVar) { Err(parser.error()) } else { target(parser) })?;
    Ok(ProgramNode::Fetch { cursor, into })
}

/// An unqualified name as an operand, if it is a variable.
pub(super) fn local_operand(p: &mut Parser<'_>, name: &str) -> Option<Expr> {
    p.program.as_ref()?;
    variable_named(p, name).map(Expr::Local)
}

/// Notes a column of NEW or OLD.
pub(super) fn reads_row(parser: &mut Parser<'_>, column: &ColumnRef) {
    let of_row =
        column.table().is_some_and(|row| row.is("NEW") || row.is("OLD")) && column.schema().is_none();
    if let Some((_, reads)) =
        parser.program.as_mut().and_then(|scopes| scopes.trigger.as_mut()).filter(|_| of_row)
    {
        reads.push(column.clone());
    }
}

/// Whether an operand is a variable of anything but whole numbers, and its name.
pub(super) fn fractional_local<'a>(parser: &'a Parser<'_>, e: &Expr) -> Option<&'a Ident> {
    let Expr::Local(number) = e else { return None };
    let (name, whole) = parser.program.as_ref()?.variables.get(*number as usize)?;
    (!whole).then_some(name)
}
