//! The reserved words of MySQL 8.4, found by one hash probe.
//!
//! Only reserved words are here: a word with a [`Kw`] other than `NONE` cannot be an identifier unless it is
//! quoted or follows a dot. Every other grammar word is compared as text where the grammar expects
//! it, which is what lets it be an identifier everywhere else.

macro_rules! keywords {
    ($($name:ident),* $(,)?) => {
        /// A reserved word.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "spelt as in SQL")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Kw { NONE, $($name),* }

        const WORDS: &[(&str, Kw)] = &[$((stringify!($name), Kw::$name)),*];
    };
}

keywords! {
    ACCESSIBLE, ADD, ALL, ALTER, ANALYZE, AND, AS, ASC, ASENSITIVE, BEFORE, BETWEEN, BIGINT,
    BINARY, BLOB, BOTH, BY, CALL, CASCADE, CASE, CHANGE, CHAR, CHARACTER, CHECK, COLLATE,
    COLUMN, CONDITION, CONSTRAINT, CONTINUE, CONVERT, CREATE, CROSS, CUBE, CUME_DIST,
    CURRENT_DATE, CURRENT_TIME, CURRENT_TIMESTAMP, CURRENT_USER, CURSOR, DATABASE, DATABASES,
    DAY_HOUR, DAY_MICROSECOND, DAY_MINUTE, DAY_SECOND, DEC, DECIMAL, DECLARE, DEFAULT, DELAYED,
    DELETE, DENSE_RANK, DESC, DESCRIBE, DETERMINISTIC, DISTINCT, DISTINCTROW, DIV, DOUBLE, DROP,
    DUAL, EACH, ELSE, ELSEIF, EMPTY, ENCLOSED, ESCAPED, EXCEPT, EXISTS, EXIT, EXPLAIN, FALSE,
    FETCH, FIRST_VALUE, FLOAT, FLOAT4, FLOAT8, FOR, FORCE, FOREIGN, FROM, FULLTEXT, FUNCTION,
    GENERATED, GET, GRANT, GROUP, GROUPING, GROUPS, HAVING, HIGH_PRIORITY, HOUR_MICROSECOND,
    HOUR_MINUTE, HOUR_SECOND, IF, IGNORE, IN, INDEX, INFILE, INNER, INOUT, INSENSITIVE, INSERT,
    INT, INT1, INT2, INT3, INT4, INT8, INTEGER, INTERSECT, INTERVAL, INTO, IO_AFTER_GTIDS,
    IO_BEFORE_GTIDS, IS, ITERATE, JOIN, JSON_TABLE, KEY, KEYS, KILL, LAG, LAST_VALUE, LATERAL,
    LEAD, LEADING, LEAVE, LEFT, LIKE, LIMIT, LINEAR, LINES, LOAD, LOCALTIME, LOCALTIMESTAMP,
    LOCK, LONG, LONGBLOB, LONGTEXT, LOOP, LOW_PRIORITY, MANUAL, MATCH, MAXVALUE, MEDIUMBLOB,
    MEDIUMINT, MEDIUMTEXT, MIDDLEINT, MINUTE_MICROSECOND, MINUTE_SECOND, MOD, MODIFIES, NATURAL,
    NOT, NO_WRITE_TO_BINLOG, NTH_VALUE, NTILE, NULL, NUMERIC, OF, ON, OPTIMIZE, OPTIMIZER_COSTS,
    OPTION, OPTIONALLY, OR, ORDER, OUT, OUTER, OUTFILE, OVER, PARALLEL, PARTITION, PERCENT_RANK,
    PRECISION, PRIMARY, PROCEDURE, PURGE, QUALIFY, RANGE, RANK, READ, READS, READ_WRITE, REAL,
    RECURSIVE, REFERENCES, REGEXP, RELEASE, RENAME, REPEAT, REPLACE, REQUIRE, RESIGNAL,
    RESTRICT, RETURN, REVOKE, RIGHT, RLIKE, ROW, ROWS, ROW_NUMBER, SCHEMA, SCHEMAS,
    SECOND_MICROSECOND, SELECT, SENSITIVE, SEPARATOR, SET, SHOW, SIGNAL, SMALLINT, SPATIAL,
    SPECIFIC, SQL, SQLEXCEPTION, SQLSTATE, SQLWARNING, SQL_BIG_RESULT, SQL_CALC_FOUND_ROWS,
    SQL_SMALL_RESULT, SSL, STARTING, STORED, STRAIGHT_JOIN, SYSTEM, TABLE, TABLESAMPLE,
    TERMINATED, THEN, TINYBLOB, TINYINT, TINYTEXT, TO, TRAILING, TRIGGER, TRUE, UNDO, UNION,
    UNIQUE, UNLOCK, UNSIGNED, UPDATE, USAGE, USE, USING, UTC_DATE, UTC_TIME, UTC_TIMESTAMP,
    VALUES, VARBINARY, VARCHAR, VARCHARACTER, VARYING, VIRTUAL, WHEN, WHERE, WHILE, WINDOW,
    WITH, WRITE, XOR, YEAR_MONTH, ZEROFILL
}

const SLOTS: usize = 1024;
/// Longest reserved word.
const MAX_LEN: usize = 20;

/// One step of the hash over a word's bytes; letters fold to lower case.
#[inline(always)]
pub(crate) const fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ (byte | 0x20) as u32).wrapping_mul(0x0100_0193)
}

/// The hash of no bytes.
pub(crate) const HASH_START: u32 = 0x811c_9dc5;

const fn slot(hash: u32) -> usize {
    ((hash ^ (hash >> 15)) as usize) & (SLOTS - 1)
}

const TABLE: [u16; SLOTS] = build();

const fn build() -> [u16; SLOTS] {
    let mut table = [0u16; SLOTS];
    let mut i = 0;
    while i < WORDS.len() {
        let bytes = WORDS[i].0.as_bytes();
        let mut hash = HASH_START;
        let mut j = 0;
        while j < bytes.len() {
            hash = hash_step(hash, bytes[j]);
            j += 1;
        }
        let mut at = slot(hash);
        while table[at] != 0 {
            at = (at + 1) & (SLOTS - 1);
        }
        table[at] = (i + 1) as u16;
        i += 1;
    }
    table
}

/// The reserved word that `word` is, given its hash.
#[inline]
pub(crate) fn lookup(word: &[u8], hash: u32) -> Kw {
    if word.len() > MAX_LEN || word.len() < 2 {
        return Kw::NONE;
    }
    let mut at = slot(hash);
    loop {
        match TABLE[at] {
            0 => return Kw::NONE,
            n => {
                let (text, kw) = WORDS[n as usize - 1];
                if text.len() == word.len() && text.as_bytes().eq_ignore_ascii_case(word) {
                    return kw;
                }
            }
        }
        at = (at + 1) & (SLOTS - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case_and_others_are_not() {
        let hash = |w: &str| w.bytes().fold(HASH_START, hash_step);
        for (text, kw) in WORDS {
            assert!(text.len() <= MAX_LEN);
            assert_eq!(lookup(text.as_bytes(), hash(text)), *kw);
            let lower = text.to_lowercase();
            assert_eq!(lookup(lower.as_bytes(), hash(&lower)), *kw);
        }
        for other in ["sbtest1", "id", "k", "begin", "end", "value", "selec", "selectt", "_", "count"] {
            assert_eq!(lookup(other.as_bytes(), hash(other)), Kw::NONE, "{other}");
        }
    }
}
