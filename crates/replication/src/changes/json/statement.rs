//! A `statement` line as a view.

use super::parse::Node;
use super::{BadLine, bad};
use crate::model::{LoadedFile, StatementView};
use omnibus_format::events::{UserVar, UserVarValue};
use omnibus_value::decimal::Decimal;
use std::io;

/// A statement read from a line; see the module.
#[derive(Debug, Default)]
pub(super) struct JsonStatement {
    sql: Vec<u8>,
    database: Vec<u8>,
    thread_id: u32,
    timestamp_us: i64,
    exec_time_s: u32,
    error_code: u16,
    sql_mode: Option<u64>,
    autocommit: Option<bool>,
    foreign_key_checks: Option<bool>,
    check_constraint_checks: Option<bool>,
    unique_checks: Option<bool>,
    sql_auto_is_null: Option<bool>,
    collations: Option<[u16; 3]>,
    database_collation: Option<u16>,
    auto_increment: Option<[u16; 2]>,
    time_zone: Option<Vec<u8>>,
    lc_time_names: Option<u16>,
    default_collation_for_utf8mb4: Option<u16>,
    updated_tables: Option<u64>,
    last_insert_id: Option<u64>,
    insert_id: Option<u64>,
    rand_seeds: Option<[u64; 2]>,
    variables: Vec<Variable>,
    temporary_tables: bool,
    independent_of_database: bool,
    file: Option<JsonFile>,
}

#[derive(Debug)]
struct Variable {
    name: Vec<u8>,
    value: VariableValue,
    collation: u32,
}

#[derive(Debug)]
enum VariableValue {
    Null,
    String(Vec<u8>),
    Real(f64),
    Int { bits: u64, unsigned: bool },
    Decimal(Vec<u8>),
}

#[derive(Debug)]
struct JsonFile {
    span: (u32, u32),
    duplicates: u8,
    data: Vec<u8>,
}

impl JsonStatement {
    pub(super) fn read(node: &Node<'_>) -> Result<JsonStatement, BadLine> {
        let bytes =
            |name: &str| node.get(name).map(|value| value.bytes().ok_or_else(|| bad(name))).transpose();
        Ok(JsonStatement {
            sql: bytes("sql")?.ok_or_else(|| bad("sql"))?,
            database: bytes("database")?.unwrap_or_default(),
            thread_id: number(node, "thread_id")?.unwrap_or(0),
            timestamp_us: number(node, "timestamp_us")?.unwrap_or(0),
            exec_time_s: number(node, "exec_time_s")?.unwrap_or(0),
            error_code: number(node, "error_code")?.unwrap_or(0),
            sql_mode: number(node, "sql_mode")?,
            autocommit: flag(node, "autocommit")?,
            foreign_key_checks: flag(node, "foreign_key_checks")?,
            check_constraint_checks: flag(node, "check_constraint_checks")?,
            unique_checks: flag(node, "unique_checks")?,
            sql_auto_is_null: flag(node, "sql_auto_is_null")?,
            collations: numbers(node, "collations")?,
            database_collation: number(node, "database_collation")?,
            auto_increment: numbers(node, "auto_increment")?,
            time_zone: bytes("time_zone")?,
            lc_time_names: number(node, "lc_time_names")?,
            default_collation_for_utf8mb4: number(node, "default_collation_for_utf8mb4")?,
            updated_tables: number(node, "updated_tables")?,
            last_insert_id: number(node, "last_insert_id")?,
            insert_id: number(node, "insert_id")?,
            rand_seeds: numbers(node, "rand_seeds")?,
            variables: match node.get("user_variables") {
                Some(list) => {
                    let list = list.list().ok_or_else(|| bad("user_variables"))?;
                    list.iter().map(variable).collect::<Result<_, _>>()?
                }
                None => Vec::new(),
            },
            temporary_tables: flag(node, "temporary_tables")?.unwrap_or(false),
            independent_of_database: flag(node, "independent_of_database")?.unwrap_or(false),
            file: node.get("file").map(file).transpose()?,
        })
    }
}

pub(super) fn number<T: std::str::FromStr>(node: &Node<'_>, name: &str) -> Result<Option<T>, BadLine> {
    match node.get(name) {
        None | Some(Node::Null) => Ok(None),
        Some(value) => value.number().map(Some).ok_or_else(|| bad(name)),
    }
}

pub(super) fn flag(node: &Node<'_>, name: &str) -> Result<Option<bool>, BadLine> {
    node.get(name).map(|value| value.flag().ok_or_else(|| bad(name))).transpose()
}

fn numbers<T: std::str::FromStr + Copy + Default, const N: usize>(
    node: &Node<'_>,
    name: &str,
) -> Result<Option<[T; N]>, BadLine> {
    let Some(list) = node.get(name) else { return Ok(None) };
    let list = list.list().filter(|list| list.len() == N).ok_or_else(|| bad(name))?;
    let mut out = [T::default(); N];
    for (out, value) in out.iter_mut().zip(list) {
        *out = value.number().ok_or_else(|| bad(name))?;
    }
    Ok(Some(out))
}

fn variable(node: &Node<'_>) -> Result<Variable, BadLine> {
    let wrong = || bad("user_variables");
    let value = node.get("value");
    let kind = node.get("type").and_then(Node::text).ok_or_else(wrong)?;
    let value = match (kind, value) {
        ("null", _) => VariableValue::Null,
        ("string", Some(value)) => VariableValue::String(value.bytes().ok_or_else(wrong)?),
        ("real", Some(value)) => VariableValue::Real(value.number().ok_or_else(wrong)?),
        ("int", Some(value)) => {
            let number: i64 = value.number().ok_or_else(wrong)?;
            VariableValue::Int { bits: number as u64, unsigned: false }
        }
        ("unsigned", Some(value)) => {
            VariableValue::Int { bits: value.number().ok_or_else(wrong)?, unsigned: true }
        }
        ("decimal", Some(value)) => {
            let text = value.bytes().ok_or_else(wrong)?;
            VariableValue::Decimal(decimal_field(&text).ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    Ok(Variable {
        name: node.get("name").and_then(Node::bytes).ok_or_else(wrong)?,
        value,
        collation: number(node, "collation")?.unwrap_or(63),
    })
}

/// Encodes a number's digits as precision, scale, and the bytes of a field.
fn decimal_field(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let scale = text.iter().position(|byte| *byte == b'.').map_or(0, |dot| text.len() - dot - 1);
    let (precision, scale) = (u8::try_from(digits.clamp(1, 65)).ok()?, u8::try_from(scale.min(30)).ok()?);
    let value = Decimal::parse(text).value;
    let mut out = vec![precision.max(scale), scale];
    let field = omnibus_format::field::FieldType {
        code: omnibus_format::field::code::NEWDECIMAL,
        meta: u16::from(precision.max(scale)) << 8 | u16::from(scale),
    };
    let value = omnibus_value::Value::Decimal(value);
    omnibus_format::field::encode_field(field, false, &value, &mut out).ok()?;
    Some(out)
}

fn file(node: &Node<'_>) -> Result<JsonFile, BadLine> {
    let [from, to] = numbers(node, "name_span")?.ok_or_else(|| bad("name_span"))?;
    Ok(JsonFile {
        span: (from, to),
        duplicates: number(node, "duplicates")?.unwrap_or(0),
        data: node.get("data").and_then(Node::bytes).ok_or_else(|| bad("data"))?,
    })
}

impl LoadedFile for JsonFile {
    fn name_span(&self) -> (u32, u32) {
        self.span
    }
    fn duplicate_handling(&self) -> u8 {
        self.duplicates
    }
    fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.data.chunks(64 << 10).try_for_each(each)
    }
}

impl StatementView for JsonStatement {
    fn sql(&self) -> &[u8] {
        &self.sql
    }
    fn database(&self) -> &[u8] {
        &self.database
    }
    fn thread_id(&self) -> u32 {
        self.thread_id
    }
    fn timestamp_us(&self) -> i64 {
        self.timestamp_us
    }
    fn exec_time_s(&self) -> u32 {
        self.exec_time_s
    }
    fn error_code(&self) -> u16 {
        self.error_code
    }
    fn sql_mode(&self) -> Option<u64> {
        self.sql_mode
    }
    fn autocommit(&self) -> Option<bool> {
        self.autocommit
    }
    fn foreign_key_checks(&self) -> Option<bool> {
        self.foreign_key_checks
    }
    fn check_constraint_checks(&self) -> Option<bool> {
        self.check_constraint_checks
    }
    fn unique_checks(&self) -> Option<bool> {
        self.unique_checks
    }
    fn sql_auto_is_null(&self) -> Option<bool> {
        self.sql_auto_is_null
    }
    fn collations(&self) -> Option<[u16; 3]> {
        self.collations
    }
    fn database_collation(&self) -> Option<u16> {
        self.database_collation
    }
    fn auto_increment(&self) -> Option<(u16, u16)> {
        self.auto_increment.map(|[increment, offset]| (increment, offset))
    }
    fn time_zone(&self) -> Option<&[u8]> {
        self.time_zone.as_deref()
    }
    fn lc_time_names(&self) -> Option<u16> {
        self.lc_time_names
    }
    fn default_collation_for_utf8mb4(&self) -> Option<u16> {
        self.default_collation_for_utf8mb4
    }
    fn updated_tables(&self) -> Option<u64> {
        self.updated_tables
    }
    fn last_insert_id(&self) -> Option<u64> {
        self.last_insert_id
    }
    fn insert_id(&self) -> Option<u64> {
        self.insert_id
    }
    fn rand_seeds(&self) -> Option<(u64, u64)> {
        self.rand_seeds.map(|[first, second]| (first, second))
    }
    fn user_variables(&self, each: &mut dyn FnMut(UserVar<'_>)) {
        for Variable { name, value, collation } in &self.variables {
            let value = match value {
                VariableValue::Null => UserVarValue::Null,
                VariableValue::String(bytes) => UserVarValue::String(bytes),
                VariableValue::Real(number) => UserVarValue::Real(*number),
                VariableValue::Int { bits, unsigned } => {
                    UserVarValue::Int { bits: *bits, unsigned: *unsigned }
                }
                VariableValue::Decimal(bytes) => UserVarValue::Decimal(bytes),
            };
            each(UserVar { name, value, collation: *collation });
        }
    }
    fn uses_temporary_tables(&self) -> bool {
        self.temporary_tables
    }
    fn independent_of_database(&self) -> bool {
        self.independent_of_database
    }
    fn loaded_file(&self) -> Option<&dyn LoadedFile> {
        self.file.as_ref().map(|file| file as &dyn LoadedFile)
    }
}
