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

(async () => {
  for (const work of [sequelize, typeorm, knexed, massived, drizzled]) await work();
  process.exit();  // idle connections of pools would keep the process for half a minute
})();
