// Libraries of node over node-pg against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": ...}.
// The place comes from URL. Every library does the same: tables, columns, keys, a grouped question, a refusal, a question, exists.
"use strict";
const assert = require("node:assert");
require("reflect-metadata");
const { DataSource, EntitySchema } = require("typeorm");
const { Sequelize, DataTypes, QueryTypes } = require("sequelize");
const knex = require("knex");
const massive = require("massive");
const { drizzle } = require("drizzle-orm/node-postgres");
const { count, gt, sql } = require("drizzle-orm");
const { integer, pgTable, text } = require("drizzle-orm/pg-core");
const { Pool } = require("pg");
const { MikroORM, EntitySchema: MikroSchema } = require("@mikro-orm/postgresql");
const { PrismaClient } = require("@prisma/client");
const { PrismaPg } = require("@prisma/adapter-pg");
const { Kysely, PostgresDialect, sql: ofKysely } = require("kysely");
const { Model } = require("objection");
const pgPromise = require("pg-promise");
const postgres = require("postgres");
const slonik = require("slonik");

const URL = process.env.URL;
const GROUPED = "SELECT sex, COUNT(*) AS n FROM patients WHERE age > $1 GROUP BY sex ORDER BY sex";
const COLUMNS = ["day", "patient_id", "test", "value"];

async function code(work) {
  try {
    return JSON.stringify(await work());
  } catch (error) {
    return error.code ?? error.parent?.code ?? error.cause?.code ?? String(error);
  }
}
const refused = async (work) => assert.match(await code(work), /^ZP00/);

async function steps(library, named) {
  for (const [step, work] of Object.entries(named)) {
    let error = null;
    try {
      await work();
    } catch (failure) {
      error = `${failure.message} ${failure.query ?? failure.sql ?? ""}`;
    }
    console.log(JSON.stringify({ step: `${library}: ${step}`, error }));
  }
}

async function sequelize() {
  const database = new Sequelize(URL, { logging: false });
  const look = database.getQueryInterface();
  const patients = database.define("patients", { sex: DataTypes.TEXT }, { tableName: "patients", timestamps: false });
  patients.removeAttribute("id");
  const grouped = async (age) =>
    assert.strictEqual((await database.query(GROUPED, { bind: [age], type: QueryTypes.SELECT })).length, 2);
  await steps("Sequelize", {
    connect: () => database.authenticate(),
    tables: async () => assert.ok((await look.showAllTables()).includes("labs")),
    columns: async () => assert.deepStrictEqual(Object.keys(await look.describeTable("labs")).sort(), COLUMNS),
    keys: async () =>
      assert.strictEqual((await look.getForeignKeyReferencesForTable("labs"))[0].referencedTableName, "patients"),
    grouped: () => grouped(41),
    refusal: () => refused(() => database.query("SELECT patient_id FROM patients")),
    "question after it": () => grouped(42),
    exists: () => refused(() => database.query("SELECT EXISTS (SELECT 1 FROM patients WHERE age > 40)")),
    model: async () => assert.ok((await patients.count({ where: { sex: "male" } })) > 100),
  });
  await database.close();
}

async function typeorm() {
  const entity = new EntitySchema({
    name: "Patient",
    tableName: "patients",
    columns: { patient_id: { type: Number, primary: true }, age: { type: Number } },
  });
  const source = new DataSource({ type: "postgres", url: URL, entities: [entity] });
  let runner;
  const grouped = async (age) => assert.strictEqual((await runner.query(GROUPED, [age])).length, 2);
  await steps("TypeORM", {
    connect: async () => {
      await source.initialize();
      runner = source.createQueryRunner();
    },
    tables: async () => assert.ok((await runner.getTables()).some((table) => table.name.endsWith("labs"))),
    columns: async () =>
      assert.deepStrictEqual((await runner.getTable("labs")).columns.map((column) => column.name).sort(), COLUMNS),
    keys: async () => assert.match((await runner.getTable("labs")).foreignKeys[0].referencedTableName, /patients/),
    grouped: () => grouped(41),
    refusal: () => refused(() => source.getRepository("Patient").findOneBy({ age: 43 })),
    "question after it": () => grouped(42),
    exists: () => refused(() => source.getRepository("Patient").existsBy({ age: 43 })),
    model: async () => assert.ok((await source.getRepository("Patient").count()) > 100),
  });
  await source.destroy();
}

async function knexed() {
  const database = knex({ client: "pg", connection: URL });
  const grouped = async (age) =>
    assert.strictEqual((await database("patients").select("sex").count("*").where("age", ">", age).groupBy("sex")).length, 2);
  await steps("Knex", {
    connect: () => database.raw("SELECT 1"),
    tables: async () => assert.ok(await database.schema.hasTable("labs")),
    columns: async () => assert.deepStrictEqual(Object.keys(await database("labs").columnInfo()).sort(), COLUMNS),
    grouped: () => grouped(41),
    refusal: () => refused(() => database("patients").select("patient_id")),
    "question after it": () => grouped(42),
    exists: () => refused(() => database("patients").where("age", ">", 3).first(1)),
  });
  await database.destroy();
}

async function massived() {
  let database;
  const grouped = async (age) => assert.strictEqual((await database.query(GROUPED, [age])).length, 2);
  await steps("MassiveJS", {
    connect: async () => {
      database = await massive(URL);
    },
    tables: () => assert.ok(database.listTables().includes("labs")),
    grouped: () => grouped(41),
    refusal: () => refused(() => database.patients.find({ "age >": 30 })),
    "question after it": () => grouped(42),
  });
  await database.instance.$pool.end();
}

async function drizzled() {
  const pool = new Pool({ connectionString: URL });
  const database = drizzle(pool);
  const patients = pgTable("patients", { id: integer("patient_id").primaryKey(), sex: text("sex"), age: integer("age") });
  const grouped = async (age) => {
    const asked = database.select({ sex: patients.sex, n: count() }).from(patients).where(gt(patients.age, age));
    assert.strictEqual((await asked.groupBy(patients.sex)).length, 2);
  };
  await steps("Drizzle", {
    connect: () => database.execute(sql`SELECT 1`),
    grouped: () => grouped(41),
    refusal: () => refused(() => database.select().from(patients)),
    "question after it": () => grouped(42),
    exists: () => refused(() => database.select({ one: sql`1` }).from(patients).limit(1)),
  });
  await pool.end();
}

async function prismaed() {
  const database = new PrismaClient({ adapter: new PrismaPg({ connectionString: URL }) });
  const { patient } = database;
  const older = (age) => ({ age: { gt: age } });
  const grouped = async (age) =>
    assert.strictEqual((await patient.groupBy({ by: ["sex"], _count: true, where: older(age) })).length, 2);
  await steps("Prisma", {
    connect: () => database.$connect(),
    tables: async () => {
      const asked = database.$queryRaw`SELECT table_name::text FROM information_schema.tables WHERE table_schema = ${"public"}`;
      assert.ok((await asked).some((row) => row.table_name === "labs"));
    },
    grouped: () => grouped(41),
    refusal: () => assert.rejects(patient.findMany({ where: older(43) }), /protected rows/),
    "question after it": () => grouped(42),
    exists: () => assert.rejects(patient.findFirst({ where: older(43) }), /protected rows/),
    model: async () => {
      assert.ok((await patient.count({ where: older(41) })) > 100);
      assert.ok((await patient.aggregate({ _avg: { age: true } }))._avg.age > 20);
    },
  });
  await database.$disconnect();
}

async function postgresed() {
  const sql = postgres(URL.split("?")[0], { ssl: { rejectUnauthorized: false }, onnotice: () => {} });
  const grouped = async (age) => {
    const asked = sql`SELECT sex, COUNT(*) FROM patients WHERE age > ${age} AND sex IN ${sql(["male", "female"])} GROUP BY sex`;
    assert.strictEqual((await asked).length, 2);
  };
  const columns = sql`SELECT column_name FROM information_schema.columns WHERE table_name = ${"labs"}`;
  await steps("Postgres.js", {
    connect: () => sql`SELECT 1`,
    columns: async () => assert.deepStrictEqual((await columns).map((row) => row.column_name).sort(), COLUMNS),
    grouped: () => grouped(41),
    refusal: () => refused(() => sql`SELECT patient_id FROM patients`),
    "question after it": () => sql.begin(() => grouped(42)),
    exists: () => refused(() => sql`SELECT EXISTS (SELECT 1 FROM patients WHERE age > ${42})`),
  });
  await sql.end();
}

async function promised() {
  const database = pgPromise()(URL);
  const grouped = async (age) => assert.strictEqual((await database.any(GROUPED, [age])).length, 2);
  await steps("pg-promise", {
    connect: () => database.one("SELECT 1"),
    grouped: () => grouped(41),
    refusal: () => refused(() => database.any("SELECT patient_id FROM patients")),
    "question after it": () => database.tx((all) => all.batch([grouped(42), all.multi("SELECT 1; SELECT 2")])),
    exists: () => refused(() => database.oneOrNone("SELECT 1 FROM patients WHERE age > $1 LIMIT 1", [42])),
  });
  await database.$pool.end();
}

async function kyselied() {
  const database = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: URL }) }) });
  const rows = () => database.selectFrom("patients");
  const grouped = async (age) => {
    const asked = rows().select(["sex", (one) => one.fn.countAll().as("n")]).where("age", ">", age).groupBy("sex");
    assert.strictEqual((await asked.execute()).length, 2);
  };
  let tables;
  await steps("Kysely", {
    connect: async () => {
      tables = await database.introspection.getTables();
    },
    tables: () => assert.deepStrictEqual(tables.map((table) => table.name).sort(), ["events", "labs", "patients"]),
    columns: () => {
      const { columns } = tables.find((table) => table.name === "labs");
      assert.deepStrictEqual(columns.map((column) => column.name).sort(), COLUMNS);
    },
    grouped: () => grouped(41),
    refusal: () => refused(() => rows().selectAll().execute()),
    "question after it": () => grouped(42),
    exists: () => {
      const inner = (one) => one.exists(rows().select(ofKysely`1`.as("one"))).as("any");
      return refused(() => database.selectNoFrom(inner).execute());
    },
  });
  await database.destroy();
}

async function objected() {
  const database = knex({ client: "pg", connection: URL });
  class Patient extends Model {}
  Patient.tableName = "patients";
  Patient.idColumn = "patient_id";
  Patient.knex(database);
  const grouped = async (age) =>
    assert.strictEqual((await Patient.query().select("sex").count("*").where("age", ">", age).groupBy("sex")).length, 2);
  await steps("Objection", {
    connect: () => database.raw("SELECT 1"),
    columns: async () => assert.ok((await Patient.fetchTableMetadata()).columns.includes("bmi")),
    grouped: () => grouped(41),
    refusal: () => refused(() => Patient.query().where("age", ">", 41)),
    "question after it": () => grouped(42),
    exists: () => refused(() => Patient.query().findById(7)),
    model: async () => assert.ok((await Patient.query().where("age", ">", 41).resultSize()) > 100),
  });
  await database.destroy();
}

async function sloniked() {
  const pool = await slonik.createPool(URL);
  const asked = slonik.sql.unsafe;
  const grouped = async (age, on = pool) =>
    assert.strictEqual((await on.any(asked`SELECT sex, COUNT(*) FROM patients WHERE age > ${age} GROUP BY sex`)).length, 2);
  await steps("Slonik", {
    connect: () => pool.oneFirst(asked`SELECT 1`),
    grouped: () => grouped(41),
    refusal: () => refused(() => pool.any(asked`SELECT patient_id FROM patients`)),
    "question after it": () => pool.transaction((all) => grouped(42, all)),
    exists: () => refused(() => pool.exists(asked`SELECT 1 FROM patients WHERE age > ${42}`)),
  });
  await pool.end();
}

async function mikro() {
  const properties = { patient_id: { type: "number", primary: true }, sex: { type: "string" }, age: { type: "number" } };
  const entities = [new MikroSchema({ name: "Patient", tableName: "patients", properties })];
  const driverOptions = { connection: { ssl: { rejectUnauthorized: false } } };
  let database, manager;
  const grouped = async (age) => {
    const asked = manager.createQueryBuilder("Patient").select("sex").where({ age: { $gt: age } }).groupBy("sex");
    assert.strictEqual((await asked.execute()).length, 2);
  };
  await steps("MikroORM", {
    connect: async () => {
      database = await MikroORM.init({ clientUrl: URL.split("?")[0], entities, dbName: "nafld", driverOptions });
      manager = database.em.fork();
    },
    tables: async () => assert.match(await database.schema.getUpdateSchemaSQL({ wrap: false }), /drop table if exists "labs"/),
    grouped: () => grouped(41),
    refusal: () => refused(() => manager.find("Patient", { age: { $gt: 43 } })),
    "question after it": () => grouped(42),
    exists: () => refused(() => manager.findOne("Patient", { patient_id: 7 })),
    model: async () => assert.ok((await manager.count("Patient", { age: { $gt: 41 } })) > 100),
  });
  await database.close();
}

const LIBRARIES = [
  sequelize, typeorm, knexed, massived, drizzled, prismaed, postgresed, promised, kyselied, objected, sloniked, mikro,
];
(async () => {
  for (const work of LIBRARIES) await work();
  process.exit();  // idle connections of pools would keep the process for half a minute
})();
