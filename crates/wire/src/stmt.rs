//! Prepared statements: the reply to COM_STMT_PREPARE and the payload of COM_STMT_EXECUTE.
//!
//! Values are decoded into `Param`, which borrows from the packet; `Param::to_value` makes a
//! `Value` of it. A parameter's type is what the client declared, not what the statement needs.

use crate::buf::{DecodeError, Reader, put_lenenc_bytes};
use crate::consts::{Capability, FieldType};

/// Head of the reply to COM_STMT_PREPARE; definitions of parameters and columns follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    /// Statement id, of this connection.
    pub id: u32,
    /// Number of result columns.
    pub columns: u16,
    /// Number of parameters.
    pub params: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl PrepareOk {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.params.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<PrepareOk, DecodeError> {
        let mut r = Reader::new(payload);
        if r.u8("prepare header")? != 0 {
            return Err(DecodeError::Malformed("prepare header"));
        }
        let id = r.u32("statement id")?;
        let columns = r.u16("column count")?;
        let params = r.u16("parameter count")?;
        r.u8("filler")?;
        let warnings = if r.len() >= 2 { r.u16("warnings")? } else { 0 };
        Ok(PrepareOk { id, columns, params, warnings })
    }
}

/// Type of a parameter, as bound by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamType {
    /// Type.
    pub field_type: FieldType,
    /// Whether an integer is unsigned.
    pub unsigned: bool,
}

impl ParamType {
    /// Returns whether the type's values are text in the client's character set rather than bytes.
    #[must_use]
    pub fn is_text(self) -> bool {
        use FieldType as T;
        matches!(self.field_type, T::VarChar | T::VarString | T::String | T::Enum | T::Set | T::Json)
    }
}

/// The parameters that a client has bound.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// Types of all parameters: those of the statement, and query attributes behind them.
    pub types: Vec<ParamType>,
    /// Names, of clients with query attributes: one a type.
    pub names: Vec<Vec<u8>>,
}

/// Values that a client sends beside a statement, by their names.
pub type Attributes<'a> = Vec<(Vec<u8>, ParamType, Param<'a>)>;

/// The value of one parameter in the packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// String or binary, undecoded.
    Bytes(&'a [u8]),
    /// Decimal digits as text.
    Decimal(&'a [u8]),
    /// DATE.
    Date(ParamDateTime),
    /// DATETIME or TIMESTAMP.
    DateTime(ParamDateTime),
    /// TIME.
    Time {
        /// Before zero.
        negative: bool,
        /// Whole days.
        days: u32,
        /// Hours of the day.
        hour: u8,
        /// Minute.
        minute: u8,
        /// Second.
        second: u8,
        /// Microsecond.
        micros: u32,
    },
    /// Sent before by COM_STMT_SEND_LONG_DATA.
    LongData,
}

/// A point in time as its fields stand in the packet; not checked against the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamDateTime {
    /// Year.
    pub year: u16,
    /// Month.
    pub month: u8,
    /// Day.
    pub day: u8,
    /// Hour.
    pub hour: u8,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
    /// Microsecond.
    pub micros: u32,
}

/// Head of COM_STMT_EXECUTE.
#[derive(Clone, Copy, Debug)]
pub struct Execute<'a> {
    /// Statement.
    pub id: u32,
    /// Cursor flags: 0 none, 1 read only.
    pub cursor: u8,
    /// The client says how many parameters there are.
    counted: bool,
    rest: Reader<'a>,
}

/// The bytes of a parameter: its type, name and value in lists that have grown by doubling.
const PARAM: usize = 256;

/// A bit of the cursor flags: a count of parameters follows, even if the statement has none.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;

impl Bound {
    /// About how many bytes it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let name = |name: &Vec<u8>| size_of::<Vec<u8>>() + name.capacity();
        2 * self.types.len() * size_of::<ParamType>() + 2 * self.names.iter().map(name).sum::<usize>()
    }
}

impl<'a> Execute<'a> {
    /// Reads the fixed part, after the command byte.
    pub fn decode(payload: &'a [u8]) -> Result<Execute<'a>, DecodeError> {
        let mut r = Reader::new(payload);
        let id = r.u32("statement id")?;
        let flags = r.u8("cursor type")?;
        r.u32("iteration count")?;
        let counted = flags & PARAMETER_COUNT_AVAILABLE != 0;
        Ok(Execute { id, cursor: flags & !PARAMETER_COUNT_AVAILABLE, counted, rest: r })
    }

    /// The number of parameters that the packet has, of a statement that has `count`: with the query attributes behind them.
    pub fn given(&self, count: usize, caps: Capability) -> Result<usize, DecodeError> {
        self.counts(count, caps).map(|(all, _)| all)
    }

    fn counts(&self, count: usize, caps: Capability) -> Result<(usize, Reader<'a>), DecodeError> {
        let mut r = self.rest;
        let named = caps.has(Capability::QUERY_ATTRIBUTES) && (count > 0 || self.counted);
        let all = if named { r.lenenc("parameter count")? as usize } else { count };
        if all < count {
            return Err(DecodeError::Malformed("number of parameters"));
        }
        Ok((all, r))
    }

    /// Reads the statement's `count` parameters, and the query attributes behind them. `bound` is what an earlier execution bound,
    /// and is replaced if this packet binds anew. `long` says which parameters were sent as long data.
    pub fn params(
        &self,
        count: usize,
        bound: &mut Bound,
        caps: Capability,
        long: impl Fn(usize) -> bool,
    ) -> Result<(Vec<Param<'a>>, Attributes<'a>), DecodeError> {
        let named = caps.has(Capability::QUERY_ATTRIBUTES);
        let (all, mut r) = self.counts(count, caps)?;
        let mut params = read_params(&mut r, all, bound, named, long)?;
        let rest = params.split_off(count);
        let names = bound.names.iter().zip(&bound.types).skip(count);
        Ok((params, names.zip(rest).map(|((name, ty), param)| (name.clone(), *ty, param)).collect()))
    }
}

/// The number of attributes in front of a text.
pub fn query_attribute_count(payload: &[u8]) -> Result<usize, DecodeError> {
    Ok(Reader::new(payload).lenenc("parameter count")? as usize)
}

/// The most bytes that so many parameters take in a payload of this length, with their names, until they are values.
#[must_use]
pub fn memory_of_params(count: usize, payload: usize) -> usize {
    // No parameter has less than its type.
    count.min(payload / 2) * PARAM + 2 * payload
}

/// Splits the payload of COM_QUERY of a client with query attributes into these and the text.
pub fn query_attributes(payload: &[u8]) -> Result<(Attributes<'_>, &[u8]), DecodeError> {
    let mut r = Reader::new(payload);
    let count = r.lenenc("parameter count")? as usize;
    if r.lenenc("parameter sets")? != 1 {
        return Err(DecodeError::Malformed("parameter sets"));
    }
    let mut bound = Bound::default();
    let params = read_params(&mut r, count, &mut bound, true, |_| false)?;
    let named = bound.names.into_iter().zip(bound.types).zip(params);
    Ok((named.map(|((name, ty), param)| (name, ty, param)).collect(), r.take_rest()))
}

fn read_params<'a>(
    r: &mut Reader<'a>,
    count: usize,
    bound: &mut Bound,
    named: bool,
    long: impl Fn(usize) -> bool,
) -> Result<Vec<Param<'a>>, DecodeError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let nulls = r.take(count.div_ceil(8), "NULL bitmap")?;
    if r.u8("new-params-bound flag")? == 1 {
        *bound = Bound::default();
        for _ in 0..count {
            let pair = r.take(2, "parameter types")?;
            let field_type = FieldType::from_u8(pair[0]).ok_or(DecodeError::Malformed("parameter type"))?;
            bound.types.push(ParamType { field_type, unsigned: pair[1] & 0x80 != 0 });
            if named {
                bound.names.push(r.lenenc_bytes("parameter name")?.to_vec());
            }
        }
    }
    if bound.types.len() != count {
        return Err(DecodeError::Malformed("number of bound parameters"));
    }
    let mut out = Vec::with_capacity(count);
    for (i, ty) in bound.types.iter().enumerate() {
        out.push(if long(i) {
            Param::LongData
        } else if nulls[i / 8] & (1 << (i % 8)) != 0 {
            Param::Null
        } else {
            decode_param(r, *ty)?
        });
    }
    Ok(out)
}

fn decode_param<'a>(r: &mut Reader<'a>, ty: ParamType) -> Result<Param<'a>, DecodeError> {
    use FieldType as T;
    let int =
        |signed: i64, unsigned: u64| if ty.unsigned { Param::UInt(unsigned) } else { Param::Int(signed) };
    Ok(match ty.field_type {
        T::Null => Param::Null,
        T::Tiny | T::Bool => {
            let n = r.u8("TINYINT parameter")?;
            int(i64::from(n as i8), u64::from(n))
        }
        T::Short | T::Year => {
            let n = r.u16("SMALLINT parameter")?;
            int(i64::from(n as i16), u64::from(n))
        }
        T::Long | T::Int24 => {
            let n = r.u32("INT parameter")?;
            int(i64::from(n as i32), u64::from(n))
        }
        T::LongLong => {
            let n = r.u64("BIGINT parameter")?;
            int(n as i64, n)
        }
        T::Float => Param::Float(f32::from_bits(r.u32("FLOAT parameter")?)),
        T::Double => Param::Double(f64::from_bits(r.u64("DOUBLE parameter")?)),
        T::Decimal | T::NewDecimal => Param::Decimal(r.lenenc_bytes("DECIMAL parameter")?),
        T::Date | T::NewDate => Param::Date(decode_datetime(r)?),
        T::DateTime | T::Timestamp | T::DateTime2 | T::Timestamp2 => Param::DateTime(decode_datetime(r)?),
        T::Time | T::Time2 => decode_time(r)?,
        T::VarChar | T::Bit | T::Json | T::Enum | T::Set | T::TinyBlob | T::MediumBlob | T::LongBlob => {
            Param::Bytes(r.lenenc_bytes("string parameter")?)
        }
        T::Blob | T::VarString | T::String | T::Geometry | T::Vector => {
            Param::Bytes(r.lenenc_bytes("string parameter")?)
        }
        T::Invalid => return Err(DecodeError::Malformed("parameter type")),
    })
}

fn decode_datetime(r: &mut Reader<'_>) -> Result<ParamDateTime, DecodeError> {
    let len = r.u8("temporal parameter")?;
    let mut f = Reader::new(r.take(usize::from(len), "temporal parameter")?);
    let mut t = ParamDateTime::default();
    if !matches!(len, 0 | 4 | 7 | 11) {
        return Err(DecodeError::Malformed("length of a temporal parameter"));
    }
    if len >= 4 {
        (t.year, t.month, t.day) = (f.u16("year")?, f.u8("month")?, f.u8("day")?);
    }
    if len >= 7 {
        (t.hour, t.minute, t.second) = (f.u8("hour")?, f.u8("minute")?, f.u8("second")?);
    }
    if len == 11 {
        t.micros = f.u32("microsecond")?;
    }
    Ok(t)
}

fn decode_time<'a>(r: &mut Reader<'a>) -> Result<Param<'a>, DecodeError> {
    let len = r.u8("TIME parameter")?;
    let mut f = Reader::new(r.take(usize::from(len), "TIME parameter")?);
    if !matches!(len, 0 | 8 | 12) {
        return Err(DecodeError::Malformed("length of a TIME parameter"));
    }
    if len == 0 {
        return Ok(Param::Time { negative: false, days: 0, hour: 0, minute: 0, second: 0, micros: 0 });
    }
    Ok(Param::Time {
        negative: f.u8("sign")? != 0,
        days: f.u32("days")?,
        hour: f.u8("hour")?,
        minute: f.u8("minute")?,
        second: f.u8("second")?,
        micros: if len == 12 { f.u32("microsecond")? } else { 0 },
    })
}

/// Appends COM_STMT_EXECUTE with new parameters bound, as a client sends it. `None` is NULL; values
/// are already in binary form, without their length prefix for strings.
pub fn encode_execute(out: &mut Vec<u8>, id: u32, params: &[(ParamType, Option<&[u8]>)]) {
    out.push(0x17);
    out.extend_from_slice(&id.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&1u32.to_le_bytes());
    if params.is_empty() {
        return;
    }
    let mut nulls = vec![0u8; params.len().div_ceil(8)];
    for (i, (_, value)) in params.iter().enumerate() {
        if value.is_none() {
            nulls[i / 8] |= 1 << (i % 8);
        }
    }
    out.extend_from_slice(&nulls);
    out.push(1);
    for (ty, _) in params {
        out.extend_from_slice(&[ty.field_type as u8, if ty.unsigned { 0x80 } else { 0 }]);
    }
    for (ty, value) in params {
        let Some(value) = value else { continue };
        match ty.field_type {
            FieldType::Blob | FieldType::VarString | FieldType::String | FieldType::NewDecimal => {
                put_lenenc_bytes(out, value);
            }
            _ => out.extend_from_slice(value),
        }
    }
}
