//! The settings of a session that the parser depends on.

/// The parts of `sql_mode` that change the grammar, and the version for `/*!NNNNN */` comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParseOptions {
    /// `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// `||` concatenates.
    pub pipes_as_concat: bool,
    /// A backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// NOT binds like `!`.
    pub high_not_precedence: bool,
    /// White space is allowed between a built-in function's name and its parenthesis.
    pub ignore_space: bool,
    /// REAL is FLOAT.
    pub real_as_float: bool,
    /// `/*!NNNNN text */` is text when NNNNN is at most this: 80400 for 8.4.0.
    pub version: u32,
    /// MariaDB's comment rules: `/*M!NNNNNN */` runs, and `/*!50700` to `/*!99999` do not.
    pub mariadb: bool,
    /// `?` stands for a value that comes with the execution. Only a text that is prepared has such values: a value that never comes
    /// would be NULL, and UPDATE would write it.
    pub markers: bool,
}

impl ParseOptions {
    /// The options of a `sql_mode`'s bits, which have MySQL's own positions; the rest as by default.
    pub fn of_sql_mode(bits: u64) -> Self {
        let has = |bit: u32| bits & (1 << bit) != 0;
        Self {
            real_as_float: has(0),
            pipes_as_concat: has(1),
            ansi_quotes: has(2),
            ignore_space: has(3),
            no_backslash_escapes: has(20),
            high_not_precedence: has(29),
            ..Self::default()
        }
    }
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            ansi_quotes: false,
            pipes_as_concat: false,
            no_backslash_escapes: false,
            high_not_precedence: false,
            ignore_space: false,
            real_as_float: false,
            version: 80400,
            mariadb: false,
            markers: false,
        }
    }
}
