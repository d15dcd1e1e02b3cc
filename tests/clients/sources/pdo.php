<?php
// PDO against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}.
$database = null;

function step(string $name, callable $work): void {
    $error = null;
    try {
        $work();
    } catch (Throwable $failure) {
        $error = $failure->getMessage();
    }
    echo json_encode(["step" => "PDO: $name", "error" => $error]), "\n";
}

function check(bool $right): void {
    if (!$right) {
        throw new Exception("wrong");
    }
}

function grouped(int $age): void {
    global $database;
    $asked = $database->prepare("SELECT sex, COUNT(*) FROM patients WHERE age > :age GROUP BY sex");
    $asked->execute(["age" => $age]);
    check(count($asked->fetchAll()) === 2);
}

function refused(string $sql): void {
    global $database;
    try {
        $database->query($sql)->fetchAll();
    } catch (PDOException $error) {
        check(str_starts_with($error->errorInfo[0], "ZP00"));
        return;
    }
    throw new Exception("answered");
}

step("connect", function () {
    global $database;
    $database = new PDO("pgsql:" . getenv("PLACE"), getenv("PGUSER"), getenv("PGPASSWORD"));
});
step("columns", function () {
    global $database;
    $asked = $database->query("SELECT day, value FROM labs LIMIT 0");
    check($asked->getColumnMeta(1)["native_type"] === "float8");
});
step("grouped", fn () => grouped(41));
step("refusal", fn () => refused("SELECT patient_id FROM patients"));
step("question after it", fn () => grouped(42));
step("exists", fn () => refused("SELECT 1 FROM patients WHERE age > 40 LIMIT 1"));
