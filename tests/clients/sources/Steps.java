// pgJDBC against a served clinic: one line of JSON for each step, {"step": ..., "error": text or null}.
// Run as: javac -cp postgresql.jar Steps.java; java -cp postgresql.jar:. Steps URL USER PASSWORD
import java.sql.*;
import java.util.*;
import java.util.concurrent.Callable;

public class Steps {
    static final String GROUPED = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex";
    static final String BY_SEX = "SELECT COUNT(*) FROM patients WHERE sex = ?";
    static final String ENDLESS = "SELECT count(*) FROM generate_series(1, 90000) a FULL JOIN generate_series(1, 90000) b ON a + b < 0";
    static String url, user, password;

    interface Work { void run(Connection connection) throws Exception; }

    public static void main(String[] arguments) {
        url = arguments[0];
        user = arguments[1];
        password = arguments[2];
        step("connect", Steps::connect);
        step("wrong_password", connection -> failsWith("28P01", () -> DriverManager.getConnection(url, user, "wrong")));
        step("tables", Steps::tables);
        step("columns", Steps::columns);
        step("keys", Steps::keys);
        step("types", Steps::types);
        step("query", Steps::query);
        step("values", Steps::values);
        step("parameters", Steps::parameters);
        step("prepared", Steps::prepared);
        // In its simple mode pgJDBC cannot ask for columns alone nor for a part of the rows.
        if (!simple()) step("describe", Steps::describe);
        step("fetch_size", Steps::fetchSize);
        step("batch", Steps::batch);
        step("transaction", Steps::transaction);
        step("errors", Steps::errors);
        step("notices", Steps::notices);
        step("copy", Steps::copy);
        step("timeout", Steps::timeout);
        step("cancel", Steps::cancel);
        step("read_only", Steps::readOnly);
    }

    static boolean simple() { return url.endsWith("=simple"); }

    static void step(String name, Work work) {
        String error = null;
        try (Connection connection = DriverManager.getConnection(url, user, password)) {
            work.run(connection);
        } catch (Throwable caught) {
            error = caught + (caught.getStackTrace().length > 0 ? " at " + caught.getStackTrace()[0] : "");
            for (StackTraceElement place : caught.getStackTrace()) {
                if (place.getClassName().startsWith("Steps")) error += " < " + place.getLineNumber();
            }
        }
        String quoted = error == null ? "null" : '"' + error.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
        System.out.println("{\"step\": \"" + name + "\", \"error\": " + quoted + "}");
    }

    static void same(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) throw new AssertionError("wanted " + wanted + ", found " + found);
    }

    static void holds(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    static SQLException failsWith(String sqlstate, Callable<?> work) throws Exception {
        try {
            work.call();
        } catch (SQLException error) {
            same(sqlstate, error.getSQLState());
            return error;
        }
        throw new AssertionError("no error " + sqlstate);
    }

    /** All rows: the columns named, or all. */
    static List<List<Object>> all(ResultSet rows, String... names) throws SQLException {
        List<List<Object>> found = new ArrayList<>();
        while (rows.next()) {
            List<Object> row = new ArrayList<>();
            if (names.length == 0) {
                for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) row.add(rows.getObject(at));
            }
            for (String name : names) row.add(rows.getObject(name));
            found.add(row);
        }
        return found;
    }

    static List<List<Object>> asked(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            return all(rows);
        }
    }

    static void connect(Connection connection) throws Exception {
        holds(connection.isValid(5), "isValid");
        same("PostgreSQL", connection.getMetaData().getDatabaseProductName());
        same(16, connection.getMetaData().getDatabaseMajorVersion());
        same("nafld", connection.getCatalog());
        same("public", connection.getSchema());
    }

    static void tables(Connection connection) throws Exception {
        DatabaseMetaData about = connection.getMetaData();
        same(List.of(List.of("events"), List.of("labs"), List.of("patients")),
            all(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
        holds(all(about.getTables("nafld", "public", "labs", null), "REMARKS").toString().contains("up to 60 rows"), "comment");
        holds(all(about.getSchemas(), "TABLE_SCHEM").contains(List.of("public")), "schemas");
        same(List.of(List.of("nafld")), all(about.getCatalogs(), "TABLE_CAT"));
        holds(all(about.getTableTypes()).contains(List.of("TABLE")), "table types");
    }

    static void columns(Connection connection) throws Exception {
        DatabaseMetaData about = connection.getMetaData();
        same("[[day, -5, int8], [test, 12, text], [value, 8, float8], [patient_id, -5, int8]]",
            all(about.getColumns(null, "public", "labs", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME").toString());
        same("[[years at entry into the cohort; clamped to 18 .. 110]]",
            all(about.getColumns(null, null, "patients", "age"), "REMARKS").toString());
    }

    static void keys(Connection connection) throws Exception {
        DatabaseMetaData about = connection.getMetaData();
        same("[[patient_id, 1]]", all(about.getPrimaryKeys(null, "public", "patients"), "COLUMN_NAME", "KEY_SEQ").toString());
        same("[[patients, patient_id, patient_id]]",
            all(about.getImportedKeys(null, "public", "labs"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME").toString());
        same(2, all(about.getExportedKeys(null, "public", "patients"), "FKTABLE_NAME").size());
        all(about.getIndexInfo(null, "public", "patients", false, true));
        all(about.getBestRowIdentifier(null, "public", "patients", DatabaseMetaData.bestRowSession, false));
        all(about.getTablePrivileges(null, "public", "patients"));
        all(about.getColumnPrivileges(null, "public", "patients", "%"));
        all(about.getFunctions(null, null, "%"));
        all(about.getProcedures(null, null, "%"));
    }

    static void types(Connection connection) throws Exception {
        List<List<Object>> found = all(connection.getMetaData().getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
        for (List<Object> one : List.of(List.<Object>of("int8", -5), List.<Object>of("float8", 8), List.<Object>of("text", 12))) {
            holds(found.contains(one), "type " + one);
        }
        same(63, connection.getMetaData().getMaxColumnNameLength());
    }

    static void query(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(GROUPED)) {
            ResultSetMetaData about = rows.getMetaData();
            same("sex n", about.getColumnName(1) + " " + about.getColumnLabel(2));
            same(Types.BIGINT, about.getColumnType(2));
            List<List<Object>> found = all(rows, "sex", "n");
            same("female", found.get(0).get(0));
            same("male", found.get(1).get(0));
            holds((Long) found.get(0).get(1) > 5000, "count");
        }
    }

    static void values(Connection connection) throws Exception {
        String sql = "SELECT CAST(1.5 AS double precision), TRUE, CAST('2026-01-02' AS date), CAST('2026-01-02 03:04:05' AS timestamp), "
            + "CAST(-12.34 AS numeric(10,2)), NULL, ARRAY[1,2,3], CAST(70000 AS int4), CAST(2.5 AS real), CAST('x' AS text)";
        // From the fifth time on pgJDBC asks for binary values of a prepared statement.
        try (PreparedStatement prepared = connection.prepareStatement(sql)) {
            for (int round = 0; round < 7; round++) {
                try (ResultSet rows = prepared.executeQuery()) {
                    rows.next();
                    same(1.5, rows.getDouble(1));
                    same(true, rows.getBoolean(2));
                    same("2026-01-02", rows.getDate(3).toString());
                    same("2026-01-02 03:04:05.0", rows.getTimestamp(4).toString());
                    same("-12.34", rows.getBigDecimal(5).toString());
                    same(null, rows.getObject(6));
                    same("[1, 2, 3]", Arrays.toString((Object[]) rows.getArray(7).getArray()));
                    same(70000, rows.getInt(8));
                    same(2.5f, rows.getFloat(9));
                    same("x", rows.getString(10));
                }
            }
        }
    }

    static void parameters(Connection connection) throws Exception {
        String sql = "SELECT COUNT(*) FROM patients WHERE sex = ? AND age > ? AND bmi < ?";
        try (PreparedStatement prepared = connection.prepareStatement(sql)) {
            prepared.setString(1, "male");
            prepared.setInt(2, 50);
            prepared.setDouble(3, 40.5);
            holds((Long) all(prepared.executeQuery()).get(0).get(0) > 1000, "count");
        }
        Object men;
        try (PreparedStatement prepared = connection.prepareStatement(BY_SEX)) {
            prepared.setString(1, "male");
            men = all(prepared.executeQuery()).get(0).get(0);
        }
        try (PreparedStatement prepared = connection.prepareStatement("SELECT COUNT(*) FROM patients WHERE sex = ANY(?)")) {
            prepared.setArray(1, connection.createArrayOf("text", new Object[] {"male"}));
            same(men, all(prepared.executeQuery()).get(0).get(0));
        }
    }

    static void prepared(Connection connection) throws Exception {
        Set<Object> answers = new HashSet<>();
        try (PreparedStatement prepared = connection.prepareStatement(BY_SEX)) {
            for (int round = 0; round < 8; round++) {
                prepared.setString(1, "female");
                answers.add(all(prepared.executeQuery()));
            }
        }
        same(1, answers.size());
    }

    static void describe(Connection connection) throws Exception {
        List<List<Object>> before = asked(connection, "SHOW dp.budget");
        try (PreparedStatement prepared = connection.prepareStatement("SELECT sex, AVG(age) AS mean FROM patients WHERE age > ? GROUP BY sex")) {
            same(2, prepared.getMetaData().getColumnCount());
            same("mean", prepared.getMetaData().getColumnName(2));
            same(1, prepared.getParameterMetaData().getParameterCount());
        }
        same(before, asked(connection, "SHOW dp.budget"));
    }

    static void fetchSize(Connection connection) throws Exception {
        List<List<Object>> whole = asked(connection, GROUPED);
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(1);
            same(whole, all(statement.executeQuery(GROUPED)));
            statement.setMaxRows(1);
            same(simple() ? whole : whole.subList(0, 1), all(statement.executeQuery(GROUPED)));
        }
        connection.commit();
    }

    static void batch(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT 1; " + GROUPED);
            same(1, all(statement.getResultSet()).size());
            holds(statement.getMoreResults(), "a second result");
            same(2, all(statement.getResultSet()).size());
        }
    }

    static void transaction(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        asked(connection, GROUPED);
        Savepoint here = connection.setSavepoint("here");
        failsWith("42703", () -> asked(connection, "SELECT nope FROM patients"));
        failsWith("25P02", () -> asked(connection, "SELECT 1"));
        connection.rollback(here);
        asked(connection, "SELECT 1");
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        connection.setReadOnly(true);
        asked(connection, GROUPED);
        connection.rollback();
    }

    static void errors(Connection connection) throws Exception {
        SQLException error = failsWith("42703", () -> asked(connection, "SELECT  nope FROM patients"));
        holds(error.getMessage().contains("column \"nope\" does not exist"), error.getMessage());
        holds(error.getMessage().contains("Position: 9"), error.getMessage());
        holds(error.getMessage().contains("nothing was charged"), error.getMessage());
        failsWith("42P01", () -> asked(connection, "SELECT COUNT(*) FROM nope"));
        try {
            asked(connection, "SELECT * FROM patients");
            throw new AssertionError("rows of people");
        } catch (SQLException refusal) {
            holds(refusal.getSQLState().startsWith("ZP"), refusal.getSQLState());
            holds(refusal.getMessage().contains("metric"), refusal.getMessage());
        }
        asked(connection, "SELECT 1");
    }

    static void notices(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            all(statement.executeQuery(GROUPED));
            SQLWarning warning = statement.getWarnings();
            holds(warning != null && warning.getMessage().contains("price: "), "price");
            holds(warning.toString().contains("price: "), "price");
        }
    }

    static void copy(Connection connection) throws Exception {
        List<List<Object>> rows = asked(connection, GROUPED);
        java.io.StringWriter written = new java.io.StringWriter();
        connection.unwrap(org.postgresql.PGConnection.class).getCopyAPI().copyOut("COPY (" + GROUPED + ") TO STDOUT WITH CSV", written);
        same(rows.get(0).get(0) + "," + rows.get(0).get(1), written.toString().split("\n")[0]);
    }

    static void timeout(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            failsWith("57014", () -> statement.executeQuery(ENDLESS));
        }
        asked(connection, "SELECT 1");
    }

    static void cancel(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    while (!Thread.currentThread().isInterrupted()) {
                        Thread.sleep(100);
                        statement.cancel();
                    }
                } catch (InterruptedException | SQLException end) {
                    Thread.currentThread().interrupt();
                }
            });
            other.start();
            try {
                failsWith("57014", () -> statement.executeQuery(ENDLESS));
            } finally {
                other.interrupt();
                other.join();
            }
        }
    }

    static void readOnly(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            failsWith("25006", () -> statement.executeUpdate("UPDATE patients SET age = 1"));
        }
    }
}
