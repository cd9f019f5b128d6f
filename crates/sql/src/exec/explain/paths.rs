//! Access paths as EXPLAIN has them: in words, and in the columns of its table.

use super::describe::filter;
use crate::catalog::{IndexPart, Table};
use crate::expr::outline::{Actual, Does, Estimate, Index, Line, Outliner, Table as Described};
use crate::expr::print::{self, Names};
use crate::expr::profile::Measure;
use crate::expr::subquery::Subquery;
use crate::expr::{Expr, Kind};
use crate::plan::cost::filtered;
use crate::plan::physical::path::{
    Access, Equal, IndexRanges, Interval, Part, TableAccess, Tail, UnionBranch,
};
use crate::plan::rules::needed::Needed;
use omnibus_value::{ColumnKind, Value};
use std::fmt::Write;
use std::sync::Arc;

/// A stored table that a plan reads.
#[derive(Clone, Copy)]
pub(super) struct Read<'p> {
    pub table: &'p Arc<Table>,
    pub alias: &'p str,
    pub slot: u16,
    pub path: &'p TableAccess,
}

impl Read<'_> {
    /// Its line, and that of its conditions; `needed` is what the block reads.
    pub(super) fn line(self, needed: &Needed, actual: Actual, out: &mut Outliner<'_>) -> Line {
        let Read { table, path, .. } = self;
        let described = self.described(needed, out);
        // What a key is equal to may be a subquery.
        for e in &path.implied {
            let named = set_of(e).map(|set| out.subquery(set));
            drop(named.unwrap_or_else(|| print::expr(e, out)));
        }
        let expected = Some((path.cost, path.expected(table)));
        let actual_of_path = match actual {
            // Rows that came before the filter.
            Actual::Did(measure) if !path.filter.is_empty() => {
                Actual::Did(Measure { rows: measure.examined, ..measure })
            }
            actual => actual,
        };
        let does = Does::Table(Box::new(described));
        let read = Line { does, expected, actual: actual_of_path, ..Line::default() };
        let read = out.with_inner(read, true);
        match path.filter.is_empty() {
            true => read,
            false => filter(read, Does::Filter, &path.filter, actual, out),
        }
    }

    fn described(self, needed: &Needed, out: &Outliner<'_>) -> Described {
        let Read { table, alias, slot, path } = self;
        let name = |at: &usize| table.indexes()[*at].name.to_string();
        let united = match &path.access {
            Access::Union(branches) => branches.iter().map(|b| name(&b.ranges.index)).collect(),
            _ => Vec::new(),
        };
        let read = needed.of(slot);
        let columns = table.columns().iter().enumerate();
        let used = columns.filter(|(at, _)| read.is_none_or(|read| read.contains(&(*at as u16))));
        let bytes = |column: &crate::catalog::Column| f64::from(column.ty.length.min(1 << 16));
        Described {
            alias: alias.to_owned(),
            path: self.words(out),
            access: access_type(table, path),
            possible: path.possible.iter().map(name).collect(),
            index: index_of(table, path, out),
            united,
            estimate: Estimate {
                rows: path.expected(table),
                filtered: filtered(path, table, slot),
                cost: path.cost,
            },
            covered: path.covered,
            reverse: path.reverse,
            implied: !path.implied.is_empty(),
            columns: used.map(|(_, column)| column.shown().to_owned()).collect(),
            row_bytes: table.columns().iter().map(bytes).sum(),
        }
    }

    /// The path in words.
    fn words(&self, out: &Outliner<'_>) -> String {
        let Read { table, alias, path, .. } = *self;
        let index = |at: usize| &*table.indexes()[at].name;
        let backwards = if path.reverse { " (reverse)" } else { "" };
        let capital = |text: &str| match path.covered {
            true => format!("Covering {text}"),
            false => format!("{}{}", text[..1].to_uppercase(), &text[1..]),
        };
        match &path.access {
            Access::Full { index: 0 } if !path.reverse => format!("Table scan on {alias}"),
            Access::Full { index: at } => {
                format!("{} on {alias} using {}{backwards}", capital("index scan"), index(*at))
            }
            Access::Point { index: at, key } => {
                let columns =
                    table.indexes()[*at].parts.iter().map(|part| table.columns()[part.column].shown());
                let equal = columns.zip(key).map(|(name, e)| format!("{name}={}", print::expr(e, out)));
                let covering = if path.covered { "covering " } else { "" };
                let key = equal.collect::<Vec<_>>().join(", ");
                format!("Single-row {covering}index lookup on {alias} using {} ({key})", index(*at))
            }
            Access::Ranges(ranges) => match &ranges.intervals[..] {
                [only] if only.is_equality() => {
                    let key = interval_words(table, ranges.index, only, (", ", "="), out);
                    format!(
                        "{} on {alias} using {} ({key}){backwards}",
                        capital("index lookup"),
                        index(ranges.index)
                    )
                }
                _ => {
                    let over = ranges_words(table, ranges, out);
                    let name = index(ranges.index);
                    format!("{} on {alias} using {name} over {over}{backwards}", capital("index range scan"))
                }
            },
            Access::Union(branches) => {
                let one = |ranges: &IndexRanges| {
                    format!("{} over {}", index(ranges.index), ranges_words(table, ranges, out))
                };
                let all: Vec<String> = branches.iter().map(|branch| one(&branch.ranges)).collect();
                format!("Index merge of {alias} using {}", all.join(", "))
            }
        }
    }
}

/// The ranges, the first few of many.
fn ranges_words(table: &Table, ranges: &IndexRanges, out: &Outliner<'_>) -> String {
    let shown = ranges.intervals.iter().take(3);
    let texts = shown.map(|interval| {
        format!("({})", interval_words(table, ranges.index, interval, (" AND ", " = "), out))
    });
    let mut text = texts.collect::<Vec<_>>().join(" OR ");
    if let more @ 1.. = ranges.intervals.len().saturating_sub(3) {
        let _ = write!(text, " OR ({more} more)");
    }
    text
}

fn interval_words(
    table: &Table,
    index: usize,
    interval: &Interval,
    (and, equals): (&str, &str),
    out: &Outliner<'_>,
) -> String {
    let text = |e: &Expr| print::expr(e, out);
    let mut columns = table.indexes()[index].parts.iter().map(|part| table.columns()[part.column].shown());
    let mut all: Vec<String> = Vec::new();
    for part in &interval.parts {
        let Some(name) = columns.next() else { break };
        all.push(match part {
            Part::One(equal) if matches!(equal.expr.as_const(), Some(Value::Null)) => {
                format!("{name} is null")
            }
            Part::One(equal) => format!("{name}{equals}{}", text(&equal.expr)),
            Part::Any(any) => format!("{name} in ({})", print::list(any, ",", out)),
            Part::Among(among) => format!("{name} in {}", out.subquery(&among.subquery)),
        });
    }
    let Some(name) = columns.next() else { return all.join(and) };
    match &interval.tail {
        Tail::Whole => {}
        Tail::Between { low, high } => {
            let less = |inclusive: bool| if inclusive { "<=" } else { "<" };
            let low =
                low.as_ref().map_or(String::new(), |b| format!("{} {} ", text(&b.expr), less(b.inclusive)));
            let high =
                high.as_ref().map_or(String::new(), |b| format!(" {} {}", less(b.inclusive), text(&b.expr)));
            all.push(format!("{low}{name}{high}"));
        }
        Tail::Begins { pattern, .. } => all.push(format!("{name} like {}", text(pattern))),
    }
    all.join(and)
}

/// Bytes that a key part takes, as MySQL counts them.
fn part_length(table: &Table, part: &IndexPart) -> u32 {
    let column = &table.columns()[part.column];
    let ty = &column.ty;
    let width = crate::expr::charset::max_width(ty.collation);
    let length = part.prefix.unwrap_or(ty.length);
    let bytes = match ty.kind {
        ColumnKind::TinyInt | ColumnKind::Year => 1,
        ColumnKind::SmallInt => 2,
        ColumnKind::MediumInt | ColumnKind::Date => 3,
        ColumnKind::Int | ColumnKind::Float => 4,
        ColumnKind::BigInt | ColumnKind::Double => 8,
        ColumnKind::Time => 3 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::Timestamp => 4 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::DateTime => 5 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::Decimal => ty.length.div_ceil(2),
        ColumnKind::Uuid | ColumnKind::Inet6 => 16,
        ColumnKind::Inet4 => 4,
        ColumnKind::Char | ColumnKind::Binary => length * width,
        _ => length * width + 2,
    };
    bytes + u32::from(column.nullable)
}

fn access_type(table: &Table, path: &TableAccess) -> &'static str {
    match &path.access {
        Access::Full { index: 0 } if !path.reverse => "ALL",
        Access::Full { .. } => "index",
        Access::Point { key, .. } if key.iter().all(Expr::is_fixed) => "const",
        Access::Point { .. } => "eq_ref",
        Access::Ranges(IndexRanges { index, intervals }) => match &intervals[..] {
            [only] if only.is_equality() => {
                let null_safe = |e: &Equal| e.null_safe && !matches!(e.expr.as_const(), Some(Value::Null));
                let nulls = only.parts.iter().any(|part| matches!(part, Part::One(e) if null_safe(e)));
                let whole = only.parts.len() == table.indexes()[*index].parts.len();
                if nulls && whole { "ref_or_null" } else { "ref" }
            }
            _ => "range",
        },
        Access::Union(_) => "index_merge",
    }
}

/// The index by which a table is read; `None` if it is read as it lies.
fn index_of(table: &Table, path: &TableAccess, out: &Outliner<'_>) -> Option<Index> {
    let index = &table.indexes()[path.index()];
    if index.parts.is_empty() {
        return None;
    }
    let mut values: Vec<&Expr> = Vec::new();
    let used = match &path.access {
        Access::Full { index: 0 } if !path.reverse => return None,
        Access::Full { .. } => usize::MAX,
        Access::Point { key, .. } => {
            values.extend(key);
            key.len()
        }
        Access::Ranges(ranges) => {
            if let [only] = &ranges.intervals[..]
                && only.is_equality()
            {
                only.values(&mut |e| values.push(e));
            }
            ranges.intervals.iter().map(used_parts).max().unwrap_or(0)
        }
        Access::Union(branches) => return Some(index_of_union(table, branches)),
    };
    let refs = values.iter().map(|e| match &e.kind {
        Kind::Column { slot, column, .. } => out.full_name(*slot, *column),
        _ => "const".to_owned(),
    });
    let length: u32 = index.parts.iter().take(used).map(|part| part_length(table, part)).sum();
    let parts: Vec<usize> = index.parts.iter().take(used).map(|part| part.column).collect();
    let (names, lengths) = (vec![index.name.to_string()], vec![length.to_string()]);
    let parts = parts.into_iter().map(|part| table.columns()[part].shown().to_owned()).collect();
    Some(Index { names, lengths, parts, refs: refs.collect() })
}

/// One key a branch.
fn index_of_union(table: &Table, branches: &[UnionBranch]) -> Index {
    let mut key = Index::default();
    for UnionBranch { ranges, .. } in branches {
        let index = &table.indexes()[ranges.index];
        let used = ranges.intervals.iter().map(used_parts).max().unwrap_or(0);
        let length: u32 = index.parts.iter().take(used).map(|part| part_length(table, part)).sum();
        let parts = index.parts.iter().take(used).map(|part| part.column);
        key.parts.extend(parts.map(|part| table.columns()[part].shown().to_owned()));
        key.names.push(index.name.to_string());
        key.lengths.push(length.to_string());
    }
    key
}

/// How many parts of an index an interval uses.
fn used_parts(interval: &Interval) -> usize {
    interval.parts.len() + usize::from(!matches!(interval.tail, Tail::Whole))
}

/// The rows as which an EXISTS can be asked.
fn set_of(e: &Expr) -> Option<&Subquery> {
    match &e.kind {
        Kind::Subquery(subquery) => subquery.set.as_ref().map(|set| &set.list),
        _ => None,
    }
}
