//! Window functions of a query block, bound: what each is computed of, in which order of rows, over which frame.
//!
//! They are computed over the rows that are left behind HAVING, before DISTINCT, ORDER BY and LIMIT (`exec::operator::window`).

use crate::expr::Expr;
use crate::expr::functions::aggregate::AggregateSpec;

/// All of a block.
#[derive(Debug, Default)]
pub struct Windows {
    /// Where the results go, one column each.
    pub slot: u16,
    /// How many results there are.
    pub results: usize,
    /// The slots that are read behind the windows: the block's tables and its aggregates.
    pub row_slots: Vec<u16>,
    /// In the order in which they are computed. The rows come out as the last one sorts them.
    pub windows: Vec<Window>,
}

/// Functions that see the same partitions in the same order.
#[derive(Debug)]
pub struct Window {
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY: expression, descending.
    pub order: Vec<(Expr, bool)>,
    /// The slot that has the inputs of a row.
    pub input_slot: u16,
    /// The expressions that the functions read of each row.
    pub inputs: Vec<Expr>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// One function. Numbers of inputs are places in [`Window::inputs`].
#[derive(Debug)]
pub struct WindowFunction {
    /// Its column among the results.
    pub result: usize,
    /// Its function.
    pub call: WindowCall,
    /// Over which rows of the partition.
    pub frame: Frame,
}

/// The functions over windows.
#[derive(Debug)]
pub enum WindowCall {
    /// ROW_NUMBER().
    RowNumber,
    /// RANK().
    Rank,
    /// DENSE_RANK().
    DenseRank,
    /// PERCENT_RANK().
    PercentRank,
    /// CUME_DIST().
    CumeDist,
    /// NTILE(input).
    Ntile(usize),
    /// LAG and LEAD.
    Other {
        /// The value.
        value: usize,
        /// How many rows away; `None`: 1.
        distance: Option<usize>,
        /// The value where there is no such row; `None`: NULL.
        default: Option<usize>,
        /// LAG.
        before: bool,
    },
    /// FIRST_VALUE.
    First(usize),
    /// LAST_VALUE.
    Last(usize),
    /// NTH_VALUE: the value, which.
    Nth(usize, usize),
    /// An aggregate, whose arguments are columns of the inputs' slot.
    Aggregate(AggregateSpec),
}

/// The rows of a partition that a function looks at, for each of its rows.
#[derive(Debug)]
pub struct Frame {
    /// ROWS: bounds count rows. Otherwise RANGE: they are of the value that is ordered by.
    pub rows: bool,
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
    /// RANGE with a bound of a value: the input that has the value ordered by, and whether it is ordered by descending.
    pub by_value: Option<(usize, bool)>,
}

/// One end of a frame.
#[derive(Debug)]
pub enum Bound {
    /// UNBOUNDED: the partition's.
    Partition,
    /// CURRENT ROW: the row, or under RANGE those that are equal to it.
    Current,
    /// So many rows away, or so much less or more.
    Distance {
        /// Before the row.
        preceding: bool,
        /// How far; without a column.
        by: Expr,
    },
    /// Up to a value, computed of the inputs: a time some interval away.
    Value(Expr),
}

impl Windows {
    /// Visits the expressions that are evaluated for each row.
    pub fn visit<'e>(&'e self, see: &mut dyn FnMut(&'e Expr)) {
        for window in &self.windows {
            window.partition.iter().for_each(&mut *see);
            window.order.iter().for_each(|(e, _)| see(e));
            window.inputs.iter().for_each(&mut *see);
        }
    }

    /// As `visit`, to replace what is read.
    ///
    /// # Errors
    /// The error of `change`.
    pub fn try_visit_mut<E>(&mut self, change: &mut dyn FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
        for window in &mut self.windows {
            window.partition.iter_mut().try_for_each(&mut *change)?;
            window.order.iter_mut().try_for_each(|(e, _)| change(e))?;
            window.inputs.iter_mut().try_for_each(&mut *change)?;
        }
        Ok(())
    }

    /// Whether rows are sorted for it.
    #[must_use]
    pub fn sorts(&self) -> bool {
        self.windows.iter().any(Window::sorts)
    }
}

impl Window {
    /// Whether rows are sorted for it.
    #[must_use]
    pub fn sorts(&self) -> bool {
        !self.partition.is_empty() || !self.order.is_empty()
    }
}
