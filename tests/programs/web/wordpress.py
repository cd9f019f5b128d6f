"""WordPress: installed, written in, searched, exported, upgraded and emptied by its pages and its REST API, as a browser does."""

import concurrent.futures
import json
import pathlib
import re
import tempfile

from omnibus import client, expect
from webapp import Pages, Steps, plain

CONFIG = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'program'); define('DB_PASSWORD', 'secret'); define('DB_HOST', '127.0.0.1:%d');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) { define($name . '_KEY', 'k' . $name); define($name . '_SALT', 's' . $name); }
$table_prefix = 'wp_';
define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', false); define('WP_DEBUG_LOG', false); define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true); define('AUTOMATIC_UPDATER_DISABLED', true); define('WP_CONTENT_DIR', '%s');
if (!defined('ABSPATH')) define('ABSPATH', '%s/');
require_once ABSPATH . 'wp-settings.php';
"""
PASSWORD = "Secret-of-7-words"


def suite(root, server):
    steps, tree = Steps("WordPress"), root / "usr/share/wordpress"
    client(server, "DROP DATABASE IF EXISTS wordpress; CREATE DATABASE wordpress")
    with tempfile.TemporaryDirectory(prefix="omnibus-wordpress-") as scratch:
        content = pathlib.Path(scratch) / "content"
        (content / "uploads").mkdir(parents=True)
        for part in ("themes", "plugins"):
            (content / part).symlink_to(tree / "wp-content" / part)
        config = pathlib.Path(scratch) / "config.php"
        config.write_text(CONFIG % (server.port, content, tree))
        with Pages(tree, scratch, "-d", "display_errors=0", "-d", "log_errors=1", PROGRAMS_CONFIG=config) as pages:
            Site(pages, steps, server).run()
    return steps.result()


class Site:
    def __init__(self, pages, steps, server):
        self.pages, self.steps, self.server, self.nonce = pages, steps, server, None

    def rest(self, path, data=None, method=None, fails=False):
        path, _, query = path.partition("?")
        return json.loads(self.pages.get(f"/index.php?rest_route=/wp/v2/{path}&{query}", data, {"X-WP-Nonce": self.nonce, "json": True}, method, fails))

    def run(self):
        for name in ("install", "log_in", "posts", "terms", "comments", "users", "search", "options", "concurrent", "export_and_tools", "upgrade", "empty"):
            with self.steps(name.replace("_", " ")):
                getattr(self, name)()
                told = [line for line in self.pages.said().splitlines() if re.search(r"WordPress database error|PHP Fatal|mysqli", line)]
                expect(not told, "\n".join(told[:5]))

    def install(self):
        said = self.pages.get("/wp-admin/install.php?step=2", {
            "weblog_title": "Omnibus ☃ site", "user_name": "admin", "admin_password": PASSWORD, "admin_password2": PASSWORD, "pw_weak": "1",
            "admin_email": "admin@example.com", "blog_public": "1", "Submit": "Install WordPress", "language": ""})
        expect("Success!" in said, plain(said)[:500])
        expect(len(client(self.server, "SHOW TABLES FROM wordpress").split()) == 12, "its twelve tables")
        # PHP's web server does not know the paths that the installer chooses.
        client(self.server, "UPDATE wordpress.wp_options SET option_value = '' WHERE option_name = 'permalink_structure'")

    def log_in(self):
        self.pages.get("/wp-login.php")
        said = self.pages.get("/wp-login.php", {"log": "admin", "pwd": PASSWORD, "wp-submit": "Log In", "testcookie": "1", "redirect_to": "/wp-admin/"})
        expect("Dashboard" in said, plain(said)[:300])
        self.nonce = self.pages.get("/wp-admin/admin-ajax.php?action=rest-nonce")

    def posts(self):
        self.ids = [self.rest("posts", {"title": f"Note {n} über Züge 🚂", "content": f"<p>Word{n} and <b>common</b> text {'x' * 200 * n}</p>",
                                        "status": "publish" if n % 5 else "draft", "date": f"2024-{n % 12 + 1:02}-10T10:00:00"})["id"] for n in range(1, 21)]
        for change in range(3):
            self.rest(f"posts/{self.ids[0]}", {"content": f"changed {change} — “quoted”"})
        expect(len(self.rest(f"posts/{self.ids[0]}/revisions")) == 3, "revisions")
        expect(self.rest(f"posts/{self.ids[0]}")["title"]["rendered"] == "Note 1 über Züge 🚂", "a title")
        page = self.rest("posts?per_page=5&page=2&orderby=title&order=asc")
        expect(len(page) == 5, f"the second page: {len(page)}")
        expect(len(self.rest("posts?after=2024-06-01T00:00:00&before=2024-08-30T00:00:00")) == 5, "posts of a time")
        self.rest("posts", {"title": "to be deleted", "status": "publish"})
        gone = self.rest("posts?search=deleted")[0]["id"]
        self.rest(f"posts/{gone}&force=1", method="DELETE")
        expect(not self.rest("posts?search=deleted"), "a deleted post is found")
        expect("Note 3" in plain(self.pages.get(f"/?p={self.ids[2]}")), "a post's page")
        for path in ("/?m=202405", "/?author=1", "/?feed=rss2", "/?paged=2"):
            expect("Note" in self.pages.get(path), path)
        expect("Note" in plain(self.pages.get("/wp-admin/edit.php?orderby=title&order=desc&s=Note")), "the list of posts")

    def terms(self):
        outer = self.rest("categories", {"name": "Outer"})["id"]
        inner = self.rest("categories", {"name": "Inner ß", "parent": outer, "slug": "inner"})["id"]
        tags = [self.rest("tags", {"name": f"tag{n}"})["id"] for n in range(5)]
        for n, post in enumerate(self.ids[:10]):
            self.rest(f"posts/{post}", {"categories": [inner if n % 2 else outer], "tags": tags[:n % 5 + 1]})
        counts = {term["name"]: term["count"] for term in self.rest("tags?per_page=10&orderby=count&order=desc")}
        expect(counts["tag0"] > counts["tag3"] > 0, counts)
        expect(len(self.rest(f"posts?tags={tags[0]},{tags[1]}&categories={inner}")) > 0, "posts by two terms")
        expect(len(self.rest(f"posts?tags_exclude={tags[0]}&per_page=100")) > 5, "posts without a term")
        expect("Note" in plain(self.pages.get(f"/?cat={inner}")), "a category's page")

    def comments(self):
        for n in range(5):
            self.rest("comments", {"post": self.ids[1], "content": f"comment {n} 👍", "author_name": "x", "author_email": "x@example.com", "status": "approved"})
        first = self.rest(f"comments?post={self.ids[1]}&order=asc")
        expect(len(first) == 5, f"{len(first)} comments")
        self.rest("comments", {"post": self.ids[1], "content": "an answer", "parent": first[0]["id"], "status": "approved"})
        self.rest(f"comments/{first[1]['id']}", {"status": "hold"})
        expect("comment 2" in plain(self.pages.get(f"/?p={self.ids[1]}")), "comments of a page")
        expect(client(self.server, f"SELECT comment_count FROM wordpress.wp_posts WHERE ID = {self.ids[1]}") == "5\n", "the count of comments")
        expect("comment" in plain(self.pages.get("/wp-admin/edit-comments.php?comment_status=all&s=comment")), "the list of comments")

    def users(self):
        for role in ("editor", "author", "subscriber"):
            self.rest("users", {"username": f"u_{role}", "email": f"{role}@example.com", "password": PASSWORD, "roles": [role], "first_name": "Zoë"})
        expect([user["slug"] for user in self.rest("users?roles=editor")] == ["u_editor"], "users by role")
        expect(len(self.rest("users?search=example.com&context=edit")) == 4, "users by a part of their address")
        expect("u_author" in self.pages.get("/wp-admin/users.php?orderby=email"), "the list of users")
        author = self.rest("users?roles=author")[0]["id"]
        self.rest(f"users/{author}&force=1&reassign=1", method="DELETE")

    def search(self):
        expect([post["id"] for post in self.rest("posts?search=Word7")] == [self.ids[6]], "one word")
        expect(len(self.rest("posts?search=common&per_page=100")) == 15, "a word of all")
        expect(len(self.rest("posts?search=ZUGE&per_page=100")) == 16, "without regard to accents and case")
        expect("Word" in plain(self.pages.get("/?s=Word+common")), "the page of a search")
        expect(len(self.rest("search?search=Word8")) == 1, "the search over all kinds")

    def options(self):
        self.rest("settings", {"title": "Another ☃", "posts_per_page": 3})
        expect(self.rest("settings")["title"] == "Another ☃", "a setting")
        for page in ("options-general.php", "options-permalink.php", "themes.php", "plugins.php", "site-health.php", "site-health.php?tab=debug", "upload.php", "index.php"):
            expect("Fatal" not in self.pages.get(f"/wp-admin/{page}"), page)
        said = plain(self.pages.get("/wp-admin/site-health.php?tab=debug"))
        expect("utf8mb4" in said, said[:300])

    def concurrent(self):
        """Writers of the same counters: each of their comments counts once."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: self.rest("comments", {"post": self.ids[2], "content": f"at once {n}", "status": "approved"}), range(12)))
        expect(client(self.server, f"SELECT comment_count = 12 AND comment_count = (SELECT COUNT(*) FROM wordpress.wp_comments WHERE comment_post_ID = ID AND comment_approved = '1') "
                      f"FROM wordpress.wp_posts WHERE ID = {self.ids[2]}") == "1\n", "the count of comments")

    def export_and_tools(self):
        said = self.pages.get("/wp-admin/export.php?download=true&content=all")
        expect(said.count("<item>") > 20 and "tag4" in said and "at once 3" in said, f"{said.count('<item>')} items")
        self.pages.get("/wp-cron.php?doing_wp_cron")

    def upgrade(self):
        """From the schema of WordPress 4.4: names of users were shorter, and keys over names of options and terms not as now."""
        client(self.server, """SET sql_mode = ''; ALTER TABLE wordpress.wp_options DROP KEY autoload, MODIFY option_name VARCHAR(64) NOT NULL DEFAULT '';
            ALTER TABLE wordpress.wp_users MODIFY user_nicename VARCHAR(20) NOT NULL DEFAULT '', MODIFY user_pass VARCHAR(64) NOT NULL DEFAULT '';
            ALTER TABLE wordpress.wp_posts DROP KEY post_author, MODIFY post_name VARCHAR(100) NOT NULL DEFAULT '', ADD COLUMN old_one INT;
            DROP TABLE wordpress.wp_termmeta;
            UPDATE wordpress.wp_options SET option_value = '33056' WHERE option_name = 'db_version'""")
        said = self.pages.get("/wp-admin/upgrade.php?step=1")
        expect("Update Complete" in said, plain(said)[:300])
        keys = client(self.server, "SELECT GROUP_CONCAT(DISTINCT INDEX_NAME ORDER BY 1) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'wordpress' "
                      "AND TABLE_NAME IN ('wp_options', 'wp_posts', 'wp_termmeta')")
        expect("autoload" in keys and "post_author" in keys and "meta_key" in keys, keys)

    def empty(self):
        for post in self.rest("posts?per_page=100&status=publish,draft"):
            self.rest(f"posts/{post['id']}&force=1", method="DELETE")
        left = client(self.server, "SELECT COUNT(*) FROM wordpress.wp_posts WHERE post_type IN ('post', 'revision') AND post_status <> 'auto-draft'")
        expect(left == "0\n", f"{left} posts left")
