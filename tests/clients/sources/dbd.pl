# DBD::Pg against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}.
use strict;
use warnings;
use DBI;
use JSON::PP;

my $database;

sub step {
    my ($name, $work) = @_;
    my $error = eval { $work->(); 1 } ? undef : "$@";
    print encode_json({ step => "DBD::Pg: $name", error => $error }), "\n";
}

sub grouped {
    my $asked = $database->prepare("SELECT sex, COUNT(*) FROM patients WHERE age > ? GROUP BY sex");
    $asked->execute($_[0]);
    die "wrong" unless @{ $asked->fetchall_arrayref } == 2;
}

sub refused {
    eval { $database->selectall_arrayref($_[0]); 1 } and die "answered";
    die $database->state unless $database->state =~ /^ZP00/;
}

step(connect => sub {
    $database = DBI->connect("dbi:Pg:$ENV{PLACE}", $ENV{PGUSER}, $ENV{PGPASSWORD}, { RaiseError => 1, PrintError => 0, PrintWarn => 0 });
    $SIG{__WARN__} = sub { };
});
step(tables => sub { die "wrong" unless grep { $_->[2] eq "labs" } @{ $database->table_info("", "public", "%", "TABLE")->fetchall_arrayref } });
step(columns => sub { die "wrong" unless @{ $database->column_info("", "public", "labs", "%")->fetchall_arrayref } == 4 });
step(keys => sub {
    die "wrong" unless ($database->primary_key("", "public", "patients"))[0] eq "patient_id";
    die "wrong" unless @{ $database->foreign_key_info(undef, undef, undef, undef, "public", "labs")->fetchall_arrayref } == 1;
});
step(grouped => sub { grouped(41) });
step(refusal => sub { refused("SELECT patient_id FROM patients") });
step("question after it" => sub { grouped(42) });
step(exists => sub { refused("SELECT 1 FROM patients WHERE age > 40 LIMIT 1") });
