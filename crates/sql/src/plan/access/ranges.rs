//! From conjuncts to candidate paths: pieces of one index, and unions of several.
//!
//! Of each index the longest beginning is used that conditions give values to, then what they say about the next part. An OR
//! is used if each of its branches, together with the conjuncts around it, gives a piece of the same index; or, as a union, of
//! any index. A piece may have more rows than are wanted, never fewer: what it does not say itself stays in the filter.

use super::choose::{Candidate, Wanted, is_forbidden, usable_indexes};
use crate::catalog::IndexKind;
use crate::expr::charset;
use crate::expr::is_volatile;
use crate::expr::node::Expr;
use crate::expr::subquery::Subquery;
use crate::logical::conjuncts::branches;
use crate::plan::cost;
use crate::plan::physical::path::{
    Access, Among, Bound, Equal, IndexRanges, Interval, Part, Tail, UnionBranch,
};
use crate::plan::rules::condition::{Says, among, says};
use std::sync::Arc;

/// More combinations of values than this are not looked up one by one: the parts behind are left to the filter.
const MOST_PIECES: usize = 10_000;

/// A statement about a column that a conjunct makes.
#[derive(Clone, Copy)]
struct Fact<'e> {
    /// Its number.
    conjunct: usize,
    column: usize,
    says: Asks<'e>,
}

/// The kind of a fact: what is asked of its column.
#[derive(Clone, Copy)]
enum Asks<'e> {
    /// Something about values that are known when it is read.
    Values(Says<'e>),
    /// That it is among what a column of a subquery gives, which costs so much to have.
    Among(&'e Subquery, usize, f64),
}

/// The facts of conjuncts, which have the numbers from `first` on.
fn facts<'e>(wanted: &Wanted<'_>, first: usize, conjuncts: impl Iterator<Item = &'e Expr>) -> Vec<Fact<'e>> {
    let mut facts = Vec::new();
    for (at, condition) in conjuncts.enumerate() {
        let conjunct = first + at;
        if let Some((column, said)) = says(condition, wanted.slot, wanted.missing, wanted.table) {
            facts.push(Fact { conjunct, column, says: Asks::Values(said) });
        } else if let Some(listed) = among(condition, wanted.slot, wanted.table) {
            let of = |(column, member)| Fact {
                conjunct,
                column,
                says: Asks::Among(listed.subquery, member, listed.cost),
            };
            facts.extend(listed.columns.into_iter().map(of));
        }
    }
    facts
}

/// The facts of all conjuncts of a table.
struct Facts<'e> {
    all: Vec<Fact<'e>>,
    /// How many conjuncts there are.
    conjuncts: usize,
}

/// A piece of an index, and which conjuncts went into it.
struct Built {
    interval: Interval,
    /// Conjuncts that every row of the piece meets.
    absorbed: Vec<usize>,
    /// Conjuncts that made it narrower.
    used: Vec<usize>,
    /// All parts of the index have one value that is not NULL.
    complete: bool,
}

/// All paths but the scan, and the indexes that conditions could use.
pub(in crate::plan) fn candidates(
    wanted: &Wanted<'_>,
    conjuncts: &[&Expr],
    total: f64,
) -> (Vec<Candidate>, Vec<usize>) {
    let facts = Facts { all: facts(wanted, 0, conjuncts.iter().copied()), conjuncts: conjuncts.len() };
    let indexes = usable_indexes(wanted.table, wanted.hints);
    let ors: Vec<Disjunction<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(at, c)| disjunction(wanted, &indexes, &facts, at, c, total))
        .collect();
    let (mut found, mut possible) = (Vec::new(), Vec::new());
    for &index in &indexes {
        let before = found.len();
        found.extend(one_index(wanted, index, &facts, total));
        found.extend(ors.iter().filter_map(|or| pieces_of_or(wanted, index, or, total)));
        if found.len() > before {
            possible.push(index);
        }
    }
    // A union reads each row through a secondary index: nothing for it where a key is complete.
    if !found.iter().any(|c| matches!(c.access, Access::Point { .. })) {
        for or in ors {
            if let Some(union) = union(wanted, or, total) {
                if let Access::Union(branches) = &union.access {
                    possible.extend(branches.iter().map(|branch| branch.ranges.index));
                }
                found.push(union);
            }
        }
    }
    found.retain(|candidate| !is_forbidden(wanted.table, wanted.hints, &candidate.access));
    possible.sort_unstable();
    possible.dedup();
    (found, possible)
}

/// The path that the conjuncts other than ORs give.
fn one_index(wanted: &Wanted<'_>, index: usize, facts: &Facts<'_>, total: f64) -> Option<Candidate> {
    let built = interval(wanted, index, &facts.all, total)?;
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
    let definition = &wanted.table.indexes()[ranges.index];
    let (mut rows, mut pieces, mut have, mut unique) = (0.0, 0.0, 0.0, definition.unique());
    for interval in &ranges.intervals {
        let (more, count) = wanted.known.interval(wanted.table, ranges.index, interval, total);
        rows += more;
        pieces += count;
        have += interval
            .parts
            .iter()
            .map(|part| if let Part::Among(a) = part { a.cost } else { 0.0 })
            .fold(0.0, f64::max);
        unique &= interval.parts.len() == definition.parts.len();
    }
    let rows = f64::min(rows, total.max(1.0));
    let locks = if wanted.locks { rows * cost::LOCK } else { 0.0 };
    (rows, pieces_cost(pieces, rows, definition.clustered || covered, unique) + locks + have)
}

/// An OR, and what each of its branches gives.
struct Disjunction<'e> {
    /// Its number among the conjuncts.
    conjunct: usize,
    branches: Vec<Branch<'e>>,
}

/// A branch of an OR, and the pieces of indexes that it gives together with what stands around the OR.
struct Branch<'e> {
    conditions: &'e [Expr],
    /// The indexes of which its own conditions narrow a piece.
    pieces: Vec<Piece>,
}

struct Piece {
    index: usize,
    interval: Interval,
    /// Conjuncts around the OR that every row of the piece meets.
    absorbed: Vec<usize>,
    /// Every row of it meets the branch, too.
    implies_branch: bool,
}

/// A conjunct that is an OR each of whose branches gives a piece of an index.
fn disjunction<'e>(
    wanted: &Wanted<'_>,
    indexes: &[usize],
    outside: &Facts<'e>,
    conjunct: usize,
    or: &'e Expr,
    total: f64,
) -> Option<Disjunction<'e>> {
    let mut all = outside.all.clone();
    let mut found = Vec::new();
    for conditions in branches(or)? {
        all.truncate(outside.all.len());
        all.extend(facts(wanted, outside.conjuncts, conditions.iter()));
        let own = outside.conjuncts..outside.conjuncts + conditions.len();
        let mut pieces = Vec::new();
        for &index in indexes {
            let Some(Built { interval, mut absorbed, used, .. }) = interval(wanted, index, &all, total)
            else {
                continue;
            };
            if used.iter().any(|at| own.contains(at)) {
                let implies_branch = own.clone().all(|at| absorbed.contains(&at));
                absorbed.retain(|at| !own.contains(at));
                pieces.push(Piece { index, interval, absorbed, implies_branch });
            }
        }
        if pieces.is_empty() {
            return None;
        }
        found.push(Branch { conditions, pieces });
    }
    Some(Disjunction { conjunct, branches: found })
}

/// The pieces of an index that an OR gives, one a branch.
fn pieces_of_or(wanted: &Wanted<'_>, index: usize, or: &Disjunction<'_>, total: f64) -> Option<Candidate> {
    let mut intervals = Vec::with_capacity(or.branches.len());
    let mut absorbed: Option<Vec<usize>> = None;
    let mut or_is_implied = true;
    for branch in &or.branches {
        let piece = branch.pieces.iter().find(|piece| piece.index == index)?;
        or_is_implied &= piece.implies_branch;
        match &mut absorbed {
            None => absorbed = Some(piece.absorbed.clone()),
            Some(all) => all.retain(|at| piece.absorbed.contains(at)),
        }
        intervals.push(piece.interval.clone());
    }
    let mut absorbed = absorbed?;
    if or_is_implied {
        absorbed.push(or.conjunct);
    }
    Some(priced(wanted, IndexRanges { index, intervals }, absorbed, total))
}

/// An OR whose branches are found through different indexes.
fn union(wanted: &Wanted<'_>, or: Disjunction<'_>, total: f64) -> Option<Candidate> {
    // Pieces of the one index that there is for all of them are read without looking which branches a row has been in.
    let only = |branch: &Branch<'_>| match branch.pieces[..] {
        [Piece { index, .. }] => Some(index),
        _ => None,
    };
    let first = or.branches.first().and_then(only);
    // A row is asked for each branch whether it belongs to one before.
    if first.is_some() && or.branches.iter().all(|branch| only(branch) == first)
        || or.branches.iter().any(|branch| branch.conditions.iter().any(is_volatile))
    {
        return None;
    }
    let (mut rows, mut cost) = (0.0, 0.0);
    let mut found = Vec::with_capacity(or.branches.len());
    for branch in or.branches {
        let mut best: Option<(f64, f64, IndexRanges)> = None;
        for Piece { index, interval, .. } in branch.pieces {
            let ranges = IndexRanges { index, intervals: vec![interval] };
            let (rows, cost) = price(wanted, &ranges, false, total);
            if best.as_ref().is_none_or(|(_, least, _)| cost < *least) {
                best = Some((rows, cost, ranges));
            }
        }
        let (more, added, ranges) = best?;
        rows += more;
        cost += added + more * cost::CONDITION * found.len() as f64;
        found.push(UnionBranch { ranges, conditions: branch.conditions.to_vec() });
    }
    // The rows that two branches have are asked for twice and come once.
    let rows = f64::min(rows, total.max(1.0));
    Some(Candidate { access: Access::Union(found), absorbed: vec![or.conjunct], rows, cost })
}

/// The longest piece that facts give of an index; `None` if they say nothing about its first part.
fn interval(wanted: &Wanted<'_>, index: usize, facts: &[Fact<'_>], total: f64) -> Option<Built> {
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
        let Some((fact, added)) =
            equality(wanted, index, part.column, facts, &built.interval, total).filter(|(_, added)| {
                match added {
                    Part::Any(list) => pieces == 1 || pieces.saturating_mul(list.len()) <= MOST_PIECES,
                    Part::Among(among) => {
                        pieces == 1 || asked_of(wanted, index, &built.interval, &among.subquery) > 0
                    }
                    Part::One(_) => true,
                }
            })
        else {
            built.complete = false;
            built.interval.tail = tail(part.column, exact, facts, &mut built.used, &mut built.absorbed);
            break;
        };
        match &added {
            Part::One(equal) => built.complete &= !equal.null_safe && exact,
            Part::Any(list) => {
                built.complete = false;
                pieces = pieces.saturating_mul(list.len());
            }
            Part::Among(among) => {
                built.complete = false;
                pieces = pieces.saturating_mul(among.most);
            }
        }
        built.used.push(fact.conjunct);
        // A row of a subquery is looked for by as many of its columns as the index has.
        let whole = match fact.says {
            Asks::Among(subquery, ..) => {
                asked_of(wanted, index, &built.interval, subquery) + 1 == subquery.members.len()
            }
            Asks::Values(_) => true,
        };
        if exact && whole {
            built.absorbed.push(fact.conjunct);
        }
        built.interval.parts.push(added);
    }
    (!built.used.is_empty()).then_some(built)
}

/// Finds the fact that makes the next part of a piece equal to something: to one value if there is such a fact, else to one of several.
fn equality<'f, 'e>(
    wanted: &Wanted<'_>,
    index: usize,
    column: usize,
    facts: &'f [Fact<'e>],
    before: &Interval,
    total: f64,
) -> Option<(&'f Fact<'e>, Part)> {
    let of = |accepts: fn(&Asks<'_>) -> bool| {
        facts.iter().find(|fact| fact.column == column && accepts(&fact.says))
    };
    // Of a value that is known before the statement runs, samples tell how many rows there are.
    let fact = of(|asks| matches!(asks, Asks::Values(Says::Equal(value, _)) if value.as_const().is_some()))
        .or_else(|| of(|asks| matches!(asks, Asks::Values(Says::Equal(..)))))
        .or_else(|| of(|asks| matches!(asks, Asks::Values(Says::In(_)))))
        .or_else(|| of(|asks| matches!(asks, Asks::Among(..))))?;
    let part = match fact.says {
        Asks::Values(Says::Equal(expr, null_safe)) => Part::One(Equal { expr: expr.clone(), null_safe }),
        Asks::Values(Says::In(list)) => Part::Any(list.to_vec()),
        Asks::Among(subquery, member, cost) => {
            let most = worth_looking_up(wanted, index, before.parts.len(), total);
            Part::Among(Among { subquery: Arc::new(subquery.clone()), member, most, cost })
        }
        Asks::Values(_) => return None,
    };
    Some((fact, part))
}

/// Of how many columns of a subquery a piece has the whole values.
fn asked_of(wanted: &Wanted<'_>, index: usize, interval: &Interval, subquery: &Subquery) -> usize {
    let same = |part: &Part| matches!(part, Part::Among(among) if among.subquery.id == subquery.id);
    let parts = interval.parts.iter().zip(&wanted.table.indexes()[index].parts);
    parts.filter(|(part, of)| same(part) && of.prefix.is_none()).count()
}

/// How many values of the part behind `before` others are worth looking up one by one: more cost more than what the parts before
/// leave, or the table.
fn worth_looking_up(wanted: &Wanted<'_>, index: usize, before: usize, total: f64) -> usize {
    let in_place = wanted.table.indexes()[index].clustered || wanted.covered(index);
    let locks = |rows: f64| if wanted.locks { rows * cost::LOCK } else { 0.0 };
    let all = if before == 0 {
        cost::scan(total) + locks(total)
    } else {
        let rows = wanted.known.rows_of_value(wanted.table, index, before, total);
        cost::ranges(1.0, rows, in_place) + locks(rows)
    };
    let rows = wanted.known.rows_of_value(wanted.table, index, before + 1, total);
    let definition = &wanted.table.indexes()[index];
    let unique = definition.unique() && before + 1 == definition.parts.len();
    let each = pieces_cost(1.0, rows, in_place, unique) + locks(rows);
    ((all + cost::GROWTH) / each) as usize
}

/// So many pieces of an index; `unique`: each is a complete key.
fn pieces_cost(pieces: f64, rows: f64, in_place: bool, unique: bool) -> f64 {
    if unique { pieces * cost::point(in_place) } else { cost::ranges(pieces, rows, in_place) }
}

/// Finds the bounds of the part behind the leading ones: the first lower and the first upper bound of its column, others
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
    for fact in facts.iter().filter(|fact| fact.column == column) {
        let Asks::Values(said) = fact.says else { continue };
        match said {
            Says::Between(from, to) if low.is_none() && high.is_none() => {
                (low, high) = (bound(from, true), bound(to, true));
            }
            Says::Low(expr, inclusive) if low.is_none() => low = bound(expr, inclusive),
            Says::High(expr, inclusive) if high.is_none() => high = bound(expr, inclusive),
            _ => continue,
        }
        used.push(fact.conjunct);
        if exact {
            absorbed.push(fact.conjunct);
        }
    }
    if low.is_some() || high.is_some() {
        return Tail::Between { low, high };
    }
    for fact in facts.iter().filter(|fact| fact.column == column) {
        if let Asks::Values(Says::Like(pattern, escape)) = fact.says {
            used.push(fact.conjunct);
            return Tail::Begins { pattern: pattern.clone(), escape };
        }
    }
    Tail::Whole
}
