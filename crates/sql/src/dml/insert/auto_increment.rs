//! The AUTO_INCREMENT value of a row that needs one.

use super::plan::InsertPlan;
use super::run::Counts;
use crate::api::sql_mode;
use crate::catalog::Table;
use crate::dml::Run;
use crate::dml::rows::same_value;
use crate::error::{SqlError, SqlResult};
use crate::store::auto_value;
use omnibus_value::Value;
use std::cmp::Ordering;

impl InsertPlan {
    /// Gives the AUTO_INCREMENT column its value if it needs one. `left` rows may still come.
    pub(super) fn generate(
        &self,
        run: &mut Run<'_>,
        values: &mut [Value],
        counts: &mut Counts,
        left: u64,
    ) -> SqlResult<bool> {
        let table = &self.target.table;
        let Some(at) = table.auto_column else { return Ok(false) };
        let zero_counts = run.state.settings.sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0;
        let wanted = match &values[at] {
            Value::Null => true,
            value => !zero_counts && is_zero(value),
        };
        let increment = run.state.settings.auto_increment_increment.max(1);
        let forced = run.state.settings.insert_id;
        if !wanted {
            // The next value follows a greater one that was given: whoever runs the statement again knows the first
            // value only.
            let given = auto_value(&values[at]);
            if counts.reserved > 0 && given >= counts.next_reserved {
                match forced {
                    Some(_) => counts.next_reserved = given.saturating_add(increment),
                    None => counts.reserved = 0,
                }
            }
            return Ok(false);
        }
        let offset = run.state.settings.auto_increment_offset;
        let first = counts.reserved == 0;
        if first {
            (counts.next_reserved, counts.reserved) = match forced.filter(|_| !counts.reserved_once) {
                // All rows of the statement follow it.
                Some(id) => (id, u64::MAX),
                None => {
                    let (counters, statement) = (&mut run.trx.counters, &mut run.trx.statement);
                    (counters.take_auto_values(statement, table, left, increment, offset)?, left)
                }
            };
            counts.reserved_once = true;
            if forced.is_some() {
                run.trx.statement.use_forced();
            }
        }
        let mut id = counts.next_reserved;
        counts.reserved -= 1;
        counts.next_reserved = id.saturating_add(increment);
        let ty = &table.def.columns[at].ty;
        match id.cmp(&greatest(ty)) {
            // The column has numbers left, and the session's increment and offset are beyond them.
            Ordering::Greater if first && forced.is_none() => {
                let error = SqlError::warn_data_out_of_range(&table.def.columns[at].name, counts.records);
                if run.state.settings.strict() && !self.ignore {
                    return Err(error);
                }
                run.state.diagnostics.warn(error);
                id = greatest(ty);
            }
            Ordering::Greater => return Err(SqlError::autoinc_read_failed()),
            _ => {}
        }
        values[at] = match ty.kind {
            omnibus_value::ColumnKind::Float => Value::Float(id as f32),
            omnibus_value::ColumnKind::Double => Value::Double(id as f64),
            _ if ty.unsigned => Value::UInt(id),
            _ => Value::Int(id as i64),
        };
        Ok(true)
    }
}

impl Counts {
    /// The number that was made last has no row: the next row gets it.
    pub(super) fn take_back(&mut self, increment: u64) {
        self.next_reserved = self.next_reserved.saturating_sub(increment);
        self.reserved = self.reserved.saturating_add(1);
    }
}

fn is_zero(value: &Value) -> bool {
    [Value::Int(0), Value::UInt(0), Value::Float(0.0), Value::Double(0.0)]
        .iter()
        .any(|zero| same_value(zero, value))
}

/// Whether an index begins with the AUTO_INCREMENT column.
pub(super) fn is_auto_key(table: &Table, index: usize) -> bool {
    let first = table.def.indexes[index].parts.first();
    first.is_some_and(|part| table.auto_column == Some(part.column))
}

/// The greatest number that an AUTO_INCREMENT column holds.
fn greatest(ty: &omnibus_value::ColumnType) -> u64 {
    use omnibus_value::ColumnKind as K;
    let bits = match ty.kind {
        K::TinyInt => 8,
        K::SmallInt => 16,
        K::MediumInt => 24,
        K::Int => 32,
        K::BigInt => 64,
        _ => return u64::MAX,
    };
    u64::MAX >> (64 - bits + u32::from(!ty.unsigned))
}
