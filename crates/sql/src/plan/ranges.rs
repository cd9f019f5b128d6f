//! From conjuncts to candidate paths: pieces of one index, and unions of several.
//!
//! Of each index the longest beginning is used that conditions give values to, then what they say about the next part. An OR
//! is used if each of its branches, together with the conjuncts around it, gives a piece of the same index; or, as a union, of
//! any index. A piece may have more rows than are wanted, never fewer: what it does not say itself stays in the filter.

use super::access::{
    Access, Bound, Candidate, Equal, IndexRanges, Interval, Part, Tail, UnionBranch, Wanted, usable_indexes,
};
use super::condition::{Says, says};
use super::{cost, rules};
use crate::catalog::IndexKind;
use crate::expr::charset;
use crate::expr::node::Expr;

/// More combinations of values than this are not looked up one by one: the parts behind are left to the filter.
const MOST_PIECES: usize = 10_000;

/// What a conjunct says about a column.
type Fact<'e> = Option<(usize, Says<'e>)>;

/// A piece of an index, and which facts went into it.
struct Built {
    interval: Interval,
    /// Facts that every row of the piece meets.
    absorbed: Vec<usize>,
    /// Facts that made it narrower.
    used: Vec<usize>,
    /// All parts of the index have one value that is not NULL.
    complete: bool,
}

/// All paths but the scan, and the indexes that conditions could use.
pub(super) fn candidates(
    wanted: &Wanted<'_>,
    conjuncts: &[&Expr],
    total: f64,
) -> (Vec<Candidate>, Vec<usize>) {
    let facts: Vec<Fact<'_>> =
        conjuncts.iter().map(|c| says(c, wanted.slot, wanted.missing, wanted.table)).collect();
    let ors: Vec<(usize, Vec<&[Expr]>)> =
        conjuncts.iter().enumerate().filter_map(|(at, c)| Some((at, rules::branches(c)?))).collect();
    let indexes = usable_indexes(wanted.table, wanted.hints);
    let (mut found, mut possible) = (Vec::new(), Vec::new());
    for &index in &indexes {
        let before = found.len();
        found.extend(one_index(wanted, index, &facts, total));
        for (at, branches) in &ors {
            found.extend(pieces_of_or(wanted, index, &facts, *at, branches, total));
        }
        if found.len() > before {
            possible.push(index);
        }
    }
    // A union reads each row through a secondary index: nothing for it where a key is complete.
    if !found.iter().any(|c| matches!(c.access, Access::Point { .. })) {
        for (at, branches) in &ors {
            if let Some(union) = union(wanted, &indexes, &facts, *at, branches, total) {
                if let Access::Union(branches) = &union.access {
                    possible.extend(branches.iter().map(|branch| branch.ranges.index));
                }
                found.push(union);
            }
        }
    }
    possible.sort_unstable();
    possible.dedup();
    (found, possible)
}

/// The path that the conjuncts other than ORs give.
fn one_index(wanted: &Wanted<'_>, index: usize, facts: &[Fact<'_>], total: f64) -> Option<Candidate> {
    let built = interval(wanted, index, facts)?;
    let clustered = wanted.table.indexes()[index].clustered;
    if built.complete {
        let mut key = Vec::with_capacity(built.interval.parts.len());
        for part in built.interval.parts {
            if let Part::One(equal) = part {
                key.push(equal.expr);
            }
        }
        let access = Access::Point { index, key };
        return Some(Candidate { access, absorbed: built.absorbed, rows: 1.0, cost: cost::point(clustered) });
    }
    let ranges = IndexRanges { index, intervals: vec![built.interval] };
    Some(priced(wanted, ranges, built.absorbed, total))
}

fn priced(wanted: &Wanted<'_>, ranges: IndexRanges, absorbed: Vec<usize>, total: f64) -> Candidate {
    let (rows, cost) = price(wanted, &ranges, wanted.covered(ranges.index), total);
    Candidate { access: Access::Ranges(ranges), absorbed, rows, cost }
}

/// Rows and cost of pieces of an index.
fn price(wanted: &Wanted<'_>, ranges: &IndexRanges, covered: bool, total: f64) -> (f64, f64) {
    let (mut rows, mut pieces) = (0.0, 0.0);
    for interval in &ranges.intervals {
        let (more, count) = wanted.known.interval(wanted.table, ranges.index, interval, total);
        rows += more;
        pieces += count;
    }
    let rows = f64::min(rows, total.max(1.0));
    let locks = if wanted.locks { rows * cost::LOCK } else { 0.0 };
    let in_place = wanted.table.indexes()[ranges.index].clustered || covered;
    (rows, cost::ranges(pieces, rows, in_place) + locks)
}

/// The pieces of an index that an OR gives, one a branch.
fn pieces_of_or(
    wanted: &Wanted<'_>,
    index: usize,
    facts: &[Fact<'_>],
    or: usize,
    branches: &[&[Expr]],
    total: f64,
) -> Option<Candidate> {
    let mut intervals = Vec::with_capacity(branches.len());
    let mut absorbed: Option<Vec<usize>> = None;
    let mut or_is_implied = true;
    for branch in branches {
        let (built, own) = branch_interval(wanted, index, facts, branch)?;
        if !built.used.iter().any(|at| own.contains(at)) {
            return None;
        }
        or_is_implied &= own.clone().all(|at| built.absorbed.contains(&at));
        let outside: Vec<usize> = built.absorbed.into_iter().filter(|at| !own.contains(at)).collect();
        match &mut absorbed {
            None => absorbed = Some(outside),
            Some(all) => all.retain(|at| outside.contains(at)),
        }
        intervals.push(built.interval);
    }
    let mut absorbed = absorbed?;
    if or_is_implied {
        absorbed.push(or);
    }
    Some(priced(wanted, IndexRanges { index, intervals }, absorbed, total))
}

/// The piece of an index that a branch of an OR gives together with what stands around the OR, and the numbers of the
/// branch's own facts.
fn branch_interval(
    wanted: &Wanted<'_>,
    index: usize,
    facts: &[Fact<'_>],
    branch: &[Expr],
) -> Option<(Built, std::ops::Range<usize>)> {
    let mut all: Vec<Fact<'_>> = facts.to_vec();
    all.extend(branch.iter().map(|c| says(c, wanted.slot, wanted.missing, wanted.table)));
    let own = facts.len()..all.len();
    Some((interval(wanted, index, &all)?, own))
}

/// An OR whose branches are found through different indexes.
fn union(
    wanted: &Wanted<'_>,
    indexes: &[usize],
    facts: &[Fact<'_>],
    or: usize,
    branches: &[&[Expr]],
    total: f64,
) -> Option<Candidate> {
    let (mut rows, mut cost) = (0.0, 0.0);
    let mut found = Vec::with_capacity(branches.len());
    // A row is asked for each branch whether it belongs to one before.
    if branches.iter().any(|branch| branch.iter().any(rules::is_volatile)) {
        return None;
    }
    for branch in branches {
        let mut best: Option<(f64, f64, IndexRanges)> = None;
        for &index in indexes {
            let Some((built, own)) = branch_interval(wanted, index, facts, branch) else { continue };
            if !built.used.iter().any(|at| own.contains(at)) {
                continue;
            }
            let ranges = IndexRanges { index, intervals: vec![built.interval] };
            let (rows, cost) = price(wanted, &ranges, false, total);
            if best.as_ref().is_none_or(|(_, least, _)| cost < *least) {
                best = Some((rows, cost, ranges));
            }
        }
        let (more, added, ranges) = best?;
        rows += more;
        cost += added + more * cost::CONDITION * found.len() as f64;
        found.push(UnionBranch { ranges, conditions: branch.to_vec() });
    }
    // The rows that two branches have are asked for twice and come once.
    let rows = f64::min(rows, total.max(1.0));
    Some(Candidate { access: Access::Union(found), absorbed: vec![or], rows, cost })
}

/// The longest piece that facts give of an index; `None` if they say nothing about its first part.
fn interval(wanted: &Wanted<'_>, index: usize, facts: &[Fact<'_>]) -> Option<Built> {
    let definition = &wanted.table.indexes()[index];
    let mut built = Built {
        interval: Interval { parts: Vec::new(), tail: Tail::Whole },
        absorbed: Vec::new(),
        used: Vec::new(),
        complete: definition.kind != IndexKind::Plain,
    };
    let mut pieces = 1usize;
    for part in &definition.parts {
        let exact = part.prefix.is_none();
        if !exact
            && !charset::collation(wanted.table.columns()[part.column].ty.collation).compares_by_character()
        {
            built.complete = false;
            break;
        }
        let of = |accepts: fn(&Says<'_>) -> bool| {
            facts.iter().position(
                |fact| matches!(fact, Some((column, says)) if *column == part.column && accepts(says)),
            )
        };
        // Of a value that is known before the statement runs, samples tell how many rows there are.
        let at = of(|says| matches!(says, Says::Equal(value, _) if value.as_const().is_some()))
            .or_else(|| of(|says| matches!(says, Says::Equal(..))))
            .or_else(|| of(|says| matches!(says, Says::In(_))));
        let added = match at.and_then(|at| facts[at].as_ref()) {
            Some((_, Says::Equal(expr, null_safe))) => {
                built.complete &= !null_safe && exact;
                Part::One(Equal { expr: (*expr).clone(), null_safe: *null_safe })
            }
            Some((_, Says::In(list))) if pieces.saturating_mul(list.len()) <= MOST_PIECES || pieces == 1 => {
                built.complete = false;
                pieces = pieces.saturating_mul(list.len());
                Part::Any(list.to_vec())
            }
            _ => {
                built.complete = false;
                built.interval.tail = tail(part.column, exact, facts, &mut built.used, &mut built.absorbed);
                break;
            }
        };
        built.used.extend(at);
        if exact {
            built.absorbed.extend(at);
        }
        built.interval.parts.push(added);
    }
    (!built.used.is_empty()).then_some(built)
}

/// What facts say about the column of the part behind the leading ones: the first lower and the first upper bound, others
/// stay in the filter; or the beginning of a text.
fn tail(
    column: usize,
    exact: bool,
    facts: &[Fact<'_>],
    used: &mut Vec<usize>,
    absorbed: &mut Vec<usize>,
) -> Tail {
    let (mut low, mut high) = (None, None);
    let bound = |expr: &Expr, inclusive| Some(Bound { expr: expr.clone(), inclusive });
    for (at, fact) in facts.iter().enumerate() {
        match fact {
            Some((c, _)) if *c != column => continue,
            Some((_, Says::Between(from, to))) if low.is_none() && high.is_none() => {
                (low, high) = (bound(from, true), bound(to, true));
            }
            Some((_, Says::Low(expr, inclusive))) if low.is_none() => low = bound(expr, *inclusive),
            Some((_, Says::High(expr, inclusive))) if high.is_none() => high = bound(expr, *inclusive),
            _ => continue,
        }
        used.push(at);
        if exact {
            absorbed.push(at);
        }
    }
    if low.is_some() || high.is_some() {
        return Tail::Between { low, high };
    }
    for (at, fact) in facts.iter().enumerate() {
        if let Some((c, Says::Like(pattern, escape))) = fact
            && *c == column
        {
            used.push(at);
            return Tail::Begins { pattern: (*pattern).clone(), escape: *escape };
        }
    }
    Tail::Whole
}
