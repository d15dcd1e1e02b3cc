# ActiveRecord against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}.
require "active_record"
require "json"

ActiveRecord::Base.establish_connection(ENV.fetch("URL"))

class Patient < ActiveRecord::Base
end

def step(name)
  yield
  puts JSON.generate(step: "ActiveRecord: #{name}", error: nil)
rescue StandardError => error
  puts JSON.generate(step: "ActiveRecord: #{name}", error: error.message)
end

def check(found)
  raise "wrong: #{found.inspect}" unless yield(found)
end

def refused
  yield
rescue ActiveRecord::StatementInvalid => error
  check(error.cause.result.error_field(PG::Result::PG_DIAG_SQLSTATE)) { |state| state.start_with?("ZP00") }
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
