//! Privileges as bits, in the order in which SHOW GRANTS lists them.

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Privileges(pub u64);

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

/// What SHOW PRIVILEGES says of one.
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
    ($($konst:ident = $bit:literal, $name:literal, $dynamic:literal, $context:literal, $comment:literal;)*) => {
        #[allow(missing_docs)] // the names are MySQL's own
        impl Privileges { $(pub const $konst: Privileges = Privileges(1 << $bit);)* }
        /// All of them.
        pub static PRIVILEGES: &[PrivilegeInfo] = &[$(PrivilegeInfo {
            name: $name, bit: Privileges(1 << $bit), dynamic: $dynamic, context: $context, comment: $comment,
        }),*];
    };
}

privileges! {
    SELECT = 0, "SELECT", false, "Tables", "To retrieve rows from table";
    INSERT = 1, "INSERT", false, "Tables", "To insert data into tables";
    UPDATE = 2, "UPDATE", false, "Tables", "To update existing rows";
    DELETE = 3, "DELETE", false, "Tables", "To delete existing rows";
    CREATE = 4, "CREATE", false, "Databases,Tables,Indexes", "To create new databases and tables";
    DROP = 5, "DROP", false, "Databases,Tables", "To drop databases, tables, and views";
    RELOAD = 6, "RELOAD", false, "Server Admin", "To reload or refresh tables, logs and privileges";
    SHUTDOWN = 7, "SHUTDOWN", false, "Server Admin", "To shut down the server";
    PROCESS = 8, "PROCESS", false, "Server Admin", "To view the plain text of currently executing queries";
    FILE = 9, "FILE", false, "File access on server", "To read and write files on the server";
    REFERENCES = 10, "REFERENCES", false, "Databases,Tables", "To have references on tables";
    INDEX = 11, "INDEX", false, "Tables", "To create or drop indexes";
    ALTER = 12, "ALTER", false, "Tables", "To alter the table";
    SHOW_DATABASES = 13, "SHOW DATABASES", false, "Server Admin", "To see all databases with SHOW DATABASES";
    SUPER = 14, "SUPER", false, "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc.";
    CREATE_TEMPORARY = 15, "CREATE TEMPORARY TABLES", false, "Databases", "To use CREATE TEMPORARY TABLE";
    LOCK_TABLES = 16, "LOCK TABLES", false, "Databases", "To use LOCK TABLES (together with SELECT privilege)";
    EXECUTE = 17, "EXECUTE", false, "Functions,Procedures", "To execute stored routines";
    REPLICATION_SLAVE = 18, "REPLICATION SLAVE", false, "Server Admin", "To read binary log events from the source";
    REPLICATION_CLIENT = 19, "REPLICATION CLIENT", false, "Server Admin", "To ask where the replica or source servers are";
    CREATE_VIEW = 20, "CREATE VIEW", false, "Tables", "To create new views";
    SHOW_VIEW = 21, "SHOW VIEW", false, "Tables", "To see views with SHOW CREATE VIEW";
    CREATE_ROUTINE = 22, "CREATE ROUTINE", false, "Databases", "To use CREATE FUNCTION/PROCEDURE";
    ALTER_ROUTINE = 23, "ALTER ROUTINE", false, "Functions,Procedures", "To alter or drop stored functions/procedures";
    CREATE_USER = 24, "CREATE USER", false, "Server Admin", "To create new users";
    EVENT = 25, "EVENT", false, "Server Admin", "To create, alter, drop and execute events";
    TRIGGER = 26, "TRIGGER", false, "Tables", "To use triggers";
    CREATE_TABLESPACE = 27, "CREATE TABLESPACE", false, "Server Admin", "To create/alter/drop tablespaces";
    CREATE_ROLE = 28, "CREATE ROLE", false, "Server Admin", "To create new roles";
    DROP_ROLE = 29, "DROP ROLE", false, "Server Admin", "To drop roles";
    GRANT_OPTION = 30, "GRANT OPTION", false, "Databases,Tables,Functions,Procedures", "To give to other users those privileges you possess";
    BACKUP_ADMIN = 32, "BACKUP_ADMIN", true, "Server Admin", "";
    BINLOG_ADMIN = 33, "BINLOG_ADMIN", true, "Server Admin", "";
    CONNECTION_ADMIN = 34, "CONNECTION_ADMIN", true, "Server Admin", "";
    FLUSH_STATUS = 35, "FLUSH_STATUS", true, "Server Admin", "";
    FLUSH_TABLES = 36, "FLUSH_TABLES", true, "Server Admin", "";
    FLUSH_USER_RESOURCES = 37, "FLUSH_USER_RESOURCES", true, "Server Admin", "";
    PERSIST_RO = 38, "PERSIST_RO_VARIABLES_ADMIN", true, "Server Admin", "";
    REPLICATION_APPLIER = 39, "REPLICATION_APPLIER", true, "Server Admin", "";
    REPLICATION_SLAVE_ADMIN = 40, "REPLICATION_SLAVE_ADMIN", true, "Server Admin", "";
    SESSION_VARIABLES_ADMIN = 41, "SESSION_VARIABLES_ADMIN", true, "Server Admin", "";
    SYSTEM_VARIABLES_ADMIN = 42, "SYSTEM_VARIABLES_ADMIN", true, "Server Admin", "";
    XA_RECOVER_ADMIN = 43, "XA_RECOVER_ADMIN", true, "Server Admin", "";
    ROLE_ADMIN = 44, "ROLE_ADMIN", true, "Server Admin", "";
    SYSTEM_USER = 45, "SYSTEM_USER", true, "Server Admin", "";
    SHOW_ROUTINE = 46, "SHOW_ROUTINE", true, "Server Admin", "";
    CLONE_ADMIN = 47, "CLONE_ADMIN", true, "Server Admin", "";
}

/// What may be granted on a database.
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

/// Every global privilege, GRANT OPTION included.
#[must_use]
pub fn all() -> Privileges {
    PRIVILEGES.iter().fold(Privileges::NONE, |set, p| set.with(p.bit))
}

/// Every global privilege that is not dynamic, without GRANT OPTION.
#[must_use]
pub fn all_static() -> Privileges {
    let fixed = PRIVILEGES.iter().filter(|p| !p.dynamic);
    fixed.fold(Privileges::NONE, |set, p| set.with(p.bit)).without(Privileges::GRANT_OPTION)
}

/// The privilege of this name, also under MariaDB's names. `USAGE` is none at all.
#[must_use]
pub fn by_name(name: &str) -> Option<Privileges> {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "USAGE" => return Some(Privileges::NONE),
        "BINLOG MONITOR" | "SLAVE MONITOR" | "REPLICA MONITOR" => {
            return Some(Privileges::REPLICATION_CLIENT);
        }
        "REPLICATION REPLICA" => return Some(Privileges::REPLICATION_SLAVE),
        "REPLICATION MASTER ADMIN" => return Some(Privileges::REPLICATION_SLAVE_ADMIN),
        "DELETE HISTORY" => return Some(Privileges::DELETE),
        "READ_ONLY ADMIN" | "READ ONLY ADMIN" => return Some(Privileges::CONNECTION_ADMIN),
        _ => {}
    }
    let dashed = upper.replace(' ', "_");
    PRIVILEGES.iter().find(|p| p.name == upper || (p.dynamic && p.name == dashed)).map(|p| p.bit)
}
