//! LOAD_FILE: the bytes of a file of the server, by the rules that LOAD DATA INFILE has (`SessionHost::open_file`).
//!
//! A file that cannot or may not be read is NULL and no error. The binder makes NULL of a call by an account without FILE,
//! so it is asked once a plan, for the account whose rights the call has.

use super::string::fits;
use super::{Def, str_arg};
use crate::error::ExecResult;
use crate::expr::{Context, Expr, ExprType};
use omnibus_value::Value;
use omnibus_value::collation::BINARY_ID;
use std::io::Read;

/// The functions.
pub static DEFS: &[Def] = &[Def::volatile(
    "LOAD_FILE",
    1,
    1,
    |_, _| Ok(ExprType::varchar(u32::MAX, BINARY_ID).nullable(true)),
    load_file,
)];

/// How many bytes are read before the statement's KILL is looked at.
const PIECE: u64 = 1 << 20;

fn load_file(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let name = str_arg!(args, 0, cx);
    cx.storage.need_blocking()?;
    let Ok(mut file) = cx.session.connection.host.clone().open_file(&name, false) else {
        return Ok(Value::Null);
    };
    let length = file.metadata().map_or(0, |about| usize::try_from(about.len()).unwrap_or(usize::MAX));
    if !fits(length, "load_file", cx) {
        return Ok(Value::Null);
    }
    cx.ask(length)?;
    let mut text = Vec::with_capacity(length);
    loop {
        cx.tick()?;
        match file.by_ref().take(PIECE).read_to_end(&mut text) {
            Ok(0) => return Ok(Value::Bytes(text.into())),
            // It has grown meanwhile.
            Ok(_) if !fits(text.len(), "load_file", cx) => return Ok(Value::Null),
            Ok(_) => {}
            Err(_) => return Ok(Value::Null),
        }
    }
}
