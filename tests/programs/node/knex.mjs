// Knex: what its documentation says of schemas, queries, migrations and seeds, through mysql2. Its own tests are not in its package.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import os from "node:os";
import { after, before, test } from "node:test";
import knexOf from "knex";

const db = knexOf({ client: "mysql2", connection: { socketPath: process.env.PROGRAMS_SOCKET, user: "root", database: "knex", multipleStatements: true } });
const columns = async (table) => Object.keys(await db(table).columnInfo());

before(async () => {
  await db.schema.createTable("users", (t) => {
    t.increments();
    t.string("email", 100).notNullable().unique({ indexName: "one_email" });
    t.enu("role", ["admin", "guest"]).defaultTo("guest");
    t.decimal("balance", 12, 2).defaultTo(0);
    t.json("profile");
    t.boolean("active").defaultTo(true);
    t.timestamps(true, true);
  });
  await db.schema.createTable("posts", (t) => {
    t.bigIncrements("id");
    t.integer("user_id").unsigned().references("id").inTable("users").onDelete("CASCADE").onUpdate("RESTRICT").withKeyName("posts_of_users");
    t.string("title").index("by_title");
    t.text("body", "mediumtext");
    t.integer("score").notNullable().defaultTo(0).comment("out of ten");
    t.check("?? >= 0", ["score"], "score_is_not_negative");
    t.unique(["user_id", "title"], { indexName: "title_of_user" });
    t.comment("what users write");
  });
  await db("users").insert([{ email: "ann@x", role: "admin", balance: "10.50", profile: JSON.stringify({ tags: ["a", "b"], age: 30 }) },
    { email: "bob@x", profile: JSON.stringify({ tags: ["b"], age: 20 }) }]);
  await db("posts").insert([{ user_id: 1, title: "one", score: 3 }, { user_id: 1, title: "two", score: 5 }, { user_id: 2, title: "three", score: 1 }]);
});
after(() => db.destroy());

test("hasTable and hasColumn", async () => {
  assert.equal(await db.schema.hasTable("users"), true);
  assert.equal(await db.schema.hasTable("nobody"), false);
  assert.equal(await db.schema.hasColumn("users", "email"), true);
  assert.equal(await db.schema.hasColumn("users", "nothing"), false);
});

test("columnInfo", async () => {
  const info = await db("users").columnInfo();
  assert.deepEqual(info.email, { defaultValue: null, type: "varchar", maxLength: 100, nullable: false });
  assert.equal(info.balance.type, "decimal");
  assert.equal(info.role.type, "enum");
});

test("every type of a column", async () => {
  await db.schema.createTable("types", (t) => {
    t.tinyint("a"); t.smallint("b"); t.mediumint("c"); t.integer("d").unsigned(); t.bigInteger("e");
    t.float("f"); t.double("g"); t.decimal("h", 20, 4); t.string("i").collate("utf8mb4_bin"); t.text("j");
    t.date("k"); t.datetime("l", { precision: 6 }); t.time("m"); t.timestamp("n", { useTz: false, precision: 3 }).nullable();
    t.binary("o", 20); t.binary("p"); t.boolean("q"); t.json("r"); t.jsonb("s"); t.uuid("t"); t.uuid("u", { useBinaryUuid: true });
    t.enu("v", ["x", "y"]); t.specificType("w", "YEAR"); t.specificType("x", "BIT(5)"); t.specificType("y", "SET('a','b')");
  });
  const row = { a: 1, b: 2, c: 3, d: 4, e: 5, f: 1.5, g: 2.5, h: "3", i: "text", j: "more", k: "2020-02-29", l: "2020-02-29 10:11:12.123456", m: "10:11:12",
    n: "2021-01-01 00:00:00.125", o: Buffer.from("ab"), p: Buffer.from("cd"), q: true, r: "{\"a\": 1}", s: "[1]", t: "x".repeat(36), u: Buffer.alloc(16, 7),
    v: "y", w: 2024, x: Buffer.from([17]), y: "a,b" };
  await db("types").insert(row);
  const [back] = await db("types");
  assert.equal(back.i, "text"); assert.deepEqual(back.x, Buffer.from([17])); assert.equal(back.y, "a,b"); assert.equal(back.w, 2024);
  assert.equal(back.l.getMilliseconds(), 123);
  assert.deepEqual(back.u, row.u);
});

test("alterTable", async () => {
  await db.schema.createTable("changing", (t) => { t.increments(); t.string("name"); t.integer("n"); });
  await db("changing").insert({ name: "x", n: 7 });
  await db.schema.alterTable("changing", (t) => { t.string("first").first(); t.integer("later").after("name").defaultTo(3); });
  assert.deepEqual(await columns("changing"), ["first", "id", "name", "later", "n"]);
  await db.schema.alterTable("changing", (t) => { t.renameColumn("name", "label"); });
  await db.schema.alterTable("changing", (t) => { t.string("label", 40).notNullable().defaultTo("none").comment("said").alter(); t.dropColumn("first"); });
  await db.schema.alterTable("changing", (t) => { t.setNullable("label"); t.dropNullable("later"); });
  assert.deepEqual(await db("changing").first(), { id: 1, label: "x", later: 3, n: 7 });
  await db.schema.renameTable("changing", "changed");
  assert.deepEqual((await db("changed").columnInfo()).later.nullable, false);
});

test("indexes", async () => {
  await db.schema.createTable("indexed", (t) => { t.integer("a"); t.integer("b"); t.string("c"); });
  await db.schema.alterTable("indexed", (t) => { t.primary(["a"], { constraintName: "pk" }); t.index(["b", "c"], "two"); t.unique(["c"]); });
  await db.schema.alterTable("indexed", (t) => { t.dropIndex([], "two"); t.dropUnique(["c"]); t.dropPrimary(); });
  assert.equal((await db.raw("SHOW INDEX FROM indexed"))[0].length, 0);
});

test("foreign keys and checks are enforced, and go", async () => {
  await assert.rejects(db("posts").insert({ user_id: 99, title: "x" }), { errno: 1452 });
  await assert.rejects(db("posts").insert({ user_id: 1, title: "bad", score: -1 }), (e) => [3819, 4025].includes(e.errno));
  await db.schema.createTable("child", (t) => { t.integer("u").unsigned(); t.foreign("u").references("users.id"); });
  await db.schema.alterTable("child", (t) => t.dropForeign("u"));
  await db("child").insert({ u: 99 });
});

test("renameColumn of a referenced column", async () => {
  await db.schema.createTable("parent", (t) => { t.integer("p").primary(); });
  await db.schema.createTable("kid", (t) => { t.integer("k").references("parent.p"); });
  await db.schema.alterTable("parent", (t) => t.renameColumn("p", "q"));
  await db("parent").insert({ q: 1 }); await db("kid").insert({ k: 1 });
  await assert.rejects(db("kid").insert({ k: 2 }), { errno: 1452 });
});

test("views", async () => {
  await db.schema.createView("admins", (v) => { v.columns(["mail"]); v.as(db("users").select("email").where({ role: "admin" })); });
  assert.deepEqual(await db("admins"), [{ mail: "ann@x" }]);
  await db.schema.createViewOrReplace("admins", (v) => { v.as(db("users").select("id").where({ role: "admin" })); });
  await db.schema.renameView("admins", "chiefs");
  assert.deepEqual(await db("chiefs"), [{ id: 1 }]);
  await db.schema.dropView("chiefs");
});

test("createTableLike", async () => {
  await db.schema.createTableLike("users_copy", "users", (t) => t.string("more"));
  assert.ok((await columns("users_copy")).includes("more"));
});

test("joins, groups, unions, subqueries", async () => {
  const rows = await db("users as u").leftJoin("posts as p", "p.user_id", "u.id").groupBy("u.id").orderBy("u.id").select("u.email").count("p.id as n").sum("p.score as s");
  assert.deepEqual(rows.map((r) => [r.email, r.n, Number(r.s)]), [["ann@x", 2, 8], ["bob@x", 1, 1]]);
  assert.deepEqual((await db.unionAll([db("users").select("email as x"), db("posts").select("title")], true).orderBy("x")).length, 5);
  assert.deepEqual(await db("users").whereExists(db("posts").whereRaw("posts.user_id = users.id").where("score", ">", 4)).pluck("email"), ["ann@x"]);
  assert.deepEqual(await db("users").whereIn(["id", "email"], [[1, "ann@x"], [2, "no"]]).pluck("id"), [1]);
});

test("WITH and WITH RECURSIVE", async () => {
  const rows = await db.withRecursive("n", ["v"], db.raw("SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 4")).from("n");
  assert.deepEqual(rows.map((r) => r.v), [1, 2, 3, 4]);
});

test("window functions", async () => {
  const rows = await db("posts").select("title").rowNumber("r", (q) => q.orderBy("score", "desc").partitionBy("user_id")).rank("k", "score").orderBy("id");
  assert.deepEqual(rows.map((r) => r.r), [2, 1, 1]);
});

test("JSON", async () => {
  assert.deepEqual(await db("users").jsonExtract("profile", "$.age", "age").orderBy("id").then((r) => r.map((x) => Number(x.age))), [30, 20]);
  assert.deepEqual(await db("users").whereJsonPath("profile", "$.age", ">", 25).pluck("id"), [1]);
  assert.deepEqual(await db("users").whereJsonSupersetOf("profile", { tags: ["a"] }).pluck("id"), [1]);
  await db("users").where({ id: 2 }).update({ profile: db.jsonSet("profile", "$.age", 21) });
  await db("users").where({ id: 2 }).update({ profile: db.jsonInsert("profile", "$.name", "Bob") });
  await db("users").where({ id: 2 }).update({ profile: db.jsonRemove("profile", "$.tags") });
  const { profile } = await db("users").where({ id: 2 }).first();
  assert.deepEqual(typeof profile === "string" ? JSON.parse(profile) : profile, { age: 21, name: "Bob" });
});

test("onConflict", async () => {
  await db("users").insert({ email: "bob@x", balance: 5 }).onConflict("email").merge(["balance"]);
  await db("users").insert({ email: "bob@x", balance: 9 }).onConflict("email").ignore();
  assert.equal((await db("users").where({ email: "bob@x" }).first()).balance, "5.00");
});

test("update and delete with joins and limits", async () => {
  await db("posts").join("users", "users.id", "posts.user_id").where("users.email", "bob@x").update({ "posts.score": 2 });
  assert.equal((await db("posts").where({ title: "three" }).first()).score, 2);
  await db("posts").insert([{ user_id: 2, title: "gone1" }, { user_id: 2, title: "gone2" }]);
  assert.equal(await db("posts").where("title", "like", "gone%").orderBy("id").limit(1).del(), 1);
  assert.equal(await db("posts").increment("score", 1), await db("posts").count("id as n").first().then((r) => r.n));
  await db("posts").join("users", "users.id", "posts.user_id").where("posts.title", "gone2").del();
  assert.equal((await db("posts").where({ title: "gone2" })).length, 0);
});

test("transactions, savepoints, isolation, locks", async () => {
  await assert.rejects(db.transaction(async (trx) => { await trx("users").insert({ email: "lost@x" }); throw new Error("no"); }), /no/);
  await db.transaction(async (trx) => {
    await trx("users").where({ id: 1 }).forUpdate().skipLocked();
    await trx("users").where({ id: 1 }).forShare().noWait();
    await assert.rejects(trx.transaction(async (inner) => { await inner("users").insert({ email: "inner@x" }); throw new Error("inner"); }), /inner/);
    await trx("users").insert({ email: "kept@x" });
  }, { isolationLevel: "serializable" });
  await db.transaction(async (trx) => { await assert.rejects(trx("users").insert({ email: "x@x" }), { errno: 1792 }); }, { readOnly: true });
  assert.deepEqual(await db("users").whereIn("email", ["lost@x", "inner@x", "kept@x"]).pluck("email"), ["kept@x"]);
});

test("streams and batches", async () => {
  await db.schema.createTable("many", (t) => t.integer("n"));
  await db.batchInsert("many", Array.from({ length: 2500 }, (_, n) => ({ n })), 400);
  let sum = 0;
  for await (const row of db("many").stream()) sum += row.n;
  assert.equal(sum, 2500 * 2499 / 2);
  await db("many").truncate();
  assert.equal((await db("many").count("* as n").first()).n, 0);
});

test("several statements, stored programs, binding of names", async () => {
  await db.raw("CREATE PROCEDURE twice(IN x INT) BEGIN SELECT x * 2 AS y; SELECT x AS z; END");
  const [sets] = await db.raw("CALL twice(?)", [4]);
  assert.equal(sets[0][0].y, 8); assert.equal(sets[1][0].z, 4);
  const [both] = await db.raw("SELECT 1 AS a; SELECT 2 AS b");
  assert.equal(both[1][0].b, 2);
  assert.equal((await db.raw("SELECT ?? FROM ?? WHERE ?? = ?", ["email", "users", "id", 1]))[0][0].email, "ann@x");
});

test("migrations and seeds", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "knex-"));
  try {
    const write = (name, text) => fs.writeFileSync(path.join(folder, name), text);
    write("1_a.cjs", "exports.up = (k) => k.schema.createTable('m1', (t) => t.increments()); exports.down = (k) => k.schema.dropTable('m1');");
    write("2_b.cjs", "exports.up = (k) => k.schema.alterTable('m1', (t) => t.string('x')); exports.down = (k) => k.schema.alterTable('m1', (t) => t.dropColumn('x')); exports.config = { transaction: false };");
    const options = { directory: folder, loadExtensions: [".cjs"], tableName: "steps" };
    assert.equal((await db.migrate.up(options))[1].length, 1);
    const both = await Promise.allSettled([db.migrate.latest(options), db.migrate.latest(options)]);
    assert.ok(both.some((r) => r.status === "fulfilled"));
    assert.deepEqual(await columns("m1"), ["id", "x"]);
    assert.equal(await db.migrate.currentVersion(options), "2");
    assert.equal((await db.migrate.list(options))[1].length, 0);
    await db.migrate.rollback(options);
    assert.deepEqual(await columns("m1"), ["id"]);
    await db.migrate.rollback(options, true);
    assert.equal(await db.schema.hasTable("m1"), false);
    await db("steps_lock").update({ is_locked: 1 });
    await assert.rejects(db.migrate.latest(options), /lock/i);
    await db.migrate.forceFreeMigrationsLock(options);
    await db.migrate.latest(options);
    const seeds = fs.mkdtempSync(path.join(folder, "s"));
    fs.writeFileSync(path.join(seeds, "a.cjs"), "exports.seed = async (k) => { await k('m1').del(); await k('m1').insert([{ x: 'a' }, { x: 'b' }]); };");
    await db.seed.run({ directory: seeds, loadExtensions: [".cjs"] });
    assert.deepEqual(await db("m1").pluck("x"), ["a", "b"]);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test("errors have their numbers", async () => {
  await assert.rejects(db("nothing"), { code: "ER_NO_SUCH_TABLE", errno: 1146 });
  await assert.rejects(db("users").select("nothing"), { code: "ER_BAD_FIELD_ERROR", errno: 1054 });
  await assert.rejects(db("users").insert({ email: "ann@x" }), { code: "ER_DUP_ENTRY", errno: 1062 });
  await assert.rejects(db("users").insert({ id: 77 }), { code: "ER_NO_DEFAULT_FOR_FIELD", errno: 1364 });
  await assert.rejects(db("users").where({ id: 1 }).timeout(300, { cancel: true }).select(db.raw("SLEEP(20)")), /timeout/i);
});
