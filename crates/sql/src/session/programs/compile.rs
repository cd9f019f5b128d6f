//! From a body's tree to a list of instructions. Blocks and loops become jumps; what a handler needs to know of the blocks
//! around a statement is told by `Enter` and `Leave`.

use super::check;
use crate::api::SessionSettings;
use crate::bind::types::column_type;
use crate::catalog::{Column, ProgramDef, Table};
use crate::error::{SqlError, SqlResult};
use crate::memory::Account;
use crate::state::TriggerRows;
use bytes::Bytes;
use omnibus_parser::ast::{
    AssignTarget, BinaryOp, Block, Branch, Characteristics, Condition, Cursor, DataType, Expr, Handler,
    HandlerKind, Ident, InnerStatement, LoopKind, ParamMode, ProgramNode, Security, SetItem, Spanned,
    Statement,
};
use omnibus_value::{ColumnKind, ColumnType};
use std::sync::Arc;

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Instruction {
    Statement(Arc<InnerStatement>),
    /// Without an expression: NULL.
    Assign {
        local: u32,
        value: Option<Arc<Expr>>,
    },
    /// The operand of CASE, of whatever type it is. `after` as in `JumpUnless`.
    Keep {
        local: u32,
        value: Arc<Expr>,
        after: usize,
    },
    AssignUser {
        name: Box<str>,
        value: Arc<Expr>,
    },
    AssignNew {
        column: Ident,
        value: Arc<Expr>,
    },
    Jump(usize),
    /// `after`: where to go on when the condition fails and a handler continues.
    JumpUnless {
        condition: Arc<Expr>,
        to: usize,
        after: usize,
    },
    /// Into a block.
    Enter(usize),
    /// Out of so many blocks.
    Leave(usize),
    EndHandler,
    Open(u32),
    Fetch {
        cursor: u32,
        into: Vec<AssignTarget>,
    },
    Close(u32),
    Return(Arc<Expr>),
    /// No branch of CASE was chosen (1339).
    NoCase,
}

/// A handler of a block.
#[derive(Debug)]
pub(crate) struct CompiledHandler {
    pub kind: HandlerKind,
    pub conditions: Vec<Condition>,
    pub start: usize,
}

/// A block's handlers, the cursors that end with it, and where it ends.
#[derive(Debug, Default)]
pub(crate) struct CompiledBlock {
    pub handlers: Vec<CompiledHandler>,
    pub cursors: Vec<u32>,
    pub end: usize,
}

/// A program that can be run.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub def: Arc<ProgramDef>,
    pub text: Bytes,
    pub code: Vec<Instruction>,
    pub blocks: Vec<CompiledBlock>,
    pub cursors: Vec<Cursor>,
    /// The variables, parameters first.
    pub columns: Arc<[Column]>,
    /// A trigger's table, and where its columns of NEW are among the variables, and behind these those of OLD.
    pub rows: Option<TriggerRows>,
    /// Values that the program keeps for itself.
    pub hidden: usize,
    /// Of the parameters.
    pub modes: Vec<ParamMode>,
    pub returns: Option<Column>,
    pub characteristics: Characteristics,
    /// Its memory, where a session keeps or runs it.
    pub _account: Option<Account>,
}

impl Compiled {
    /// Compiles a program as the catalog has it.
    ///
    /// # Errors
    /// Types that are not had; what its kind of program may not do.
    pub(crate) fn new(
        def: &Arc<ProgramDef>,
        settings: &SessionSettings,
        table: Option<&Arc<Table>>,
    ) -> SqlResult<Compiled> {
        let tree = def.tree()?;
        let (program, params, returns, characteristics) = match &*tree {
            Statement::CreateRoutine(tree) => {
                (&tree.program, &tree.params[..], tree.returns.as_ref(), tree.characteristics.clone())
            }
            Statement::CreateTrigger(tree) => (&tree.program, &[][..], None, Characteristics::default()),
            Statement::CreateEvent(tree) => match &tree.clauses.program {
                Some(program) => (program, &[][..], None, Characteristics::default()),
                None => return Err(SqlError::internal("a stored event without a body")),
            },
            _ => return Err(SqlError::internal("a stored program of an unknown kind")),
        };
        check::body(def.kind(), program)?;
        let mut types: Vec<&DataType> = params.iter().map(|param| &param.ty).collect();
        declared_types(&program.body, &mut types);
        let utf8mb4 = settings.default_collation_for_utf8mb4;
        let column = |name: &str, ty: &DataType| variable_column(name, ty, def.database, utf8mb4);
        let columns = program.variables.iter().zip(types).map(|(name, ty)| column(name, ty));
        let mut columns = columns.collect::<SqlResult<Vec<Column>>>()?;
        let from = columns.len();
        for _ in 0..2 {
            columns.extend(table.into_iter().flat_map(|table| table.columns()).map(row_variable));
        }
        let returns = returns.map(|ty| column("RETURN", ty)).transpose()?;
        let mut compiler = Compiler { variables: columns.len() as u32, ..Compiler::default() };
        compiler.node(&program.body);
        Ok(Compiled {
            def: def.clone(),
            text: def.bytes(),
            code: compiler.code,
            blocks: compiler.blocks,
            cursors: program.cursors.clone(),
            columns: columns.into(),
            rows: table.map(|table| TriggerRows { table: table.clone(), from }),
            hidden: compiler.hidden as usize,
            modes: params.iter().map(|param| param.mode).collect(),
            returns,
            characteristics,
            _account: None,
        })
    }

    /// Whether it acts in the name of who made it.
    pub(crate) fn as_definer(&self) -> bool {
        self.characteristics.security != Some(Security::Invoker)
    }
}

/// Makes a column without a table of a variable's type.
///
/// # Errors
/// As in CREATE TABLE.
pub(crate) fn variable_column(name: &str, ty: &DataType, collation: u16, utf8mb4: u16) -> SqlResult<Column> {
    let (mut ty, explicit_collation) = column_type(name, ty, collation, utf8mb4)?;
    // Its value is what the session sees, in no zone but the session's.
    if ty.kind == ColumnKind::Timestamp {
        ty.kind = ColumnKind::DateTime;
    }
    Ok(variable_of(name, ty, explicit_collation))
}

/// A column of a trigger's row.
fn row_variable(column: &Column) -> Column {
    let mut ty = column.ty.clone();
    if ty.kind == ColumnKind::Timestamp {
        ty.kind = ColumnKind::DateTime;
    }
    variable_of(&column.name, ty, column.explicit_collation)
}

fn variable_of(name: &str, ty: ColumnType, explicit_collation: bool) -> Column {
    Column { explicit_collation, ..Column::free(name, ty) }
}

/// The types of all variables that are declared, in the order of their numbers.
fn declared_types<'a>(node: &'a ProgramNode, types: &mut Vec<&'a DataType>) {
    let list = |nodes: &'a [ProgramNode], types: &mut Vec<&'a DataType>| {
        nodes.iter().for_each(|node| declared_types(node, types));
    };
    match node {
        ProgramNode::Block(block) => {
            for declared in &block.variables {
                types.extend(std::iter::repeat_n(&declared.ty, declared.count as usize));
            }
            block.handlers.iter().for_each(|handler| declared_types(&handler.body, types));
            list(&block.body, types);
        }
        ProgramNode::If { branches, otherwise } => {
            branches.iter().for_each(|(_, body)| list(body, types));
            list(otherwise, types);
        }
        ProgramNode::Case { whens, otherwise, .. } => {
            whens.iter().for_each(|(_, body)| list(body, types));
            list(otherwise.as_deref().unwrap_or_default(), types);
        }
        ProgramNode::Loop { body, .. } => list(body, types),
        _ => {}
    }
}

/// A label that is in sight.
struct Label {
    number: u32,
    /// Blocks around it.
    depth: usize,
    /// Where ITERATE goes.
    start: usize,
    /// Jumps to its end.
    leaves: Vec<usize>,
}

#[derive(Default)]
struct Compiler {
    code: Vec<Instruction>,
    blocks: Vec<CompiledBlock>,
    labels: Vec<Label>,
    /// Blocks around what is compiled.
    depth: usize,
    variables: u32,
    hidden: u32,
}

impl Compiler {
    fn emit(&mut self, instruction: Instruction) -> usize {
        self.code.push(instruction);
        self.code.len() - 1
    }

    /// Jumps from these places go here.
    fn land(&mut self, jumps: impl IntoIterator<Item = usize>) {
        let here = self.code.len();
        for jump in jumps {
            match &mut self.code[jump] {
                Instruction::Jump(to) | Instruction::JumpUnless { to, .. } => *to = here,
                _ => {}
            }
        }
    }

    /// The conditions at these places are left for here when a handler continues.
    fn after(&mut self, conditions: impl IntoIterator<Item = usize>) {
        let here = self.code.len();
        for condition in conditions {
            if let Instruction::JumpUnless { after, .. } | Instruction::Keep { after, .. } =
                &mut self.code[condition]
            {
                *after = here;
            }
        }
    }

    fn list(&mut self, nodes: &[ProgramNode]) {
        nodes.iter().for_each(|node| self.node(node));
    }

    fn node(&mut self, node: &ProgramNode) {
        match node {
            ProgramNode::Block(block) => self.block(block),
            ProgramNode::Statement(statement) => self.statement(statement),
            ProgramNode::If { branches, otherwise } => self.branches(branches, |compiler| {
                compiler.list(otherwise);
            }),
            ProgramNode::Case { operand, whens, otherwise } => {
                self.case(operand.as_ref(), whens, otherwise.as_deref())
            }
            ProgramNode::Loop { label, kind, body } => self.repeat(*label, kind, body),
            ProgramNode::Leave(label) => self.jump_out(*label, true),
            ProgramNode::Iterate(label) => self.jump_out(*label, false),
            ProgramNode::Return(value) => {
                self.emit(Instruction::Return(Arc::new(value.clone())));
            }
            ProgramNode::Open(cursor) => {
                self.emit(Instruction::Open(*cursor));
            }
            ProgramNode::Fetch { cursor, into } => {
                self.emit(Instruction::Fetch { cursor: *cursor, into: into.clone() });
            }
            ProgramNode::Close(cursor) => {
                self.emit(Instruction::Close(*cursor));
            }
        }
    }

    /// SET is a step for each of its members.
    fn statement(&mut self, statement: &Arc<InnerStatement>) {
        let Statement::Set(items) = &statement.statement.node else {
            self.emit(Instruction::Statement(statement.clone()));
            return;
        };
        for item in items {
            let shared = |value: &Expr| Arc::new(value.clone());
            let instruction = match item {
                SetItem::Local { local, value } => {
                    Instruction::Assign { local: *local, value: Some(shared(value)) }
                }
                SetItem::NewColumn { column, value } => {
                    Instruction::AssignNew { column: column.clone(), value: shared(value) }
                }
                SetItem::User { name, value } => {
                    let name = name.to_lowercase().into();
                    Instruction::AssignUser { name, value: shared(value) }
                }
                item => {
                    let span = statement.statement.span;
                    let node = Statement::Set(vec![item.clone()]);
                    let alone = Arc::new(Spanned { node, span, params: 0 });
                    let locals = statement.locals.clone();
                    Instruction::Statement(Arc::new(InnerStatement { statement: alone, locals }))
                }
            };
            self.emit(instruction);
        }
    }

    fn block(&mut self, block: &Block) {
        let number = self.blocks.len();
        self.blocks.push(CompiledBlock { cursors: block.cursors.clone(), ..CompiledBlock::default() });
        let start = self.code.len();
        if let Some(label) = block.label {
            self.labels.push(Label { number: label, depth: self.depth, start, leaves: Vec::new() });
        }
        for declared in &block.variables {
            let value = declared.default.clone().map(Arc::new);
            for local in declared.first..declared.first + declared.count {
                self.emit(Instruction::Assign { local, value: value.clone() });
            }
        }
        // A block that declares nothing of the kind needs no step.
        let scoped = !block.handlers.is_empty() || !block.cursors.is_empty();
        if scoped {
            self.emit(Instruction::Enter(number));
            self.depth += 1;
            self.handlers(number, &block.handlers);
        }
        self.list(&block.body);
        if scoped {
            self.emit(Instruction::Leave(1));
            self.depth -= 1;
        }
        self.blocks[number].end = self.code.len();
        if block.label.is_some()
            && let Some(label) = self.labels.pop()
        {
            self.land(label.leaves);
        }
    }

    fn handlers(&mut self, block: usize, handlers: &[Handler]) {
        if handlers.is_empty() {
            return;
        }
        let over = self.emit(Instruction::Jump(0));
        for handler in handlers {
            let start = self.code.len();
            let (kind, conditions) = (handler.kind, handler.conditions.clone());
            self.node(&handler.body);
            self.emit(Instruction::EndHandler);
            self.blocks[block].handlers.push(CompiledHandler { kind, conditions, start });
        }
        self.land([over]);
    }

    fn condition(&mut self, condition: &Expr) -> usize {
        self.emit(Instruction::JumpUnless { condition: Arc::new(condition.clone()), to: 0, after: 0 })
    }

    fn branches(&mut self, branches: &[Branch], otherwise: impl FnOnce(&mut Self)) {
        let (mut conditions, mut ends) = (Vec::new(), Vec::new());
        for (condition, body) in branches {
            let next = self.condition(condition);
            conditions.push(next);
            self.list(body);
            ends.push(self.emit(Instruction::Jump(0)));
            self.land([next]);
        }
        otherwise(self);
        self.land(ends);
        self.after(conditions);
    }

    fn case(&mut self, operand: Option<&Expr>, whens: &[Branch], otherwise: Option<&[ProgramNode]>) {
        let kept = operand.map(|operand| {
            let local = self.variables + self.hidden;
            self.hidden += 1;
            (self.emit(Instruction::Keep { local, value: Arc::new(operand.clone()), after: 0 }), local)
        });
        let equal = |(when, body): &Branch| match kept {
            None => (when.clone(), body.clone()),
            Some((_, local)) => {
                let (left, right) = (Box::new(Expr::Local(local)), Box::new(when.clone()));
                (Expr::Binary { op: BinaryOp::Eq, left, right }, body.clone())
            }
        };
        let whens: Vec<Branch> = whens.iter().map(equal).collect();
        self.branches(&whens, |compiler| match otherwise {
            Some(otherwise) => compiler.list(otherwise),
            None => {
                compiler.emit(Instruction::NoCase);
            }
        });
        self.after(kept.map(|(at, _)| at));
    }

    fn repeat(&mut self, number: u32, kind: &LoopKind, body: &[ProgramNode]) {
        // The first round begins behind the step to the next one.
        let first = matches!(kind, LoopKind::For { .. }).then(|| self.emit(Instruction::Jump(0)));
        let start = self.code.len();
        self.labels.push(Label { number, depth: self.depth, start, leaves: Vec::new() });
        if let LoopKind::For { variable, next, .. } = kind {
            self.emit(Instruction::Assign { local: *variable, value: Some(Arc::new(next.clone())) });
        }
        self.land(first);
        let condition = match kind {
            LoopKind::While(condition) | LoopKind::For { condition, .. } => Some(self.condition(condition)),
            _ => None,
        };
        self.list(body);
        let condition = match kind {
            LoopKind::Repeat(until) => {
                let until = self.condition(until);
                if let Instruction::JumpUnless { to, .. } = &mut self.code[until] {
                    *to = start;
                }
                self.after([until]);
                None
            }
            _ => {
                self.emit(Instruction::Jump(start));
                condition
            }
        };
        self.land(condition);
        self.after(condition);
        if let Some(label) = self.labels.pop() {
            self.land(label.leaves);
        }
    }

    fn jump_out(&mut self, number: u32, leave: bool) {
        let Some(at) = self.labels.iter().rposition(|label| label.number == number) else { return };
        let (depth, start) = (self.labels[at].depth, self.labels[at].start);
        if self.depth > depth {
            self.emit(Instruction::Leave(self.depth - depth));
        }
        let jump = self.emit(Instruction::Jump(start));
        if leave {
            self.labels[at].leaves.push(jump);
        }
    }
}
