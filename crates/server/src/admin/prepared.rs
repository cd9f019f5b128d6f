//! Prepared statements of the server's own kind: SET, KILL and their like run as the text that their parameters make of them.

use super::Admin;
use crate::parsed::{Parsed, filled, parse, parse_to_prepare};
use bytes::Bytes;
use omnibus_parser::ast::{Expr, Literal, Spanned, Statement};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;
use std::sync::Arc;

/// As `Admin::run`, for a statement with parameters.
pub(crate) async fn administration_with(
    admin: &mut Admin<'_>,
    parsed: &Arc<Parsed>,
    params: &[Value],
) -> Option<SqlResult<()>> {
    if params.is_empty() || !parsed.statement.node.traits().filled {
        return admin.run(parsed, false).await;
    }
    let text = filled(admin.sql, &parsed.text, params);
    match parse(admin.sql, &text) {
        Ok((filled, _)) => admin.run(&filled, false).await,
        Err(error) => Some(Err(error)),
    }
}

/// EXECUTE IMMEDIATE of an expression, with the text that it gives in its place; computed once, here, since what the text
/// says decides who runs it.
pub(crate) async fn with_text(admin: &mut Admin<'_>, parsed: &Arc<Parsed>) -> SqlResult<Arc<Parsed>> {
    let Statement::ExecuteImmediate { source, using } = &parsed.statement.node else {
        return Ok(parsed.clone());
    };
    if admin.evaluate_plain(source).is_some() {
        return Ok(parsed.clone());
    }
    let Value::Bytes(text) = admin.evaluate(source).await?.0 else { return Ok(parsed.clone()) };
    let source = Expr::Literal(Literal::Str(text));
    let node = Statement::ExecuteImmediate { source, using: using.clone() };
    let statement = Arc::new(Spanned { node, span: parsed.statement.span, params: parsed.statement.params });
    Ok(Arc::new(Parsed { text: parsed.text.clone(), statement, kind: parsed.kind, values: Vec::new() }))
}

/// EXECUTE and EXECUTE IMMEDIATE of such a statement. `None`: it is another one.
pub(crate) async fn named_administration(
    admin: &mut Admin<'_>,
    parsed: &Arc<Parsed>,
    more: bool,
) -> Option<SqlResult<()>> {
    let (text, using) = match &parsed.statement.node {
        Statement::Execute { name, using } => (admin.sql.prepared_text(name)?.clone(), using),
        Statement::ExecuteImmediate { source, using } => match admin.evaluate_plain(source)? {
            Ok((Value::Bytes(text), _)) => (text, using),
            _ => return None,
        },
        _ => return None,
    };
    let (inner, _) = parse_to_prepare(admin.sql, &text).ok()?;
    if !inner.statement.node.traits().filled {
        return None;
    }
    if using.len() != inner.statement.params as usize {
        return Some(Err(SqlError::wrong_arguments("EXECUTE")));
    }
    match filled_using(admin, &text, using).await {
        Ok(filled) => admin.run(&filled, more).await,
        Err(error) => Some(Err(error)),
    }
}

async fn filled_using(admin: &mut Admin<'_>, text: &Bytes, using: &[Expr]) -> SqlResult<Arc<Parsed>> {
    let mut params = Vec::with_capacity(using.len());
    for expr in using {
        params.push(admin.evaluate(expr).await?.0);
    }
    let text = filled(admin.sql, text, &params);
    Ok(parse(admin.sql, &text)?.0)
}
