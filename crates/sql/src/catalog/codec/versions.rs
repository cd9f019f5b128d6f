//! Versions of a table's rows.
//!
//! ALTER TABLE that adds, drops or moves columns leaves the rows as they are: the definition keeps what rows looked like before,
//! and where each column of today has its value in them. A row of the first version is an image and nothing else, because the
//! table had no versions when it was written. Later ones begin with a head: as many bytes of a null bitmap as reach to a bit that
//! no row of the first version has set, that bit, and the version's number. So every row says by itself what it is, whichever
//! snapshot or log file it comes from.

use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_format::RowShape;
use omnibus_value::{ColumnType, Value};

/// How often a table's columns may change before its rows are copied, as in MySQL.
pub const MAX_VERSIONS: usize = 64;

/// Where a column of today has its value in a row of an earlier version.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// In this column of the row.
    Stored(usize),
    /// The row is older than the column: all such rows have this value.
    Value(Value),
}

/// The form of rows before an ALTER TABLE.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The types of the columns, in order.
    pub types: Vec<ColumnType>,
    /// For each column of today.
    pub origins: Vec<Origin>,
}

/// The versions of a table's rows before the newest.
#[derive(Clone, Debug, Default)]
pub struct RowVersions {
    /// The bit of the null bitmap that no row of the first version has set.
    pub mark: usize,
    /// The first version first; none if rows never changed their form.
    pub earlier: Vec<Earlier>,
}

impl RowVersions {
    /// Those of a table whose columns become others. `origins` says where the new columns come from. `None` if the
    /// rows must be copied: they had too many versions, or nothing can tell rows of the first version from later ones.
    #[must_use]
    pub fn after(&self, columns: &[Column], origins: &[Origin]) -> Option<RowVersions> {
        if self.earlier.len() >= MAX_VERSIONS {
            return None;
        }
        let mut next = self.clone();
        if next.earlier.is_empty() {
            next.mark = unset_bit(columns)?;
        }
        for version in &mut next.earlier {
            let old = std::mem::take(&mut version.origins);
            let origin = |origin: &Origin| match origin {
                Origin::Stored(at) => old[*at].clone(),
                value => value.clone(),
            };
            version.origins = origins.iter().map(origin).collect();
        }
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        next.earlier.push(Earlier { types, origins: origins.to_vec() });
        Some(next)
    }
}

/// A bit of the null bitmap that is never set: of a NOT NULL column, or one that stands for no column.
fn unset_bit(columns: &[Column]) -> Option<usize> {
    let filler = (!columns.len().is_multiple_of(8)).then_some(columns.len());
    columns.iter().position(|column| !column.nullable).or(filler)
}

/// A version that rows may have.
#[derive(Debug)]
struct Form {
    shape: RowShape,
    origins: Vec<Origin>,
}

/// Reads rows of all versions.
#[derive(Debug)]
pub(super) struct Versions {
    byte: usize,
    bit: u8,
    earlier: Vec<Form>,
}

/// A row's columns, and how to read them.
pub(super) enum Reading<'a, R> {
    /// As the newest definition says.
    Newest(R),
    /// In an earlier form.
    Earlier(&'a RowShape, &'a [Origin], R),
}

impl Versions {
    /// `None` for tables whose rows have one form.
    pub(super) fn new(versions: &RowVersions) -> Option<Box<Versions>> {
        let form = |version: &Earlier| Form {
            shape: RowShape::new(&version.types),
            origins: version.origins.clone(),
        };
        let earlier: Vec<Form> = versions.earlier.iter().map(form).collect();
        let (byte, bit) = (versions.mark / 8, 1 << (versions.mark % 8));
        (!earlier.is_empty()).then(|| Box::new(Versions { byte, bit, earlier }))
    }

    /// Writes the head that stands in front of the columns of a row of the newest version.
    pub(super) fn head(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + self.byte, 0);
        out.push(self.bit);
        out.push(self.earlier.len() as u8);
    }

    /// The length of that.
    fn head_len(&self) -> usize {
        self.byte + 2
    }

    /// The version of a row, and where its columns begin.
    fn version(&self, row: &[u8]) -> SqlResult<(usize, usize)> {
        let (version, at) = match (row.get(self.byte), row.get(self.byte + 1)) {
            (Some(byte), _) if byte & self.bit == 0 => (0, 0),
            (Some(_), Some(version)) => (usize::from(*version), self.head_len()),
            _ => return Err(unknown_version()),
        };
        if version > self.earlier.len() { Err(unknown_version()) } else { Ok((version, at)) }
    }

    fn reading<R>(&self, version: usize, row: R) -> Reading<'_, R> {
        match self.earlier.get(version) {
            None => Reading::Newest(row),
            Some(form) => Reading::Earlier(&form.shape, &form.origins, row),
        }
    }

    /// How to read a row.
    pub(super) fn of(&self, row: &Bytes) -> SqlResult<Reading<'_, Bytes>> {
        let (version, at) = self.version(row)?;
        Ok(self.reading(version, row.slice(at..)))
    }

    /// The same, of borrowed bytes.
    pub(super) fn of_slice<'r>(&self, row: &'r [u8]) -> SqlResult<Reading<'_, &'r [u8]>> {
        let (version, at) = self.version(row)?;
        Ok(self.reading(version, &row[at..]))
    }
}

fn unknown_version() -> SqlError {
    tracing::error!("a stored row has a version that its table has not");
    SqlError::new(1034, b"HY000", "Incorrect row data: unknown version")
}
