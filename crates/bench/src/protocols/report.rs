//! The protocols' table, and whether the shape of what was published shows in it. Pure functions over the samples; what
//! is said about the shape is computed from them.

use super::load::Sample;
use crate::device::Device;
use omnibus_commit::CommitProtocol;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The result of one protocol with a number of connections: the round with the median rate, and the spread of the
/// rounds.
pub(super) struct Row {
    protocol: CommitProtocol,
    connections: usize,
    sample: Sample,
    slowest: f64,
    fastest: f64,
}

impl Row {
    pub(super) fn new(protocol: CommitProtocol, connections: usize, mut rounds: Vec<Sample>) -> Row {
        rounds.sort_by(|a, b| a.per_second().total_cmp(&b.per_second()));
        let end = |sample: Option<&Sample>| sample.map_or(0.0, Sample::per_second);
        let (slowest, fastest) = (end(rounds.first()), end(rounds.last()));
        let sample = rounds.get(rounds.len() / 2).cloned().unwrap_or_default();
        Row { protocol, connections, sample, slowest, fastest }
    }

    fn syncs(&self) -> f64 {
        self.sample.per_commit(self.sample.log_syncs + self.sample.redo_syncs)
    }

    fn cells(&self) -> Vec<String> {
        let sample = &self.sample;
        let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        vec![
            self.protocol.name().into(),
            self.connections.to_string(),
            format!("{:.0}", sample.per_second()),
            format!("{:.0}-{:.0}", self.slowest, self.fastest),
            format!("{:.3}", self.syncs()),
            format!("{:.3}", sample.per_commit(sample.redo_syncs)),
            format!("{:.1}", sample.group_size()),
            ms(sample.p50),
            ms(sample.p99),
            format!("{:.3}", sample.amplification()),
            format!("{:.2}", sample.padding()),
            sample.disk_bytes.map_or("-".into(), |bytes| format!("{:.0}", sample.per_commit(bytes))),
        ]
    }
}

const HEAD: [&str; 12] = [
    "protocol",
    "connections",
    "commits/s",
    "min-max",
    "syncs/commit",
    "of them redo",
    "group",
    "p50 ms",
    "p99 ms",
    "log x",
    "padding x",
    "disk B/commit",
];

/// Lines of equal columns, numbers to the right; also a Markdown table.
pub(crate) fn aligned(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].len(), 4]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (column, (cell, width)) in cells.zip(&widths).enumerate() {
            let _ =
                if column == 0 { write!(out, "| {cell:<width$} ") } else { write!(out, "| {cell:>width$} ") };
        }
        out.push_str("|\n");
    };
    line(&mut head.iter().copied());
    let rules: Vec<String> = widths
        .iter()
        .enumerate()
        .map(
            |(column, width)| {
                if column == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
            },
        )
        .collect();
    line(&mut rules.iter().map(String::as_str));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    out
}

/// Gain of `group-redo` over `group` that Bug #73202 published, by threads: 2740 to 3000 commits/s and so on.
const REDO_GAINS: [(usize, f64); 7] = [
    (8, 3000.0 / 2740.0),
    (16, 5400.0 / 4350.0),
    (32, 9800.0 / 7300.0),
    (64, 15800.0 / 11700.0),
    (128, 24000.0 / 18800.0),
    (256, 30000.0 / 24000.0),
    (512, 39000.0 / 30000.0),
];

/// The gain of group commit in stages over the serialized commit (WL#5223).
const STAGES: (f64, f64) = (2.0, 4.0);

/// Commits per second of one protocol over another's, for each number of connections.
fn ratios(rows: &[Row], upper: CommitProtocol, lower: CommitProtocol) -> Vec<(usize, f64)> {
    let of = |protocol| rows.iter().filter(move |row| row.protocol == protocol);
    let pair = |row: &Row| {
        let below = of(lower).find(|other| other.connections == row.connections)?;
        Some((row.connections, row.sample.per_second() / below.sample.per_second().max(1e-9)))
    };
    of(upper).filter_map(pair).collect()
}

fn percent(ratio: f64) -> String {
    format!("{:+.0} %", (ratio - 1.0) * 100.0)
}

/// Returns the number of consecutive redo syncs that a client waits for, which explains a gain.
fn redo_syncs(rows: &[Row], connections: usize) -> f64 {
    let mut group = rows.iter().filter(|row| row.protocol == CommitProtocol::Group);
    let row = group.find(|row| row.connections == connections);
    row.map_or(0.0, |row| row.sample.per_commit(row.sample.redo_syncs))
}

fn redo_verdict(rows: &[Row]) -> Option<String> {
    let gains: Vec<_> = ratios(rows, CommitProtocol::GroupRedo, CommitProtocol::Group)
        .into_iter()
        .filter(|(connections, _)| *connections >= 8)
        .collect();
    let &(at, most) = gains.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let each: Vec<String> = gains
        .iter()
        .map(|(connections, gain)| {
            let published = REDO_GAINS.iter().find(|(threads, _)| threads == connections);
            let published = published.map_or(String::new(), |(_, p)| format!(" (published {})", percent(*p)));
            format!("{connections}: {}{published}", percent(*gain))
        })
        .collect();
    let least = gains.iter().map(|gain| gain.1).fold(f64::INFINITY, f64::min);
    let syncs = redo_syncs(rows, at);
    let why = if least < 1.05 {
        format!(
            "not throughout: at the best place, {at} connections, group made {syncs:.2} redo syncs per commit"
        )
    } else if most > 1.5 {
        format!(
            "reproduced, and more: at {at} connections group made {syncs:.2} redo syncs per commit, one after the other"
        )
    } else {
        "reproduced".into()
    };
    Some(format!("group-redo over group (Bug #73202, +9 % to +35 %): {}; {why}.", each.join(", ")))
}

fn stages_verdict(rows: &[Row]) -> Option<String> {
    let ratios = ratios(rows, CommitProtocol::Group, CommitProtocol::Serialized);
    let &(connections, best) = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let group = redo_syncs(rows, connections);
    let why = if best < STAGES.0 {
        format!("not reproduced: group still makes {group:.2} redo syncs per commit, each waited for")
    } else if best > STAGES.1 {
        format!(
            "reproduced, and more: serialized makes its three syncs alone, group {group:.2} for redo and shares the log's"
        )
    } else {
        "reproduced".into()
    };
    Some(format!(
        "group over serialized (WL#5223, 2 to 4 times): {best:.1} times at {connections} connections; {why}."
    ))
}

fn one_sync_verdict(rows: &[Row]) -> Option<String> {
    let over = |other| ratios(rows, CommitProtocol::OneSync, other);
    let redo = over(CommitProtocol::GroupRedo);
    if redo.is_empty() {
        return None;
    }
    let all = redo.iter().chain(&over(CommitProtocol::Group)).all(|(_, ratio)| *ratio > 1.0);
    let list: Vec<String> =
        redo.iter().map(|(connections, ratio)| format!("{connections}: {ratio:.2}")).collect();
    let end = if all {
        "it is ahead of both group and group-redo everywhere"
    } else {
        "it is not ahead everywhere: see the table and the spread of its rounds"
    };
    Some(format!("one-sync over group-redo, times: {}; {end}.", list.join(", ")))
}

fn bytes_verdict(rows: &[Row]) -> Option<String> {
    let ours = rows.iter().filter(|row| row.protocol == CommitProtocol::OneSync);
    let worst = ours.max_by(|a, b| a.sample.amplification().total_cmp(&b.sample.amplification()))?;
    let factor = worst.sample.amplification();
    let word = if factor <= 1.15 { "within" } else { "above" };
    let padded = rows.iter().map(|row| row.sample.padding()).fold(0.0, f64::max);
    let padding = if padded >= 0.1 {
        format!(
            "; padding to block boundaries, which lets several writes be in flight on a slow device, comes to {padded:.1} times the \
             events at most (in the smallest groups)"
        )
    } else {
        String::new()
    };
    Some(format!("one-sync writes {factor:.3} times the events' own bytes to the log, {word} 1.15{padding}."))
}

/// Other work on the machine shows in rounds of the same that differ.
fn busy_verdict(rows: &[Row]) -> Option<String> {
    let apart = rows.iter().filter(|row| row.fastest > 2.0 * row.slowest).count();
    (apart > 0).then(|| {
        let all = rows.len();
        format!(
            "The rounds of {apart} of {all} lines lie more than a factor of two apart: the machine was busy with something \
             else, and ratios of these lines mean little."
        )
    })
}

fn verdicts(rows: &[Row]) -> Vec<String> {
    [
        stages_verdict(rows),
        redo_verdict(rows),
        one_sync_verdict(rows),
        bytes_verdict(rows),
        busy_verdict(rows),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(super) fn text(rows: &[Row], engine: &str, slow_us: u64, device: &Device) -> String {
    let syncs = match slow_us {
        0 => "syncs as the device does them".to_owned(),
        us => format!("every sync {us} us slower"),
    };
    let mut out = format!("{engine}, {syncs}. {}.\n\n", device.describe());
    out += &aligned(&HEAD, &rows.iter().map(Row::cells).collect::<Vec<_>>());
    out += "\nlog x: log bytes over the events' own (BEGIN to XID and a GTID event). padding x: padding over the same. \
            disk B/commit: all that the process gave the disk, also zero-filling ahead, blocks written again and tables; not \
            known with a redo log.\n\n";
    for verdict in verdicts(rows) {
        let _ = writeln!(out, "- {verdict}");
    }
    out.push('\n');
    out
}

pub(super) fn json(rows: &[Row], engine: &str, slow_us: u64, device: &Device) -> Value {
    let row = |row: &Row| {
        let sample = &row.sample;
        json!({
            "protocol": row.protocol.name(), "connections": row.connections,
            "commits_per_second": sample.per_second(), "min": row.slowest, "max": row.fastest,
            "syncs_per_commit": row.syncs(), "redo_syncs_per_commit": sample.per_commit(sample.redo_syncs),
            "group_size": sample.group_size(),
            "p50_us": sample.p50.as_secs_f64() * 1e6, "p99_us": sample.p99.as_secs_f64() * 1e6,
            "log_bytes_over_events": sample.amplification(), "padding_over_events": sample.padding(),
            "disk_bytes_per_commit": sample.disk_bytes.map(|bytes| sample.per_commit(bytes)),
        })
    };
    json!({
        "engine": engine, "slow_us": slow_us, "device": device.json(),
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "published": {
            "group_redo_over_group": REDO_GAINS.iter().map(|(n, gain)| json!([n, gain])).collect::<Vec<_>>(),
            "group_over_serialized": [STAGES.0, STAGES.1],
        },
        "shape": verdicts(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(protocol: CommitProtocol, connections: usize, rate: u64, redo: u64) -> Row {
        let sample = Sample {
            commits: rate,
            elapsed: Duration::from_secs(1),
            redo_syncs: redo,
            log_syncs: rate,
            groups: rate,
            own_bytes: 100 * rate,
            log_bytes: 104 * rate,
            log_growth: 104 * rate,
            ..Sample::default()
        };
        Row::new(protocol, connections, vec![sample])
    }

    #[test]
    fn the_round_with_the_median_rate_counts() {
        let round = |commits| Sample { commits, elapsed: Duration::from_secs(1), ..Sample::default() };
        let row = Row::new(CommitProtocol::None, 1, vec![round(900), round(100), round(300)]);
        assert_eq!((row.sample.commits, row.slowest, row.fastest), (300, 100.0, 900.0));
        assert!(
            verdicts(&[row]).join(" ").contains("1 of 1 lines"),
            "rounds that differ so much are mentioned"
        );
    }

    #[test]
    fn columns_line_up_and_make_a_markdown_table() {
        let text =
            aligned(&["name", "n"], &[vec!["a".into(), "12345".into()], vec!["longer".into(), "1".into()]]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "| ------ | ----: |");
        assert_eq!(lines[2], "| a      | 12345 |");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    }

    #[test]
    fn what_is_said_of_the_shape_follows_from_the_figures() {
        use CommitProtocol::{Group, GroupRedo, OneSync, Serialized};
        let good = [
            row(Serialized, 32, 1000, 2000),
            row(Group, 32, 3000, 3000),
            row(GroupRedo, 32, 3900, 200),
            row(OneSync, 32, 6000, 0),
        ];
        let said = verdicts(&good).join("\n");
        assert!(said.contains("3.0 times at 32 connections; reproduced."), "{said}");
        assert!(said.contains("32: +30 % (published +34 %); reproduced."), "{said}");
        assert!(
            said.contains("ahead of both") && said.contains("1.040 times") && said.contains("within 1.15"),
            "{said}"
        );
        let bad = [
            row(Serialized, 32, 1000, 2000),
            row(Group, 32, 1500, 300),
            row(GroupRedo, 32, 1400, 200),
            row(OneSync, 32, 1300, 0),
        ];
        let said = verdicts(&bad).join("\n");
        assert!(said.contains("not reproduced: group still makes 0.20"), "{said}");
        assert!(said.contains("not throughout") && said.contains("not ahead everywhere"), "{said}");
    }
}
