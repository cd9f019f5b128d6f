//! The tables of `mysql` about time zones and statistics, as dump programs read them.
//!
//! Zones are the operating system's, which need no table here: who loads these into another server gives it the same zones. Statistics
//! are kept elsewhere (`catalog::statistics`), so their tables are empty. SHOW TABLES lists none of them.

use super::computed::{Def, Reader, Ty, text};
use crate::error::ExecResult;
use omnibus_value::Value;
use omnibus_value::temporal::{ZonePeriod, zone_names, zone_periods};

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "mysql",
        name: "column_stats",
        columns: &[
            ("db_name", Ty::Text(64)),
            ("table_name", Ty::Text(64)),
            ("column_name", Ty::Text(64)),
            ("min_value", Ty::Text(255)),
            ("max_value", Ty::Text(255)),
            ("nulls_ratio", Ty::Seconds),
            ("avg_length", Ty::Seconds),
            ("avg_frequency", Ty::Seconds),
            ("hist_size", Ty::UInt4),
            ("hist_type", Ty::Enum(&["SINGLE_PREC_HB", "DOUBLE_PREC_HB", "JSON_HB"])),
            ("histogram", Ty::Long),
        ],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "index_stats",
        columns: &[
            ("db_name", Ty::Text(64)),
            ("table_name", Ty::Text(64)),
            ("index_name", Ty::Text(64)),
            ("prefix_arity", Ty::UInt4),
            ("avg_frequency", Ty::Seconds),
        ],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "innodb_index_stats",
        columns: &[
            ("database_name", Ty::Text(64)),
            ("table_name", Ty::Text(199)),
            ("index_name", Ty::Text(64)),
            ("last_update", Ty::Stamp),
            ("stat_name", Ty::Text(64)),
            ("stat_value", Ty::UInt),
            ("sample_size", Ty::UInt),
            ("stat_description", Ty::Text(1024)),
        ],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "innodb_table_stats",
        columns: &[
            ("database_name", Ty::Text(64)),
            ("table_name", Ty::Text(199)),
            ("last_update", Ty::Stamp),
            ("n_rows", Ty::UInt),
            ("clustered_index_size", Ty::UInt),
            ("sum_of_other_index_sizes", Ty::UInt),
        ],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "table_stats",
        columns: &[("db_name", Ty::Text(64)), ("table_name", Ty::Text(64)), ("cardinality", Ty::UInt)],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "time_zone",
        columns: &[("Time_zone_id", Ty::UInt4), ("Use_leap_seconds", Ty::Enum(&["Y", "N"]))],
        rows: zones,
    },
    Def {
        schema: "mysql",
        name: "time_zone_leap_second",
        columns: &[("Transition_time", Ty::Int), ("Correction", Ty::Int4)],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "time_zone_name",
        columns: &[("Name", Ty::Char(64)), ("Time_zone_id", Ty::UInt4)],
        rows: names,
    },
    Def {
        schema: "mysql",
        name: "time_zone_transition",
        columns: &[
            ("Time_zone_id", Ty::UInt4),
            ("Transition_time", Ty::Int),
            ("Transition_type_id", Ty::UInt4),
        ],
        rows: transitions,
    },
    Def {
        schema: "mysql",
        name: "time_zone_transition_type",
        columns: &[
            ("Time_zone_id", Ty::UInt4),
            ("Transition_type_id", Ty::UInt4),
            ("Offset", Ty::Int4),
            ("Is_DST", Ty::UInt4),
            ("Abbreviation", Ty::Char(8)),
        ],
        rows: types,
    },
];

fn nothing(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(Vec::new())
}

/// The zones in the order of their names, and their numbers.
fn numbered() -> impl Iterator<Item = (Value, String)> {
    let mut names = zone_names();
    names.sort_unstable();
    (1..).map(Value::UInt).zip(names)
}

/// The kinds of periods that a zone has, by number, the first one first: what no change comes before has that.
fn kinds(periods: &[ZonePeriod]) -> Vec<(i32, bool, &str)> {
    let mut kinds = Vec::new();
    for period in periods {
        let kind = (period.offset, period.dst, period.short.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn zones(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(numbered().map(|(id, _)| vec![id, text("N")]).collect())
}

fn names(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(numbered().map(|(id, name)| vec![text(name), id]).collect())
}

fn types(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for (id, name) in numbered() {
        for (number, (offset, dst, short)) in (0..).zip(kinds(&zone_periods(&name))) {
            let (offset, dst) = (Value::Int(i64::from(offset)), Value::UInt(u64::from(dst)));
            rows.push(vec![id.clone(), Value::UInt(number), offset, dst, text(short)]);
        }
    }
    Ok(rows)
}

fn transitions(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for (id, name) in numbered() {
        let periods = zone_periods(&name);
        let kinds = kinds(&periods);
        for period in &periods {
            let Some(begins) = period.begins else { continue };
            let kind = (period.offset, period.dst, period.short.as_str());
            let number = (0..).zip(&kinds).find(|(_, known)| **known == kind).map_or(0, |(number, _)| number);
            rows.push(vec![id.clone(), Value::Int(begins), Value::UInt(number)]);
        }
    }
    Ok(rows)
}
