//! A block's operators by what they do, and its tables in the order in which they are read: for the forms that have no operators.

use crate::expr::outline::{Actual, Does, GroupLine, Inner, Key, Line};

/// A block without its loops.
#[derive(Default)]
pub(super) struct Parts<'o> {
    pub sort: Option<&'o [Key]>,
    pub distinct: bool,
    /// Windows, and whether rows are sorted for one of them.
    pub windows: Option<bool>,
    pub having: Option<&'o str>,
    pub group: Option<&'o GroupLine>,
    pub constants: &'o [String],
    pub limit: Option<&'o str>,
    pub tables: Vec<TableOf<'o>>,
    /// Subqueries but for those of tables.
    pub inner: Vec<&'o Inner>,
}

/// A table that a block reads.
pub(super) struct TableOf<'o> {
    /// Its operator, without conditions.
    pub read: &'o Line,
    pub conditions: Vec<String>,
    /// Subqueries in its keys.
    pub keyed: Vec<&'o Inner>,
    /// Subqueries in its conditions.
    pub inner: Vec<&'o Inner>,
    /// The run of it with its conditions.
    pub actual: Actual,
    /// How many of the conditions are its own, asked as it is read.
    pub own_conditions: usize,
    /// It is kept by its join columns.
    pub hashed: bool,
}

impl<'o> Parts<'o> {
    /// From the topmost operator of a block.
    pub(super) fn of(mut line: &'o Line) -> Parts<'o> {
        let mut parts = Parts::default();
        loop {
            match &line.does {
                Does::Limit(count, _) => parts.limit = Some(count),
                Does::Sort { keys, .. } => parts.sort = Some(keys),
                Does::Distinct => parts.distinct = true,
                Does::Window(keys) => {
                    parts.windows = Some(parts.windows.unwrap_or(false) || !keys.is_empty());
                }
                Does::Having(text) => parts.having = Some(text),
                Does::Group(group) => parts.group = Some(group),
                Does::If(conditions) => parts.constants = conditions,
                _ => {
                    parts.take(line);
                    return parts;
                }
            }
            parts.inner.extend(&line.inner);
            let [below] = &line.below[..] else { return parts };
            line = below;
        }
    }

    /// Takes the tables of loops.
    fn take(&mut self, line: &'o Line) {
        let table = match &line.does {
            Does::Filter(conditions) if is_table(&line.below) => {
                let mut table = TableOf::of(&line.below[0], line.actual);
                (table.conditions, table.own_conditions) = (conditions.clone(), conditions.len());
                table.inner = asked(line, true);
                Some(table)
            }
            does if is_read(does) => Some(TableOf::of(line, line.actual)),
            _ => None,
        };
        if let Some(table) = table {
            self.tables.push(table);
            self.inner.extend(asked(line, false));
            return;
        }
        line.below.iter().for_each(|below| self.take(below));
        match (&line.does, self.tables.last_mut()) {
            (Does::HashJoin(join), Some(table)) => {
                table.conditions.extend(join.filter.iter().cloned());
                table.inner.extend(asked(line, true));
                (table.actual, table.hashed) = (join.own, true);
                self.inner.extend(asked(line, false));
            }
            _ => self.inner.extend(&line.inner),
        }
    }
}

impl Parts<'_> {
    /// Why the block gives nothing whatever is in its tables, in MySQL's words.
    pub(super) fn nothing(&self) -> Option<&'static str> {
        match self {
            Parts { having: Some(text), .. } if is_never(text) => Some("Impossible HAVING"),
            Parts { constants, .. } if constants.iter().any(|text| is_never(text)) => {
                Some("Impossible WHERE")
            }
            Parts { limit: Some("0"), .. } => Some("Zero limit"),
            _ => None,
        }
    }
}

/// Whether a condition's text is a constant that is not true.
pub(super) fn is_never(text: &str) -> bool {
    matches!(text, "0" | "NULL" | "false")
}

impl<'o> TableOf<'o> {
    fn of(read: &'o Line, actual: Actual) -> TableOf<'o> {
        let keyed = asked(read, true);
        TableOf {
            read,
            conditions: Vec::new(),
            keyed,
            inner: Vec::new(),
            actual,
            own_conditions: 0,
            hashed: false,
        }
    }
}

/// Subqueries that the conditions of an operator ask, or what else it evaluates.
fn asked(line: &Line, in_condition: bool) -> Vec<&Inner> {
    line.inner.iter().filter(|inner| inner.in_condition == in_condition).collect()
}

fn is_read(does: &Does) -> bool {
    matches!(does, Does::Table(_) | Does::Derived(_) | Does::Computed(_) | Does::Recursion(_))
}

fn is_table(below: &[Line]) -> bool {
    matches!(below, [only] if is_read(&only.does))
}

/// The number, whether two runs may differ, and the rows of a query.
pub(super) fn select(line: &Line) -> (u64, bool, f64) {
    match &line.does {
        Does::Select(select) => (select.id, select.volatile, select.rows),
        _ => (0, false, 0.0),
    }
}
