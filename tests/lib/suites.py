"""How the suites of `tests/programs` are run, and what is read from what they say.

Each takes the folders of what is installed, by language, a server, and whether all is wanted or a sample; it gives the names of the tests that
failed, and how many there were. A suite that did not come to its end fails the script.
"""

import functools
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from omnibus import ROOT, MariaDB, client, expect

PROGRAMS = ROOT / "tests/programs"
# What is run: in the sample, and beside it in the whole form.
DJANGO = ["introspection", "constraints", "expressions_window"], ["backends", "schema", "migrations", "migrations2", "queries"]
DIALECT = "test/dialect/test_suite.py"
# Tests that ask a clock whether they pass, or the internet.
BY_TIME = ["TestConnectorReturnsTimeout", "TestStaleConnectionChecks"]
SQLALCHEMY = [f"{DIALECT}::{name}" for name in ("JSONTest", "QuotedNameArgumentTest", "RowCountTest", "ReturningTest", "UuidTest")], \
    [DIALECT, "test/dialect/mysql"]


def run(command, folder, **env):
    """What it says."""
    done = subprocess.run(list(map(str, command)), cwd=folder, env=dict(os.environ, **{name: str(value) for name, value in env.items()}),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace")


def fresh(server, *databases, options=""):
    client(server, "".join(f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name} {options};" for name in databases))


def python(command, folder, paths, server):
    return run(["/usr/bin/python3", "-W", "ignore", *command], folder, PROGRAMS_SOCKET=server.socket,
               PYTHONPATH=os.pathsep.join(map(str, paths)), PYTHONDONTWRITEBYTECODE="1")


def django(installed, server, whole):
    installed = installed["python"]
    labels = DJANGO[0] + (DJANGO[1] if whole else [])
    said = python(["runtests.py", "--settings=django_settings", "--parallel=1", "--noinput", *labels], installed / "django/tests",
                  [installed / "django", installed / "python", PROGRAMS], server)
    count = re.search(r"^Ran (\d+) tests", said, re.M)
    expect(count, f"Django's suite did not end:\n{said[-3000:]}")
    return {name for name in re.findall(r"^(?:FAIL|ERROR): \w+ \(([\w.]+)\)", said, re.M)}, int(count[1])


def sqlalchemy(installed, server, whole):
    """Where a test's variants fail, its name stands once."""
    installed = installed["python"]
    fresh(server, "test", "test_schema")
    files = SQLALCHEMY[1] if whole else SQLALCHEMY[0]
    said = python(["-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--maxfail=100000", "--dburi",
                   f"mysql+pymysql://root@localhost/test?unix_socket={server.socket}", *files], installed / "sqlalchemy",
                  [installed / "sqlalchemy/lib", installed / "python"], server)
    end = re.search(r"^=+ (.*) in [\d.]+s", said, re.M)
    expect(end, f"SQLAlchemy's suite did not end:\n{said[-3000:]}")
    failed = {re.sub(r"_(mysql|mariadb)\+pymysql_[\d_]+", "", name) for name in re.findall(r"^(?:FAILED|ERROR) \S*?::(\w.*?)(?:\[| - |$)", said, re.M)}
    failed = {re.sub(r"_(mysql|mariadb)\+pymysql_[\d_]+", "", name).replace("::", ".") for name in failed}
    return failed, sum(int(n) for n, kind in re.findall(r"(\d+) (\w+)", end[1]) if kind in ("passed", "failed", "error", "errors"))


def go(name, installed, *arguments, **env):
    """A program that `go test -c` has made. A test that panics ends it: it is run again for those that it did not come to."""
    failed, skip = set(), set(BY_TIME)
    while True:
        with tempfile.TemporaryDirectory(prefix="omnibus-go-") as folder:
            said = run([installed["go"] / f"{name}.test", "-test.v", "-test.timeout=20m", f"-test.skip=^({'|'.join(sorted(skip))})$", *arguments],
                       folder, **env)
        begun = set(re.findall(r"^=== RUN +(\w+)$", said, re.M))
        failed |= set(re.findall(r"^ *--- FAIL: (\S+)", said, re.M))
        if re.search(r"^(PASS|FAIL)$", said, re.M):
            return {re.sub(r"#\d+$", "", one) for one in failed}, len((begun | skip).difference(BY_TIME))
        expect(begun, f"{name}: its tests did not end:\n{said[-3000:]}")
        failed |= begun - set(re.findall(r"^--- (?:PASS|FAIL|SKIP): (\w+)", said, re.M))
        skip |= begun


def go_mysql(installed, server, whole):
    fresh(server, "gotest")
    return go("mysql", installed, *([] if whole else ["-test.run=^Test(CRUD|Date|Null|Rows|Prepared|LoadData|Multi|RejectReadOnly)"]),
              MYSQL_TEST_PROT="unix", MYSQL_TEST_ADDR=server.socket)


def gorm(installed, server, whole):
    """The first version's own suite, that of the second's types for columns, and one here for the second."""
    failed, count = set(), 0
    dsn = f"root@unix({server.socket})/gorm?charset=utf8mb4&parseTime=True&loc=UTC"
    for name in ("gorm2", "gorm1", "datatypes") if whole else ("gorm2",):
        fresh(server, "gorm", options="CHARACTER SET utf8mb4")
        more, n = go(name, installed, GORM_DIALECT="mysql", GORM_DSN=dsn, DEBUG="false")
        failed |= {f"{name}.{one}" for one in more}
        count += n
    return failed, count


def xorm(installed, server, whole):
    fresh(server, "xorm_test", options="CHARACTER SET utf8mb4")
    return go("xorm", installed, "-db=mysql", "-show_sql=false", f"-conn_str=root:@unix({server.socket})/xorm_test?charset=utf8mb4",
              *([] if whole else ["-test.run=^Test(Sync|Insert|Get|Find)"]))


def node(name, folder, installed, server, _):
    fresh(server, name, options="CHARACTER SET utf8mb4")
    said = run(["node", "--test", "--test-reporter=tap", installed[folder] / f"{name}.mjs"], installed[folder], PROGRAMS_SOCKET=server.socket, PROGRAMS_PORT=server.port,
               PROGRAMS_KIND="mariadb" if isinstance(server, MariaDB) else "mysql")
    results = re.findall(r"^ *(not ok|ok) \d+ - (.*)$", said, re.M)
    expect(len(results) > 5, f"{name}: its tests did not end:\n{said[-3000:]}")
    return {test for result, test in results if result != "ok"}, len(results)


def java(name, databases, drivers, installed, server, whole):
    """A class of `tests/programs/java`, through the drivers, or the first of them."""
    failed, count, folder = set(), 0, installed["java"]
    for driver in drivers[:None if whole else 1]:
        fresh(server, *databases, options="CHARACTER SET utf8mb4")
        with tempfile.TemporaryDirectory(prefix="omnibus-java-") as reports:
            said = run(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{folder}/*", "org.junit.platform.console.ConsoleLauncher", "execute",
                        "--disable-banner", "--details=none", f"--reports-dir={reports}", f"--select-class={name}"], reports,
                       PROGRAMS_URL=f"jdbc:{driver}://127.0.0.1:{server.port}/", PROGRAMS_OPTIONS="allowPublicKeyRetrieval=true&useSSL=false")
            cases = [case for report in pathlib.Path(reports).glob("*jupiter.xml") for case in xml.etree.ElementTree.parse(report).iter("testcase")]
        expect(cases, f"{name}: its tests did not end:\n{said[-3000:]}")
        count += len(cases)
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                shown = re.search(r"display-name: (.*)", case.findtext("system-out") or "")
                failed.add(f"{driver}: {shown[1] if shown else case.get('name')}")
    return failed, count


def activerecord(installed, server, whole):
    """All in one process, in an order of its own that never changes. Its schema has FULLTEXT indexes."""
    fresh(server, "activerecord_unittest", "activerecord_unittest2", options="CHARACTER SET utf8mb4")
    if ours := not isinstance(server, MariaDB):
        client(server, "SET GLOBAL ignore_unsupported_constraints = ON")
    files = "cases/**/*_test.rb" if whole else "cases/{adapters/mysql2/{json,sp,transaction,explain,virtual_column}*,migration/{columns,index,references}*,insert_all,view}_test.rb"
    tests = installed["ruby"] / "rails/activerecord/test"
    with tempfile.TemporaryDirectory(prefix="omnibus-rails-") as folder:
        shutil.copytree(tests, pathlib.Path(folder) / "test", symlinks=True)
        said = run(["ruby", "-W0", "-Itest", "-e", f"Dir['test/{files}'].sort.each {{ |file| require './' + file }}", "--", "--seed", "1", "-v"], folder,
                   PROGRAMS_SOCKET=server.socket, ARCONN="mysql2", ARCONFIG=PROGRAMS / "ruby/rails.yml", LANG="C.UTF-8")
    if ours:
        client(server, "SET GLOBAL ignore_unsupported_constraints = DEFAULT")
    count = re.search(r"^(\d+) runs, \d+ assertions", said, re.M)
    expect(count, f"ActiveRecord's suite did not end:\n{said[-3000:]}")
    failed = re.findall(r"^(\w[\w:]*#.*?) = [\d.]+ s = [FE]$", said, re.M)
    return set(failed) | set(re.findall(r"^ +\d+\) (?:Failure|Error):\n(\w[\w:]*#[^\s\[]+?)(?: \[|:$)", said, re.M)), int(count[1])



def web(name, installed, server, _):
    """A module of `tests/programs/web`."""
    sys.path.insert(0, str(PROGRAMS / "web"))
    return importlib.import_module(name).suite(installed["web"], server)


# Too large for the sample.
LARGE = {"Prisma", "WordPress", "MediaWiki", "Zabbix", "Icinga"}
SUITES = {
    "Django": django,
    "SQLAlchemy": sqlalchemy,
    "go-sql-driver": go_mysql,
    "GORM": gorm,
    "xorm": xorm,
    "ActiveRecord": activerecord,
    "Knex": functools.partial(node, "knex", "node"),
    "Sequelize": functools.partial(node, "sequelize", "node"),
    "TypeORM": functools.partial(node, "typeorm", "node"),
    "Prisma": functools.partial(node, "prisma", "prisma"),
    "Flyway": functools.partial(java, "FlywayTest", ["flyway", "flyway_other"], ["mysql", "mariadb"]),
    "Liquibase": functools.partial(java, "LiquibaseTest", ["liquibase", "liquibase_other"], ["mysql", "mariadb"]),
    "Hibernate": functools.partial(java, "HibernateTest", ["hibernate", "hibernate_models"], ["mysql"]),
    "WordPress": functools.partial(web, "wordpress"),
    "MediaWiki": functools.partial(web, "mediawiki"),
    "Zabbix": functools.partial(web, "zabbix"),
    "Icinga": functools.partial(web, "icinga"),
}
