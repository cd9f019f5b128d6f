//! MariaDB's tables of numbers: `seq_1_to_500` has the numbers from 1 to 500 in its column `seq`, `seq_1_to_9_step_4` has 1, 5 and
//! 9, and with the larger number in front they come in falling order. They are read like any table, cannot be changed, and are no
//! part of the catalog: a stored table of such a name comes first.
//!
//! Numbers are made as they are read, so that a table with many takes no memory.

use super::virtual_table::{Asked, VirtualTable};
use crate::api::{ResultColumn, flag};
use crate::error::ExecResult;
use crate::expr::Context;
use crate::rows::collected::{Rows, RowsBuilder};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::rc::Rc;
use std::sync::Arc;

/// The range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    first: u64,
    step: u64,
    count: u64,
    falls: bool,
}

impl Numbers {
    /// Of a table's name; `None` for a name of another form, and for a step of 0.
    #[must_use]
    pub fn named(name: &str) -> Option<Numbers> {
        let rest = name.strip_prefix("seq_")?;
        let (from, rest) = rest.split_once("_to_")?;
        let (to, step) = rest.split_once("_step_").unwrap_or((rest, "1"));
        let number = |digits: &str| {
            let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| digits.parse::<u64>().ok()).flatten()
        };
        let (from, to) = (number(from)?, number(to)?);
        let step = number(step).filter(|step| *step != 0)?;
        let (first, last) = (from.min(to), from.max(to));
        Some(Numbers { first, step, count: ((last - first) / step).saturating_add(1), falls: from > to })
    }

    /// How many they are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// In order.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |nth| {
            let nth = if self.falls { self.count - 1 - nth } else { nth };
            self.first + nth * self.step
        })
    }
}

/// One of the tables.
pub(crate) struct NumberTable {
    numbers: Numbers,
    columns: Arc<[ResultColumn]>,
}

impl NumberTable {
    /// The table of such a name.
    pub(crate) fn named(schema: &str, name: &str) -> Option<NumberTable> {
        let numbers = Numbers::named(name)?;
        let (schema, table, seq): (Arc<str>, Arc<str>, Arc<str>) = (schema.into(), name.into(), "seq".into());
        let column = ResultColumn {
            schema,
            org_table: table.clone(),
            table,
            org_name: seq.clone(),
            name: seq,
            ty: ColumnType::of(ColumnKind::BigInt).unsigned(),
            flags: flag::UNSIGNED | flag::NOT_NULL,
        };
        Some(NumberTable { numbers, columns: Arc::from([column]) })
    }
}

impl VirtualTable for NumberTable {
    fn columns(&self) -> Arc<[ResultColumn]> {
        self.columns.clone()
    }

    fn rows(&self, _asked: Asked<'_>, cx: &mut Context<'_>) -> ExecResult<Rows> {
        let mut rows = RowsBuilder::new(cx);
        for number in self.numbers.iter() {
            cx.tick()?;
            rows.push(Rc::from([Value::UInt(number)]), cx)?;
        }
        Ok(rows.finish()?)
    }

    fn numbers(&self) -> Option<Numbers> {
        Some(self.numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn names_say_which_numbers() {
        let of = |name| Numbers::named(name).map(|numbers| numbers.iter().collect::<Vec<_>>());
        assert_eq!(of("seq_1_to_3"), Some(vec![1, 2, 3]));
        assert_eq!(of("seq_5_to_1_step_2"), Some(vec![5, 3, 1]));
        assert_eq!(of("seq_10_to_1_step_4"), Some(vec![9, 5, 1]));
        assert_eq!(of("seq_7_to_7"), Some(vec![7]));
        let most = format!("seq_{}_to_{}", u64::MAX - 1, u64::MAX);
        assert_eq!(of(&most), Some(vec![u64::MAX - 1, u64::MAX]));
        assert_eq!(
            Numbers::named(&format!("seq_0_to_{}", u64::MAX)).map(|numbers| numbers.count()),
            Some(u64::MAX)
        );
        for name in [
            "seq_1_to_",
            "seq__to_3",
            "SEQ_1_to_3",
            "seq_-1_to_3",
            "seq_+1_to_3",
            "seq_1_to_3_",
            "seq_1_to_3_step_0",
            "seq_1_to_18446744073709551616",
            "seq_1",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
