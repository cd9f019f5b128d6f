//! Privileges as bits, in the order in which SHOW GRANTS lists them.

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Privileges(pub u128);

impl Privileges {
    /// None.
    pub const NONE: Privileges = Privileges(0);
    /// Whether all of `other` are in it.
    #[must_use]
    pub const fn has(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is in it.
    #[must_use]
    pub const fn any(self, other: Privileges) -> bool {
        self.0 & other.0 != 0
    }
    /// Both together.
    #[must_use]
    pub const fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
    /// This without the other.
    #[must_use]
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }
    /// Names of the members.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        PRIVILEGES.iter().filter(move |p| self.has(p.bit)).map(|p| p.name)
    }
}

/// A privilege as SHOW PRIVILEGES lists it.
#[derive(Clone, Copy, Debug)]
pub struct PrivilegeInfo {
    /// Name, upper case.
    pub name: &'static str,
    /// Its bit.
    pub bit: Privileges,
    /// MySQL's "dynamic" privileges are stored apart and exist globally only.
    pub dynamic: bool,
    /// Contexts column of SHOW PRIVILEGES.
    pub context: &'static str,
    /// Comment column of SHOW PRIVILEGES.
    pub comment: &'static str,
}

macro_rules! privileges {
    (
        static { $($fixed:ident = $bit:literal, $name:literal, $context:literal, $comment:literal;)* }
        dynamic { $($konst:ident = $at:literal;)* }
    ) => {
        #[allow(missing_docs)] // the names are MySQL's own
        impl Privileges {
            $(pub const $fixed: Privileges = Privileges(1 << $bit);)*
            $(pub const $konst: Privileges = Privileges(1 << $at);)*
        }
        /// All of them.
        pub static PRIVILEGES: &[PrivilegeInfo] = &[
            $(PrivilegeInfo {
                name: $name, bit: Privileges(1 << $bit), dynamic: false, context: $context, comment: $comment,
            },)*
            $(PrivilegeInfo {
                name: stringify!($konst), bit: Privileges(1 << $at), dynamic: true, context: "Server Admin", comment: "",
            },)*
        ];
    };
}

privileges! {
    static {
        SELECT = 0, "SELECT", "Tables", "To retrieve rows from table";
        INSERT = 1, "INSERT", "Tables", "To insert data into tables";
        UPDATE = 2, "UPDATE", "Tables", "To update existing rows";
        DELETE = 3, "DELETE", "Tables", "To delete existing rows";
        CREATE = 4, "CREATE", "Databases,Tables,Indexes", "To create new databases and tables";
        DROP = 5, "DROP", "Databases,Tables", "To drop databases, tables, and views";
        RELOAD = 6, "RELOAD", "Server Admin", "To reload or refresh tables, logs and privileges";
        SHUTDOWN = 7, "SHUTDOWN", "Server Admin", "To shut down the server";
        PROCESS = 8, "PROCESS", "Server Admin", "To view the plain text of currently executing queries";
        FILE = 9, "FILE", "File access on server", "To read and write files on the server";
        REFERENCES = 10, "REFERENCES", "Databases,Tables", "To have references on tables";
        INDEX = 11, "INDEX", "Tables", "To create or drop indexes";
        ALTER = 12, "ALTER", "Tables", "To alter the table";
        SHOW_DATABASES = 13, "SHOW DATABASES", "Server Admin", "To see all databases with SHOW DATABASES";
        SUPER = 14, "SUPER", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc.";
        CREATE_TEMPORARY = 15, "CREATE TEMPORARY TABLES", "Databases", "To use CREATE TEMPORARY TABLE";
        LOCK_TABLES = 16, "LOCK TABLES", "Databases", "To use LOCK TABLES (together with SELECT privilege)";
        EXECUTE = 17, "EXECUTE", "Functions,Procedures", "To execute stored routines";
        REPLICATION_SLAVE = 18, "REPLICATION SLAVE", "Server Admin", "To read binary log events from the source";
        REPLICATION_CLIENT = 19, "REPLICATION CLIENT", "Server Admin", "To ask where the replica or source servers are";
        CREATE_VIEW = 20, "CREATE VIEW", "Tables", "To create new views";
        SHOW_VIEW = 21, "SHOW VIEW", "Tables", "To see views with SHOW CREATE VIEW";
        CREATE_ROUTINE = 22, "CREATE ROUTINE", "Databases", "To use CREATE FUNCTION/PROCEDURE";
        ALTER_ROUTINE = 23, "ALTER ROUTINE", "Functions,Procedures", "To alter or drop stored functions/procedures";
        CREATE_USER = 24, "CREATE USER", "Server Admin", "To create new users";
        EVENT = 25, "EVENT", "Server Admin", "To create, alter, drop and execute events";
        TRIGGER = 26, "TRIGGER", "Tables", "To use triggers";
        CREATE_TABLESPACE = 27, "CREATE TABLESPACE", "Server Admin", "To create/alter/drop tablespaces";
        CREATE_ROLE = 28, "CREATE ROLE", "Server Admin", "To create new roles";
        DROP_ROLE = 29, "DROP ROLE", "Server Admin", "To drop roles";
        GRANT_OPTION = 30, "GRANT OPTION", "Databases,Tables,Functions,Procedures", "To give to other users those privileges you possess";
    }
    dynamic {
        BACKUP_ADMIN = 32;
        BINLOG_ADMIN = 33;
        CONNECTION_ADMIN = 34;
        FLUSH_STATUS = 35;
        FLUSH_TABLES = 36;
        FLUSH_USER_RESOURCES = 37;
        PERSIST_RO_VARIABLES_ADMIN = 38;
        REPLICATION_APPLIER = 39;
        REPLICATION_SLAVE_ADMIN = 40;
        SESSION_VARIABLES_ADMIN = 41;
        SYSTEM_VARIABLES_ADMIN = 42;
        XA_RECOVER_ADMIN = 43;
        ROLE_ADMIN = 44;
        SYSTEM_USER = 45;
        SHOW_ROUTINE = 46;
        CLONE_ADMIN = 47;
        SERVICE_CONNECTION_ADMIN = 48;
        FLUSH_PRIVILEGES = 49;
        FLUSH_OPTIMIZER_COSTS = 50;
        OPTIMIZE_LOCAL_TABLE = 51;
        SET_ANY_DEFINER = 52;
        ALLOW_NONEXISTENT_DEFINER = 53;
        SET_USER_ID = 54;
        SENSITIVE_VARIABLES_OBSERVER = 55;
        APPLICATION_PASSWORD_ADMIN = 56;
        AUTHENTICATION_POLICY_ADMIN = 57;
        PASSWORDLESS_USER_ADMIN = 58;
        AUDIT_ADMIN = 59;
        AUDIT_ABORT_EXEMPT = 60;
        FIREWALL_ADMIN = 61;
        FIREWALL_EXEMPT = 62;
        FIREWALL_USER = 63;
        BINLOG_ENCRYPTION_ADMIN = 64;
        ENCRYPTION_KEY_ADMIN = 65;
        TABLE_ENCRYPTION_ADMIN = 66;
        GROUP_REPLICATION_ADMIN = 67;
        GROUP_REPLICATION_STREAM = 68;
        INNODB_REDO_LOG_ARCHIVE = 69;
        INNODB_REDO_LOG_ENABLE = 70;
        RESOURCE_GROUP_ADMIN = 71;
        RESOURCE_GROUP_USER = 72;
        CREATE_SPATIAL_REFERENCE_SYSTEM = 73;
        TRANSACTION_GTID_TAG = 74;
        MANAGE_DATA_MASKING_POLICY = 75;
        MASKING_DICTIONARIES_ADMIN = 76;
        TELEMETRY_LOG_ADMIN = 77;
        NDB_STORED_USER = 78;
        VERSION_TOKEN_ADMIN = 79;
    }
}

/// The privileges of a database.
pub const DB_PRIVILEGES: Privileges = Privileges(
    0b1111
        | 1 << 4
        | 1 << 5
        | 1 << 10
        | 1 << 11
        | 1 << 12
        | 1 << 15
        | 1 << 16
        | 1 << 17
        | 1 << 20
        | 1 << 21
        | 1 << 22
        | 1 << 23
        | 1 << 25
        | 1 << 26
        | 1 << 30,
);

/// The privileges of a table or view.
pub const TABLE_PRIVILEGES: Privileges = Privileges::SELECT
    .with(Privileges::INSERT)
    .with(Privileges::UPDATE)
    .with(Privileges::DELETE)
    .with(Privileges::CREATE)
    .with(Privileges::DROP)
    .with(Privileges::REFERENCES)
    .with(Privileges::INDEX)
    .with(Privileges::ALTER)
    .with(Privileges::CREATE_VIEW)
    .with(Privileges::SHOW_VIEW)
    .with(Privileges::TRIGGER)
    .with(Privileges::GRANT_OPTION);

/// The privileges of columns.
pub const COLUMN_PRIVILEGES: Privileges =
    Privileges::SELECT.with(Privileges::INSERT).with(Privileges::UPDATE).with(Privileges::REFERENCES);

/// The privileges of a routine.
pub const ROUTINE_PRIVILEGES: Privileges =
    Privileges::EXECUTE.with(Privileges::ALTER_ROUTINE).with(Privileges::GRANT_OPTION);

/// Every global privilege, GRANT OPTION included.
#[must_use]
pub fn all() -> Privileges {
    PRIVILEGES.iter().fold(Privileges::NONE, |set, p| set.with(p.bit))
}

/// Every dynamic privilege.
#[must_use]
pub fn all_dynamic() -> Privileges {
    PRIVILEGES.iter().filter(|p| p.dynamic).fold(Privileges::NONE, |set, p| set.with(p.bit))
}

/// Every global privilege that is not dynamic, without GRANT OPTION.
#[must_use]
pub fn all_static() -> Privileges {
    let fixed = PRIVILEGES.iter().filter(|p| !p.dynamic);
    fixed.fold(Privileges::NONE, |set, p| set.with(p.bit)).without(Privileges::GRANT_OPTION)
}

/// The privilege of this name, also under MariaDB's names. `USAGE` is none at all, and neither is what MariaDB has for things
/// that are not here: a name that is only taken may not give anything else.
#[must_use]
pub fn by_name(name: &str) -> Option<Privileges> {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "USAGE" | "DELETE HISTORY" | "DELETE VERSIONING ROWS" | "FEDERATED ADMIN" => {
            return Some(Privileges::NONE);
        }
        "BINLOG MONITOR" | "SLAVE MONITOR" | "REPLICA MONITOR" | "REPLICATION MASTER ADMIN" => {
            return Some(Privileges::REPLICATION_CLIENT);
        }
        "REPLICATION REPLICA" => return Some(Privileges::REPLICATION_SLAVE),
        "REPLICATION REPLICA ADMIN" => return Some(Privileges::REPLICATION_SLAVE_ADMIN),
        "BINLOG REPLAY" => return Some(Privileges::REPLICATION_APPLIER),
        "READ_ONLY ADMIN" | "READ ONLY ADMIN" => return Some(Privileges::CONNECTION_ADMIN),
        "SET USER" => return Some(Privileges::SET_USER_ID),
        "SHOW CREATE ROUTINE" => return Some(Privileges::SHOW_ROUTINE),
        _ => {}
    }
    let dashed = upper.replace(' ', "_");
    PRIVILEGES.iter().find(|p| p.name == upper || (p.dynamic && p.name == dashed)).map(|p| p.bit)
}
