//! SELECT .. INTO OUTFILE and INTO DUMPFILE: rows to a new file of the server.
//!
//! LOAD DATA reads these files back with the same clauses. The file is the server's to open
//! (`SessionHost::open_file`); it is removed again if the statement fails.

use super::format::{Format, width};
use crate::api::{KillFlag, ResultColumn, RowSink};
use crate::catalog::charset;
use crate::error::{SqlError, SqlResult};
use crate::store::Floor;
use bytes::Bytes;
use omnibus_parser::ast;
use omnibus_value::collation::{self, Charset};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// The file of a statement: its path and form.
#[derive(Clone, Debug)]
pub(crate) struct Outfile {
    pub path: Bytes,
    /// `None`: DUMPFILE, bytes as they are.
    format: Option<Format>,
    /// Of the file's text; `None`: each column's own.
    charset: Option<Charset>,
}

impl Outfile {
    /// From INTO. `None`: it is INTO variables.
    ///
    /// # Errors
    /// 1115, 1083.
    pub(crate) fn new(tree: &ast::Into, no_backslash_escapes: bool) -> SqlResult<Option<Outfile>> {
        Ok(match tree {
            ast::Into::Variables(_) => None,
            ast::Into::Dumpfile(path) => Some(Outfile { path: path.clone(), format: None, charset: None }),
            ast::Into::Outfile { file, charset, format } => {
                let named = |name: &ast::Ident| -> SqlResult<Charset> {
                    let id = charset::default_collation(name)
                        .ok_or_else(|| SqlError::unknown_character_set(name))?;
                    Ok(collation::by_id_or_binary(id).charset)
                };
                Some(Outfile {
                    path: file.clone(),
                    format: Some(Format::new(format, no_backslash_escapes)?),
                    charset: charset.as_ref().map(named).transpose()?,
                })
            }
        })
    }
}

/// A file that others may read at once: as a reply, it tells of nothing before that is durable (SESSION-1).
struct Told {
    file: File,
    floor: Arc<Floor>,
    kill: Arc<KillFlag>,
}

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.floor.wait(&self.kill).map_err(std::io::Error::other)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes the rows.
pub(crate) struct OutfileSink<'a> {
    file: BufWriter<Told>,
    outfile: &'a Outfile,
    types: &'a [crate::expr::types::ExprType],
    line: Vec<u8>,
    rows: u64,
}

impl<'a> OutfileSink<'a> {
    /// Into a file that was just made.
    pub(crate) fn new(
        file: File,
        floor: Arc<Floor>,
        kill: Arc<KillFlag>,
        outfile: &'a Outfile,
        types: &'a [crate::expr::types::ExprType],
    ) -> OutfileSink<'a> {
        OutfileSink {
            file: BufWriter::with_capacity(1 << 17, Told { file, floor, kill }),
            outfile,
            types,
            line: Vec::new(),
            rows: 0,
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// 3: the file cannot be written; what the wait for what it tells of ends with.
    pub(crate) fn finish(mut self) -> SqlResult<()> {
        self.file.flush().map_err(|error| failed(self.outfile, &error))
    }

    /// Whether fields are filled up to their width: not beside one that holds gigabytes, as in MySQL.
    fn is_fixed(&self, format: &Format) -> bool {
        let long = |kind| {
            matches!(
                kind,
                ColumnKind::LongText | ColumnKind::LongBlob | ColumnKind::Json | ColumnKind::Geometry
            )
        };
        format.is_fixed() && !self.types.iter().any(|ty| long(ty.column.kind))
    }

    fn field(&self, line: &mut Vec<u8>, value: &Value, ty: &ColumnType, format: &Format) {
        let text = !is_number(ty.kind);
        let quote = format.enclosed.filter(|_| text || !format.optionally);
        if matches!(value, Value::Null) {
            match format.escape {
                _ if self.is_fixed(format) => line.resize(line.len() + width(ty), b' '),
                Some(escape) => line.extend_from_slice(&[escape, b'N']),
                None => line.extend_from_slice(b"NULL"),
            }
            return;
        }
        let bytes = self.converted(value.to_bytes(ty), ty);
        line.extend(quote);
        let escapes = Escapes::new(format, quote.is_some(), text);
        if self.is_fixed(format) {
            let width = width(ty);
            let end = line.len() + width;
            escapes.write(line, &bytes[..bytes.len().min(width)]);
            if line.len() < end {
                line.resize(end, b' ');
            }
        } else {
            escapes.write(line, &bytes);
        }
        line.extend(quote);
    }

    fn converted(&self, bytes: Bytes, ty: &ColumnType) -> Bytes {
        let own = collation::by_id_or_binary(ty.collation).charset;
        match self.outfile.charset {
            Some(wanted) if wanted != own && own != Charset::Binary && wanted != Charset::Binary => {
                let mut out = Vec::with_capacity(bytes.len());
                own.convert(wanted, &bytes, &mut out);
                out.into()
            }
            _ => bytes,
        }
    }
}

impl RowSink for OutfileSink<'_> {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.rows += 1;
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        match &self.outfile.format {
            None if self.rows > 1 => return Err(SqlError::too_many_rows()),
            None => {
                for (value, ty) in values.iter().zip(self.types) {
                    line.extend_from_slice(&value.to_bytes(&ty.column));
                }
            }
            Some(format) => {
                line.extend_from_slice(&format.line_start);
                for (at, (value, ty)) in values.iter().zip(self.types).enumerate() {
                    if at > 0 {
                        line.extend_from_slice(&format.field_end);
                    }
                    self.field(&mut line, value, &ty.column, format);
                }
                line.extend_from_slice(&format.line_end);
            }
        }
        let written = self.file.write_all(&line).map_err(|error| failed(self.outfile, &error));
        self.line = line;
        written
    }
}

fn failed(outfile: &Outfile, error: &std::io::Error) -> SqlError {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<SqlError>()) {
        return error.clone();
    }
    let path = String::from_utf8_lossy(&outfile.path);
    SqlError::new(3, b"HY000", format!("Error writing file '{path}' ({error})"))
}

/// The bytes of a value that get the escape character in front.
struct Escapes {
    escape: Option<u8>,
    escaped: [Option<u8>; 3],
}

impl Escapes {
    fn new(format: &Format, quoted: bool, text: bool) -> Escapes {
        let field_end = format.field_end.first().copied();
        let separator = if quoted { format.enclosed } else { field_end };
        // A number needs it only if a separator may be part of a number.
        let unsafe_number = format.enclosed.or(field_end).is_some_and(|c| b".0123456789e+-".contains(&c));
        // Behind the escape such a letter would mean something else.
        let separator = separator.filter(|c| quoted || !b"ntrb0ZN".contains(c));
        Escapes {
            escape: format.escape.filter(|_| text || unsafe_number),
            escaped: [format.escape, separator, format.line_end.first().copied()],
        }
    }

    fn write(&self, line: &mut Vec<u8>, bytes: &[u8]) {
        let Some(escape) = self.escape else { return line.extend_from_slice(bytes) };
        for &c in bytes {
            if c == 0 {
                line.extend_from_slice(&[escape, b'0']);
                continue;
            }
            if self.escaped.contains(&Some(c)) {
                line.push(escape);
            }
            line.push(c);
        }
    }
}

fn is_number(kind: ColumnKind) -> bool {
    use ColumnKind as K;
    matches!(
        kind,
        K::TinyInt
            | K::SmallInt
            | K::MediumInt
            | K::Int
            | K::BigInt
            | K::Float
            | K::Double
            | K::Decimal
            | K::Bit
            | K::Year
    )
}
