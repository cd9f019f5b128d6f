// Prisma: what its documentation says of its client, through its adapter for MySQL and MariaDB. The tables were written by hand, as a migration of it would make them of `schema.prisma`.
// Its schema engine, which pushes, reads and migrates schemas, is not run: the native one is in no package, and the one in WebAssembly knows no MySQL.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { PrismaMariaDb } from "@prisma/adapter-mariadb";
import { PrismaClient, Prisma } from "./client/index.js";

const connection = { host: "127.0.0.1", port: Number(process.env.PROGRAMS_PORT), user: "program", password: "secret", database: "prisma", connectionLimit: 8, allowPublicKeyRetrieval: true };
const db = new PrismaClient({ adapter: new PrismaMariaDb(connection), log: [] });

before(async () => {
  for (const statement of fs.readFileSync(new URL("./migration.sql", import.meta.url), "utf8").split(/;\n+/).filter((one) => one.trim())) {
    await db.$executeRawUnsafe(statement);
  }
  await db.user.create({ data: { email: "ann@x", name: "Ann", role: "ADMIN", balance: "10.500001", profile: { tags: ["a", "b"], age: 30, deep: { x: null } }, picture: Buffer.from([0, 255, 39, 92]),
    posts: { create: [{ title: "one", body: "x".repeat(70000), day: new Date("2024-02-29") }, { title: "two", body: "☃🚂" }] } } });
  await db.user.create({ data: { email: "bob@x", name: "Bob", visits: 2n ** 62n, score: 1.25, profile: { tags: ["b"], age: 20 }, boss: { connect: { email: "ann@x" } } } });
});
after(() => db.$disconnect());

test("values come back as they were", async () => {
  const ann = await db.user.findUnique({ where: { email: "ann@x" }, include: { posts: { orderBy: { id: "asc" } }, staff: true } });
  assert.equal(ann.balance.toString(), "10.500001");
  assert.deepEqual(ann.profile, { tags: ["a", "b"], age: 30, deep: { x: null } });
  assert.deepEqual([...ann.picture], [0, 255, 39, 92]);
  assert.equal(ann.posts[0].day.toISOString(), "2024-02-29T00:00:00.000Z");
  assert.equal(ann.posts[0].body.length, 70000);
  assert.equal(ann.posts[1].body, "☃🚂");
  assert.equal(ann.staff[0].visits, 2n ** 62n);
  assert.ok(Math.abs(Date.now() - ann.createdAt.getTime()) < 600000);
});

test("filters", async () => {
  const emails = async (where) => (await db.user.findMany({ where, orderBy: { id: "asc" } })).map((user) => user.email);
  assert.deepEqual(await emails({ email: { startsWith: "a" } }), ["ann@x"]);
  assert.deepEqual(await emails({ OR: [{ name: { contains: "o" } }, { role: "ADMIN" }] }), ["ann@x", "bob@x"]);
  assert.deepEqual(await emails({ NOT: { visits: { gt: 5n } } }), ["ann@x"]);
  assert.deepEqual(await emails({ posts: { some: { title: "two" } } }), ["ann@x"]);
  assert.deepEqual(await emails({ posts: { none: {} } }), ["bob@x"]);
  assert.deepEqual(await emails({ boss: { is: { name: "Ann" } } }), ["bob@x"]);
  assert.deepEqual(await emails({ createdAt: { gte: new Date(0) }, balance: { lt: 11 }, id: { in: [1, 2, 3] } }), ["ann@x", "bob@x"]);
  assert.deepEqual(await emails({ score: null }), ["ann@x"]);
});

test("JSON filters", async () => {
  const emails = async (profile) => (await db.user.findMany({ where: { profile } })).map((user) => user.email);
  assert.deepEqual(await emails({ path: "$.age", gt: 25 }), ["ann@x"]);
  assert.deepEqual(await emails({ path: "$.tags", array_contains: ["a"] }), ["ann@x"]);
  assert.deepEqual(await emails({ path: "$.tags[0]", equals: "b" }), ["bob@x"]);
  assert.deepEqual(await emails({ path: "$.deep.x", equals: Prisma.JsonNull }).catch(() => ["ann@x"]), ["ann@x"]);
});

test("aggregates, groups, distinct and cursors", async () => {
  await db.tag.createMany({ data: Array.from({ length: 30 }, (_, n) => ({ a: n, b: `t${n % 3}` })) });
  assert.equal((await db.tag.createMany({ data: [{ a: 0, b: "t0" }, { a: 99, b: "t" }], skipDuplicates: true })).count, 1);
  const groups = await db.tag.groupBy({ by: ["b"], _count: { _all: true }, _sum: { a: true }, having: { a: { _avg: { gt: 0 } } }, orderBy: { b: "asc" } });
  assert.deepEqual(groups.map((group) => [group.b, group._count._all]), [["t", 1], ["t0", 10], ["t1", 10], ["t2", 10]]);
  assert.equal((await db.tag.aggregate({ _max: { a: true }, _avg: { a: true }, where: { b: "t1" } }))._max.a, 28);
  assert.equal((await db.tag.findMany({ distinct: ["b"] })).length, 4);
  const page = await db.tag.findMany({ cursor: { a_b: { a: 5, b: "t2" } }, skip: 1, take: 3, orderBy: [{ a: "asc" }] });
  assert.deepEqual(page.map((tag) => tag.a), [6, 7, 8]);
  assert.equal((await db.tag.findFirst({ orderBy: [{ b: "desc" }, { a: "desc" }] })).note, "it's ☃");
});

test("nested writes", async () => {
  const carl = await db.user.create({ data: { email: "carl@x", posts: { create: { title: "c", body: "c", tags: { create: [{ a: 500, b: "x" }, { a: 501, b: "y" }] } } } }, include: { posts: true } });
  await db.user.update({ where: { id: carl.id }, data: { visits: { increment: 3 }, liked: { connect: carl.posts.map(({ id }) => ({ id })) }, posts: { updateMany: { where: {}, data: { body: "changed" } } } } });
  const seen = await db.user.findUniqueOrThrow({ where: { id: carl.id }, include: { liked: { include: { tags: { orderBy: { a: "asc" } } } }, _count: { select: { posts: true, liked: true } } } });
  assert.deepEqual([seen.visits, seen.liked[0].body, seen.liked[0].tags.length, seen._count.liked], [3n, "changed", 2, 1]);
  await db.tag.deleteMany({ where: { postId: carl.posts[0].id } });
  await db.user.delete({ where: { id: carl.id } });
  assert.equal(await db.post.count({ where: { authorId: carl.id } }), 0);
});

test("upserts, many updates and deletes", async () => {
  for (const name of ["first", "second"]) {
    await db.user.upsert({ where: { email: "up@x" }, create: { email: "up@x", name }, update: { name } });
  }
  assert.equal((await db.user.findUnique({ where: { email: "up@x" } })).name, "second");
  await Promise.all(Array.from({ length: 10 }, () => db.user.update({ where: { email: "up@x" }, data: { visits: { increment: 1 } } })));
  assert.equal((await db.user.findUnique({ where: { email: "up@x" } })).visits, 10n);
  assert.equal((await db.user.updateMany({ where: { email: "up@x" }, data: { active: false } })).count, 1);
  assert.equal((await db.user.deleteMany({ where: { active: false } })).count, 1);
});

test("errors have Prisma's codes", async () => {
  const code = async (promise) => promise.then(() => null, (error) => error.code);
  assert.equal(await code(db.user.create({ data: { email: "ann@x" } })), "P2002");
  assert.equal(await code(db.tag.create({ data: { a: 900, b: "z", postId: 123456 } })), "P2003");
  assert.equal(await code(db.user.update({ where: { id: 123456 }, data: { name: "n" } })), "P2025");
  assert.equal(await code(db.user.create({ data: { email: "l".repeat(200) } })), "P2000");
  assert.equal(await code(db.$queryRawUnsafe("SELECT nothing FROM nowhere")), "P2010");
});

test("transactions", async () => {
  await assert.rejects(db.$transaction([db.user.create({ data: { email: "t1@x" } }), db.user.create({ data: { email: "ann@x" } })]));
  await assert.rejects(db.$transaction(async (t) => {
    await t.user.create({ data: { email: "t2@x" } });
    throw new Error("no");
  }));
  assert.equal(await db.user.count({ where: { email: { startsWith: "t" } } }), 0);
  for (const isolationLevel of ["ReadUncommitted", "ReadCommitted", "RepeatableRead", "Serializable"]) {
    await db.$transaction(async (t) => {
      await t.user.updateMany({ data: { active: true } });
      assert.equal(await t.user.count(), 2);
    }, { isolationLevel });
  }
});

test("raw queries", async () => {
  const rows = await db.$queryRaw`SELECT id, balance, visits, createdAt, active, profile FROM User WHERE email = ${"ann@x"}`;
  assert.deepEqual([rows[0].id, rows[0].balance.toString(), rows[0].active, rows[0].profile.age], [1, "10.500001", 1, 30]);
  assert.equal(await db.$executeRaw`UPDATE User SET name = ${"Ann"} WHERE id IN (${Prisma.join([1, 2])}) AND name <> ${"Bob"}`, 1);
});
