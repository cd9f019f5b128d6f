//! Functions of MySQL and MariaDB that are not here: a call is refused by name (1235), not as one that nobody knows (1305).

/// In order.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "ADD_MONTHS", "ASYMMETRIC_DECRYPT", "ASYMMETRIC_DERIVE", "ASYMMETRIC_ENCRYPT", "ASYMMETRIC_SIGN", "ASYMMETRIC_VERIFY",
    "CHR", "CRC32C", "DECODE", "DECODE_HISTOGRAM", "DECODE_ORACLE", "DES_DECRYPT",
    "DES_ENCRYPT", "ENCODE", "ENCRYPT", "GEOMCOLLECTION", "GEOMETRYCOLLECTION",
    "JSON_ARRAY_INTERSECT", "JSON_COMPACT", "JSON_DETAILED", "JSON_EQUALS", "JSON_EXISTS", "JSON_KEY_VALUE",
    "JSON_LOOSE", "JSON_NORMALIZE", "JSON_OBJECT_FILTER_KEYS", "JSON_OBJECT_TO_ARRAY", "JSON_QUERY", "KDF",
    "LENGTHB", "LINESTRING", "MBRCONTAINS", "MBRCOVEREDBY", "MBRCOVERS",
    "MBRDISJOINT", "MBREQUALS", "MBRINTERSECTS", "MBROVERLAPS", "MBRTOUCHES", "MBRWITHIN",
    "MEDIAN", "MULTILINESTRING", "MULTIPOINT", "MULTIPOLYGON", "NATURAL_SORT_KEY", "NVL",
    "NVL2", "OLD_PASSWORD", "PASSWORD", "PERCENTILE_CONT", "PERCENTILE_DISC", "POINT",
    "POLYGON", "ROLES_GRAPHML", "SFORMAT", "STRING_TO_VECTOR",
    "SYS_GUID", "TO_CHAR", "TO_VECTOR", "UUID_V4", "UUID_V7",
    "VALIDATE_PASSWORD_STRENGTH", "VECTOR_DIM", "VECTOR_TO_STRING", "WSREP_LAST_SEEN_GTID", "WSREP_LAST_WRITTEN_GTID", "WSREP_SYNC_WAIT_UPTO_GTID",
];

/// Whether other servers have a function of this name.
pub(crate) fn is_known(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("ST_") || name.starts_with("VEC_") || NAMES.binary_search(&name.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_order_and_not_here() {
        assert!(NAMES.is_sorted());
        assert!(NAMES.iter().all(|name| crate::expr::functions::lookup(name).is_none()));
        assert!(is_known("st_astext") && is_known("Point") && !is_known("stored"));
    }
}
