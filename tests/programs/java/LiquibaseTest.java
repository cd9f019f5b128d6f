import static org.junit.jupiter.api.Assertions.*;

import java.io.*;
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import liquibase.*;
import liquibase.changelog.*;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.*;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.*;
import liquibase.structure.core.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** Liquibase: changes of all kinds in its own language and in SQL, rollback, snapshots, differences, changelogs made from a database, its lock. */
class LiquibaseTest {
    static final String SERVER = System.getenv("PROGRAMS_URL"), OPTIONS = "?" + System.getenv("PROGRAMS_OPTIONS");
    @TempDir Path folder;

    static final String CHANGES = """
        databaseChangeLog:
        - changeSet:
            id: tables
            author: a
            changes:
            - createTable:
                tableName: parent
                remarks: "it's ☃"
                columns:
                - column: {name: id, type: BIGINT, autoIncrement: true, startWith: 10, constraints: {primaryKey: true}}
                - column: {name: name, type: varchar(40), defaultValue: "a ☃", remarks: a name, constraints: {nullable: false, unique: true, uniqueConstraintName: one_name}}
                - column: {name: price, type: "decimal(10,2)", defaultValueNumeric: 1.5}
                - column: {name: made, type: timestamp, defaultValueComputed: CURRENT_TIMESTAMP}
                - column: {name: flag, type: boolean, defaultValueBoolean: true}
                - column: {name: text, type: clob}
                - column: {name: bytes, type: blob}
                - column: {name: day, type: date}
                - column: {name: at, type: datetime(6)}
                - column: {name: code, type: uuid}
                - column: {name: ratio, type: double}
                - column: {name: wide, type: nvarchar(20)}
            - createTable:
                tableName: child
                columns:
                - column: {name: a, type: int, constraints: {primaryKey: true, primaryKeyName: of_two}}
                - column: {name: b, type: int, constraints: {primaryKey: true, primaryKeyName: of_two}}
                - column: {name: parent, type: BIGINT, constraints: {nullable: false}}
                - column: {name: n, type: int}
        - changeSet:
            id: keys
            author: a
            changes:
            - addForeignKeyConstraint: {constraintName: of_parent, baseTableName: child, baseColumnNames: parent, referencedTableName: parent, referencedColumnNames: id, onDelete: CASCADE, onUpdate: RESTRICT}
            - createIndex: {tableName: child, indexName: by_n, columns: [{column: {name: n, descending: true}}, {column: {name: b}}]}
            - addUniqueConstraint: {tableName: child, columnNames: "n, parent", constraintName: one_n}
        - changeSet:
            id: data
            author: a
            changes:
            - insert: {tableName: parent, columns: [{column: {name: name, value: "one ☃ 🚂"}}, {column: {name: price, valueNumeric: 2.25}}, {column: {name: at, valueDate: "2024-02-29T01:02:03.5"}}]}
            - loadData: {file: rows.csv, tableName: child, separator: ",", columns: [{column: {name: a, type: NUMERIC}}, {column: {name: b, type: NUMERIC}}]}
            - update: {tableName: child, columns: [{column: {name: n, valueNumeric: 7}}], where: "b = 2"}
            - tagDatabase: {tag: first}
        - changeSet:
            id: changes
            author: a
            changes:
            - addColumn: {tableName: child, columns: [{column: {name: later, type: varchar(10), value: given, afterColumn: a}}]}
            - renameColumn: {tableName: child, oldColumnName: later, newColumnName: renamed, columnDataType: varchar(10)}
            - modifyDataType: {tableName: child, columnName: renamed, newDataType: varchar(30)}
            - addNotNullConstraint: {tableName: child, columnName: renamed, columnDataType: varchar(30), defaultNullValue: none}
            - addDefaultValue: {tableName: child, columnName: renamed, defaultValue: d, columnDataType: varchar(30)}
            - createView: {viewName: names, selectQuery: "SELECT id, name FROM parent WHERE price > 1"}
            - setTableRemarks: {tableName: child, remarks: "what a child is"}
            - setColumnRemarks: {tableName: child, columnName: n, columnDataType: int, remarks: a number}
            - addLookupTable: {existingTableName: child, existingColumnName: renamed, newTableName: renames, newColumnName: word, newColumnDataType: varchar(30), constraintName: of_renames}
        - changeSet:
            id: sql
            author: a
            dbms: mysql, mariadb
            preConditions: [{onFail: MARK_RAN}, {tableExists: {tableName: parent}}, {not: [{viewExists: {viewName: nothing}}]}, {foreignKeyConstraintExists: {foreignKeyName: of_parent, foreignKeyTableName: child}}, {sqlCheck: {expectedResult: 1, sql: SELECT COUNT(*) FROM parent}}]
            changes:
            - createProcedure: {procedureText: "CREATE PROCEDURE fill(IN n INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO INSERT INTO parent (name) VALUES (CONCAT('p', i)); SET i = i + 1; END WHILE; END"}
            - sql: {splitStatements: true, sql: "CALL fill(3); -- a comment; with one\\nUPDATE parent SET price = 3 WHERE name = 'p1'"}
            rollback: [{sql: {sql: "DELETE FROM parent WHERE name LIKE 'p%'"}}, {dropProcedure: {procedureName: fill}}]
        - changeSet:
            id: formatted
            author: a
            changes: [{sqlFile: {path: some.sql, relativeToChangelogFile: false, endDelimiter: //}}]
            rollback: []
        """;

    Database open(String database) throws Exception {
        Connection c = DriverManager.getConnection(SERVER + database + OPTIONS, "program", "secret");
        return DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
    }

    String ask(String sql) throws Exception {
        try (Connection c = DriverManager.getConnection(SERVER + "liquibase" + OPTIONS, "program", "secret"); Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    interface Use { void with(Liquibase liquibase) throws Exception; }

    void with(String database, String changelog, Use use) throws Exception {
        try (Database d = open(database)) {
            use.with(new Liquibase(changelog, new DirectoryResourceAccessor(folder), d));
        }
    }

    @BeforeEach void clean() throws Exception {
        Files.writeString(folder.resolve("changes.yaml"), CHANGES);
        Files.writeString(folder.resolve("rows.csv"), "a,b,parent,n\n1,1,10,5\n1,2,10,NULL\n2,1,10,9\n");
        Files.writeString(folder.resolve("some.sql"), "CREATE TRIGGER upper_name BEFORE INSERT ON parent FOR EACH ROW BEGIN SET NEW.name = UPPER(NEW.name); END\n//\nCREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2\n//\n");
        for (String name : List.of("liquibase", "liquibase_other")) {
            with(name, "changes.yaml", Liquibase::dropAll);
            try (Connection c = DriverManager.getConnection(SERVER + name + OPTIONS, "program", "secret"); Statement s = c.createStatement()) {
                for (String program : List.of("PROCEDURE IF EXISTS fill", "FUNCTION IF EXISTS twice")) {
                    s.execute("DROP " + program);
                }
            }
        }
    }

    @Test void updateAndAgain() throws Exception {
        with("liquibase", "changes.yaml", l -> {
            l.update(new Contexts());
            assertEquals(0, l.listUnrunChangeSets(new Contexts(), new LabelExpression()).size());
            l.update(new Contexts());
        });
        assertEquals("6", ask("SELECT COUNT(*) FROM DATABASECHANGELOG WHERE EXECTYPE = 'EXECUTED'"));
        assertEquals("10 one ☃ 🚂 2.25", ask("SELECT CONCAT_WS(' ', id, name, price) FROM parent WHERE id = 10"));
        assertEquals("3 7 given", ask("SELECT CONCAT_WS(' ', COUNT(*), MAX(IF(b = 2, n, 0)), MIN(renamed)) FROM child"));
        assertEquals("4", ask("SELECT COUNT(*) FROM names"));
        assertEquals("8", ask("SELECT twice(4)"));
        assertEquals("0", ask("SELECT 0 + LOCKED FROM DATABASECHANGELOGLOCK"));
    }

    @Test void rollBackToTagAndByCount() throws Exception {
        with("liquibase", "changes.yaml", l -> {
            l.update(new Contexts());
            l.rollback(2, "");
            assertEquals("1", ask("SELECT COUNT(*) FROM parent"));
        });
        // Those of the changes that know their own reverse.
        Files.writeString(folder.resolve("small.yaml"), """
            databaseChangeLog:
            - changeSet: {id: 1, author: b, changes: [{createTable: {tableName: t, columns: [{column: {name: id, type: int, constraints: {primaryKey: true}}}, {column: {name: v, type: int}}]}}, {tagDatabase: {tag: begin}}]}
            - changeSet: {id: 2, author: b, changes: [{addColumn: {tableName: t, columns: [{column: {name: w, type: int}}]}}, {createIndex: {tableName: t, indexName: vw, columns: [{column: {name: v}}, {column: {name: w}}]}}, {renameTable: {oldTableName: t, newTableName: u}}]}
            """);
        with("liquibase_other", "small.yaml", l -> {
            l.update(new Contexts());
            l.rollback("begin", new Contexts());
            l.updateTestingRollback(new Contexts(), new LabelExpression());
        });
    }

    @Test void sqlIsShownWithoutBeingRun() throws Exception {
        with("liquibase", "changes.yaml", l -> {
            StringWriter out = new StringWriter();
            l.update(new Contexts(), new LabelExpression(), out);
            assertTrue(out.toString().contains("CREATE TABLE liquibase.parent") || out.toString().contains("CREATE TABLE parent"), out.toString());
        });
        assertEquals("0", ask("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'liquibase' AND TABLE_NAME = 'parent'"));
    }

    @Test void aSnapshotKnowsAll() throws Exception {
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
        try (Database d = open("liquibase")) {
            DatabaseSnapshot found = SnapshotGeneratorFactory.getInstance().createSnapshot(d.getDefaultSchema(), d, new SnapshotControl(d));
            Table parent = found.get(new Table(null, null, "parent"));
            assertEquals("it's ☃", parent.getRemarks());
            assertEquals(12, parent.getColumns().size());
            assertTrue(parent.getColumn("id").isAutoIncrement());
            assertEquals("a name", parent.getColumn("name").getRemarks());
            Table child = found.get(new Table(null, null, "child"));
            assertEquals(List.of("a", "b"), child.getPrimaryKey().getColumnNamesAsList());
            ForeignKey key = found.get(new ForeignKey("of_parent", null, null, "child"));
            assertEquals(ForeignKeyConstraintType.importedKeyCascade, key.getDeleteRule());
            assertTrue(child.getUniqueConstraints().stream().anyMatch(one -> one.getName().equals("one_n")));
            assertTrue(child.getIndexes().stream().anyMatch(one -> "by_n".equals(one.getName())));
            assertNotNull(found.get(new View(null, null, "names")));
        }
    }

    @Test void aChangelogFromADatabaseMakesItAgain() throws Exception {
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
        try (Database one = open("liquibase"); Database other = open("liquibase_other")) {
            DatabaseSnapshot from = SnapshotGeneratorFactory.getInstance().createSnapshot(one.getDefaultSchema(), one, new SnapshotControl(one));
            DiffResult all = DiffGeneratorFactory.getInstance().compare(from, new EmptyDatabaseSnapshot(one), CompareControl.STANDARD);
            new DiffToChangeLog(all, new DiffOutputControl(false, false, false, null)).print(folder.resolve("generated.xml").toString());
        }
        with("liquibase_other", "generated.xml", l -> l.update(new Contexts()));
        try (Database one = open("liquibase"); Database other = open("liquibase_other")) {
            DiffResult rest = DiffGeneratorFactory.getInstance().compare(one, other, CompareControl.STANDARD);
            assertTrue(rest.getMissingObjects().isEmpty(), rest.getMissingObjects().toString());
            assertTrue(rest.getUnexpectedObjects().isEmpty(), rest.getUnexpectedObjects().toString());
            assertTrue(rest.getChangedObjects().isEmpty(), () -> rest.getChangedObjects().entrySet().stream().map(e -> e.getKey() + " " + e.getValue().getDifferences()).toList().toString());
        }
    }

    @Test void checksumsAreChecked() throws Exception {
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
        Files.writeString(folder.resolve("changes.yaml"), CHANGES.replace("UPDATE parent SET price = 3", "UPDATE parent SET price = 4"));
        with("liquibase", "changes.yaml", l -> {
            Exception refused = assertThrows(liquibase.exception.LiquibaseException.class, l::validate);
            assertTrue(refused.getMessage().contains("check sum"), refused.getMessage());
        });
        with("liquibase", "changes.yaml", Liquibase::clearCheckSums);
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
    }

    /** A process as its users start several of: one takes the lock, the others wait for it. In one process they would share it. */
    public static void main(String[] arguments) throws Exception {
        LiquibaseTest test = new LiquibaseTest();
        test.folder = Path.of(arguments[0]);
        test.with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
    }

    @Test void severalAtOnceRunEachChangeOnce() throws Exception {
        // Making the table of the lock itself is not guarded.
        with("liquibase", "changes.yaml", l -> l.reportStatus(false, new Contexts(), new StringWriter()));
        List<Process> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            all.add(new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-Dliquibase.changelogLockPollRate=1", "-Xshare:auto", "-XX:TieredStopAtLevel=1",
                "-cp", System.getProperty("java.class.path"), "LiquibaseTest", folder.toString()).inheritIO().start());
        }
        for (Process one : all) {
            assertTrue(one.waitFor(300, TimeUnit.SECONDS));
            assertEquals(0, one.exitValue());
        }
        assertEquals("6", ask("SELECT COUNT(*) FROM DATABASECHANGELOG"));
    }

    @Test void aHeldLockIsReleased() throws Exception {
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
        try (Connection c = DriverManager.getConnection(SERVER + "liquibase" + OPTIONS, "program", "secret"); Statement s = c.createStatement()) {
            s.execute("UPDATE DATABASECHANGELOGLOCK SET LOCKED = 1, LOCKEDBY = 'x', LOCKGRANTED = NOW()");
        }
        with("liquibase", "changes.yaml", l -> assertEquals(1, l.listLocks().length));
        with("liquibase", "changes.yaml", Liquibase::forceReleaseLocks);
        with("liquibase", "changes.yaml", l -> l.update(new Contexts()));
    }

    @Test void dropAllLeavesNothing() throws Exception {
        with("liquibase", "changes.yaml", l -> {
            l.update(new Contexts());
            l.dropAll();
        });
        assertEquals("0", ask("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'liquibase'"));
    }
}
