"""MediaWiki: installed, written in, searched, exported, imported and upgraded by its maintenance programs, its pages and its API.

Its search needs FULLTEXT indexes, so that its tables are made with `ignore_unsupported_constraints` here.
"""

import json
import pathlib
import re
import subprocess
import tempfile
import urllib.parse

from omnibus import MariaDB, client, expect
from webapp import Pages, Steps, plain

PASSWORD = "Secret-of-7-words"


def suite(root, server):
    steps, tree = Steps("MediaWiki"), root / "usr/share/mediawiki"
    client(server, "DROP DATABASE IF EXISTS mediawiki")
    if ours := not isinstance(server, MariaDB):
        client(server, "SET GLOBAL ignore_unsupported_constraints = ON")
    with tempfile.TemporaryDirectory(prefix="omnibus-mediawiki-") as scratch:
        Wiki(tree, pathlib.Path(scratch), steps, server).run()
    if ours:
        client(server, "SET GLOBAL ignore_unsupported_constraints = DEFAULT")
    return steps.result()


class Wiki:
    def __init__(self, tree, scratch, steps, server):
        self.tree, self.scratch, self.steps, self.server, self.pages = tree, scratch, steps, server, None

    def run(self):
        try:
            for name in ("install", "log_in", "edit", "history", "links", "move_and_delete", "users", "watch", "special_pages", "search", "export_and_import",
                         "maintenance", "upgrade"):
                with self.steps(name.replace("_", " ")):
                    getattr(self, name)()
                    told = [line for line in (self.pages.said().splitlines() if self.pages else []) if re.search(r"PHP (Fatal|Warning)|DBQueryError", line)]
                    expect(not told, "\n".join(told[:5]))
        finally:
            if self.pages:
                self.pages.close()

    def program(self, name, *arguments, stdin=None, config=True):
        command = ["php", self.tree / "maintenance" / f"{name}.php", *(["--conf", self.scratch / "LocalSettings.php"] if config else []), *arguments]
        done = subprocess.run(list(map(str, command)), input=stdin, capture_output=True, text=True)
        said = done.stdout + done.stderr
        expect(done.returncode == 0 and "DBQueryError" not in said, f"{name}: {said[:700]}")
        return done.stdout

    def install(self):
        self.program("install", "--dbtype=mysql", f"--dbserver=127.0.0.1:{self.server.port}", "--dbname=mediawiki", "--installdbuser=program",
                     "--installdbpass=secret", "--dbuser=program", "--dbpass=secret", f"--pass={PASSWORD}", f"--confpath={self.scratch}", "--scriptpath=",
                     "--server=http://127.0.0.1", "--with-extensions", "Omnibus wiki", "Admin", config=False)
        settings = self.scratch / "LocalSettings.php"
        text = settings.read_text() + (
            f"\n$wgServer = 'http://127.0.0.1:' . getenv('PROGRAMS_PORT'); $wgCacheDirectory = '{self.scratch}/cache'; $wgShowExceptionDetails = true;"
            "\n$wgMainCacheType = CACHE_DB; $wgJobRunRate = 0; $wgEnableUploads = false; $wgAllowExternalImages = false; $wgRateLimits = [];\n")
        settings.write_text(text)
        self.pages = Pages(self.tree, self.scratch, MW_CONFIG_FILE=settings)
        expect("Main Page" in self.pages.get("/index.php?title=Main_Page"), "the first page")

    def api(self, fails=False, **fields):
        token = {name: self.token(kind) for name, kind in (("token", fields.pop("csrf", None)),) if kind}
        text = self.pages.get("/api.php", {"format": "json", "formatversion": "2", **fields, **token})
        answer = json.loads(text)
        expect(fails or "error" not in answer, f"{fields}: {text[:600]}")
        return answer

    def token(self, kind="csrf"):
        return self.api(action="query", meta="tokens", type=kind)["query"]["tokens"][f"{kind}token"]

    def log_in(self):
        answer = self.api(action="clientlogin", username="Admin", password=PASSWORD, loginreturnurl="http://127.0.0.1/", logintoken=self.token("login"))
        expect(answer["clientlogin"]["status"] == "PASS", answer)

    def write(self, title, text, **more):
        return self.api(action="edit", title=title, text=text, csrf="csrf", **more)["edit"]

    def edit(self):
        for n in range(1, 16):
            self.write(f"Article {n} über Züge", f"== Head {n} ==\nWord{n} and common [[Article {n + 1} über Züge]] 🚂 [[Category:Cat{n % 3}]] {{{{Box|{n}}}}}\n" * n)
        self.write("Template:Box", "<b>box {{{1}}}</b> [http://example.com/{{{1}}} out]")
        for change in range(4):
            self.write("Article 1 über Züge", f"changed {change} [[Category:Cat1]] [[Article 2 über Züge]] {{{{Box|1}}}}", summary=f"the {change}th ☃")
        old = self.api(action="query", prop="revisions", titles="Article 2 über Züge", rvprop="ids|timestamp")["query"]["pages"][0]["revisions"][0]
        self.write("Article 2 über Züge", "newer", baserevid=old["revid"])
        self.api(action="edit", title="Article 2 über Züge", appendtext=" appended", section="0", csrf="csrf")
        expect("box 1" in self.pages.get("/index.php?title=" + urllib.parse.quote("Article 1 über Züge")), "a template in a page")

    def history(self):
        page = self.api(action="query", prop="revisions", titles="Article 1 über Züge", rvprop="ids|comment|user|content", rvlimit="10", rvslots="main")
        revisions = page["query"]["pages"][0]["revisions"]
        expect(len(revisions) == 5 and revisions[0]["comment"] == "the 3th ☃", revisions[:2])
        expect("changed" in plain(self.pages.get(f"/index.php?diff={revisions[0]['revid']}&oldid={revisions[2]['revid']}")), "a difference")
        self.api(action="edit", title="Article 1 über Züge", undo=revisions[0]["revid"], csrf="csrf")
        self.api(action="rollback", title="Article 1 über Züge", user="Admin", fails=True, csrf="rollback")
        expect("Revision history" in plain(self.pages.get("/index.php?action=history&title=" + urllib.parse.quote("Article 1 über Züge"))), "the page of a history")

    def links(self):
        self.program("runJobs")
        members = self.api(action="query", list="categorymembers", cmtitle="Category:Cat1", cmlimit="50")["query"]["categorymembers"]
        expect(len(members) == 5, f"{len(members)} in a category")
        back = self.api(action="query", list="backlinks", bltitle="Article 2 über Züge")["query"]["backlinks"]
        expect([page["title"] for page in back] == ["Article 1 über Züge"], back)
        expect(len(self.api(action="query", list="embeddedin", eititle="Template:Box", eilimit="50")["query"]["embeddedin"]) == 14, "users of a template")
        expect(len(self.api(action="query", list="exturlusage", euquery="example.com", eulimit="50")["query"]["exturlusage"]) >= 14, "links to elsewhere")
        expect("Article" in plain(self.pages.get("/index.php?title=Category:Cat1")), "a category's page")

    def move_and_delete(self):
        self.api(action="move", **{"from": "Article 3 über Züge"}, to="Moved page", reason="so", movetalk="1", csrf="csrf")
        self.api(action="delete", title="Article 4 über Züge", reason="gone", csrf="csrf")
        expect("missing" in self.api(action="query", titles="Article 4 über Züge")["query"]["pages"][0], "a deleted page is there")
        deleted = self.api(action="query", list="alldeletedrevisions", adrlimit="10")["query"]["alldeletedrevisions"]
        expect(deleted and deleted[0]["title"] == "Article 4 über Züge", deleted)
        self.api(action="undelete", title="Article 4 über Züge", csrf="csrf")
        expect("missing" not in self.api(action="query", titles="Article 4 über Züge")["query"]["pages"][0], "a page is not back")
        self.api(action="protect", title="Moved page", protections="edit=sysop|move=sysop", expiry="infinite", csrf="csrf")
        logs = {event["type"] for event in self.api(action="query", list="logevents", lelimit="50")["query"]["logevents"]}
        expect({"move", "delete", "protect"} <= logs, logs)

    def users(self):
        for name in ("Writer", "Zoë"):
            self.program("createAndPromote", name, PASSWORD, "--bureaucrat")
        self.api(action="userrights", user="Zoë", add="sysop", reason="so", csrf="userrights")
        self.api(action="block", user="Writer", expiry="1 day", reason="so", csrf="csrf")
        found = self.api(action="query", list="allusers", auprop="groups|editcount|blockinfo", aulimit="50")["query"]["allusers"]
        expect([user["name"] for user in found] == ["Admin", "MediaWiki default", "Writer", "Zoë"][:len(found)] or len(found) >= 3, found)
        self.api(action="unblock", user="Writer", csrf="csrf")
        expect("sysop" in str([user for user in found if user["name"] == "Zoë"]), found)

    def watch(self):
        self.api(action="watch", titles="Moved page|Article 5 über Züge", expiry="1 month", csrf="watch")
        self.write("Article 5 über Züge", "watched change")
        self.api(action="query", list="watchlist", wllimit="20", wlallrev="1")
        raw = self.api(action="query", list="watchlistraw", wrlimit="50")["watchlistraw"]
        expect(any(page["title"] == "Moved page" for page in raw), raw)
        changes = self.api(action="query", list="recentchanges", rclimit="100", rcprop="title|ids|sizes|user|flags|tags")["query"]["recentchanges"]
        expect(len(changes) > 25, f"{len(changes)} recent changes")

    def special_pages(self):
        for page in ("RecentChanges", "AllPages", "Statistics", "ListUsers", "Log", "Watchlist", "NewPages", "LongPages", "ShortPages", "UncategorizedPages", "WantedPages",
                     "MostLinkedCategories", "MostLinkedPages", "AncientPages", "LonelyPages", "DoubleRedirects", "ProtectedPages", "BlockList", "Contributions/Admin",
                     "WhatLinksHere/Moved_page", "RecentChangesLinked/Moved_page", "Categories", "LinkSearch?target=http://example.com", "Version", "SpecialPages", "Preferences",
                     "PrefixIndex/Article", "ActiveUsers", "MIMESearch", "Tags", "UnwatchedPages", "DeletedContributions/Admin", "FewestRevisions", "MostRevisions"):
            name, _, query = page.partition("?")
            said = self.pages.get(f"/index.php?title=Special:{name}&{query}", fails=True)
            expect("Database error" not in said and "DBQueryError" not in said, f"{page}: {plain(said)[:400]}")

    def search(self):
        self.program("rebuildtextindex")
        found = self.api(action="query", list="search", srsearch="common", srwhat="text", srlimit="50")["query"]["search"]
        expect(len(found) > 10, found)

    def export_and_import(self):
        dump = self.program("dumpBackup", "--full", "--quiet")
        expect(dump.count("<page>") >= 18 and dump.count("<revision>") > 22, f"{dump.count('<page>')} pages")
        (self.scratch / "in.xml").write_text(dump.replace("Article ", "Imported "))
        self.program("importDump", "--no-updates", self.scratch / "in.xml")
        expect("missing" not in self.api(action="query", titles="Imported 7 über Züge")["query"]["pages"][0], "an imported page is not there")
        pages = self.api(action="query", list="allpages", apprefix="Imported", aplimit="50")["query"]["allpages"]
        expect(len(pages) >= 15, f"{len(pages)} imported")

    def maintenance(self):
        for name, *arguments in (("refreshLinks",), ("rebuildrecentchanges",), ("initSiteStats", "--update"), ("updateSpecialPages",), ("runJobs",),
                                 ("deleteOldRevisions", "--delete"), ("checkUsernames",), ("namespaceDupes", "--fix"), ("cleanupTitles",), ("showSiteStats",),
                                 ("recountCategories", "--mode=pages"), ("purgeParserCache", "--age=0"), ("attachLatest", "--fix"),
                                 ("updateArticleCount", "--update"), ("sql", "--query=SELECT COUNT(*) FROM page")):
            self.program(name, *arguments)
        self.api(action="query", meta="siteinfo", siprop="general|statistics|dbrepllag")

    def upgrade(self):
        """Nothing is to be done to an installed version's tables; what an older version lacks is made again."""
        said = self.program("update", "--quick", "--doshared")
        expect("Done in" in said or "complete" in said.lower(), said[-400:])
        client(self.server, """ALTER TABLE mediawiki.user DROP COLUMN user_is_temp""", check=False)
        client(self.server, """ALTER TABLE mediawiki.watchlist DROP KEY wl_user_notificationtimestamp; DROP TABLE mediawiki.linktarget;
            DELETE FROM mediawiki.updatelog; ALTER TABLE mediawiki.recentchanges DROP KEY rc_new_name_timestamp, ADD KEY new_name_timestamp (rc_new, rc_namespace, rc_timestamp)""",
               check=False)
        self.program("update", "--quick")
        expect(client(self.server, "SHOW TABLES FROM mediawiki LIKE 'linktarget'") == "linktarget\n", "a table is not made again")
