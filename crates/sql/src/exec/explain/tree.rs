//! EXPLAIN FORMAT=TREE and EXPLAIN ANALYZE: operators, one a line, each with those that it takes its rows from below, then the subqueries
//! that it asks.

use crate::expr::outline::{Actual, Does, Key, Line};
use std::fmt::Write;
use std::time::Duration;

/// The text of a statement's operators.
pub(super) fn text(line: &Line) -> String {
    let mut out = String::new();
    write(line, line.actual, 0, &mut out);
    out
}

/// Three digits that count, as far as there are any before the point.
fn digits(n: f64) -> String {
    match n {
        _ if n == 0.0 => "0".into(),
        _ if n >= 100.0 => format!("{n:.0}"),
        _ if n >= 10.0 => format!("{n:.1}").trim_end_matches(".0").into(),
        _ if n >= 1.0 => format!("{n:.2}").trim_end_matches('0').trim_end_matches('.').into(),
        _ => {
            let places = (-n.log10().floor()) as usize + 2;
            format!("{n:.places$}").trim_end_matches('0').into()
        }
    }
}

fn write_line(text: &str, expected: Option<(f64, f64)>, actual: Actual, depth: usize, out: &mut String) {
    let _ = write!(out, "{}-> {text}", " ".repeat(4 * depth));
    if let Some((cost, rows)) = expected {
        let _ = write!(out, "  (cost={} rows={})", digits(cost), digits(rows));
    }
    match actual {
        Actual::Unknown => {}
        Actual::Never => out.push_str(" (never executed)"),
        Actual::Did(measure) => {
            let loops = measure.loops.max(1) as f64;
            let ms = |time: Duration| digits(time.as_secs_f64() * 1000.0 / loops);
            let (first, total) = (ms(measure.first), ms(measure.total));
            let rows = digits(measure.rows as f64 / loops);
            let _ = write!(out, " (actual time={first}..{total} rows={rows} loops={})", measure.loops);
        }
    }
    out.push('\n');
}

/// Writes an operator; a query is a line of its own only where it is a subquery.
fn write(line: &Line, actual: Actual, depth: usize, out: &mut String) {
    let below = |depth: usize, out: &mut String| {
        line.below.iter().for_each(|below| write(below, below.actual, depth, out));
    };
    let plain = |text: &str, depth: usize, out: &mut String| {
        write_line(text, None, Actual::Unknown, depth, out);
    };
    match &line.does {
        // What ran is the query.
        Does::Select(_) => return line.below.iter().for_each(|below| write(below, actual, depth, out)),
        Does::Union(union) if union.name.is_none() => return below(depth, out),
        Does::Window(keys) if !keys.is_empty() => {
            write_line("Window aggregate", line.expected, actual, depth, out);
            plain(&format!("Sort: {}", list(keys)), depth + 1, out);
            below(depth + 2, out);
        }
        Does::Derived(_) => {
            write_line(&text_of(&line.does), line.expected, actual, depth, out);
            let elsewhere = line.below.iter().all(|query| query.below.is_empty());
            let text = if elsewhere { "Materialize (query plan printed elsewhere)" } else { "Materialize" };
            plain(text, depth + 1, out);
            below(depth + 2, out);
        }
        Does::Recursive(seeds) => {
            write_line("Recursive rows", line.expected, actual, depth, out);
            let (seeds, steps) = line.below.split_at(*seeds);
            seeds.iter().for_each(|seed| write(seed, seed.actual, depth + 1, out));
            plain("Repeat until convergence", depth + 1, out);
            steps.iter().for_each(|step| write(step, step.actual, depth + 2, out));
        }
        Does::HashJoin(_) => {
            let name = if line.below.len() > 1 { "Inner hash join" } else { "Hash lookup" };
            let text = format!("{name} {}", text_of(&line.does));
            write_line(&text, line.expected, actual, depth, out);
            for (at, below) in line.below.iter().enumerate() {
                if at > 0 {
                    plain("Hash", depth + 1, out);
                }
                write(below, below.actual, depth + 1 + at, out);
            }
        }
        does => {
            write_line(&text_of(does), line.expected, actual, depth, out);
            below(depth + 1, out);
        }
    }
    for inner in &line.inner {
        let Does::Select(select) = &inner.query.does else { continue };
        let place = if inner.in_condition { "condition" } else { "projection" };
        let how = if inner.dependent { "dependent" } else { "run only once" };
        plain(&format!("Select #{} (subquery in {place}; {how})", select.id), depth + 1, out);
        write(&inner.query, inner.query.actual, depth + 2, out);
    }
}

fn list(keys: &[Key]) -> String {
    let key = |key: &Key| if key.descending { format!("{} DESC", key.text) } else { key.text.clone() };
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// All of some conditions.
pub(super) fn all_of(conditions: &[String]) -> String {
    match conditions {
        [only] => only.clone(),
        all => format!("({})", all.join(" and ")),
    }
}

fn text_of(does: &Does) -> String {
    match does {
        Does::Nothing => "Rows fetched before execution".into(),
        Does::Limit(count, None) => format!("Limit: {count} row(s)"),
        Does::Limit(count, Some(offset)) => format!("Limit/Offset: {count}/{offset} row(s)"),
        Does::Sort { keys, .. } if keys.is_empty() => "Sort".into(),
        Does::Sort { keys, most: None } => format!("Sort: {}", list(keys)),
        Does::Sort { keys, most: Some(most) } => {
            format!("Sort: {}, limit input to {most} row(s) per chunk", list(keys))
        }
        Does::Distinct => "Temporary table with deduplication".into(),
        Does::Window(_) => "Window aggregate".into(),
        Does::Having(condition) => format!("Filter: {condition}"),
        Does::If(conditions) | Does::Filter(conditions) => format!("Filter: {}", all_of(conditions)),
        Does::Group(group) => {
            let list = group.aggregates.join(", ");
            match (group.by, group.stream) {
                (false, _) => format!("Aggregate: {list}"),
                (true, true) if list.is_empty() => "Group (no aggregates)".into(),
                (true, true) => format!("Group aggregate: {list}"),
                (true, false) if list.is_empty() => "Temporary table with deduplication".into(),
                (true, false) => format!("Aggregate using temporary table: {list}"),
            }
        }
        Does::Join => "Nested loop inner join".into(),
        Does::LeftJoin(on) if on.is_empty() => "Nested loop left join".into(),
        Does::LeftJoin(on) => format!("Nested loop left join, on {}", all_of(on)),
        Does::HashJoin(join) => {
            let on = if join.on.is_empty() { "no condition".into() } else { join.on.join(", ") };
            let extra = match join.filter.is_empty() {
                true => String::new(),
                false => format!(", extra conditions: {}", all_of(&join.filter)),
            };
            format!("({on}){extra}")
        }
        Does::Table(table) => table.path.clone(),
        Does::Derived(alias) | Does::Computed(alias) => format!("Table scan on {alias}"),
        Does::Recursion(alias) => format!("Scan new records on {alias}"),
        Does::Change(tables) => {
            let change = |(does, name): &(&str, String)| match *does {
                "DELETE" => format!("Delete from {name} (buffered)"),
                "UPDATE" => format!("Update {name} (buffered)"),
                "REPLACE" => format!("Replace into {name}"),
                _ => format!("Insert into {name}"),
            };
            tables.iter().map(change).collect::<Vec<_>>().join(", ")
        }
        Does::Union(union) => union.name.unwrap_or_default().into(),
        Does::Select(_) | Does::Recursive(_) => String::new(),
    }
}
