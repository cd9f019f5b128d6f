//! The number that CHECKSUM TABLE gives a row, which is the one that MariaDB computes, so that equal rows in columns of equal types
//! have equal numbers there and here.
//!
//! The CRC32 of: the bits that say which columns are NULL, then each column that is not, as it stands in a row in memory. A row of
//! fixed length has a bit in front of those for NULL; bits that nothing uses are set. Generated columns, stored or not, count as NULL.

use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use omnibus_format::checksum::crc32;
use omnibus_format::field::FieldType;
use omnibus_format::row::ColumnShape;
use omnibus_value::{ColumnKind, FixedKind, Value, collation};

/// How a column stands in a row.
enum Form {
    /// Its bytes, without a length.
    Text,
    /// So many bytes, filled up with this one.
    Padded(usize, u8),
    /// As in a row event.
    Fixed(ColumnShape),
}

/// A column of a table.
struct Part {
    form: Form,
    nullable: bool,
    generated: bool,
}

/// Of the rows of one table.
pub(super) struct RowSum {
    columns: Vec<Part>,
    /// NULL bits begin with this one.
    first_bit: usize,
    /// Of the NULL bits.
    null_bytes: usize,
}

impl RowSum {
    pub(super) fn new(table: &Table) -> RowSum {
        use ColumnKind as K;
        let form = |column: &crate::catalog::Column| match column.ty.kind {
            K::VarChar | K::VarBinary | K::Json | K::Geometry => Form::Text,
            kind if kind.is_lob() => Form::Text,
            K::Binary => Form::Padded(column.ty.length as usize, 0),
            K::Char => {
                let most = collation::by_id(column.ty.collation).map_or(1, |found| found.charset.max_len());
                Form::Padded(column.ty.length as usize * most, b' ')
            }
            kind if let Some(kind) = FixedKind::of(kind) => Form::Padded(kind.width(), 0),
            _ => Form::Fixed(ColumnShape::new(FieldType::of_column(&column.ty), column.ty.unsigned)),
        };
        let def = &table.def;
        let part = |column: &crate::catalog::Column| Part {
            form: form(column),
            nullable: column.nullable,
            generated: column.generated.is_some(),
        };
        let columns: Vec<_> = def.columns.iter().filter(|column| !column.is_hidden()).map(part).collect();
        let varies = columns.iter().any(|part| matches!(part.form, Form::Text))
            || def.options.iter().any(|option| &**option == "ROW_FORMAT=DYNAMIC");
        let first_bit = usize::from(!varies);
        let nullable = columns.iter().filter(|part| part.nullable).count();
        RowSum { columns, first_bit, null_bytes: (first_bit + nullable).div_ceil(8) }
    }

    /// Of a row of the table.
    ///
    /// # Errors
    /// A value that is not of its column's type: damage.
    pub(super) fn of(&self, values: &[Value], buffer: &mut Vec<u8>) -> SqlResult<u32> {
        buffer.clear();
        buffer.resize(self.null_bytes, 0xff);
        let mut bit = self.first_bit;
        for (Part { form, nullable, generated }, value) in self.columns.iter().zip(values) {
            let is_null = *generated || matches!(value, Value::Null);
            if *nullable {
                if let (false, Some(byte)) = (is_null, buffer.get_mut(bit / 8)) {
                    *byte &= !(1 << (bit % 8));
                }
                bit += 1;
            }
            match (form, value) {
                _ if is_null => {}
                (Form::Text, Value::Bytes(text) | Value::Json(text)) => buffer.extend_from_slice(text),
                (Form::Padded(len, with), Value::Bytes(text)) => {
                    let end = buffer.len() + (*len).max(text.len());
                    buffer.extend_from_slice(text);
                    buffer.resize(end, *with);
                }
                (Form::Padded(len, _), Value::Fixed(v)) => buffer.extend_from_slice(&v.sort_key()[..*len]),
                (Form::Fixed(shape), value) => shape.encode(value, buffer).map_err(SqlError::internal)?,
                _ => return Err(SqlError::internal("a value of another type than its column's")),
            }
        }
        Ok(crc32(buffer))
    }
}
