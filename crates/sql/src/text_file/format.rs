//! FIELDS and LINES, checked: the form of a file that LOAD DATA reads or INTO OUTFILE writes.

use crate::catalog::charset;
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ast::FileFormat;
use omnibus_value::{ColumnKind, ColumnType};

/// Separators of a text file. Empty ones separate nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub field_end: Bytes,
    pub enclosed: Option<u8>,
    pub optionally: bool,
    pub escape: Option<u8>,
    pub line_start: Bytes,
    pub line_end: Bytes,
}

impl Format {
    /// Fills in MySQL's defaults.
    ///
    /// # Errors
    /// 1083 for a quote or an escape of several characters.
    pub(crate) fn new(tree: &FileFormat, no_backslash_escapes: bool) -> SqlResult<Format> {
        let given = |part: &Option<Bytes>, default: &'static [u8]| {
            part.clone().unwrap_or_else(|| Bytes::from_static(default))
        };
        let escape = given(&tree.fields_escaped, if no_backslash_escapes { b"" } else { b"\\" });
        let enclosed = given(&tree.fields_enclosed, b"");
        if escape.len() > 1 || enclosed.len() > 1 {
            return Err(SqlError::new(
                1083,
                b"42000",
                "Field separator argument is not what is expected; check the manual",
            ));
        }
        Ok(Format {
            field_end: given(&tree.fields_terminated, b"\t"),
            enclosed: enclosed.first().copied(),
            optionally: tree.fields_optionally,
            escape: escape.first().copied(),
            line_start: given(&tree.lines_starting, b""),
            line_end: given(&tree.lines_terminated, b"\n"),
        })
    }

    /// Whether fields are found by their width.
    pub(crate) fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.enclosed.is_none()
    }

    /// Whether a separator is not ASCII, which is taken byte by byte.
    pub(crate) fn has_non_ascii(&self) -> bool {
        let quotes = [self.enclosed, self.escape];
        !self.field_end.is_ascii()
            || !self.line_start.is_ascii()
            || !self.line_end.is_ascii()
            || quotes.iter().flatten().any(|c| !c.is_ascii())
    }
}

/// The byte that a character behind the escape character stands for.
pub(crate) fn unescaped(c: u8) -> u8 {
    match c {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 26,
        other => other,
    }
}

/// The width of a column's text, in bytes.
pub(crate) fn width(ty: &ColumnType) -> usize {
    use ColumnKind as K;
    let fraction = if ty.decimals > 0 { usize::from(ty.decimals) + 1 } else { 0 };
    let length = ty.length as usize;
    let bytes = charset::max_len(ty.collation) as usize;
    let integer = |signed: usize, unsigned: usize| match length {
        0 if ty.unsigned => unsigned,
        0 => signed,
        length => length,
    };
    match ty.kind {
        K::TinyInt => integer(4, 3),
        K::SmallInt => integer(6, 5),
        K::MediumInt => integer(9, 8),
        K::Int => integer(11, 10),
        K::BigInt => integer(20, 20),
        K::Float if length == 0 => 12,
        K::Double if length == 0 => 22,
        K::Decimal => length + usize::from(ty.decimals > 0) + usize::from(!ty.unsigned),
        K::Bit => length.div_ceil(8),
        K::Year => 4,
        K::Date => 10,
        K::Time => 10 + fraction,
        K::DateTime | K::Timestamp => 19 + fraction,
        K::Char | K::VarChar => length * bytes,
        K::TinyText | K::TinyBlob => 255,
        K::Text | K::Blob => 65_535,
        K::MediumText | K::MediumBlob => 16_777_215,
        K::LongText | K::LongBlob | K::Json | K::Geometry => u32::MAX as usize,
        K::Enum => ty.labels.iter().map(|label| label.len()).max().unwrap_or(0) * bytes,
        K::Set => {
            let commas = ty.labels.len().saturating_sub(1);
            (ty.labels.iter().map(|label| label.len()).sum::<usize>() + commas) * bytes
        }
        _ => length,
    }
}
