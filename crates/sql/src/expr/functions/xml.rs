//! EXTRACTVALUE and UPDATEXML.

use super::{Def, ONE_CHARSET, SESSION, str_arg, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::xml::{BadDocument, Document, Kind, Path, XPathValue, find};
use crate::expr::{BindContext, Context, Expr, ExprType};
use omnibus_value::Value;

/// Paths may read user variables.
pub(super) const DEFS: &[Def] = &[
    Def { traits: ONE_CHARSET | SESSION, ..Def::strings("EXTRACTVALUE", 2, 2, xml_type, extract) },
    Def { traits: ONE_CHARSET | SESSION, ..Def::strings("UPDATEXML", 3, 3, xml_type, update) },
];

/// A text in the arguments' collation; the path must be the same for all rows.
fn xml_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    if !args[1].slots().is_empty() {
        return Err(SqlError::new(1105, b"HY000", "Only constant XPATH queries are supported"));
    }
    ty::long_string(args, cx)
}

fn path(text: &[u8], cx: &mut Context<'_>) -> ExecResult<Path> {
    cx.ask(Path::memory_of(text))?;
    cx.bytes(text.len())?;
    Ok(Path::read(text)?)
}

/// Warns of a text that is no document.
fn bad(BadDocument(what): BadDocument, cx: &mut Context<'_>) -> Value {
    cx.warn(SqlError::new(1525, b"HY000", format!("Incorrect XML value: '{what}'")));
    Value::Null
}

fn extract(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let source = str_arg!(args, 0, cx);
    let path = path(&str_arg!(args, 1, cx), cx)?;
    let document = match Document::read(&source, cx)? {
        Ok(document) => document,
        Err(what) => return Ok(bad(what, cx)),
    };
    let found = find(&document, &path, ty.column.collation, cx)?;
    Ok(found.text(&document, cx)?.map_or(Value::Null, text))
}

fn update(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let source = str_arg!(args, 0, cx);
    let path = path(&str_arg!(args, 1, cx), cx)?;
    let new = str_arg!(args, 2, cx);
    if !path.finds_nodes() {
        return Ok(Value::Null);
    }
    let document = match Document::read(&source, cx)? {
        Ok(document) => document,
        Err(what) => return Ok(bad(what, cx)),
    };
    // Where there is not one such place nothing is changed.
    let XPathValue::Nodes(nodes) = find(&document, &path, ty.column.collation, cx)? else {
        return Ok(Value::Null);
    };
    let [node] = *nodes else { return Ok(text(source.clone())) };
    let node = &document.nodes[node as usize];
    if node.kind == Kind::Root {
        return Ok(text(new));
    }
    let mut out = Vec::new();
    cx.room(&mut out, source.len() + new.len())?;
    out.extend_from_slice(&source[..node.whole.start]);
    out.extend_from_slice(&new);
    out.extend_from_slice(&source[node.whole.end..]);
    if !super::string::fits(out.len(), "updatexml", cx) {
        return Ok(Value::Null);
    }
    Ok(text(out))
}
