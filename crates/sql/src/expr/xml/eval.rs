//! Evaluation of a path in a document.
//!
//! The string of a node is its own texts, joined by spaces; what is nested deeper is not part of it. Numbers are integers as
//! long as MySQL has them so: `7 div 2` is 3.

use super::document::{Document, Kind};
use super::path::{Axis, Function, Operator, Path, Start, Step, too_deep};
use crate::error::{ExecResult, SqlError};
use crate::expr::{Context, Expr, ExprType, charset};
use bytes::Bytes;
use omnibus_value::collation::by_id_or_binary;
use omnibus_value::decimal::{Decimal, DecimalOverflow};
use omnibus_value::{Value, stack};
use std::cmp::Ordering;

/// The value of an expression.
#[derive(Debug)]
pub enum XPathValue {
    /// Nodes in the document's order.
    Nodes(Vec<u32>),
    /// A truth value.
    Truth(bool),
    /// An integer.
    Int(i64),
    /// A number with digits behind the point that count.
    Decimal(Decimal),
    /// Another number.
    Number(f64),
    /// A string.
    Text(Vec<u8>),
    /// NULL: a division by 0, a variable that is not set.
    Null,
}

/// The node that is looked at, its place among those that a step has reached, and how many they are.
#[derive(Clone, Copy)]
struct Here {
    node: u32,
    position: usize,
    size: usize,
}

/// Evaluates a path in a document, whose text has a collation.
///
/// # Errors
/// The statement must stop; 3170; 1436; 1690.
pub fn find(
    document: &Document<'_>,
    path: &Path,
    collation: u16,
    cx: &mut Context<'_>,
) -> ExecResult<XPathValue> {
    let mut finder = Finder { document, collation, cx };
    finder.evaluate(path, Here { node: 0, position: 1, size: 1 })
}

struct Finder<'a, 'b, 'c> {
    document: &'a Document<'a>,
    collation: u16,
    cx: &'b mut Context<'c>,
}

impl XPathValue {
    /// The string of what is found.
    ///
    /// # Errors
    /// The statement must stop; 3170.
    pub fn text(self, document: &Document<'_>, cx: &mut Context<'_>) -> ExecResult<Option<Vec<u8>>> {
        Ok(Some(match self {
            XPathValue::Null => return Ok(None),
            XPathValue::Truth(truth) => vec![b'0' + u8::from(truth)],
            XPathValue::Int(n) => n.to_string().into_bytes(),
            XPathValue::Number(n) => {
                let value = Value::Double(n);
                let text = Expr::constant(value, ExprType::double()).eval_str(cx)?;
                text.map_or_else(Vec::new, |text| text.to_vec())
            }
            XPathValue::Decimal(n) => n.to_string().into_bytes(),
            XPathValue::Text(text) => text,
            XPathValue::Nodes(nodes) => joined(document, &nodes, cx)?,
        }))
    }
}

/// An exact result; one that has no room is NULL.
fn decimal(result: Result<Decimal, DecimalOverflow>) -> XPathValue {
    result.map_or(XPathValue::Null, XPathValue::Decimal)
}

/// The texts of nodes, joined by spaces, each once, in the document's order.
fn joined(document: &Document<'_>, nodes: &[u32], cx: &mut Context<'_>) -> ExecResult<Vec<u8>> {
    let mut out = Vec::new();
    let mut any = false;
    for text in texts(document, nodes, cx)? {
        let text = document.name(text);
        cx.tick()?;
        cx.room(&mut out, text.len() + 1)?;
        if any {
            out.push(b' ');
        }
        any = true;
        out.extend_from_slice(text);
    }
    Ok(out)
}

/// The numbers of the texts of nodes.
fn texts(document: &Document<'_>, nodes: &[u32], cx: &mut Context<'_>) -> ExecResult<Vec<u32>> {
    let mut found = Vec::new();
    for node in nodes {
        for inside in document.inside(*node) {
            cx.tick()?;
            let inner = &document.nodes[inside as usize];
            if inner.kind == Kind::Text && inner.parent == *node {
                found.push(inside);
            }
        }
    }
    cx.ask(found.capacity() * size_of::<u32>())?;
    found.sort_unstable();
    Ok(found)
}

impl Finder<'_, '_, '_> {
    fn evaluate(&mut self, path: &Path, here: Here) -> ExecResult<XPathValue> {
        self.cx.tick()?;
        if !stack::has_room() {
            return Err(too_deep().into());
        }
        Ok(match path {
            Path::Int(n) => XPathValue::Int(*n),
            Path::Number(n) => XPathValue::Decimal(*n),
            Path::Text(text) => XPathValue::Text(text.clone()),
            Path::Variable(name) => self.variable(name)?,
            Path::Minus(operand) => match self.evaluate(operand, here)? {
                XPathValue::Int(n) => n.checked_neg().map_or(XPathValue::Null, XPathValue::Int),
                XPathValue::Null => XPathValue::Null,
                XPathValue::Decimal(n) => XPathValue::Decimal(-n),
                other => XPathValue::Number(-self.number(other)?),
            },
            Path::Binary(operator, left, right) => self.binary(*operator, left, right, here)?,
            Path::Call(function, arguments) => self.call(*function, arguments, here)?,
            Path::Steps(start, steps) => XPathValue::Nodes(self.steps(start, steps, here)?),
        })
    }

    fn variable(&mut self, name: &str) -> ExecResult<XPathValue> {
        let known = self.cx.session.values.get(name).cloned();
        Ok(match known {
            None | Some((Value::Null, _)) => XPathValue::Null,
            Some((Value::Int(n), _)) => XPathValue::Int(n),
            Some((value, column)) => {
                let ty = ExprType { column, ..ExprType::null() };
                let text = Expr::constant(value, ty).eval_str(self.cx)?;
                text.map_or(XPathValue::Null, |text| XPathValue::Text(text.to_vec()))
            }
        })
    }

    fn text(&mut self, found: XPathValue) -> ExecResult<Vec<u8>> {
        Ok(found.text(self.document, self.cx)?.unwrap_or_default())
    }

    fn number(&mut self, found: XPathValue) -> ExecResult<f64> {
        match found {
            XPathValue::Truth(truth) => Ok(f64::from(u8::from(truth))),
            XPathValue::Int(n) => Ok(n as f64),
            XPathValue::Number(n) => Ok(n),
            XPathValue::Decimal(n) => Ok(n.to_f64()),
            XPathValue::Null => Ok(0.0),
            other => {
                let text = self.text(other)?;
                self.number_of(text)
            }
        }
    }

    /// The number at the beginning of a text; a warning if that is not all of it.
    fn number_of(&mut self, text: Vec<u8>) -> ExecResult<f64> {
        let ty = ExprType::varchar(text.len() as u32, self.collation);
        Ok(Expr::constant(Value::Bytes(text.into()), ty).eval_f64(self.cx)?.unwrap_or(0.0))
    }

    fn truth(&mut self, found: XPathValue) -> ExecResult<bool> {
        Ok(match found {
            XPathValue::Nodes(nodes) => !nodes.is_empty(),
            XPathValue::Truth(truth) => truth,
            other => self.number(other)? != 0.0,
        })
    }

    fn nodes(&mut self, path: &Path, here: Here) -> ExecResult<Vec<u32>> {
        Ok(match self.evaluate(path, here)? {
            XPathValue::Nodes(nodes) => nodes,
            _ => Vec::new(),
        })
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Path,
        right: &Path,
        here: Here,
    ) -> ExecResult<XPathValue> {
        use Operator as O;
        match operator {
            O::Or | O::And => {
                let left = self.evaluate(left, here)?;
                if self.truth(left)? == (operator == O::Or) {
                    return Ok(XPathValue::Truth(operator == O::Or));
                }
                let right = self.evaluate(right, here)?;
                Ok(XPathValue::Truth(self.truth(right)?))
            }
            O::Union => {
                let mut nodes = self.nodes(left, here)?;
                nodes.extend(self.nodes(right, here)?);
                nodes.sort_unstable();
                nodes.dedup();
                Ok(XPathValue::Nodes(nodes))
            }
            O::Equal | O::NotEqual | O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => {
                let (left, right) = (self.evaluate(left, here)?, self.evaluate(right, here)?);
                Ok(XPathValue::Truth(self.compare(operator, left, right)?))
            }
            O::Plus | O::Minus | O::Times | O::Div | O::Mod => {
                let (left, right) = (self.evaluate(left, here)?, self.evaluate(right, here)?);
                self.arithmetic(operator, left, right)
            }
        }
    }

    /// Compares; of nodes it is enough if one of their texts compares so.
    fn compare(&mut self, operator: Operator, left: XPathValue, right: XPathValue) -> ExecResult<bool> {
        let holds = |order: Option<Ordering>| {
            order.is_some_and(|order| match operator {
                Operator::Equal => order.is_eq(),
                Operator::NotEqual => order.is_ne(),
                Operator::Less => order.is_lt(),
                Operator::LessOrEqual => order.is_le(),
                Operator::Greater => order.is_gt(),
                _ => order.is_ge(),
            })
        };
        let (nodes, other, turned) = match (left, right) {
            (XPathValue::Nodes(nodes), other) => (nodes, other, false),
            (other, XPathValue::Nodes(nodes)) => (nodes, other, true),
            (left, right) => return Ok(holds(self.order(left, &right)?)),
        };
        for text in texts(self.document, &nodes, self.cx)? {
            self.cx.tick()?;
            let text = XPathValue::Text(self.document.name(text).to_vec());
            let order = self.order(text, &other)?;
            if holds(if turned { order.map(Ordering::reverse) } else { order }) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn order(&mut self, left: XPathValue, right: &XPathValue) -> ExecResult<Option<Ordering>> {
        let right = match right {
            XPathValue::Null => return Ok(None),
            XPathValue::Text(right) => {
                if let XPathValue::Text(left) = &left {
                    return Ok(Some(by_id_or_binary(self.collation).compare(left, right)));
                }
                self.number_of(right.clone())?
            }
            XPathValue::Truth(truth) => f64::from(u8::from(*truth)),
            XPathValue::Int(n) => *n as f64,
            XPathValue::Number(n) => *n,
            XPathValue::Decimal(n) => n.to_f64(),
            XPathValue::Nodes(_) => return Ok(None),
        };
        if let XPathValue::Null = left {
            return Ok(None);
        }
        Ok(self.number(left)?.partial_cmp(&right))
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: XPathValue,
        right: XPathValue,
    ) -> ExecResult<XPathValue> {
        let integer = |found: &XPathValue| match found {
            XPathValue::Int(n) => Some(*n),
            XPathValue::Truth(truth) => Some(i64::from(*truth)),
            _ => None,
        };
        if let (XPathValue::Null, _) | (_, XPathValue::Null) = (&left, &right) {
            return Ok(XPathValue::Null);
        }
        if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
            let (result, sign) = match operator {
                Operator::Plus => (a.checked_add(b), '+'),
                Operator::Minus => (a.checked_sub(b), '-'),
                Operator::Times => (a.checked_mul(b), '*'),
                _ if b == 0 => return Ok(self.divided_by_zero()),
                Operator::Div => (a.checked_div(b), '/'),
                _ => (Some(a.wrapping_rem(b)), '%'),
            };
            let Some(result) = result else {
                let text = format!("BIGINT value is out of range in '({a} {sign} {b})'");
                return Err(SqlError::new(1690, b"22003", text).into());
            };
            return Ok(XPathValue::Int(result));
        }
        let exact = |found: &XPathValue| match found {
            XPathValue::Decimal(n) => Some(*n),
            other => integer(other).map(|n| Decimal::from_i128(i128::from(n), 0)),
        };
        if let (Some(a), Some(b)) = (exact(&left), exact(&right)) {
            return Ok(match operator {
                Operator::Plus => decimal(a.add(&b)),
                Operator::Minus => decimal(a.sub(&b)),
                Operator::Times => decimal(a.mul(&b)),
                _ if b.is_zero() => self.divided_by_zero(),
                Operator::Div => XPathValue::Int(a.int_div(&b).map_or(0, |n| n as i64)),
                _ => a.rem(&b).map_or(XPathValue::Null, XPathValue::Decimal),
            });
        }
        let (a, b) = (self.number(left)?, self.number(right)?);
        Ok(match operator {
            Operator::Plus => XPathValue::Number(a + b),
            Operator::Minus => XPathValue::Number(a - b),
            Operator::Times => XPathValue::Number(a * b),
            _ if b == 0.0 => self.divided_by_zero(),
            Operator::Div => XPathValue::Int((a / b) as i64),
            _ => XPathValue::Number(a % b),
        })
    }

    fn divided_by_zero(&mut self) -> XPathValue {
        self.cx.warn(SqlError::new(1365, b"22012", "Division by 0"));
        XPathValue::Null
    }

    fn call(&mut self, function: Function, arguments: &[Path], here: Here) -> ExecResult<XPathValue> {
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.evaluate(argument, here)?);
        }
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or(XPathValue::Null);
        Ok(match function {
            Function::True => XPathValue::Truth(true),
            Function::False => XPathValue::Truth(false),
            Function::Position => XPathValue::Int(here.position as i64),
            Function::Last => XPathValue::Int(here.size as i64),
            Function::Boolean => XPathValue::Truth(self.truth(next())?),
            Function::Not => XPathValue::Truth(!self.truth(next())?),
            Function::Number => XPathValue::Number(self.number(next())?),
            Function::Floor => XPathValue::Number(self.number(next())?.floor()),
            Function::Ceiling => XPathValue::Number(self.number(next())?.ceil()),
            Function::Round => XPathValue::Number(self.number(next())?.round_ties_even()),
            Function::Count => match next() {
                XPathValue::Nodes(nodes) => XPathValue::Int(nodes.len() as i64),
                _ => XPathValue::Int(0),
            },
            Function::Sum => match next() {
                XPathValue::Nodes(nodes) => XPathValue::Number(self.sum(&nodes)?),
                _ => XPathValue::Number(0.0),
            },
            Function::StringLength => {
                let text = self.text(next())?;
                XPathValue::Int(charset::char_count(&text, self.collation) as i64)
            }
            // MySQL joins the first two, however many there are.
            Function::Concat => {
                let (mut text, more) = (self.text(next())?, self.text(next())?);
                self.cx.room(&mut text, more.len())?;
                text.extend(more);
                XPathValue::Text(text)
            }
            Function::Contains => {
                let (text, part) = (self.text(next())?, self.text(next())?);
                XPathValue::Truth(self.contains(text, part)?)
            }
            Function::Substring => {
                let text = self.text(next())?;
                let from = self.number(next())? as i64;
                let length = match next() {
                    XPathValue::Null => i64::MAX,
                    length => self.number(length)? as i64,
                };
                XPathValue::Text(self.part(&text.into(), from, length))
            }
        })
    }

    fn sum(&mut self, nodes: &[u32]) -> ExecResult<f64> {
        let mut sum = 0.0;
        for text in texts(self.document, nodes, self.cx)? {
            sum += self.number_of(self.document.name(text).to_vec())?;
        }
        Ok(sum)
    }

    /// Whether a text has another in it, as LOCATE finds it.
    fn contains(&mut self, text: Vec<u8>, part: Vec<u8>) -> ExecResult<bool> {
        let constant = |text: Vec<u8>| {
            let ty = ExprType::varchar(text.len() as u32, self.collation);
            Expr::constant(Value::Bytes(text.into()), ty)
        };
        let arguments = [constant(part), constant(text)];
        match crate::expr::functions::lookup("LOCATE") {
            Some(locate) => {
                Ok(!matches!((locate.eval)(&arguments, &ExprType::bigint(), self.cx)?, Value::Int(0)))
            }
            None => Ok(false),
        }
    }

    /// As SUBSTRING has it: from the end if `from` is negative.
    fn part(&self, text: &Bytes, from: i64, length: i64) -> Vec<u8> {
        let count = charset::char_count(text, self.collation) as i64;
        let start = if from < 0 { count + from } else { from - 1 };
        if from == 0 || start < 0 || start >= count || length <= 0 {
            return Vec::new();
        }
        let taken = length.min(count - start) as usize;
        charset::slice_chars(text, start as usize, taken, self.collation).to_vec()
    }

    fn steps(&mut self, start: &Start, steps: &[Step], here: Here) -> ExecResult<Vec<u32>> {
        let mut nodes = match start {
            Start::Root => vec![0],
            Start::Current => vec![here.node],
            Start::Of(path) => self.nodes(path, here)?,
        };
        for step in steps {
            let mut reached = Vec::new();
            for node in &nodes {
                let from = reached.len();
                self.step(step, *node, &mut reached)?;
                self.filter(step, &mut reached, from)?;
            }
            reached.sort_unstable();
            reached.dedup();
            nodes = reached;
        }
        Ok(nodes)
    }

    /// Adds what a step reaches from a node.
    fn step(&mut self, step: &Step, from: u32, reached: &mut Vec<u32>) -> ExecResult<()> {
        let (document, before) = (self.document, reached.capacity());
        let wanted = |node: u32| step.name.as_ref().is_none_or(|name| document.name(node) == &**name);
        let parent = |node: u32| document.nodes[node as usize].parent;
        let kind = |node: u32| document.nodes[node as usize].kind;
        if matches!(step.axis, Axis::Itself | Axis::DescendantOrSelf | Axis::AncestorOrSelf) && wanted(from) {
            reached.push(from);
        }
        match step.axis {
            Axis::Parent if from != 0 && wanted(parent(from)) => reached.push(parent(from)),
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let mut node = from;
                while node != 0 {
                    self.cx.tick()?;
                    node = parent(node);
                    if wanted(node) {
                        reached.push(node);
                    }
                }
            }
            Axis::Attribute | Axis::Child | Axis::Descendant | Axis::DescendantOrSelf => {
                let sought = if step.axis == Axis::Attribute { Kind::Attribute } else { Kind::Element };
                let deep = matches!(step.axis, Axis::Descendant | Axis::DescendantOrSelf);
                let inside = document.inside(from);
                let mut node = inside.start;
                while node < inside.end {
                    self.cx.tick()?;
                    if kind(node) == sought && wanted(node) {
                        reached.push(node);
                    }
                    node = if deep { node + 1 } else { document.nodes[node as usize].last };
                }
            }
            _ => {}
        }
        self.cx.ask((reached.capacity() - before) * size_of::<u32>())
    }

    /// Leaves of what was reached from one node what the predicates let pass.
    fn filter(&mut self, step: &Step, reached: &mut Vec<u32>, from: usize) -> ExecResult<()> {
        for predicate in &step.predicates {
            let size = reached.len() - from;
            let mut kept = from;
            for place in from..reached.len() {
                let here = Here { node: reached[place], position: place - from + 1, size };
                let passes = match self.evaluate(predicate, here)? {
                    XPathValue::Nodes(nodes) => !nodes.is_empty(),
                    XPathValue::Truth(truth) => truth,
                    XPathValue::Null => false,
                    number => self.number(number)?.round() == here.position as f64,
                };
                if passes {
                    reached[kept] = here.node;
                    kept += 1;
                }
            }
            reached.truncate(kept);
        }
        Ok(())
    }
}
