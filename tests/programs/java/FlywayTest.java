import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.*;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** Flyway: migrations in SQL with everything that its parser knows of MySQL, its lock, its checks, repair and clean. */
class FlywayTest {
    static final String URL = System.getenv("PROGRAMS_URL") + "flyway?" + System.getenv("PROGRAMS_OPTIONS");
    @TempDir Path folder;

    FluentConfiguration configure() {
        return Flyway.configure().dataSource(URL, "program", "secret").locations("filesystem:" + folder).cleanDisabled(false).placeholders(Map.of("who", "world"));
    }

    void write(String name, String text) throws Exception {
        Files.writeString(folder.resolve(name), text);
    }

    String ask(String sql) throws Exception {
        try (Connection c = DriverManager.getConnection(URL, "program", "secret"); Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    @BeforeEach void clean() throws Exception {
        configure().load().clean();
        write("V1__tables.sql", """
            -- A comment; with a semicolon.
            CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'a;b') ENGINE=InnoDB;
            # Another kind of comment
            CREATE TABLE child (id INT PRIMARY KEY, parent INT, CONSTRAINT of_parent FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE);
            /*!40101 SET NAMES utf8mb4 */;
            INSERT INTO parent (name) VALUES ('${who}'), ('it''s'), ("quo\\"ted"); /* the end; */
            """);
        write("V2__programs.sql", """
            DELIMITER //
            CREATE PROCEDURE fill(IN n INT)
            BEGIN
              DECLARE i INT DEFAULT 0;
              WHILE i < n DO INSERT INTO child VALUES (i, 1); SET i = i + 1; END WHILE;
            END//
            CREATE TRIGGER named BEFORE INSERT ON parent FOR EACH ROW BEGIN SET NEW.name = UPPER(NEW.name); END//
            DELIMITER ;
            CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
            CREATE EVENT never ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO DELETE FROM child;
            CALL fill(5);
            """);
        write("R__view.sql", "CREATE OR REPLACE VIEW names AS SELECT name FROM parent;");
    }

    @Test void migrateAndAgain() throws Exception {
        Flyway flyway = configure().load();
        assertEquals(3, flyway.migrate().migrationsExecuted);
        assertEquals(0, flyway.migrate().migrationsExecuted);
        flyway.validate();
        assertEquals("5", ask("SELECT COUNT(*) FROM child"));
        assertEquals("world", ask("SELECT name FROM names ORDER BY name DESC"));
        assertEquals("8", ask("SELECT twice(4)"));
        assertEquals("2", flyway.info().current().getVersion() == null ? "2" : flyway.info().current().getVersion().toString());
    }

    @Test void repeatableRunsWhenItChanges() throws Exception {
        configure().load().migrate();
        write("R__view.sql", "CREATE OR REPLACE VIEW names AS SELECT CONCAT(name, '!') AS name FROM parent;");
        assertEquals(1, configure().load().migrate().migrationsExecuted);
        assertEquals("world!", ask("SELECT name FROM names WHERE name LIKE 'w%'"));
    }

    @Test void aChangedMigrationIsFound() throws Exception {
        configure().load().migrate();
        write("V2__programs.sql", "SELECT 1;");
        assertThrows(FlywayException.class, () -> configure().load().validate());
        configure().load().repair();
        configure().load().validate();
    }

    @Test void aFailedMigrationStandsInTheHistory() throws Exception {
        write("V3__bad.sql", "INSERT INTO parent (name) VALUES ('kept?'); CREATE TABLE fine (id INT); INSERT INTO nothing VALUES (1);");
        FlywayException failed = assertThrows(FlywayException.class, () -> configure().load().migrate());
        assertTrue(failed.getMessage().contains("1146"), failed.getMessage());
        assertEquals(MigrationState.FAILED, configure().load().info().all()[2].getState());
        write("V3__bad.sql", "DROP TABLE IF EXISTS fine; CREATE TABLE fine (id INT);");
        configure().load().repair();
        configure().load().migrate();
        assertEquals("0", ask("SELECT COUNT(*) FROM fine"));
    }

    @Test void aFailedMigrationOfRowsGoesBack() throws Exception {
        configure().load().migrate();
        write("V3__bad.sql", "INSERT INTO parent (name) VALUES ('lost'); INSERT INTO nothing VALUES (1);");
        assertThrows(FlywayException.class, () -> configure().load().migrate());
        assertEquals("0", ask("SELECT COUNT(*) FROM parent WHERE name = 'LOST'"));
    }

    @Test void severalAtOnceMigrateOnce() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> done = new ArrayList<>();
        for (int i = 0; i < 4; i++) done.add(pool.submit(() -> configure().load().migrate().migrationsExecuted));
        int sum = 0;
        for (Future<Integer> one : done) sum += one.get();
        pool.shutdown();
        assertEquals(3, sum);
        assertEquals("5", ask("SELECT COUNT(*) FROM child"));
    }

    @Test void baselineAndOutOfOrder() throws Exception {
        ask("SELECT 1");
        try (Connection c = DriverManager.getConnection(URL, "program", "secret"); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40))");
            s.execute("CREATE TABLE child (id INT, parent INT)");
        }
        assertThrows(FlywayException.class, () -> configure().load().migrate());
        assertEquals(2, configure().baselineOnMigrate(true).baselineVersion("1").load().migrate().migrationsExecuted);
        write("V1_5__late.sql", "CREATE TABLE late (id INT);");
        assertThrows(FlywayException.class, () -> configure().load().migrate());
        assertEquals(1, configure().outOfOrder(true).load().migrate().migrationsExecuted);
    }

    @Test void schemasAreMadeAndCleaned() throws Exception {
        FluentConfiguration two = configure().schemas("flyway", "flyway_other").createSchemas(true);
        two.load().migrate();
        write("V4__other.sql", "CREATE TABLE flyway_other.t (id INT); CREATE VIEW flyway_other.v AS SELECT id FROM flyway_other.t;");
        two.load().migrate();
        two.load().clean();
        assertEquals("0", ask("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema LIKE 'flyway%'"));
        assertEquals("0", ask("SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = 'flyway'"));
    }

    @Test void everyKindOfStatement() throws Exception {
        write("V3__kinds.sql", """
            CREATE TABLE kinds (id INT NOT NULL AUTO_INCREMENT, a VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, b ENUM('x','y') DEFAULT 'x', c JSON, f INT,
              d DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), e DECIMAL(10,2) AS (f * 1.5) VIRTUAL, CHECK (f > -1), PRIMARY KEY (id), KEY (a(5)));
            ALTER TABLE kinds ADD COLUMN g INT AFTER a, ADD UNIQUE KEY uf (f);
            LOCK TABLES kinds WRITE;
            INSERT INTO kinds (a, c) VALUES ('a', '{"k": [1, 2]}');
            UNLOCK TABLES;
            SET @sql = 'INSERT INTO kinds (a) VALUES (?)'; SET @v = 'b'; PREPARE s FROM @sql; EXECUTE s USING @v; DEALLOCATE PREPARE s;
            START TRANSACTION; UPDATE kinds SET f = id; COMMIT;
            CREATE TEMPORARY TABLE passing AS SELECT * FROM kinds; DROP TEMPORARY TABLE passing;
            """);
        configure().mixed(true).load().migrate();
        assertEquals("2", ask("SELECT COUNT(*) FROM kinds"));
    }
}
