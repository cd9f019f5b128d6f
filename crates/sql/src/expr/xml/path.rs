//! The syntax of XPath, as much as MySQL has of it.

use crate::error::{SqlError, SqlResult};
use omnibus_value::decimal::Decimal;
use omnibus_value::stack;

/// An expression of XPath.
#[derive(Debug, PartialEq)]
pub enum Path {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Number(Decimal),
    /// A string.
    Text(Vec<u8>),
    /// A user variable: its name, in lower case.
    Variable(String),
    /// `or`, `and`, comparisons, arithmetic, `|`.
    Binary(Operator, Box<Path>, Box<Path>),
    /// `-x`.
    Minus(Box<Path>),
    /// A call.
    Call(Function, Vec<Path>),
    /// Steps from the root, from the current node, or from what an expression finds.
    Steps(Start, Vec<Step>),
}

/// Where steps begin.
#[derive(Debug, PartialEq)]
pub enum Start {
    /// `/`.
    Root,
    /// The current node.
    Current,
    /// `(x)/..`.
    Of(Box<Path>),
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Div,
    Mod,
    Union,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

/// Name, fewest and most arguments.
const FUNCTIONS: [(&str, Function, usize, usize); 16] = [
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string-length", Function::StringLength, 1, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
];

/// Where a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Parent,
    Itself,
    /// One that MySQL reads and finds nothing by.
    Nothing,
}

/// A step of a path.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// Where it goes.
    pub axis: Axis,
    /// The name that is wanted; `None` takes all.
    pub name: Option<Vec<u8>>,
    /// The conditions of the nodes that it reaches.
    pub predicates: Vec<Path>,
}

const AXES: [(&str, Axis); 13] = [
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    ("following", Axis::Nothing),
    ("following-sibling", Axis::Nothing),
    ("namespace", Axis::Nothing),
    ("parent", Axis::Parent),
    ("preceding", Axis::Nothing),
    ("preceding-sibling", Axis::Nothing),
    ("self", Axis::Itself),
];

/// The bytes of a step, a predicate or an argument in a list that has grown by doubling, and of its name.
const PART: usize = 2 * (size_of::<Step>() + size_of::<Path>()) + 32;
/// How much of the rest an error shows.
const SHOWN: usize = 32;

/// The error of an expression that has no room on the stack.
pub(super) fn too_deep() -> SqlError {
    SqlError::new(1436, b"HY000", "Thread stack overrun: the XPATH expression is nested too deeply.")
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// How many predicates are open.
    inside: usize,
    /// How many operators were read.
    operators: usize,
}

/// The most operators of an expression: each is in the next one, and they are dropped one inside the other.
const MOST_OPERATORS: usize = 4096;

impl Path {
    /// Reads an expression.
    ///
    /// # Errors
    /// 1105: what it is not, and where. 1436: it is nested too deeply.
    pub fn read(text: &[u8]) -> SqlResult<Path> {
        let mut reader = Reader { text, at: 0, inside: 0, operators: 0 };
        let path = reader.expression(0)?;
        reader.space();
        if reader.at == text.len() { Ok(path) } else { Err(reader.error()) }
    }

    /// The most bytes that reading a text takes: by the signs that begin a part of an expression.
    #[must_use]
    pub fn memory_of(text: &[u8]) -> usize {
        let begins = |byte: &&u8| matches!(byte, b'/' | b'[' | b'|' | b',' | b'(' | b'-');
        2 * text.len() + text.iter().filter(begins).count() * PART
    }

    /// Whether it finds nodes.
    #[must_use]
    pub fn finds_nodes(&self) -> bool {
        matches!(self, Path::Steps(..) | Path::Binary(Operator::Union, ..))
    }
}

/// The operators by how strongly they bind, the loosest first.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("div", Operator::Div), ("mod", Operator::Mod)],
];

impl Reader<'_> {
    fn space(&mut self) {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    /// The error of a place: the rest from there on.
    fn error_at(&self, what: &str, at: usize) -> SqlError {
        let rest = &self.text[at..self.text.len().min(at + SHOWN)];
        let text = format!("{what}: '{}'", String::from_utf8_lossy(rest));
        SqlError::new(1105, b"HY000", text)
    }

    fn error(&mut self) -> SqlError {
        self.space();
        self.error_at("XPATH syntax error", self.at)
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(sign.as_bytes());
        if found {
            self.at += sign.len();
        }
        found
    }

    fn expects(&mut self, sign: &str) -> SqlResult<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.error()) }
    }

    /// The name at this place, not passed.
    fn name(&mut self) -> &[u8] {
        self.space();
        let rest = &self.text[self.at..];
        let starts =
            rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80);
        let part =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || **byte >= 0x80;
        let length = if starts { rest.iter().take_while(part).count() } else { 0 };
        &rest[..length]
    }

    fn takes_operator(&mut self, sign: &str) -> bool {
        if sign.as_bytes()[0].is_ascii_alphabetic() {
            let found = self.name() == sign.as_bytes();
            if found {
                self.at += sign.len();
            }
            return found;
        }
        self.takes(sign)
    }

    /// Operands of a level and what joins them.
    fn expression(&mut self, level: usize) -> SqlResult<Path> {
        if !stack::has_room() {
            return Err(too_deep());
        }
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.expression(level + 1)?;
        loop {
            self.space();
            let place = self.at;
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.takes_operator(sign)) else {
                return Ok(left);
            };
            let right = self.expression(level + 1)?;
            if matches!(level, 2 | 3) && left.finds_nodes() && right.finds_nodes() {
                let what = "XPATH error: comparison of two nodesets is not supported";
                return Err(self.error_at(what, place));
            }
            left = self.binary(*operator, left, right)?;
        }
    }

    fn binary(&mut self, operator: Operator, left: Path, right: Path) -> SqlResult<Path> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            return Err(too_deep());
        }
        Ok(Path::Binary(operator, Box::new(left), Box::new(right)))
    }

    fn unary(&mut self) -> SqlResult<Path> {
        if self.takes("-") {
            if !stack::has_room() {
                return Err(self.error());
            }
            return Ok(Path::Minus(Box::new(self.unary()?)));
        }
        let mut left = self.primary()?;
        while self.takes("|") {
            self.space();
            let place = self.at;
            let right = self.primary()?;
            if !left.finds_nodes() || !right.finds_nodes() {
                return Err(self.error_at("XPATH syntax error", place));
            }
            left = self.binary(Operator::Union, left, right)?;
        }
        Ok(left)
    }

    fn primary(&mut self) -> SqlResult<Path> {
        self.space();
        match self.text.get(self.at).copied() {
            Some(quote @ (b'"' | b'\'')) => {
                let rest = &self.text[self.at + 1..];
                let Some(length) = rest.iter().position(|byte| *byte == quote) else {
                    return Err(self.error());
                };
                self.at += length + 2;
                Ok(Path::Text(rest[..length].to_vec()))
            }
            Some(b'0'..=b'9') => Ok(self.number()),
            Some(b'$') => self.variable(),
            Some(b'(') => {
                self.at += 1;
                let inner = self.expression(0)?;
                self.expects(")")?;
                if inner.finds_nodes() && self.text[self.at..].starts_with(b"/") {
                    let mut steps = Vec::new();
                    self.separator(&mut steps)?;
                    self.steps(&mut steps)?;
                    return Ok(Path::Steps(Start::Of(Box::new(inner)), steps));
                }
                Ok(inner)
            }
            _ => match self.call()? {
                Some(call) => Ok(call),
                None => self.location(),
            },
        }
    }

    fn number(&mut self) -> Path {
        let start = self.at;
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits(&self.text[self.at..]);
        let whole = self.text[start..self.at].iter().try_fold(0i64, |n, digit| {
            n.checked_mul(10).and_then(|n| n.checked_add(i64::from(digit - b'0')))
        });
        if self.text.get(self.at) != Some(&b'.') {
            // What has no room in 64 bits is -1 in MySQL.
            return Path::Int(whole.unwrap_or(-1));
        }
        self.at += 1;
        self.at += digits(&self.text[self.at..]);
        Path::Number(Decimal::parse(&self.text[start..self.at]).value)
    }

    fn variable(&mut self) -> SqlResult<Path> {
        let start = self.at;
        self.at += 1;
        let user = self.text.get(self.at) == Some(&b'@');
        self.at += usize::from(user);
        let name = self.name();
        let (length, lower) = (name.len(), String::from_utf8_lossy(name).to_lowercase());
        if !user || length == 0 {
            return Err(self.error_at("Unknown XPATH variable at", start));
        }
        self.at += length;
        Ok(Path::Variable(lower))
    }

    fn call(&mut self) -> SqlResult<Option<Path>> {
        let name = self.name().to_vec();
        let known = FUNCTIONS.iter().find(|(known, ..)| known.as_bytes() == name);
        let (Some((_, function, least, most)), Some(b'(')) = (known, self.text.get(self.at + name.len()))
        else {
            return Ok(None);
        };
        self.at += name.len() + 1;
        let mut arguments = Vec::new();
        while arguments.len() < *most {
            if arguments.len() >= *least && self.takes(")") {
                self.at -= 1;
                break;
            }
            arguments.push(self.expression(0)?);
            if arguments.len() < *most && !self.takes(",") {
                break;
            }
        }
        if arguments.len() < *least {
            return Err(self.error());
        }
        self.expects(")")?;
        let of_nodes = matches!(function, Function::Count | Function::Sum);
        let outside = matches!(function, Function::Last | Function::Position) && self.inside == 0;
        if of_nodes && !arguments[0].finds_nodes() || outside {
            return Err(self.error());
        }
        Ok(Some(Path::Call(*function, arguments)))
    }

    fn location(&mut self) -> SqlResult<Path> {
        let mut steps = Vec::new();
        let start = if self.text[self.at..].starts_with(b"/") { Start::Root } else { Start::Current };
        if start == Start::Root {
            let double = self.separator(&mut steps)?;
            self.space();
            let ends = match self.text.get(self.at) {
                None => true,
                Some(byte) => {
                    matches!(byte, b'|' | b')' | b']' | b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b',')
                }
            };
            if ends && !double {
                return Ok(Path::Steps(start, steps));
            }
        }
        self.steps(&mut steps)?;
        Ok(Path::Steps(start, steps))
    }

    /// `/`, or `//`, which is a step of its own.
    fn separator(&mut self, steps: &mut Vec<Step>) -> SqlResult<bool> {
        self.expects("/")?;
        let double = self.text[self.at..].starts_with(b"/");
        if double {
            self.at += 1;
            steps.push(Step { axis: Axis::DescendantOrSelf, name: None, predicates: Vec::new() });
        }
        Ok(double)
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> SqlResult<()> {
        loop {
            let step = self.step()?;
            steps.push(step);
            if !self.takes("/") {
                return Ok(());
            }
            self.at -= 1;
            self.separator(steps)?;
        }
    }

    fn step(&mut self) -> SqlResult<Step> {
        let plain = |axis| Step { axis, name: None, predicates: Vec::new() };
        let mut step = if self.takes("..") {
            return Ok(plain(Axis::Parent));
        } else if self.takes(".") {
            return Ok(plain(Axis::Itself));
        } else if self.takes("@") {
            plain(Axis::Attribute)
        } else {
            plain(Axis::Child)
        };
        let name = self.name().to_vec();
        let axis = AXES.iter().find(|(known, _)| known.as_bytes() == name);
        if let Some((known, axis)) = axis
            && self.text[self.at + known.len()..].starts_with(b"::")
        {
            self.at += known.len() + 2;
            step.axis = *axis;
        }
        self.test(&mut step)?;
        while self.takes("[") {
            self.inside += 1;
            step.predicates.push(self.expression(0)?);
            self.inside -= 1;
            self.expects("]")?;
        }
        Ok(step)
    }

    /// The test of a step: a name, `*`, or `text()` and its like, which are the node itself.
    fn test(&mut self, step: &mut Step) -> SqlResult<()> {
        if self.takes("*") {
            return Ok(());
        }
        let mut name = self.name().to_vec();
        if name.is_empty() {
            return Err(self.error());
        }
        self.at += name.len();
        let rest = &self.text[self.at..];
        if matches!(&*name, b"text" | b"node" | b"comment" | b"processing-instruction")
            && rest.starts_with(b"(")
        {
            self.at += 1;
            self.expects(")")?;
            step.axis = Axis::Itself;
            return Ok(());
        }
        if rest.first() == Some(&b':') && rest.get(1) != Some(&b':') {
            self.at += 1;
            let local = self.name().to_vec();
            if local.is_empty() {
                return Err(self.error());
            }
            self.at += local.len();
            name.push(b':');
            name.extend(local);
        }
        step.name = Some(name);
        Ok(())
    }
}
