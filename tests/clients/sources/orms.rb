# ActiveRecord and Sequel against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}.
require "active_record"
require "json"
require "sequel"

ActiveRecord::Base.establish_connection(ENV.fetch("URL"))

class Patient < ActiveRecord::Base
end

def step(name, library = "ActiveRecord")
  yield
  puts JSON.generate(step: "#{library}: #{name}", error: nil)
rescue StandardError => error
  puts JSON.generate(step: "#{library}: #{name}", error: error.message)
end

def check(found)
  raise "wrong: #{found.inspect}" unless yield(found)
end

def refused
  yield
rescue ActiveRecord::StatementInvalid, Sequel::DatabaseError => error
  check((error.cause || error.wrapped_exception).result.error_field(PG::Result::PG_DIAG_SQLSTATE)) { |state| state.start_with?("ZP00") }
else
  raise "answered"
end

step("connect") { ActiveRecord::Base.connection.select_value("SELECT 1") }
database = ActiveRecord::Base.connection
step("tables") { check(database.tables) { |names| names.include?("labs") } }
step("columns") { check(database.columns("labs").map(&:name).sort) { |names| names == %w[day patient_id test value] } }
step("keys") do
  check(database.foreign_keys("labs").map { |key| [key.column, key.to_table] }) { |keys| keys == [%w[patient_id patients]] }
  check(database.primary_key("patients")) { |key| key == "patient_id" }
end
step("grouped") { check(Patient.where("age > ?", 41).group(:sex).count) { |groups| groups.size == 2 } }
step("refusal") { refused { database.select_all("SELECT patient_id FROM patients") } }
step("question after it") { check(Patient.where("age > ?", 42).group(:sex).average(:age)) { |groups| groups.size == 2 } }
step("exists") { refused { Patient.where(sex: "male").exists? } }
step("find") { refused { Patient.find(7) } }

sequel = Sequel.connect(ENV.fetch("URL"))
patients = sequel[:patients]
older = ->(age) { patients.where { Sequel[:age] > age } }
STEPS = {
  "connect" => -> { sequel.test_connection },
  "tables" => -> { check(sequel.tables) { |names| names.include?(:labs) && sequel.table_exists?(:labs) } },
  "columns" => -> { check(sequel.schema(:labs).map(&:first).sort) { |names| names == %i[day patient_id test value] } },
  "keys" => lambda do
    check(sequel.foreign_key_list(:labs)) { |keys| keys.first.values_at(:table, :columns) == [:patients, [:patient_id]] }
    check(sequel.primary_key(:patients)) { |key| key == "patient_id" }
  end,
  "grouped" => -> { check(older.call(41).group_and_count(:sex).all) { |groups| groups.size == 2 } },
  "refusal" => -> { refused { older.call(43).all } },
  "question after it" => -> { check(older.call(42).group_and_count(:sex).use_cursor.all) { |groups| groups.size == 2 } },
  "exists" => -> { refused { older.call(43).empty? } },
  "model" => -> { check(Class.new(Sequel::Model(:patients)).where(sex: "male").avg(:age)) { |mean| mean > 20 } }
}
STEPS.each { |name, work| step(name, "Sequel", &work) }
