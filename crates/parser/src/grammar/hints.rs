//! Optimizer hints: the comment `/*+ .. */` behind SELECT, INSERT, REPLACE, UPDATE or DELETE. Those of MySQL's that do nothing here,
//! and those about other query blocks, are read over; what is no hint ends them.

use super::Parser;
use crate::ast::{Hint, HintValue, Ident, IndexHintKind, JoinPlace};

const NO_HINT: &str = "Optimizer hint syntax error";
const NO_SIZE: &str = "A size parameter was incorrectly specified, either number or on the form 10M";

/// The hints behind the word that was taken last.
pub(super) fn hints(p: &Parser<'_>) -> Vec<Hint> {
    hints_in(&p.src[p.last_end as usize..p.token.start as usize])
}

/// The hints in what stands between a word and the next one.
fn hints_in(blank: &[u8]) -> Vec<Hint> {
    let Some(text) = blank.trim_ascii_start().strip_prefix(b"/*+") else { return Vec::new() };
    let mut reader = Reader { text };
    let mut hints = Vec::new();
    loop {
        let rest = reader.text.trim_ascii_start();
        let Some((name, arguments)) = reader.call() else { break };
        if !is_known(&name) {
            hints.push(wrong(NO_HINT, rest));
            break;
        }
        if name.is("SET_VAR") {
            match set_var(arguments) {
                Ok(hint) => hints.push(hint),
                Err((problem, left)) => {
                    let at = rest.len() - reader.text.len() - 1 - left;
                    hints.push(wrong(problem, &rest[at..]));
                    break;
                }
            }
            continue;
        }
        hints.extend(hint(&name, arguments));
    }
    hints
}

/// Text that is no hint, from where it is none to the end of the comment.
fn wrong(problem: &str, rest: &[u8]) -> Hint {
    let end = rest.windows(2).position(|pair| pair == b"*/").unwrap_or(rest.len());
    let text = String::from_utf8_lossy(rest[..end].trim_ascii_end());
    Hint::Wrong(format!("{problem} near '{text}' at line 1"))
}

/// Whether MySQL has a hint of this name.
fn is_known(name: &str) -> bool {
    const ALONE: [&str; 10] = [
        "JOIN_FIXED_ORDER",
        "JOIN_ORDER",
        "JOIN_PREFIX",
        "JOIN_SUFFIX",
        "MAX_EXECUTION_TIME",
        "QB_NAME",
        "RESOURCE_GROUP",
        "SET_VAR",
        "SUBQUERY",
        "NO_ICP",
    ];
    const WITH_NO: [&str; 14] = [
        "BKA",
        "BNL",
        "DERIVED_CONDITION_PUSHDOWN",
        "GROUP_INDEX",
        "HASH_JOIN",
        "INDEX",
        "INDEX_MERGE",
        "JOIN_INDEX",
        "MERGE",
        "MRR",
        "ORDER_INDEX",
        "RANGE_OPTIMIZATION",
        "SEMIJOIN",
        "SKIP_SCAN",
    ];
    let name = name.to_ascii_uppercase();
    let plain = name.strip_prefix("NO_").unwrap_or(&name);
    ALONE.contains(&name.as_str()) || WITH_NO.contains(&plain) && name != "RANGE_OPTIMIZATION"
}

/// The hint of this name, unless it is read over.
fn hint(name: &str, arguments: &[u8]) -> Option<Hint> {
    let place = |place| Some(Hint::JoinOrder { place, tables: names(arguments)? });
    match name.to_ascii_uppercase().as_str() {
        "MAX_EXECUTION_TIME" => {
            let text = std::str::from_utf8(arguments.trim_ascii()).ok()?;
            Some(Hint::MaxExecutionTime(text.parse().ok()?))
        }
        "JOIN_FIXED_ORDER" => arguments.trim_ascii().is_empty().then_some(Hint::JoinFixedOrder),
        "JOIN_ORDER" => place(JoinPlace::Order),
        "JOIN_PREFIX" => place(JoinPlace::First),
        "JOIN_SUFFIX" => place(JoinPlace::Last),
        "INDEX" | "JOIN_INDEX" => index(arguments, IndexHintKind::Force),
        "NO_RANGE_OPTIMIZATION" => index(arguments, IndexHintKind::NoRange),
        "NO_INDEX" | "NO_JOIN_INDEX" => index(arguments, IndexHintKind::Ignore),
        _ => None,
    }
}

/// `variable = value`, or what is wrong with it, and how long what follows is.
fn set_var(arguments: &[u8]) -> Result<Hint, (&'static str, usize)> {
    let mut reader = Reader { text: arguments.trim_ascii_start() };
    let left = reader.text.len();
    let name = reader.name().filter(|name| !name.as_str().starts_with(|c: char| c.is_ascii_digit()));
    let name = name.ok_or((NO_HINT, left))?;
    let left = reader.text.trim_ascii_start().len();
    if !reader.eat(b'=') {
        return Err((NO_HINT, left));
    }
    let left = reader.text.trim_ascii_start().len();
    let value = reader.value().map_err(|problem| (problem, left))?;
    let left = reader.text.trim_ascii_start().len();
    if left > 0 { Err((NO_HINT, left)) } else { Ok(Hint::SetVar { name, value }) }
}

/// `table [index [, index] ..]`
fn index(arguments: &[u8], kind: IndexHintKind) -> Option<Hint> {
    let mut reader = Reader { text: arguments };
    let table = reader.name()?;
    let indexes = if reader.at_end() { Vec::new() } else { names(reader.text)? };
    Some(Hint::Index { table, indexes, kind })
}

/// Names with commas between them; `None` if there is anything else.
fn names(text: &[u8]) -> Option<Vec<Ident>> {
    let mut reader = Reader { text };
    let mut names = vec![reader.name()?];
    while reader.eat(b',') {
        names.push(reader.name()?);
    }
    reader.at_end().then_some(names)
}

struct Reader<'a> {
    text: &'a [u8],
}

impl<'a> Reader<'a> {
    fn eat(&mut self, byte: u8) -> bool {
        let rest = self.text.trim_ascii_start().strip_prefix(&[byte]);
        rest.map(|rest| self.text = rest).is_some()
    }

    fn at_end(&self) -> bool {
        self.text.trim_ascii().is_empty()
    }

    /// A name, in backticks or not.
    fn name(&mut self) -> Option<Ident> {
        if self.eat(b'`') {
            let mut name = Vec::new();
            loop {
                let end = self.text.iter().position(|byte| *byte == b'`')?;
                name.extend_from_slice(&self.text[..end]);
                self.text = &self.text[end + 1..];
                if self.text.first() != Some(&b'`') {
                    return Some(String::from_utf8(name).ok()?.as_str().into());
                }
                name.push(b'`');
                self.text = &self.text[1..];
            }
        }
        let text = self.text.trim_ascii_start();
        let part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
        let length = text.iter().take_while(|byte| part(byte)).count();
        let (name, rest) = text.split_at(length);
        self.text = rest;
        (length > 0).then_some(())?;
        Some(std::str::from_utf8(name).ok()?.into())
    }

    /// The value of a variable, or what is wrong with it.
    fn value(&mut self) -> Result<HintValue, &'static str> {
        self.text = self.text.trim_ascii_start();
        let first = self.text.first().copied().ok_or(NO_HINT)?;
        if matches!(first, b'\'' | b'"') {
            return self.quoted(first).map(HintValue::Text).ok_or(NO_HINT);
        }
        if !first.is_ascii_digit() && first != b'.' {
            return self.name().map(|name| HintValue::Text(name.as_str().to_owned())).ok_or(NO_HINT);
        }
        let length =
            self.text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.').count();
        let (number, rest) = self.text.split_at(length);
        let number = std::str::from_utf8(number).map_err(|_| NO_HINT)?;
        self.text = rest;
        if number.contains('.') {
            return number.parse::<f64>().map(|_| HintValue::Real(number.to_owned())).map_err(|_| NO_HINT);
        }
        let (digits, bits) = match number.as_bytes()[number.len() - 1].to_ascii_uppercase() {
            b'K' => (&number[..number.len() - 1], 10),
            b'M' => (&number[..number.len() - 1], 20),
            b'G' => (&number[..number.len() - 1], 30),
            _ => (number, 0),
        };
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NO_HINT);
        }
        let value = digits.parse::<u64>().map_err(|_| NO_SIZE)?;
        let product = value.checked_mul(1 << bits).ok_or(NO_SIZE)?;
        match bits {
            0 => Ok(HintValue::Int(value)),
            _ => i64::try_from(product).map(|_| HintValue::Int(product)).map_err(|_| NO_SIZE),
        }
    }

    /// A string; the quote twice is one of it.
    fn quoted(&mut self, quote: u8) -> Option<String> {
        let mut text = Vec::new();
        loop {
            self.text = &self.text[1..];
            let end = self.text.iter().position(|byte| *byte == quote)?;
            text.extend_from_slice(&self.text[..end]);
            self.text = &self.text[end + 1..];
            if self.text.first() != Some(&quote) {
                return String::from_utf8(text).ok();
            }
            text.push(quote);
        }
    }

    /// A hint's name, and what stands between its parentheses.
    fn call(&mut self) -> Option<(Ident, &'a [u8])> {
        let name = self.name()?;
        self.eat(b'(').then_some(())?;
        let (mut depth, mut quote) = (1_u32, None);
        for (at, byte) in self.text.iter().enumerate() {
            match (quote, byte) {
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'`' | b'\'' | b'"') => quote = Some(byte),
                (None, b'(') => depth += 1,
                (None, b')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let arguments = &self.text[..at];
                self.text = &self.text[at + 1..];
                return Some((name, arguments));
            }
        }
        None
    }
}
