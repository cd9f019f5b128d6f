//! Tables about things that we do not have: clients ask, and get no rows.

use super::computed::{Def, Reader, Ty};
use crate::error::ExecResult;
use omnibus_value::Value;

fn none(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(Vec::new())
}

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "COLUMN_STATISTICS",
        columns: &[
            ("SCHEMA_NAME", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("COLUMN_NAME", Ty::Text(64)),
            ("HISTOGRAM", Ty::Long),
        ],
        rows: none,
    },
    Def {
        schema: "information_schema",
        name: "EVENTS",
        columns: &[
            ("EVENT_SCHEMA", Ty::Name),
            ("EVENT_NAME", Ty::Text(64)),
            ("DEFINER", Ty::Text(288)),
            ("TIME_ZONE", Ty::Text(64)),
            ("EVENT_TYPE", Ty::Text(9)),
            ("EXECUTE_AT", Ty::Time),
            ("INTERVAL_VALUE", Ty::Text(256)),
            ("INTERVAL_FIELD", Ty::Text(18)),
            ("STARTS", Ty::Time),
            ("ENDS", Ty::Time),
            ("STATUS", Ty::Text(21)),
            ("ORIGINATOR", Ty::UInt),
            ("CHARACTER_SET_CLIENT", Ty::Text(64)),
            ("COLLATION_CONNECTION", Ty::Text(64)),
            ("DATABASE_COLLATION", Ty::Text(64)),
        ],
        rows: none,
    },
    Def {
        schema: "information_schema",
        name: "FILES",
        columns: &[
            ("FILE_ID", Ty::Int),
            ("FILE_NAME", Ty::Long),
            ("FILE_TYPE", Ty::Text(256)),
            ("TABLESPACE_NAME", Ty::Text(268)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("LOGFILE_GROUP_NAME", Ty::Text(256)),
            ("LOGFILE_GROUP_NUMBER", Ty::Int),
            ("ENGINE", Ty::Text(64)),
            ("FREE_EXTENTS", Ty::Int),
            ("TOTAL_EXTENTS", Ty::Int),
            ("EXTENT_SIZE", Ty::Int),
            ("INITIAL_SIZE", Ty::Int),
            ("MAXIMUM_SIZE", Ty::Int),
            ("EXTRA", Ty::Text(256)),
        ],
        rows: none,
    },
    Def {
        schema: "information_schema",
        name: "PARTITIONS",
        columns: &[
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("PARTITION_NAME", Ty::Text(64)),
            ("SUBPARTITION_NAME", Ty::Text(64)),
            ("PARTITION_ORDINAL_POSITION", Ty::UInt),
            ("PARTITION_METHOD", Ty::Text(13)),
            ("PARTITION_EXPRESSION", Ty::Text(2048)),
            ("PARTITION_DESCRIPTION", Ty::Long),
            ("TABLE_ROWS", Ty::UInt),
        ],
        rows: none,
    },
];
