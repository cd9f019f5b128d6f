//! ORDER BY in front of outputs whose values depend on the order in which they are computed: `@n := @n + 1`, RAND(), NEXTVAL.
//!
//! The rows of the frame are sorted, and outputs are computed of those that are given, in the order in which they are given.
//! A row on its way is a record of its slots, as it is between windows. Always a whole sort: who numbers rows wants most of them.

use super::{Joined, dispatch};
use crate::error::ExecResult;
use crate::expr::Context;
use crate::logical::SortKey;
use crate::plan::physical::FrameSort;
use crate::rows::Flow;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};

/// Gathers rows of the frame, and gives them in order.
pub(super) fn run(of: &FrameSort, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let keys = || of.keys.iter().filter_map(|key| Some((key, SortKey::expression(key)?)));
    let form = keys().map(|(key, e)| Part::new(&e.ty, key.collation, key.descending)).collect();
    let mut sort = ExternalSort::new(KeyForm::new(form), cx);
    let (mut values, mut key, mut record) = (Vec::with_capacity(of.keys.len()), Vec::new(), Vec::new());
    dispatch::frame(&of.input, None, cx, &mut |cx| {
        cx.tick()?;
        values.clear();
        for (_, e) in keys() {
            values.push(e.eval(cx)?);
        }
        key.clear();
        sort.form().write(values.iter(), &mut key);
        record.clear();
        for slot in &of.slots {
            codec::write_row(&cx.frame[usize::from(*slot)].row, &mut record);
        }
        sort.add(&key, &record, cx)?;
        Ok(Flow::Continue)
    })?;
    let mut sorted = sort.finish(cx)?;
    while let Some((_, mut record)) = sorted.next_record()? {
        cx.tick()?;
        for slot in &of.slots {
            cx.frame[usize::from(*slot)].row = codec::read_row(&mut record)?;
        }
        if each(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
