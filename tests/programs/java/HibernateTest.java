import static org.junit.jupiter.api.Assertions.*;

import java.math.*;
import java.time.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;
import org.hibernate.*;
import org.hibernate.boot.*;
import org.hibernate.boot.registry.*;
import org.hibernate.cfg.SchemaToolingSettings;
import org.hibernate.testing.orm.domain.*;
import org.hibernate.testing.orm.domain.gambit.*;
import org.hibernate.testing.orm.domain.contacts.Contact;
import org.hibernate.tool.schema.*;
import org.junit.jupiter.api.*;

/**
 * Hibernate: the domain models of its own tests (its tests themselves are in no package) are made, validated, updated without a
 * change, filled and dropped; functions of its query language, locks, batches, and generators of ids.
 */
class HibernateTest {
    static final String URL = System.getenv("PROGRAMS_URL") + "hibernate?" + System.getenv("PROGRAMS_OPTIONS");

    /** Where the models come and go. */
    static final String MODELS = System.getenv("PROGRAMS_URL") + "hibernate_models?" + System.getenv("PROGRAMS_OPTIONS");

    static StandardServiceRegistry registry(Map<String, Object> more) {
        return new StandardServiceRegistryBuilder().applySetting("hibernate.connection.url", URL).applySetting("hibernate.connection.username", "program")
            .applySetting("hibernate.connection.password", "secret").applySetting("hibernate.jdbc.batch_size", 20).applySettings(more).build();
    }

    static SessionFactory factory(Map<String, Object> more, StandardDomainModel... models) {
        MetadataSources sources = new MetadataSources(registry(more));
        for (StandardDomainModel model : models) model.getDescriptor().applyDomainModel(sources);
        return sources.buildMetadata().buildSessionFactory();
    }

    @TestFactory Stream<DynamicTest> models() {
        return Arrays.stream(StandardDomainModel.values()).map(model -> DynamicTest.dynamicTest("model " + model.name().toLowerCase(), () -> {
            try (SessionFactory made = factory(Map.of("hibernate.hbm2ddl.auto", "create-drop", "hibernate.connection.url", MODELS), model)) {
                factory(Map.of("hibernate.hbm2ddl.auto", "validate", "hibernate.connection.url", MODELS), model).close();
                factory(Map.of("hibernate.hbm2ddl.auto", "update", "hibernate.connection.url", MODELS), model).close();
                for (var entity : made.getMetamodel().getEntities())
                    made.inSession(session -> session.createQuery("from " + entity.getName(), Object.class).getResultList());
            }
        }));
    }

    static SessionFactory gambit;

    @BeforeAll static void fill() {
        gambit = factory(Map.of("hibernate.hbm2ddl.auto", "create", "hibernate.show_sql", System.getenv().containsKey("SHOW")), StandardDomainModel.GAMBIT, StandardDomainModel.CONTACTS);
        gambit.inTransaction(session -> {
            for (int id = 1; id <= 5; id++) {
                EntityOfBasics one = new EntityOfBasics();
                one.setId(id);
                one.setTheInt(id);
                one.setTheInteger(id == 5 ? null : id * 10);
                one.setTheDouble(id / 2.0);
                one.setTheString("text " + id);
                one.setTheBoolean(id % 2 == 0);
                one.setTheDate(java.sql.Date.valueOf("2020-02-2" + id));
                one.setTheTime(java.sql.Time.valueOf("10:11:1" + id));
                one.setTheTimestamp(java.sql.Timestamp.valueOf("2020-02-2" + id + " 10:11:12"));
                one.setTheLocalDate(LocalDate.of(2020, 2, 20 + id));
                one.setTheLocalDateTime(LocalDateTime.of(2020, 2, 20 + id, 10, 11, 12));
                one.setTheLocalTime(LocalTime.of(10, 11, 10 + id));
                one.setTheDuration(Duration.ofSeconds(3 + id));
                one.setTheUuid(new UUID(1, id));
                one.setTheInstant(Instant.ofEpochSecond(1_600_000_000 + id));
                one.setGender(id % 2 == 0 ? EntityOfBasics.Gender.FEMALE : EntityOfBasics.Gender.MALE);
                session.persist(one);
            }
        });
    }

    @AfterAll static void drop() {
        if (gambit != null) { gambit.getSchemaManager().dropMappedObjects(false); gambit.close(); }
    }

    static final String[][] EXPRESSIONS = {
        {"count(e)", "5"}, {"sum(e.theInt)", "15"}, {"avg(e.theDouble)", "1.5"}, {"max(e.theString)", "text 5"}, {"min(e.theLocalDate)", "2020-02-21"}, {"count(distinct e.theBoolean)", "2"},
        {"listagg(e.theString, ',') within group (order by e.theInt desc)", "text 5,text 4,text 3,text 2,text 1"}, {"every(e.theInt > 0)", "true"}, {"any(e.theInt > 9)", "false"},
        {"stddev_pop(e.theInt)", "1.4142135623730951"}, {"var_pop(e.theInt)", "2.0"}, {"var_samp(e.theInt)", "2.5"}, {"sum(e.theInt) filter (where e.theInt > 3)", "9"},
    };
    static final String[][] SCALARS = {
        {"lower(e.theString)", "text 3"}, {"upper(e.theString)", "TEXT 3"}, {"concat(e.theString, '!', e.theInt)", "text 3!3"}, {"e.theString || '?'", "text 3?"}, {"substring(e.theString, 2, 3)", "ext"}, {"length(e.theString)", "6"},
        {"locate('t', e.theString, 2)", "4"}, {"position('x' in e.theString)", "3"}, {"trim(leading 't' from e.theString)", "ext 3"}, {"trim(both from '  a ')", "a"}, {"replace(e.theString, 'text', 'x')", "x 3"},
        {"overlay(e.theString placing 'AB' from 2 for 2)", "tABt 3"}, {"pad(e.theString with 8 trailing '*')", "text 3**"}, {"pad('a' with 3 leading)", "  a"}, {"left(e.theString, 2)", "te"}, {"right(e.theString, 2)", " 3"}, {"repeat('ab', 3)", "ababab"},
        {"ascii('A')", "65"}, {"chr(66)", "B"}, {"cast(e.theInt as String)", "3"}, {"cast('12' as Integer)", "12"}, {"cast(e.theDouble as Integer)", null}, {"cast('2020-01-02' as LocalDate)", "2020-01-02"}, {"cast(1.25 as BigDecimal)", null}, {"str(e.theInt)", "3"},
        {"abs(-e.theInt)", "3"}, {"sign(-e.theDouble)", "-1"}, {"sqrt(16)", "4.0"}, {"mod(e.theInt, 2)", "1"}, {"e.theInt % 2", "1"}, {"floor(e.theDouble)", "1.0"}, {"ceiling(e.theDouble)", "2.0"}, {"round(e.theDouble, 0)", "2.0"}, {"power(2, 10)", "1024.0"}, {"exp(0)", "1.0"}, {"ln(1)", "0.0"},
        {"log10(1000)", "3.0"}, {"truncate(1.567, 2)", null}, {"trunc(1.567, 1)", null}, {"pi", "3.141592653589793"}, {"degrees(pi)", "180.0"}, {"atan2(0, 1)", "0.0"}, {"greatest(1, e.theInt, 2)", "3"}, {"least(9, e.theInt)", "3"}, {"e.theInt / 2", "1"}, {"1.0 * e.theInt / 2", null},
        {"year(e.theLocalDate)", "2020"}, {"extract(month from e.theLocalDate)", "2"}, {"extract(day of week from e.theLocalDate)", "1"}, {"extract(day of year from e.theLocalDate)", "54"}, {"extract(week from e.theLocalDate)", "8"}, {"extract(quarter from e.theLocalDate)", "1"},
        {"extract(epoch from e.theLocalDateTime)", null}, {"extract(date from e.theLocalDateTime)", "2020-02-23"}, {"extract(time from e.theLocalDateTime)", "10:11:12"}, {"hour(e.theLocalTime)", "10"}, {"second(e.theLocalTime)", null}, {"minute(e.theLocalDateTime)", "11"},
        {"e.theLocalDate + 10 day", "2020-03-04"}, {"e.theLocalDateTime - 1 month", "2020-01-23T10:11:12"}, {"e.theLocalDateTime + 90 second", "2020-02-23T10:12:42"}, {"(e.theLocalDate - date 2020-01-01) by day", "53"}, {"(e.theLocalDateTime - e.theLocalDateTime) by second", "0"},
        {"timestampadd(day, 1, e.theLocalDate)", "2020-02-24"}, {"timestampdiff(day, date 2020-02-01, e.theLocalDate)", "22"}, {"timestampdiff(hour, e.theLocalDateTime, datetime 2020-02-24 10:11:12)", "24"}, {"format(e.theLocalDateTime as 'yyyy-MM-dd HH:mm:ss')", "2020-02-23 10:11:12"},
        {"truncate(e.theLocalDateTime, month)", "2020-02-01T00:00"}, {"e.theDuration", "PT6S"}, {"e.theUuid", "00000000-0000-0001-0000-000000000003"}, {"e.gender", "MALE"}, {"e.theInstant", null}, {"e.theBoolean", "false"},
        {"coalesce(e.theInteger, 0)", "30"}, {"nullif(e.theInt, 3)", "null"}, {"ifnull(e.theInteger, 1)", "30"}, {"case when e.theInt > 2 then 'big' else 'small' end", "big"}, {"case e.theInt when 3 then 'three' end", "three"}, {"e.theInt = 3", "true"}, {"e.theString like 'text%'", "true"},
        {"(select count(*) from EntityOfBasics x where x.theInt < e.theInt)", "2"}, {"row_number() over (order by e.theInt)", "1"}, {"lag(e.theInt) over (order by e.theInt)", "null"}, {"percent_rank() over (order by e.theInt)", "0.0"}, {"function('bit_length', 'a')", null}, {"e.theInt in (1, 2, 3)", "true"},
        {"regexp_like(e.theString, '^t.*3$')", null}, {"hex(e.theString)", null}, {"sql('? * 2', e.theInt)", null}, {"current_date is not null", "true"}, {"instant is not null", "true"}, {"collate(e.theString as utf8mb4_bin)", "text 3"}, {"cast(crc32('a') as Long)", "3904355907"}, {"bitand(e.theInt, 1)", "1"}, {"bitxor(6, 3)", "5"},
    };

    DynamicTest ask(String what, String from, String want) {
        return DynamicTest.dynamicTest(what.replaceAll("\\s+", " "), () -> gambit.inTransaction(session -> {
            Object got = session.createSelectionQuery("select " + what + " from EntityOfBasics e" + from, Object.class).getSingleResult();
            if (want != null) {
                String text = got instanceof BigDecimal number ? number.stripTrailingZeros().toPlainString() : String.valueOf(got);
                if (!text.equals(want)) assertEquals(want, String.valueOf(got));
            }
        }));
    }

    @TestFactory Stream<DynamicTest> aggregates() {
        return Arrays.stream(EXPRESSIONS).map(one -> ask(one[0], "", one[1]));
    }

    @TestFactory Stream<DynamicTest> expressions() {
        return Arrays.stream(SCALARS).map(one -> ask(one[0], " where e.theInt = 3", one[1]));
    }

    static final String[][] QUERIES = {
        {"select e.theInt from EntityOfBasics e order by e.theInteger nulls first, e.theInt desc", "[5, 1, 2, 3, 4]"}, {"select e.theInt from EntityOfBasics e order by e.theInteger desc nulls last limit 2 offset 1", "[3, 2]"},
        {"select e.theBoolean, count(*) from EntityOfBasics e group by e.theBoolean having count(*) > 2", null}, {"select e.theBoolean, sum(e.theInt) from EntityOfBasics e group by rollup(e.theBoolean)", null},
        {"select e.theInt from EntityOfBasics e where e.theInt in (select x.theInt from EntityOfBasics x where x.theBoolean) order by 1", "[2, 4]"}, {"select e.theInt from EntityOfBasics e where exists (select 1 from EntityOfBasics x where x.theInt = e.theInt + 4)", "[1]"},
        {"select e.theInt from EntityOfBasics e where e.theInt > all (select x.theInt from EntityOfBasics x where x.theInt < 4) order by e.theInt", "[4, 5]"}, {"select e.theInt from EntityOfBasics e where e.theInt < 2 union all select x.theInt from EntityOfBasics x where x.theInt > 4 order by 1", "[1, 5]"},
        {"select e.theInt from EntityOfBasics e where e.theInt < 4 except select x.theInt from EntityOfBasics x where x.theInt < 3", "[3]"}, {"select e.theInt from EntityOfBasics e where e.theInt < 4 intersect select x.theInt from EntityOfBasics x where x.theInt > 2", "[3]"},
        {"with few as (select e.theInt as n from EntityOfBasics e where e.theInt < 3) select f.n from few f order by f.n", "[1, 2]"}, {"with n as (select 1 as v union all select c.v + 1 as v from n c where c.v < 4) select x.v from n x order by x.v", "[1, 2, 3, 4]"},
        {"select s.m from (select max(e.theInt) as m from EntityOfBasics e) s", "[5]"}, {"select x.n from EntityOfBasics e join lateral (select e.theInt * 2 as n) x where e.theInt = 2", "[4]"}, {"select e.theInt from EntityOfBasics e where (e.theInt, e.theBoolean) = (2, true)", "[2]"},
        {"select sum(e.theInt) over (partition by e.theBoolean order by e.theInt rows between 1 preceding and current row) from EntityOfBasics e order by e.theInt", "[1, 2, 4, 6, 8]"}, {"select distinct e.theBoolean from EntityOfBasics e order by e.theBoolean", "[false, true]"},
    };

    @TestFactory Stream<DynamicTest> queries() {
        return Arrays.stream(QUERIES).map(one -> DynamicTest.dynamicTest(one[0], () -> gambit.inTransaction(session -> {
            var got = session.createSelectionQuery(one[0], Object.class).getResultList();
            if (one[1] != null) assertEquals(one[1], got.toString());
        })));
    }

    @TestFactory Stream<DynamicTest> locks() {
        return Stream.of(LockMode.PESSIMISTIC_READ, LockMode.PESSIMISTIC_WRITE, LockMode.UPGRADE_NOWAIT, LockMode.UPGRADE_SKIPLOCKED, LockMode.READ)
            .map(mode -> DynamicTest.dynamicTest("lock " + mode, () -> gambit.inTransaction(session -> {
                session.find(EntityOfBasics.class, 1, new LockOptions(mode).getLockMode().toJpaLockMode());
                session.createSelectionQuery("from EntityOfBasics e where e.theInt = 2", EntityOfBasics.class).setHibernateLockMode(mode).getSingleResult();
            })));
    }

    @Test void nowaitMeetsALock() {
        gambit.inTransaction(one -> {
            one.find(EntityOfBasics.class, 1, jakarta.persistence.LockModeType.PESSIMISTIC_WRITE);
            assertThrows(PessimisticLockException.class, () -> { try { gambit.inTransaction(two -> two.createSelectionQuery("from EntityOfBasics e where e.id = 1", EntityOfBasics.class).setHibernateLockMode(LockMode.UPGRADE_NOWAIT).list()); }
                catch (jakarta.persistence.PessimisticLockException | jakarta.persistence.LockTimeoutException e) { throw new PessimisticLockException("locked", null, null); } });
            gambit.inTransaction(two -> assertEquals(4, two.createSelectionQuery("from EntityOfBasics e", EntityOfBasics.class).setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).list().size()));
        });
    }

    @Test void changesByQuery() {
        gambit.inTransaction(session -> {
            assertEquals(1, session.createMutationQuery("insert into SimpleEntity (id, someString) select e.id + 100, e.theString from EntityOfBasics e where e.theInt = 1").executeUpdate());
            assertEquals(1, session.createMutationQuery("update SimpleEntity s set s.someString = upper(s.someString) where s.id = 101").executeUpdate());
            assertEquals(1, session.createMutationQuery("insert into SimpleEntity (id, someString) values (101, 'x') on conflict (id) do update set someString = excluded.someString").executeUpdate() > 0 ? 1 : 0);
            assertEquals("x", session.createSelectionQuery("select s.someString from SimpleEntity s where s.id = 101", String.class).getSingleResult());
            assertEquals(1, session.createMutationQuery("delete from SimpleEntity s where s.id in (select e.id + 100 from EntityOfBasics e)").executeUpdate());
        });
    }

    @Test void batches() {
        gambit.inTransaction(session -> {
            for (int id = 1000; id < 1300; id++) { SimpleEntity one = new SimpleEntity(); one.setId(id); one.setSomeString("s" + id); one.setSomeLong((long) id); session.persist(one); }
        });
        gambit.inTransaction(session -> {
            assertEquals(300, session.createMutationQuery("delete from SimpleEntity s where s.id >= 1000").executeUpdate());
        });
    }

    @Test void violations() {
        assertThrows(org.hibernate.exception.ConstraintViolationException.class, () -> gambit.inTransaction(session -> {
            EntityOfBasics twice = new EntityOfBasics(); twice.setId(1);
            session.persist(twice); session.flush();
        }));
    }

    @Test void metadataOfEveryTable() throws Exception {
        try (var connection = java.sql.DriverManager.getConnection(URL, "program", "secret")) {
            var meta = connection.getMetaData();
            int tables = 0;
            try (var found = meta.getTables("hibernate", null, "%", new String[] {"TABLE"})) {
                while (found.next()) {
                    tables++;
                    String name = found.getString("TABLE_NAME");
                    for (var result : List.of(meta.getColumns("hibernate", null, name, "%"), meta.getPrimaryKeys("hibernate", null, name), meta.getImportedKeys("hibernate", null, name), meta.getExportedKeys("hibernate", null, name), meta.getIndexInfo("hibernate", null, name, false, true)))
                        try (result) { while (result.next()) result.getString(3); }
                }
            }
            assertTrue(tables > 10);
        }
    }
}
