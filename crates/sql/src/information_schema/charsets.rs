//! CHARACTER_SETS, COLLATIONS, COLLATION_CHARACTER_SET_APPLICABILITY.

use super::computed::{Def, Reader, Ty, text};
use crate::catalog::charset;
use crate::error::ExecResult;
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::collation::{self, Charset};

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "CHARACTER_SETS",
        columns: &[
            ("CHARACTER_SET_NAME", Ty::Text(64)),
            ("DEFAULT_COLLATE_NAME", Ty::Text(64)),
            ("DESCRIPTION", Ty::Text(2048)),
            ("MAXLEN", Ty::UInt),
        ],
        rows: character_sets,
    },
    Def {
        schema: "information_schema",
        name: "COLLATIONS",
        columns: &[
            ("COLLATION_NAME", Ty::Text(64)),
            ("CHARACTER_SET_NAME", Ty::Text(64)),
            ("ID", Ty::UInt),
            ("IS_DEFAULT", Ty::Text(3)),
            ("IS_COMPILED", Ty::Text(3)),
            ("SORTLEN", Ty::UInt),
            ("PAD_ATTRIBUTE", Ty::Text(9)),
        ],
        rows: collations,
    },
    Def {
        schema: "information_schema",
        name: "COLLATION_CHARACTER_SET_APPLICABILITY",
        columns: &[("COLLATION_NAME", Ty::Text(64)), ("CHARACTER_SET_NAME", Ty::Text(64))],
        rows: applicability,
    },
];

fn character_sets(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let row = |set: Charset| {
        let default = charset::default_collation(set.name()).unwrap_or(collation::BINARY_ID);
        vec![
            text(set.name()),
            text(charset::collation_name(default)),
            text(set.description()),
            Value::UInt(u64::from(charset::max_len(default))),
        ]
    };
    Ok(Charset::ALL.into_iter().map(row).collect())
}

fn by_name() -> Vec<&'static collation::Collation> {
    let mut list: Vec<_> = collation::all().collect();
    list.sort_by_key(|collation| collation.name);
    list
}

fn collations(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let row = |collation: &collation::Collation| {
        let default = charset::default_collation(collation.charset.name()) == Some(collation.id);
        vec![
            text(collation.name),
            text(collation.charset.name()),
            Value::UInt(u64::from(collation.id)),
            Value::Bytes(Bytes::from_static(if default { b"Yes" } else { b"" })),
            text("Yes"),
            Value::UInt(u64::from(collation.pad_space)),
            text(if collation.pad_space { "PAD SPACE" } else { "NO PAD" }),
        ]
    };
    Ok(by_name().into_iter().map(row).collect())
}

fn applicability(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(by_name().into_iter().map(|c| vec![text(c.name), text(c.charset.name())]).collect())
}
