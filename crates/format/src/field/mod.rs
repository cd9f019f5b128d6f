//! Column types as TABLE_MAP describes them, and single fields as row events store them.
//!
//! `FieldType` has the two properties that determine the length of a field; `decode` and `encode` convert to and from
//! `Value`. The same encoding is the engine's row format, so it is on the path of every read: no allocation except for
//! strings that cannot be sliced.

mod charset;
mod decode;
mod encode;
mod field_type;

pub use charset::charset_max_len;
pub use decode::decode_field;
pub use encode::encode_field;
pub use field_type::{FieldType, code};
