//! The type of a column's values among Kafka Connect's types.

use crate::consume::json_value::Line;
use omnibus_format::events::ColumnMetadata;
use omnibus_format::field::{FieldType, code};

/// The collation id of binary strings.
const BINARY: u16 = 63;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain(&'static str),
    /// A type of Connect with a semantic name.
    Named(&'static str, &'static str),
    Bits(u16),
    Enum,
    Set,
    Geometry,
}

impl Kind {
    pub(super) fn of(field: FieldType, metadata: &ColumnMetadata) -> Kind {
        let unsigned = metadata.unsigned == Some(true);
        let binary = metadata.collation == Some(BINARY);
        match field.code {
            code::TINY => Kind::Plain("int16"),
            code::SHORT => Kind::Plain(if unsigned { "int32" } else { "int16" }),
            code::INT24 => Kind::Plain("int32"),
            code::LONG => Kind::Plain(if unsigned { "int64" } else { "int32" }),
            code::LONGLONG => Kind::Plain("int64"),
            code::FLOAT => Kind::Plain("float"),
            code::DOUBLE => Kind::Plain("double"),
            code::NEWDECIMAL | code::DECIMAL => Kind::Plain("string"),
            code::YEAR => Kind::Named("int32", "io.debezium.time.Year"),
            code::DATE | code::NEWDATE => Kind::Named("int32", "io.debezium.time.Date"),
            code::TIME | code::TIME2 => Kind::Named("int64", "io.debezium.time.MicroTime"),
            code::DATETIME | code::DATETIME2 if field.meta > 3 => {
                Kind::Named("int64", "io.debezium.time.MicroTimestamp")
            }
            code::DATETIME | code::DATETIME2 => Kind::Named("int64", "io.debezium.time.Timestamp"),
            code::TIMESTAMP | code::TIMESTAMP2 => Kind::Named("string", "io.debezium.time.ZonedTimestamp"),
            code::BIT if field.meta == 1 => Kind::Plain("boolean"),
            code::BIT => Kind::Bits(field.meta),
            code::ENUM => Kind::Enum,
            code::SET => Kind::Set,
            code::JSON => Kind::Named("string", "io.debezium.data.Json"),
            code::GEOMETRY => Kind::Geometry,
            _ if binary || field.is_blob() && metadata.collation.is_none() => Kind::Plain("bytes"),
            _ => Kind::Plain("string"),
        }
    }

    pub(super) fn put(self, line: &mut Line, metadata: &ColumnMetadata, optional: bool) {
        let named = |line: &mut Line, kind: &str, name: &str| {
            line.key("type").text(kind);
            line.key("optional").boolean(optional);
            line.key("name").text(name);
            line.key("version").number(1);
        };
        match self {
            Kind::Plain(kind) => {
                line.key("type").text(kind);
                line.key("optional").boolean(optional);
            }
            Kind::Named(kind, name) => named(line, kind, name),
            Kind::Bits(bits) => {
                named(line, "bytes", "io.debezium.data.Bits");
                line.key("parameters").open('{');
                line.key("length").text(&bits.to_string());
                line.close('}');
            }
            Kind::Enum | Kind::Set => {
                named(
                    line,
                    "string",
                    if self == Kind::Enum { "io.debezium.data.Enum" } else { "io.debezium.data.EnumSet" },
                );
                let labels: Vec<_> =
                    metadata.labels.iter().map(|label| String::from_utf8_lossy(label)).collect();
                line.key("parameters").open('{');
                line.key("allowed").text(&labels.join(","));
                line.close('}');
            }
            Kind::Geometry => {
                line.key("type").text("struct");
                line.key("fields").raw(
                    r#"[{"type":"bytes","optional":false,"field":"wkb"},{"type":"int32","optional":true,"field":"srid"}]"#,
                );
                line.key("optional").boolean(optional);
                line.key("name").text("io.debezium.data.geometry.Geometry");
                line.key("version").number(1);
            }
        }
    }
}
