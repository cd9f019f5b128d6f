//! The rows that a statement is going to change, found and locked: a few in memory, many on disk.

use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Context;
use crate::rows::codec;
use crate::rows::collected::{Rows, RowsBuilder, RowsReader};
use crate::sort::Sorted;
use crate::store::RowAt;
use omnibus_value::Value;
use smallvec::SmallVec;
use std::rc::Rc;

/// Rows that are kept without being counted: the usual statement changes one.
const FEW: usize = 64;

/// Some rows: one, mostly.
pub(super) type Batch = SmallVec<[RowAt; 1]>;

/// Rows as they are found.
pub(super) struct Finding {
    few: Batch,
    many: Option<RowsBuilder>,
    count: u64,
}

/// Rows to change, in order.
pub(crate) struct ChosenRows {
    few: smallvec::IntoIter<[RowAt; 1]>,
    many: Many,
    /// Those to come.
    left: u64,
}

enum Many {
    None,
    Found(RowsReader),
    Sorted(Box<Sorted>),
}

impl Finding {
    /// None yet.
    pub(super) fn new() -> Finding {
        Finding { few: Batch::new(), many: None, count: 0 }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As a temporary file.
    pub(super) fn push(&mut self, row: RowAt, cx: &mut Context<'_>) -> ExecResult<()> {
        self.count += 1;
        if self.few.len() < FEW {
            self.few.push(row);
            return Ok(());
        }
        let many = self.many.get_or_insert_with(|| RowsBuilder::new(cx));
        let image = bytes::Bytes::copy_from_slice(&row.row);
        many.push([Value::Bytes(row.key), Value::Bytes(image)].into(), cx)
    }

    /// All of them.
    ///
    /// # Errors
    /// As a temporary file.
    pub(super) fn finish(self) -> SqlResult<ChosenRows> {
        let many = match self.many {
            None => Many::None,
            Some(many) => Many::Found(Rc::<Rows>::new(many.finish()?).read()),
        };
        Ok(ChosenRows { few: self.few.into_iter(), many, left: self.count })
    }
}

impl ChosenRows {
    /// No rows.
    pub(super) fn none() -> ChosenRows {
        ChosenRows { few: Batch::new().into_iter(), many: Many::None, left: 0 }
    }

    /// `count` rows in the order of a sort, whose records are key and image.
    pub(super) fn sorted(sorted: Sorted, count: u64) -> ChosenRows {
        ChosenRows { few: Batch::new().into_iter(), many: Many::Sorted(Box::new(sorted)), left: count }
    }

    /// How many are to come.
    pub(crate) fn count(&self) -> u64 {
        self.left
    }

    /// The next row.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn next(&mut self) -> SqlResult<Option<RowAt>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if let Some(row) = self.few.next() {
            return Ok(Some(row));
        }
        match &mut self.many {
            Many::None => Ok(None),
            Many::Found(reader) => reader.next_row()?.map(|row| row_at(&row)).transpose(),
            Many::Sorted(sorted) => match sorted.next_record()? {
                None => Ok(None),
                Some((_, mut record)) => row_at(&codec::read_values(&mut record)?).map(Some),
            },
        }
    }

    /// The next rows, `most` at most.
    ///
    /// # Errors
    /// As `next`.
    pub(crate) fn next_batch(&mut self, most: usize) -> SqlResult<Batch> {
        let mut batch = Batch::with_capacity(self.left.min(most as u64) as usize);
        while batch.len() < most
            && let Some(row) = self.next()?
        {
            batch.push(row);
        }
        Ok(batch)
    }
}

fn row_at(values: &[Value]) -> SqlResult<RowAt> {
    match values {
        [Value::Bytes(key), Value::Bytes(row)] => Ok(RowAt { key: key.clone(), row: row.clone() }),
        _ => Err(SqlError::internal("a row to change is no key and image")),
    }
}
