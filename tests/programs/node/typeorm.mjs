// TypeORM: entities, the schema they make, relations, queries and migrations as its documentation has them. Its own tests are not in its package.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import typeorm from "typeorm";

const { DataSource, EntitySchema, In, Like, Between, MoreThan, IsNull, Not, Raw, Table, TableColumn, TableForeignKey, TableIndex, TableUnique, TableCheck, View } = typeorm;
const User = new EntitySchema({ name: "User", tableName: "users", columns: {
  id: { type: "int", primary: true, generated: "increment", unsigned: true },
  email: { type: "varchar", length: 100, unique: true },
  role: { type: "enum", enum: ["admin", "guest"], default: "guest" },
  rights: { type: "set", enum: ["r", "w", "x"], nullable: true },
  balance: { type: "decimal", precision: 12, scale: 2, default: 0 },
  profile: { type: "json", nullable: true },
  first: { type: "varchar", length: 20, default: "" }, last: { type: "varchar", length: 20, default: "" },
  full: { type: "varchar", length: 60, generatedType: "STORED", asExpression: "concat(`first`,' ',`last`)", nullable: true },
  created: { type: "datetime", createDate: true, precision: 6 }, updated: { type: "datetime", updateDate: true, precision: 6 },
  deleted: { type: "datetime", deleteDate: true, nullable: true, precision: 6 }, version: { type: "int", version: true },
}, relations: { posts: { type: "one-to-many", target: "Post", inverseSide: "user" } }, indices: [{ name: "by_role", columns: ["role", "email"] }] });
const Post = new EntitySchema({ name: "Post", tableName: "posts", columns: {
  id: { type: "bigint", primary: true, generated: "increment" }, title: { type: "varchar" }, score: { type: "int", default: 0, comment: "out of ten" }, body: { type: "mediumtext", nullable: true },
}, relations: {
  user: { type: "many-to-one", target: "User", joinColumn: { name: "userId", foreignKeyConstraintName: "post_of_user" }, onDelete: "CASCADE", nullable: true, inverseSide: "posts" },
  tags: { type: "many-to-many", target: "Tag", joinTable: { name: "post_tags" }, cascade: true },
}, uniques: [{ name: "title_of_user", columns: ["title", "user"] }] });
const Tag = new EntitySchema({ name: "Tag", tableName: "tags", columns: { id: { type: process.env.PROGRAMS_KIND === "mariadb" ? "uuid" : "varchar", primary: true, generated: "uuid" }, name: { type: "varchar", length: 30 } } });
const Place = new EntitySchema({ name: "Place", tableName: "places", trees: [{ type: "closure-table" }], columns: { id: { type: "int", primary: true, generated: true }, name: { type: "varchar" } },
  relations: { parent: { type: "many-to-one", target: "Place", treeParent: true, nullable: true }, children: { type: "one-to-many", target: "Place", treeChildren: true, inverseSide: "parent", cascade: true } } });
const Kinds = new EntitySchema({ name: "Kinds", tableName: "kinds", columns: Object.fromEntries([["id", { type: "int", primary: true, generated: true }],
  ...["bit", "tinyint", "smallint", "mediumint", "bigint", "float", "double", "date", "time", "datetime", "timestamp", "year", "char", "varchar", "tinytext", "text", "longtext", "tinyblob", "blob", "mediumblob",
    "longblob", "json", "binary", "varbinary", "boolean"].map((type) => [`c_${type}`, { type, nullable: true }]), ["d0", { type: "datetime", precision: 3, default: () => "CURRENT_TIMESTAMP(3)", onUpdate: "CURRENT_TIMESTAMP(3)" }],
  ["u", { type: "int", unsigned: true, zerofill: true, nullable: true, width: 6 }], ["s", { type: "varchar", length: 9, charset: "utf8mb4", collation: "utf8mb4_bin", default: "none" }]]) });
const Chief = new EntitySchema({ name: "Chief", type: "view", expression: "SELECT `id`, `email` FROM `users` WHERE `role` = 'admin'", columns: { id: { type: "int" }, email: { type: "varchar" } } });

const options = { type: process.env.PROGRAMS_KIND, socketPath: process.env.PROGRAMS_SOCKET, username: "root", database: "typeorm", entities: [User, Post, Tag, Place, Kinds, Chief], timezone: "Z", supportBigNumbers: true };
const db = new DataSource({ ...options, synchronize: true });
const users = () => db.getRepository("User");
const posts = () => db.getRepository("Post");

before(async () => {
  await db.initialize();
  await users().save([{ email: "ann@x", role: "admin", rights: ["r", "w"], balance: "10.50", profile: { age: 30 }, first: "Ann", last: "A" }, { email: "bob@x", first: "Bob", last: "B" }]);
  const [ann, bob] = await users().find({ order: { id: "ASC" } });
  await posts().save([{ title: "one", score: 3, user: ann, tags: [{ name: "red" }, { name: "blue" }] }, { title: "two", score: 5, user: ann }, { title: "three", user: bob }]);
});
after(() => db.destroy());

test("a schema that was made is the one that is wanted", async () => {
  const log = await db.driver.createSchemaBuilder().log();
  assert.deepEqual(log.upQueries.map((q) => q.query), []);
});

test("a second start finds nothing to do", async () => {
  const again = await new DataSource({ ...options, synchronize: true }).initialize();
  assert.equal(await again.getRepository("Post").count(), 3);
  await again.destroy();
});

test("relations, eager and by query builder", async () => {
  const ann = await users().findOne({ where: { email: "ann@x" }, relations: { posts: { tags: true } }, order: { posts: { id: "ASC", tags: { name: "ASC" } } } });
  assert.deepEqual(ann.posts.map((p) => p.title), ["one", "two"]);
  assert.deepEqual(ann.posts[0].tags.map((t) => t.name), ["blue", "red"]);
  assert.equal(ann.full, "Ann A");
  assert.deepEqual(ann.rights, ["r", "w"]);
  const page = await users().createQueryBuilder("u").leftJoinAndSelect("u.posts", "p").where("p.score >= :s", { s: 0 }).orderBy("u.id").take(1).skip(1).getManyAndCount();
  assert.equal(page[1], 2); assert.equal(page[0][0].email, "bob@x");
});

test("find operators", async () => {
  const titles = async (conditions) => (await posts().find({ where: conditions, order: { id: "ASC" } })).map((p) => p.title);
  assert.deepEqual(await titles({ title: In(["one", "three"]) }), ["one", "three"]);
  assert.deepEqual(await titles({ title: Like("t%"), score: MoreThan(1) }), ["two"]);
  assert.deepEqual(await titles([{ score: Between(1, 3) }, { body: Not(IsNull()) }]), ["one"]);
  assert.deepEqual(await titles({ score: Raw((a) => `${a} % 2 = 0`) }), ["three"]);
  assert.deepEqual(await titles({ user: { email: "bob@x" } }), ["three"]);
});

test("query builder: groups, subqueries, unions by CTE, streams", async () => {
  const rows = await posts().createQueryBuilder("p").select("p.userId", "u").addSelect("SUM(p.score)", "s").groupBy("p.userId").having("COUNT(*) > 1").getRawMany();
  assert.deepEqual(rows.map((r) => Number(r.s)), [8]);
  const best = await posts().createQueryBuilder("p").where((q) => "p.score = " + q.subQuery().select("MAX(x.score)").from("Post", "x").getQuery()).getOne();
  assert.equal(best.title, "two");
  const cte = await db.createQueryBuilder().addCommonTableExpression("SELECT 1 UNION ALL SELECT n + 1 FROM nums WHERE n < 3", "nums", { recursive: true, columnNames: ["n"] }).select("n").from("nums", "nums").getRawMany();
  assert.deepEqual(cte.map((r) => Number(r.n)), [1, 2, 3]);
  let seen = 0;
  for await (const row of await posts().createQueryBuilder("p").stream()) seen += row ? 1 : 0;
  assert.equal(seen, 3);
});

test("upsert, soft delete, versions, increments", async () => {
  await users().upsert([{ email: "bob@x", balance: 7 }, { email: "eve@x", balance: 8 }], ["email"]);
  assert.equal((await users().findOneBy({ email: "bob@x" })).balance, "7.00");
  await db.createQueryBuilder().insert().into("User").values({ email: "bob@x" }).orIgnore().updateEntity(false).execute();
  await users().softDelete({ email: "eve@x" });
  assert.equal(await users().findOneBy({ email: "eve@x" }), null);
  await users().restore({ email: "eve@x" });
  const eve = await users().findOneBy({ email: "eve@x" });
  eve.first = "Eve";
  assert.ok((await users().save(eve)).version > 1);
  assert.equal((await users().findOneBy({ email: "eve@x" })).full, "Eve ");
  await posts().increment({ title: "three" }, "score", 4);
  assert.equal((await posts().findOneBy({ title: "three" })).score, 4);
  await users().remove(eve);
});

test("transactions with each isolation, and each lock", async () => {
  for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
    await assert.rejects(db.transaction(level, async (manager) => { await manager.save("Tag", { name: "lost" }); throw new Error("no"); }), /no/);
  assert.equal(await db.getRepository("Tag").countBy({ name: "lost" }), 0);
  await db.transaction(async (manager) => {
    for (const lock of [{ mode: "pessimistic_read" }, { mode: "pessimistic_write" }, { mode: "pessimistic_write", onLocked: "nowait" }, { mode: "pessimistic_write", onLocked: "skip_locked" }])
      assert.equal((await manager.findOne("User", { where: { email: "ann@x" }, lock })).email, "ann@x");
    await assert.rejects(manager.transaction(async (inner) => { await inner.save("Tag", { name: "inner" }); throw new Error("inner"); }), /inner/);
  });
  assert.equal(await db.getRepository("Tag").countBy({ name: "inner" }), 0);
});

test("closure trees", async () => {
  const trees = db.getTreeRepository("Place");
  const root = await trees.save({ name: "root" });
  const kid = await trees.save({ name: "kid", parent: root });
  await trees.save({ name: "grandkid", parent: kid });
  const [tree] = await trees.findTrees();
  assert.equal(tree.children[0].children[0].name, "grandkid");
  assert.equal(await trees.countDescendants(root), 3);
});

test("every type of a column", async () => {
  await db.getRepository("Kinds").save({ c_bit: true, c_tinyint: 1, c_bigint: "9007199254740993", c_float: 1.5, c_date: "2020-02-29", c_time: "01:02:03", c_datetime: new Date(Date.UTC(2020, 0, 2)), c_year: 2024, c_char: "x", c_json: { a: [1] },
    c_blob: Buffer.from("b"), c_varbinary: Buffer.from("v"), c_boolean: true, u: 42 });
  const back = await db.getRepository("Kinds").findOneBy({ id: 1 });
  assert.equal(String(back.c_bigint), "9007199254740993"); assert.deepEqual(back.c_json, { a: [1] }); assert.equal(back.s, "none"); assert.equal(back.c_date, "2020-02-29");
  assert.equal(back.c_datetime.toISOString(), "2020-01-02T00:00:00.000Z"); assert.deepEqual(back.c_blob, Buffer.from("b"));
});

test("views", async () => assert.deepEqual((await db.getRepository("Chief").find()).map((c) => c.email), ["ann@x"]));

test("query runner: tables, columns, keys, back again", async () => {
  const q = db.createQueryRunner();
  const has = async (name) => (await q.getTable("things"))?.findColumnByName(name);
  await q.createTable(new Table({ name: "things", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" }, { name: "name", type: "varchar", length: "50" }, { name: "owner", type: "int", unsigned: true, isNullable: true }],
    indices: [{ name: "by_name", columnNames: ["name"] }] }), true);
  await q.addColumn("things", new TableColumn({ name: "n", type: "int", default: "3" }));
  await q.renameColumn("things", "n", "m");
  await q.changeColumn("things", "m", new TableColumn({ name: "m", type: "bigint", isNullable: true, comment: "more" }));
  assert.equal((await has("m")).type, "bigint");
  await q.createForeignKey("things", new TableForeignKey({ name: "owned", columnNames: ["owner"], referencedTableName: "users", referencedColumnNames: ["id"], onDelete: "SET NULL" }));
  await q.createIndex("things", new TableIndex({ name: "two", columnNames: ["name", "m"], isUnique: true }));
  const table = await q.getTable("things");
  assert.equal(table.foreignKeys[0].onDelete, "SET NULL"); assert.ok(table.indices.some((i) => i.name === "two" && i.isUnique));
  await q.changeColumn("things", "name", new TableColumn({ name: "title", type: "varchar", length: "80" }));
  await q.dropForeignKey("things", "owned"); await q.dropIndex("things", "two");
  await q.dropPrimaryKey("things").catch(() => null);
  await q.dropColumn("things", "m"); await q.renameTable("things", "stuff");
  assert.equal(await q.hasTable("stuff"), true); assert.equal(await q.hasColumn("stuff", "title"), true);
  await q.clearTable("stuff"); await q.dropTable("stuff");
  await q.createDatabase("typeorm_more", true); assert.equal(await q.hasDatabase("typeorm_more"), true); await q.dropDatabase("typeorm_more");
  await q.release();
});

test("migrations, forth and back", async () => {
  class First1700000000000 { name = "First1700000000000"; async up(q) { await q.query("CREATE TABLE m1 (id int)"); } async down(q) { await q.query("DROP TABLE m1"); } }
  class Second1700000000001 { name = "Second1700000000001"; async up(q) { await q.query("ALTER TABLE m1 ADD x int"); } async down(q) { await q.query("ALTER TABLE m1 DROP x"); } }
  const source = await new DataSource({ ...options, migrations: [First1700000000000, Second1700000000001] }).initialize();
  assert.equal(await source.showMigrations(), true);
  assert.equal((await source.runMigrations()).length, 2);
  assert.equal(await source.showMigrations(), false);
  await source.undoLastMigration(); await source.undoLastMigration();
  assert.equal(await source.createQueryRunner().hasTable("m1"), false);
  await source.destroy();
});

test("errors have their numbers", async () => {
  await assert.rejects(users().insert({ email: "ann@x" }), (e) => e.driverError.errno === 1062);
  await assert.rejects(posts().insert({ title: "x", user: { id: 999 } }), (e) => e.driverError.errno === 1452);
  await assert.rejects(db.query("SELECT * FROM nothing"), (e) => e.driverError.errno === 1146);
});

test("dropDatabase", async () => {
  await db.dropDatabase();
  await db.synchronize();
  assert.equal(await posts().count(), 0);
});
