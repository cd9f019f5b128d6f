//! Numbers of the protocol: capability flags, status flags, field types, column flags.

macro_rules! flags {
    ($(#[$meta:meta])* $name:ident($int:ty) { $($(#[$fmeta:meta])* $flag:ident = $value:expr;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $int);
        impl $name {
            $($(#[$fmeta])* pub const $flag: $name = $name($value);)*
            /// Returns whether every flag of `other` is set.
            #[must_use]
            pub const fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }
            /// These flags and those of `other`.
            #[must_use]
            pub const fn with(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
            /// These flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }
            /// The flags that both have.
            #[must_use]
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 & other.0)
            }
        }
    };
}

flags! {
    /// The capabilities of one side of a connection.
    Capability(u32) {
        /// Set by MySQL, clear on MariaDB, where it announces extended capabilities.
        LONG_PASSWORD = 1;
        /// Affected rows count matched rather than changed rows.
        FOUND_ROWS = 1 << 1;
        /// Column flags have two bytes.
        LONG_FLAG = 1 << 2;
        /// The login packet names a database.
        CONNECT_WITH_DB = 1 << 3;
        /// Compressed protocol (zlib).
        COMPRESS = 1 << 5;
        /// The client takes LOAD DATA LOCAL requests.
        LOCAL_FILES = 1 << 7;
        /// Spaces before `(` are allowed.
        IGNORE_SPACE = 1 << 8;
        /// The 4.1 protocol, the only one spoken here.
        PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` rules rather than `wait_timeout`.
        INTERACTIVE = 1 << 10;
        /// TLS after an SSLRequest.
        SSL = 1 << 11;
        /// Status flags are sent.
        TRANSACTIONS = 1 << 13;
        /// 20-byte scrambles.
        SECURE_CONNECTION = 1 << 15;
        /// Several statements in one COM_QUERY.
        MULTI_STATEMENTS = 1 << 16;
        /// Several results for one COM_QUERY.
        MULTI_RESULTS = 1 << 17;
        /// Several results for one COM_STMT_EXECUTE.
        PS_MULTI_RESULTS = 1 << 18;
        /// Authentication plugins by name.
        PLUGIN_AUTH = 1 << 19;
        /// Key-value pairs in the login packet.
        CONNECT_ATTRS = 1 << 20;
        /// The login packet's authentication data has a length-encoded length.
        PLUGIN_AUTH_LENENC = 1 << 21;
        /// The client understands expired passwords.
        EXPIRED_PASSWORDS = 1 << 22;
        /// OK packets carry session state.
        SESSION_TRACK = 1 << 23;
        /// OK packets replace EOF packets at the end of rows.
        DEPRECATE_EOF = 1 << 24;
        /// Result metadata may be left out.
        OPTIONAL_METADATA = 1 << 25;
        /// Compressed protocol (zstd); the login packet ends with the level.
        ZSTD_COMPRESSION = 1 << 26;
        /// COM_QUERY carries query attributes.
        QUERY_ATTRIBUTES = 1 << 27;
    }
}

flags! {
    /// The state of a session, in OK and EOF packets.
    Status(u16) {
        /// A transaction is open.
        IN_TRANS = 1;
        /// Autocommit is on.
        AUTOCOMMIT = 2;
        /// Another result follows.
        MORE_RESULTS = 8;
        /// The row is the OUT parameters of a prepared CALL.
        PS_OUT_PARAMS = 4096;
        /// No index could be used well.
        NO_GOOD_INDEX = 16;
        /// No index was used.
        NO_INDEX = 32;
        /// A cursor was opened.
        CURSOR_EXISTS = 64;
        /// The cursor's last row was sent.
        LAST_ROW_SENT = 128;
        /// A database was dropped.
        DB_DROPPED = 256;
        /// NO_BACKSLASH_ESCAPES is in the SQL mode.
        NO_BACKSLASH_ESCAPES = 512;
        /// A prepared statement's metadata changed.
        METADATA_CHANGED = 1024;
        /// The statement was slow.
        SLOW = 2048;
        /// A read-only transaction is open.
        IN_TRANS_READONLY = 8192;
        /// The packet carries session state changes.
        SESSION_STATE_CHANGED = 16384;
    }
}

flags! {
    /// Flags of a column definition.
    ColumnFlag(u16) {
        /// The column cannot be NULL.
        NOT_NULL = 1;
        /// Part of the primary key.
        PRI_KEY = 2;
        /// Part of a unique key.
        UNIQUE_KEY = 4;
        /// Part of a key.
        MULTIPLE_KEY = 8;
        /// A BLOB or TEXT.
        BLOB = 16;
        /// Unsigned number.
        UNSIGNED = 32;
        /// Filled with zeros.
        ZEROFILL = 64;
        /// Binary collation.
        BINARY = 128;
        /// An ENUM.
        ENUM = 256;
        /// AUTO_INCREMENT.
        AUTO_INCREMENT = 512;
        /// A TIMESTAMP.
        TIMESTAMP = 1024;
        /// A SET.
        SET = 2048;
        /// No default value.
        NO_DEFAULT = 4096;
        /// ON UPDATE NOW.
        ON_UPDATE_NOW = 8192;
        /// A number.
        NUM = 32768;
    }
}

macro_rules! field_types {
    ($($name:ident = $n:literal),* $(,)?) => {
        /// The type byte of a column definition and of a statement parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // the names are MySQL's own
        pub enum FieldType { $($name = $n),* }
        impl FieldType {
            /// The type with this number.
            #[must_use]
            pub fn from_u8(n: u8) -> Option<FieldType> {
                match n { $($n => Some(FieldType::$name),)* _ => None }
            }
        }
    };
}

field_types! {
    Decimal = 0, Tiny = 1, Short = 2, Long = 3, Float = 4, Double = 5, Null = 6, Timestamp = 7,
    LongLong = 8, Int24 = 9, Date = 10, Time = 11, DateTime = 12, Year = 13, NewDate = 14,
    VarChar = 15, Bit = 16, Timestamp2 = 17, DateTime2 = 18, Time2 = 19, Vector = 242, Invalid = 243,
    Bool = 244, Json = 245, NewDecimal = 246, Enum = 247, Set = 248, TinyBlob = 249, MediumBlob = 250,
    LongBlob = 251, Blob = 252, VarString = 253, String = 254, Geometry = 255,
}

/// Collation id of `binary`.
pub const COLLATION_BINARY: u16 = 63;
