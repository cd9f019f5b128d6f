//! `performance_schema` of replication: what an administrator's tools ask of a replica, under MySQL's names and types.
//!
//! The rows are the server's (`SessionHost::replication`); enumerations come as text and become members here.

use super::computed::{Def, Reader, Ty};
use crate::error::ExecResult;
use omnibus_value::Value;

const CHANNEL: (&str, Ty) = ("CHANNEL_NAME", Ty::Char(64));
const YES_NO: Ty = Ty::Enum(&["YES", "NO"]);
const ON_OFF: Ty = Ty::Enum(&["ON", "OFF"]);
const ONE_ZERO: Ty = Ty::Enum(&["1", "0"]);
const GTID: Ty = Ty::Char(57);

const CONFIGURATION: &[(&str, Ty)] = &[
    CHANNEL,
    ("HOST", Ty::Char(255)),
    ("PORT", Ty::Int4),
    ("USER", Ty::Char(32)),
    ("NETWORK_INTERFACE", Ty::Char(60)),
    ("AUTO_POSITION", ONE_ZERO),
    ("SSL_ALLOWED", Ty::Enum(&["YES", "NO", "IGNORED"])),
    ("SSL_CA_FILE", Ty::Text(512)),
    ("SSL_CA_PATH", Ty::Text(512)),
    ("SSL_CERTIFICATE", Ty::Text(512)),
    ("SSL_CIPHER", Ty::Text(512)),
    ("SSL_KEY", Ty::Text(512)),
    ("SSL_VERIFY_SERVER_CERTIFICATE", YES_NO),
    ("SSL_CRL_FILE", Ty::Text(255)),
    ("SSL_CRL_PATH", Ty::Text(255)),
    ("CONNECTION_RETRY_INTERVAL", Ty::Int4),
    ("CONNECTION_RETRY_COUNT", Ty::UInt),
    ("HEARTBEAT_INTERVAL", Ty::Seconds),
    ("TLS_VERSION", Ty::Text(255)),
    ("PUBLIC_KEY_PATH", Ty::Text(512)),
    ("GET_PUBLIC_KEY", YES_NO),
    ("NETWORK_NAMESPACE", Ty::Text(64)),
    ("COMPRESSION_ALGORITHM", Ty::Char(64)),
    ("ZSTD_COMPRESSION_LEVEL", Ty::Int4),
    ("TLS_CIPHERSUITES", Ty::Long),
    ("SOURCE_CONNECTION_AUTO_FAILOVER", ONE_ZERO),
    ("GTID_ONLY", ONE_ZERO),
];

const CONNECTION_STATUS: &[(&str, Ty)] = &[
    CHANNEL,
    ("GROUP_NAME", Ty::Char(36)),
    ("SOURCE_UUID", Ty::Char(36)),
    ("THREAD_ID", Ty::UInt),
    ("SERVICE_STATE", Ty::Enum(&["ON", "OFF", "CONNECTING"])),
    ("COUNT_RECEIVED_HEARTBEATS", Ty::UInt),
    ("LAST_HEARTBEAT_TIMESTAMP", Ty::Stamp),
    ("RECEIVED_TRANSACTION_SET", Ty::Long),
    ("LAST_ERROR_NUMBER", Ty::Int4),
    ("LAST_ERROR_MESSAGE", Ty::Text(1024)),
    ("LAST_ERROR_TIMESTAMP", Ty::Stamp),
    ("LAST_QUEUED_TRANSACTION", GTID),
    ("LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_QUEUED_TRANSACTION_START_QUEUE_TIMESTAMP", Ty::Stamp),
    ("LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP", Ty::Stamp),
    ("QUEUEING_TRANSACTION", GTID),
    ("QUEUEING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("QUEUEING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP", Ty::Stamp),
];

const APPLIER_CONFIGURATION: &[(&str, Ty)] = &[
    CHANNEL,
    ("DESIRED_DELAY", Ty::Int4),
    ("PRIVILEGE_CHECKS_USER", Ty::Long),
    ("REQUIRE_ROW_FORMAT", YES_NO),
    ("REQUIRE_TABLE_PRIMARY_KEY_CHECK", Ty::Enum(&["STREAM", "ON", "OFF", "GENERATE"])),
    ("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE", Ty::Enum(&["OFF", "LOCAL", "UUID"])),
    ("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_VALUE", Ty::Long),
];

const APPLIER_STATUS: &[(&str, Ty)] = &[
    CHANNEL,
    ("SERVICE_STATE", ON_OFF),
    ("REMAINING_DELAY", Ty::UInt4),
    ("COUNT_TRANSACTIONS_RETRIES", Ty::UInt),
];

const COORDINATOR: &[(&str, Ty)] = &[
    CHANNEL,
    ("THREAD_ID", Ty::UInt),
    ("SERVICE_STATE", ON_OFF),
    ("LAST_ERROR_NUMBER", Ty::Int4),
    ("LAST_ERROR_MESSAGE", Ty::Text(1024)),
    ("LAST_ERROR_TIMESTAMP", Ty::Stamp),
    ("LAST_PROCESSED_TRANSACTION", GTID),
    ("LAST_PROCESSED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_PROCESSED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_PROCESSED_TRANSACTION_START_BUFFER_TIMESTAMP", Ty::Stamp),
    ("LAST_PROCESSED_TRANSACTION_END_BUFFER_TIMESTAMP", Ty::Stamp),
    ("PROCESSING_TRANSACTION", GTID),
    ("PROCESSING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("PROCESSING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("PROCESSING_TRANSACTION_START_BUFFER_TIMESTAMP", Ty::Stamp),
];

const WORKER: &[(&str, Ty)] = &[
    CHANNEL,
    ("WORKER_ID", Ty::UInt),
    ("THREAD_ID", Ty::UInt),
    ("SERVICE_STATE", ON_OFF),
    ("LAST_ERROR_NUMBER", Ty::Int4),
    ("LAST_ERROR_MESSAGE", Ty::Text(1024)),
    ("LAST_ERROR_TIMESTAMP", Ty::Stamp),
    ("LAST_APPLIED_TRANSACTION", GTID),
    ("LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP", Ty::Stamp),
    ("LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP", Ty::Stamp),
    ("APPLYING_TRANSACTION", GTID),
    ("APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", Ty::Stamp),
    ("APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", Ty::Stamp),
    ("APPLYING_TRANSACTION_START_APPLY_TIMESTAMP", Ty::Stamp),
    ("LAST_APPLIED_TRANSACTION_RETRIES_COUNT", Ty::UInt),
    ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER", Ty::Int4),
    ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", Ty::Text(1024)),
    ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", Ty::Stamp),
    ("APPLYING_TRANSACTION_RETRIES_COUNT", Ty::UInt),
    ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER", Ty::Int4),
    ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", Ty::Text(1024)),
    ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", Ty::Stamp),
];

const FILTERS: &[(&str, Ty)] = &[
    CHANNEL,
    ("FILTER_NAME", Ty::Char(64)),
    ("FILTER_RULE", Ty::Long),
    (
        "CONFIGURED_BY",
        Ty::Enum(&[
            "STARTUP_OPTIONS",
            "CHANGE_REPLICATION_FILTER",
            "STARTUP_OPTIONS_FOR_CHANNEL",
            "CHANGE_REPLICATION_FILTER_FOR_CHANNEL",
        ]),
    ),
    ("ACTIVE_SINCE", Ty::Stamp),
    ("COUNTER", Ty::UInt),
];

const GLOBAL_FILTERS: &[(&str, Ty)] = &[
    ("FILTER_NAME", Ty::Char(64)),
    ("FILTER_RULE", Ty::Long),
    ("CONFIGURED_BY", Ty::Enum(&["STARTUP_OPTIONS", "CHANGE_REPLICATION_FILTER"])),
    ("ACTIVE_SINCE", Ty::Stamp),
];

const LOG_STATUS: &[(&str, Ty)] = &[
    ("SERVER_UUID", Ty::Char(36)),
    ("LOCAL", Ty::Json),
    ("REPLICATION", Ty::Json),
    ("STORAGE_ENGINES", Ty::Json),
];

const GTID_EXECUTED: &[(&str, Ty)] = &[
    ("source_uuid", Ty::Char(36)),
    ("interval_start", Ty::Int),
    ("interval_end", Ty::Int),
    ("gtid_tag", Ty::Char(32)),
];

const GTID_SLAVE_POS: &[(&str, Ty)] =
    &[("domain_id", Ty::UInt4), ("sub_id", Ty::UInt), ("server_id", Ty::UInt4), ("seq_no", Ty::UInt)];

macro_rules! tables {
    ($list:ident $schema:literal; $($name:ident $columns:ident;)*) => {
        $(fn $name(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
            Ok(reader.cx.session.connection.host.replication(stringify!($name))?)
        })*
        pub(super) const $list: &[Def] = &[$(Def {
            schema: $schema,
            name: stringify!($name),
            columns: $columns,
            rows: $name,
        }),*];
    };
}

tables! {
    DEFS "performance_schema";
    log_status LOG_STATUS;
    replication_applier_configuration APPLIER_CONFIGURATION;
    replication_applier_filters FILTERS;
    replication_applier_global_filters GLOBAL_FILTERS;
    replication_applier_status APPLIER_STATUS;
    replication_applier_status_by_coordinator COORDINATOR;
    replication_applier_status_by_worker WORKER;
    replication_connection_configuration CONFIGURATION;
    replication_connection_status CONNECTION_STATUS;
}

// Of the schema `mysql`, whose other tables are stored. No list has them: who dumps that schema is not to dump these.
tables! {
    GTIDS "mysql";
    gtid_executed GTID_EXECUTED;
    gtid_slave_pos GTID_SLAVE_POS;
}
