// Sequelize: models, associations, queries and its query interface as its documentation has them. Its own tests are not in its package.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DataTypes, Op, Sequelize, Transaction, literal, fn, col, where, cast, json } from "sequelize";

const db = new Sequelize("sequelize", "root", "", { dialect: "mysql", logging: false, timezone: "+00:00", dialectOptions: { socketPath: process.env.PROGRAMS_SOCKET } });
const tool = db.getQueryInterface();

const User = db.define("User", {
  id: { type: DataTypes.INTEGER.UNSIGNED, autoIncrement: true, primaryKey: true },
  email: { type: DataTypes.STRING(100), allowNull: false, unique: true },
  role: { type: DataTypes.ENUM("admin", "guest"), defaultValue: "guest" },
  balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
  profile: DataTypes.JSON,
  born: DataTypes.DATEONLY,
  active: { type: DataTypes.BOOLEAN, defaultValue: true },
}, { indexes: [{ fields: ["role", { name: "email", length: 10, order: "DESC" }], name: "by_role" }], paranoid: true, version: true });
const Post = db.define("Post", { title: DataTypes.STRING, score: { type: DataTypes.INTEGER, defaultValue: 0, comment: "out of ten" } }, { timestamps: false, comment: "what users write" });
const Tag = db.define("Tag", { name: { type: DataTypes.STRING, unique: true } }, { timestamps: false });
const Node = db.define("Node", { name: DataTypes.STRING }, { timestamps: false });
User.hasMany(Post, { foreignKey: { name: "userId", allowNull: false }, onDelete: "CASCADE" });
Post.belongsTo(User, { foreignKey: "userId" });
Post.belongsToMany(Tag, { through: "PostTags" });
Tag.belongsToMany(Post, { through: "PostTags" });
User.hasOne(Node, { foreignKey: "ownerId", onDelete: "SET NULL" });
Node.belongsTo(Node, { as: "parent", foreignKey: "parentId" });
Node.hasMany(Node, { as: "children", foreignKey: "parentId" });

before(async () => {
  await db.authenticate();
  await db.sync({ force: true });
  const [ann, bob] = await User.bulkCreate([{ email: "ann@x", role: "admin", balance: "10.50", profile: { age: 30, tags: ["a"] }, born: "1990-05-06" }, { email: "bob@x", profile: { age: 20 } }]);
  const posts = [await ann.createPost({ title: "one", score: 3 }), await ann.createPost({ title: "two", score: 5 }), await bob.createPost({ title: "three" })];
  await posts[0].setTags(await Promise.all(["red", "blue"].map((name) => Tag.create({ name }))));
});
after(() => db.close());

test("databaseVersion", async () => assert.match(await db.databaseVersion(), /^\d+\.\d+/));

test("sync again changes nothing, and alter keeps rows", async () => {
  await db.sync();
  await db.sync({ alter: true });
  await db.sync({ alter: true });
  assert.equal(await Post.count(), 3);
  const keys = await tool.getForeignKeyReferencesForTable("Posts");
  assert.ok(keys.length >= 1);
  assert.equal(keys[0].referencedTableName, "Users");
});

test("describeTable, showIndex, showAllTables", async () => {
  const columns = await tool.describeTable("Users");
  assert.equal(columns.email.type, "VARCHAR(100)");
  assert.equal(columns.role.type, "ENUM('admin','guest')");
  assert.equal(columns.id.primaryKey, true);
  assert.equal(columns.id.autoIncrement, true);
  assert.equal(columns.id.type, "INT UNSIGNED".toUpperCase() === columns.id.type ? columns.id.type : "INT(10) UNSIGNED");
  const index = (await tool.showIndex("Users")).find((i) => i.name === "by_role");
  assert.deepEqual(index.fields.map((f) => f.attribute), ["role", "email"]);
  assert.equal(index.fields[1].length, 10);
  assert.deepEqual((await tool.showAllTables()).sort(), ["Nodes", "PostTags", "Posts", "Tags", "Users"]);
  assert.ok((await tool.showAllSchemas()) !== undefined);
  assert.equal((await tool.describeTable("Posts")).score.comment, "out of ten");
});

test("include: all associations", async () => {
  const ann = await User.findOne({ where: { email: "ann@x" }, include: [{ model: Post, include: [Tag] }, Node], order: [[Post, "id"], [Post, Tag, "name"]] });
  assert.deepEqual(ann.Posts.map((p) => p.title), ["one", "two"]);
  assert.deepEqual(ann.Posts[0].Tags.map((t) => t.name), ["blue", "red"]);
  const { count, rows } = await User.findAndCountAll({ include: [{ model: Post, required: true, where: { score: { [Op.gte]: 0 } } }], limit: 1, distinct: true, order: ["id"] });
  assert.equal(count, 2); assert.equal(rows.length, 1); assert.equal(rows[0].Posts.length, 2);
  const separate = await User.findAll({ include: [{ model: Post, separate: true, limit: 1, order: [["id", "DESC"]] }], order: ["id"] });
  assert.deepEqual(separate.map((u) => u.Posts[0].title), ["two", "three"]);
});

test("trees of a table that refers to itself", async () => {
  const root = await Node.create({ name: "root" });
  const kid = await root.createChild({ name: "kid" });
  assert.equal((await kid.getParent()).name, "root");
  await root.destroy();
  assert.equal((await kid.reload()).parentId, null);
});

test("operators", async () => {
  const titles = async (conditions) => (await Post.findAll({ where: conditions, order: ["id"] })).map((p) => p.title);
  assert.deepEqual(await titles({ score: { [Op.between]: [1, 4] } }), ["one"]);
  assert.deepEqual(await titles({ title: { [Op.regexp]: "^t" } }), ["two", "three"]);
  assert.deepEqual(await titles({ [Op.or]: [{ score: { [Op.in]: [5] } }, { title: { [Op.startsWith]: "th" } }] }), ["two", "three"]);
  assert.deepEqual(await titles({ title: { [Op.notLike]: "%o%" } }), ["three"]);
  assert.deepEqual(await titles(where(fn("char_length", col("title")), 5)), ["three"]);
  assert.deepEqual(await titles({ "$User.email$": "bob@x" }).catch((e) => e.name), "SequelizeDatabaseError");
});

test("JSON", async () => {
  assert.equal((await User.findOne({ where: { profile: { age: 30 } } })).email, "ann@x");
  assert.equal((await User.findOne({ where: { "profile.age": { [Op.lt]: 25 } } })).email, "bob@x");
  assert.equal((await User.findOne({ where: json("profile.age", 20) })).email, "bob@x");
  assert.deepEqual((await User.findOne({ where: { email: "ann@x" } })).profile, { age: 30, tags: ["a"] });
});

test("aggregates and groups", async () => {
  const rows = await Post.findAll({ attributes: ["userId", [fn("COUNT", col("id")), "n"], [fn("SUM", col("score")), "s"]], group: ["userId"], having: where(fn("COUNT", col("id")), Op.gt, 1), raw: true });
  assert.deepEqual(rows.map((r) => [r.n, Number(r.s)]), [[2, 8]]);
  assert.equal(await Post.sum("score"), 8); assert.equal(await Post.max("score"), 5); assert.equal(await Post.min("score"), 0);
  assert.equal(await Post.count({ distinct: true, col: "userId" }), 2);
  assert.equal((await Post.findOne({ attributes: [[cast(col("score"), "char"), "c"]], order: ["id"] })).get("c"), "3");
});

test("upsert, bulkCreate, increment, paranoid", async () => {
  const [, made] = await Tag.upsert({ name: "green" });
  assert.ok(made !== false);
  await Tag.upsert({ name: "green" });
  assert.equal(await Tag.count({ where: { name: "green" } }), 1);
  await Tag.bulkCreate([{ id: 1, name: "crimson" }, { id: 90, name: "new" }], { updateOnDuplicate: ["name"] });
  await Tag.bulkCreate([{ name: "new" }], { ignoreDuplicates: true });
  assert.equal((await Tag.findByPk(1)).name, "crimson");
  await Post.increment({ score: 2 }, { where: { title: "three" } });
  assert.equal((await Post.findOne({ where: { title: "three" } })).score, 2);
  const gone = await User.create({ email: "gone@x" });
  await gone.destroy();
  assert.equal(await User.count({ where: { email: "gone@x" } }), 0);
  await gone.restore();
  assert.equal(await User.count({ where: { email: "gone@x" } }), 1);
  const [found, created] = await User.findOrCreate({ where: { email: "gone@x" } });
  assert.equal(created, false);
  const stale = await User.findByPk(found.id);
  await found.update({ balance: 1 });
  await assert.rejects(stale.update({ balance: 2 }), { name: "SequelizeOptimisticLockError" });
});

test("errors by kind", async () => {
  await assert.rejects(User.create({ email: "ann@x" }), (e) => e.name === "SequelizeUniqueConstraintError" && "email" in e.fields);
  await assert.rejects(Post.create({ title: "x", userId: 999 }), (e) => e.name === "SequelizeForeignKeyConstraintError" && e.table === "Users" && e.fields[0] === "userId");
  await assert.rejects(db.query("DELETE FROM Users WHERE id = 1").then(() => db.query("SELEC")), { name: "SequelizeDatabaseError" });
  await assert.rejects(db.query("SELECT * FROM nothing"), (e) => e.parent.errno === 1146);
});

test("transactions with each isolation, and locks", async () => {
  for (const isolationLevel of Object.values(Transaction.ISOLATION_LEVELS))
    await db.transaction({ isolationLevel }, async (transaction) => {
      const level = await db.query("SELECT 1 AS one", { transaction, plain: true });
      assert.equal(level.one, 1);
      await Tag.findAll({ transaction, lock: true, skipLocked: true });
      await Tag.findAll({ transaction, lock: transaction.LOCK.SHARE });
    });
  await assert.rejects(db.transaction(async (transaction) => {
    await Tag.create({ name: "lost" }, { transaction });
    await db.transaction({ transaction }, (inner) => Tag.create({ name: "inner" }, { transaction: inner }));
    throw new Error("no");
  }), /no/);
  assert.equal(await Tag.count({ where: { name: ["lost", "inner"] } }), 0);
});

test("query interface: columns, indexes, constraints", async () => {
  await tool.createTable("things", { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, name: DataTypes.STRING, n: DataTypes.INTEGER });
  await tool.addColumn("things", "more", { type: DataTypes.STRING(20), defaultValue: "x", after: "id", comment: "said" });
  await tool.changeColumn("things", "more", { type: DataTypes.STRING(60), allowNull: false, defaultValue: "y" });
  await tool.renameColumn("things", "more", "label");
  await tool.addIndex("things", ["name", "n"], { name: "two", unique: true });
  await tool.addIndex("things", { fields: [{ name: "label", order: "DESC" }], name: "desc" });
  await tool.addConstraint("things", { fields: ["label"], type: "unique", name: "one_label" });
  await tool.addColumn("things", "owner", { type: DataTypes.INTEGER.UNSIGNED, references: { model: "Users", key: "id" }, onUpdate: "CASCADE", onDelete: "SET NULL" });
  await tool.addColumn("things", "second", { type: DataTypes.INTEGER.UNSIGNED });
  await tool.addConstraint("things", { fields: ["second"], type: "foreign key", name: "second_user", references: { table: "Users", field: "id" }, onDelete: "cascade" });
  const names = (await tool.showConstraint("things")).map((c) => c.constraintName);
  assert.ok(names.includes("second_user") && names.includes("one_label"), names.join());
  await tool.removeConstraint("things", "second_user");
  await tool.removeConstraint("things", "one_label");
  await tool.removeColumn("things", "owner");
  await tool.removeIndex("things", "two");
  assert.deepEqual(Object.keys(await tool.describeTable("things")), ["id", "label", "name", "n", "second"]);
  await tool.renameTable("things", "stuff");
  await tool.bulkInsert("stuff", [{ label: "a", name: "b", n: 1 }, { label: "c", name: "d", n: 2 }]);
  await tool.bulkUpdate("stuff", { n: 9 }, { label: "a" });
  await tool.bulkDelete("stuff", { label: "c" });
  assert.equal((await db.query("SELECT n FROM stuff", { plain: true })).n, 9);
  assert.equal(await tool.tableExists("stuff"), true);
  await tool.dropTable("stuff");
});

test("every type", async () => {
  const Types = db.define("Types", { a: DataTypes.TINYINT, b: DataTypes.SMALLINT.UNSIGNED, c: DataTypes.MEDIUMINT, d: DataTypes.BIGINT, e: DataTypes.FLOAT(7, 3), f: DataTypes.DOUBLE,
    g: DataTypes.REAL, h: DataTypes.CHAR(5), i: DataTypes.TEXT("tiny"), j: DataTypes.BLOB("long"), k: DataTypes.TIME, l: DataTypes.DATE(6), m: DataTypes.UUID,
    n: DataTypes.STRING.BINARY, o: DataTypes.INTEGER.UNSIGNED.ZEROFILL, p: DataTypes.VIRTUAL, q: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 } }, { timestamps: false });
  await Types.sync({ force: true });
  await Types.sync({ alter: true });
  await Types.create({ a: 1, b: 2, c: 3, d: "9007199254740993", e: 1.5, f: 2.5, g: 3.5, h: "x", i: "t", j: Buffer.from("b"), k: "01:02:03", l: new Date(Date.UTC(2020, 1, 29, 1, 2, 3, 456)), m: "a".repeat(36), n: "N", o: 7 });
  const back = await Types.findOne();
  assert.equal(back.l.toISOString(), "2020-02-29T01:02:03.456Z"); assert.equal(String(back.d), "9007199254740993"); assert.deepEqual(back.j, Buffer.from("b")); assert.equal(back.k, "01:02:03");
});

test("replacements, binds, kinds of queries", async () => {
  assert.deepEqual(await db.query("SELECT :a AS a, ? AS b".replace("?", ":b"), { replacements: { a: 1, b: "x" }, type: "SELECT" }), [{ a: 1, b: "x" }]);
  assert.deepEqual(await db.query("SELECT $1 + $2 AS s", { bind: [1, 2], type: "SELECT" }).then((r) => Number(r[0].s)), 3);
  await db.query("CREATE PROCEDURE answer() SELECT 42 AS x");
  assert.equal((await db.query("CALL answer()"))[0].x, 42);
  assert.equal((await Post.findAll({ attributes: { include: [[literal("(SELECT COUNT(*) FROM Tags)"), "tags"]] } }))[0].get("tags") > 0, true);
});

test("dropAllTables", async () => {
  await tool.dropAllTables();
  assert.deepEqual(await tool.showAllTables(), []);
});
