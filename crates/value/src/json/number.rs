//! Numbers in JSON text: integers stay integers, everything else is a double.

use super::{Json, JsonError};

/// Reads a number at the start of `text`; its value and length.
pub(super) fn parse(text: &[u8], offset: usize) -> Result<(Json, usize), JsonError> {
    let bad = |message: &'static str, at: usize| JsonError::Syntax { message, offset: offset + at };
    let digits = |from: usize| text[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    // Nothing of a number follows a zero in front.
    let int = if text.get(at) == Some(&b'0') { 1 } else { digits(at) };
    if int == 0 {
        return Err(bad("Invalid value.", at));
    }
    at += int;
    let mut integer = true;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return Err(bad("Miss fraction part in number.", at + 1));
        }
        at += 1 + fraction;
        integer = false;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        if exponent == 0 {
            return Err(bad("Miss exponent in number.", at));
        }
        at += exponent;
        integer = false;
    }
    let s = std::str::from_utf8(&text[..at]).map_err(|_| bad("Invalid value.", 0))?;
    if integer {
        if let Ok(n) = s.parse::<i64>() {
            return Ok((Json::Int(n), at));
        }
        if let Ok(n) = s.parse::<u64>() {
            return Ok((Json::UInt(n), at));
        }
    }
    match s.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok((Json::Double(n), at)),
        _ => Err(JsonError::Syntax { message: "Number too big to be stored in double.", offset }),
    }
}
