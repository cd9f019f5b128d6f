//! From what SET or an option gives to a variable's value, with MySQL's rules: numbers are clipped
//! to bounds with a warning, labels may be given by number, a wrong type is an error.

use super::settings::{sql_mode_bits, sql_mode_text};
use super::{Kind, Scope, VarDef, VarValue};
use crate::charset;
use crate::errors;
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::temporal::Zone;
use omnibus_value::{Value, locale};

/// Bytes of a text that each session may have its own of.
const LONGEST_OF_SESSION: usize = 64 << 10;

fn is_too_long(def: &VarDef, given: &Given) -> bool {
    def.scope != Scope::Global && given.text().len() > LONGEST_OF_SESSION
}

/// The right side of an assignment.
#[derive(Clone, Debug)]
pub enum Given {
    /// A word, or the text of an option.
    Text(String),
    /// The value of an expression.
    Value(Value),
}

impl Given {
    pub(crate) fn text(&self) -> String {
        match self {
            Given::Text(s) => s.clone(),
            Given::Value(v) => match v {
                Value::Null => "NULL".into(),
                Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
                Value::Int(n) => n.to_string(),
                Value::UInt(n) => n.to_string(),
                other => number(other).map_or_else(|| "?".into(), |x| x.to_string()),
            },
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Given::Value(Value::Null))
    }

    /// An integer, which only integers (and texts of options) are.
    pub(crate) fn integer(&self) -> Option<i128> {
        match self {
            Given::Value(Value::Int(n)) => Some(i128::from(*n)),
            Given::Value(Value::UInt(n)) => Some(i128::from(*n)),
            Given::Value(_) => None,
            Given::Text(s) => s.trim().parse().ok(),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Given::Text(text) => text.trim().parse().ok(),
            Given::Value(value) => number(value),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::UInt(n) => Some(*n as f64),
        Value::Float(x) => Some(f64::from(*x)),
        Value::Double(x) => Some(*x),
        Value::Decimal(d) => d.to_string().parse().ok(),
        _ => None,
    }
}

/// The value, and a warning (1292) if it had to be adjusted.
pub fn coerce(def: &VarDef, given: &Given) -> SqlResult<(VarValue, Option<SqlError>)> {
    refuse_wrong_type(def, given)?;
    let wrong_value = || SqlError::wrong_value_for_var(def.name, given.text());
    let plain = |v: VarValue| Ok((v, None));
    match def.kind {
        Kind::Bool => plain(VarValue::Bool(boolean(given).ok_or_else(wrong_value)?)),
        Kind::UInt(min, max, block) => {
            let n = given.integer().ok_or_else(|| errors::wrong_type_for_var(def.name))?;
            let clipped = n.clamp(i128::from(min), i128::from(max)) as u64;
            let whole = (clipped - clipped % block.max(1)).max(min);
            Ok((VarValue::UInt(whole), (i128::from(whole) != n).then(|| adjusted(def, given))))
        }
        Kind::Int(min, max) => signed(def, given, min, max),
        Kind::Double(min, max) => {
            let x = given.number().ok_or_else(|| errors::wrong_type_for_var(def.name))?;
            let clipped = x.clamp(min, max);
            Ok((VarValue::Double(clipped), (clipped != x).then(|| adjusted(def, given))))
        }
        Kind::Enum(labels) => plain(VarValue::Str(label(labels, given).ok_or_else(wrong_value)?.into())),
        Kind::Set(labels) => {
            let chosen =
                chosen(labels, given).map_err(|word| SqlError::wrong_value_for_var(def.name, word))?;
            plain(VarValue::Str(chosen.join(",").into()))
        }
        Kind::Text | Kind::Charset | Kind::Collation | Kind::Locale | Kind::Engine if given.is_null() => {
            Err(wrong_value())
        }
        Kind::NullableText | Kind::NullableCharset if given.is_null() => plain(VarValue::Null),
        Kind::Text | Kind::NullableText if is_too_long(def, given) => {
            Err(SqlError::wrong_value_for_var(def.name, "a text so long"))
        }
        Kind::Text | Kind::NullableText => plain(VarValue::Str(given.text().into())),
        Kind::SqlMode => {
            let bits = match given.integer() {
                Some(n) => u64::try_from(n).ok().filter(|b| b >> 33 == 0).ok_or_else(wrong_value)?,
                None if given.is_null() => return Err(wrong_value()),
                None => sql_mode_bits(&given.text())
                    .map_err(|word| SqlError::wrong_value_for_var(def.name, word))?,
            };
            plain(VarValue::Str(sql_mode_text(bits).into()))
        }
        Kind::Charset | Kind::NullableCharset => plain(VarValue::Str(charset_name(given)?.into())),
        Kind::Collation => {
            let found = match given.integer() {
                Some(n) => u16::try_from(n).ok().and_then(charset::by_id),
                None => charset::by_name(&given.text()),
            };
            plain(VarValue::Str(found.ok_or_else(|| SqlError::unknown_collation(given.text()))?.name.into()))
        }
        Kind::CharsetCollations => plain(VarValue::Str(charset_collations(&given.text())?.into())),
        Kind::Engine => {
            let name = given.text();
            let found = crate::engines::find(&name).ok_or_else(|| SqlError::unknown_storage_engine(&name))?;
            plain(VarValue::Str(found.into()))
        }
        Kind::Locale => {
            let found = match given.integer() {
                Some(n) => u16::try_from(n).ok().and_then(locale::by_number),
                None => locale::by_name(&given.text()),
            };
            plain(VarValue::Str(found.ok_or_else(|| errors::unknown_locale(given.text()))?.name.into()))
        }
        Kind::TimeZone => {
            let text = given.text();
            Zone::by_name(&text).ok_or_else(|| SqlError::unknown_time_zone(&text))?;
            plain(VarValue::Str(text.into()))
        }
    }
}

/// Refuses a number where there can be none (1232): a text is no integer, and what has labels no fraction.
fn refuse_wrong_type(def: &VarDef, given: &Given) -> SqlResult<()> {
    let Given::Value(value) = given else { return Ok(()) };
    let fraction = matches!(value, Value::Float(_) | Value::Double(_) | Value::Decimal(_));
    let refused = match def.kind {
        Kind::Text | Kind::NullableText => fraction || matches!(value, Value::Int(_) | Value::UInt(_)),
        Kind::Bool | Kind::Enum(_) | Kind::Set(_) | Kind::SqlMode | Kind::Locale => fraction,
        _ => false,
    };
    if refused { Err(errors::wrong_type_for_var(def.name)) } else { Ok(()) }
}

fn signed(def: &VarDef, given: &Given, min: i64, max: i64) -> SqlResult<(VarValue, Option<SqlError>)> {
    let n = given.integer().ok_or_else(|| errors::wrong_type_for_var(def.name))?;
    let clipped = n.clamp(i128::from(min), i128::from(max)) as i64;
    Ok((VarValue::Int(clipped), (i128::from(clipped) != n).then(|| adjusted(def, given))))
}

/// Only utf8mb4 may have another default; what is said of character sets that are not here is about nothing.
fn charset_collations(text: &str) -> SqlResult<String> {
    let mut chosen = None;
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((set, name)) = pair.split_once('=') else {
            return Err(SqlError::wrong_value_for_var("character_set_collations", text));
        };
        let Some(default) = charset::of_charset(set.trim()) else { continue };
        let name = name.trim();
        let full =
            if name.starts_with("uca1400") { format!("{}_{name}", set.trim()) } else { name.to_owned() };
        let found = charset::by_name(&full).ok_or_else(|| SqlError::unknown_collation(name))?;
        if found.charset != default.charset {
            return Err(SqlError::unknown_collation(name));
        }
        if default.charset == "utf8mb4" {
            chosen = Some(found.name);
        }
    }
    Ok(chosen.map_or_else(String::new, |name| format!("utf8mb4={name}")))
}

fn adjusted(def: &VarDef, given: &Given) -> SqlError {
    SqlError::truncated_wrong_value(def.name, given.text()).reworded_for_variable()
}

/// MySQL prints the variable's name where other conditions print a type.
trait Reword {
    fn reworded_for_variable(self) -> Self;
}
impl Reword for SqlError {
    fn reworded_for_variable(mut self) -> Self {
        self.state = *b"HY000";
        self
    }
}

fn boolean(given: &Given) -> Option<bool> {
    match given.integer() {
        Some(0) => Some(false),
        Some(1) => Some(true),
        Some(_) => None,
        // TRUE is a number, and as a text no value.
        None => match (given.text().to_ascii_lowercase().as_str(), given) {
            ("on", _) | ("true", Given::Text(_)) => Some(true),
            ("off", _) | ("false", Given::Text(_)) => Some(false),
            _ => None,
        },
    }
}

fn label(labels: &[&'static str], given: &Given) -> Option<&'static str> {
    if let Some(n) = given.integer() {
        return usize::try_from(n).ok().and_then(|n| labels.get(n)).copied();
    }
    let text = given.text();
    let found = labels.iter().find(|l| l.eq_ignore_ascii_case(&text)).copied();
    // Several switches grew from ON/OFF to more labels and still take booleans by other words.
    found.or_else(|| match text.to_ascii_lowercase().as_str() {
        "true" => labels.iter().find(|l| **l == "ON").copied(),
        "false" => labels.iter().find(|l| **l == "OFF").copied(),
        _ => None,
    })
}

/// Members of a set in their own order, or the word that is none.
fn chosen(labels: &[&'static str], given: &Given) -> Result<Vec<&'static str>, String> {
    let bits = match given.integer() {
        Some(n) => u64::try_from(n).ok().filter(|bits| bits >> labels.len() == 0).ok_or(n.to_string())?,
        None => {
            let text = given.text();
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            let bit = |word: &str| {
                let at = labels.iter().position(|label| label.eq_ignore_ascii_case(word));
                at.map(|at| 1 << at).ok_or_else(|| word.to_owned())
            };
            words.map(bit).try_fold(0, |bits, bit| bit.map(|bit: u64| bits | bit))?
        }
    };
    Ok(labels.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, label)| *label).collect())
}

fn charset_name(given: &Given) -> SqlResult<&'static str> {
    let found = match given.integer() {
        Some(n) => u16::try_from(n).ok().and_then(charset::by_id),
        None => charset::of_charset(&given.text()),
    };
    found.map(|c| c.charset).ok_or_else(|| SqlError::unknown_character_set(given.text()))
}
