-- Sequelize
-- in 18: another version
SHOW SERVER_VERSION
SELECT typname, typtype, oid, typarray FROM pg_type WHERE (typtype = 'b' AND typname IN ('hstore', 'geometry', 'geography')) OR (typtype = 'e')
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type LIKE '%TABLE' AND table_name != 'spatial_ref_sys' ORDER BY 1
SELECT pk.constraint_type as "Constraint", c.column_name as "Field", c.column_default as "Default", c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'orders' AND c.table_schema = 'public' ORDER BY c.ordinal_position
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a, pg_namespace s WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'orders' AND s.oid = t.relnamespace AND s.nspname = 'public' AND a.attnum = ANY(ix.indkey) GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname
-- differs: not answered as there yet
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name, tc.table_schema as table_schema, tc.table_catalog as table_catalog, tc.initially_deferred as initially_deferred, tc.is_deferrable as is_deferrable, kcu.column_name as column_name, ccu.table_schema AS referenced_table_schema, ccu.table_catalog AS referenced_table_catalog, ccu.table_name AS referenced_table_name, ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'orders' AND tc.table_catalog = current_database() ORDER BY 1
SELECT conrelid::regclass AS table_from, conname, pg_get_constraintdef(c.oid) FROM pg_catalog.pg_constraint r JOIN pg_catalog.pg_constraint c ON c.oid = r.oid WHERE r.conrelid = 'orders'::regclass ORDER BY 2
-- in 18: not-null constraints have rows
SELECT conname AS "constraintName", contype, conrelid::regclass::text AS "tableName" FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1
-- TypeORM
SELECT * FROM current_schema()
SELECT * FROM current_database()
-- differs: the version says what dpsql is
SELECT version()
-- differs: the version says what dpsql is
SELECT * FROM version()
SELECT current_schema() AS s, d FROM current_database() AS d
SELECT "table_schema", "table_name" FROM "information_schema"."tables" WHERE ("table_schema" = 'public' AND "table_name" = 'orders') OR ("table_schema" = 'public' AND "table_name" = 'users') ORDER BY 2
-- differs: not answered as there yet
SELECT columns.*, pg_catalog.col_description(('"' || table_catalog || '"."' || table_schema || '"."' || table_name || '"')::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'public' AND "table_name" = 'users') ORDER BY ordinal_position
-- in 18: not-null constraints have rows
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression", CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name" FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace" LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey") WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders')) ORDER BY 3
SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table_schema", "con"."relname" AS "table_name", "att2"."attname" AS "column_name", "ns"."nspname" AS "referenced_table_schema", "cl"."relname" AS "referenced_table_name", "att"."attname" AS "referenced_column_name", "con"."confdeltype" AS "on_delete", "con"."confupdtype" AS "on_update", "con"."condeferrable" AS "deferrable", "con"."condeferred" AS "deferred" FROM ( SELECT UNNEST ("con1"."conkey") AS "parent", UNNEST ("con1"."confkey") AS "child", "con1"."confrelid", "con1"."conrelid", "con1"."conname", "con1"."contype", "ns"."nspname", "cl"."relname", "con1"."condeferrable", CASE WHEN "con1"."condeferred" THEN 'INITIALLY DEFERRED' ELSE 'INITIALLY IMMEDIATE' END as condeferred, CASE "con1"."confdeltype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confdeltype", CASE "con1"."confupdtype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confupdtype" FROM "pg_class" "cl" INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_constraint" "con1" ON "con1"."conrelid" = "cl"."oid" WHERE "con1"."contype" = 'f' AND (("ns"."nspname" = 'public' AND "cl"."relname" = 'orders')) ) "con" INNER JOIN "pg_attribute" "att" ON "att"."attrelid" = "con"."confrelid" AND "att"."attnum" = "con"."child" INNER JOIN "pg_class" "cl" ON "cl"."oid" = "con"."confrelid" AND "cl"."relispartition" = 'f' INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_attribute" "att2" ON "att2"."attrelid" = "con"."conrelid" AND "att2"."attnum" = "con"."parent" ORDER BY 1
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "i"."relname" AS "constraint_name", "a"."attname" AS "column_name", CASE "ix"."indisunique" WHEN 't' THEN 'TRUE' ELSE'FALSE' END AS "is_unique", pg_get_expr("ix"."indpred", "ix"."indrelid") AS "condition", "types"."typname" AS "type_name", "am"."amname" AS "index_type" FROM "pg_class" "t" INNER JOIN "pg_index" "ix" ON "ix"."indrelid" = "t"."oid" INNER JOIN "pg_attribute" "a" ON "a"."attrelid" = "t"."oid"  AND "a"."attnum" = ANY ("ix"."indkey") INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "t"."relnamespace" INNER JOIN "pg_class" "i" ON "i"."oid" = "ix"."indexrelid" INNER JOIN "pg_type" "types" ON "types"."oid" = "a"."atttypid" INNER JOIN "pg_am" "am" ON "i"."relam" = "am"."oid" LEFT JOIN "pg_constraint" "cnst" ON "cnst"."conname" = "i"."relname" WHERE "t"."relkind" IN ('r', 'p') AND "cnst"."contype" IS NULL AND (("ns"."nspname" = 'public' AND "t"."relname" = 'orders'))
SELECT * FROM "information_schema"."tables" WHERE "table_schema" = 'public' AND "table_name" = 'typeorm_metadata'
-- ActiveRecord
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool') ORDER BY 1
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typtype IN ('r', 'e', 'd') AND t.typnamespace = 'pg_catalog'::regnamespace ORDER BY 1
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput FROM pg_type as t WHERE t.typinput = 'array_in(cstring,oid,integer)'::regprocedure AND t.typelem IN (16, 17, 20, 21, 23, 25) ORDER BY 1
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','p') ORDER BY 1
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'orders' AND c.relkind IN ('r','v','m','p','f')
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"orders"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
SELECT a.attname FROM ( SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"orders"'::regclass AND indisprimary ) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid, ARRAY( SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS k ORDER BY k ) AS columns FROM pg_class t INNER JOIN pg_index d ON t.oid = d.indrelid INNER JOIN pg_class i ON d.indexrelid = i.oid LEFT JOIN pg_namespace n ON n.oid = t.relnamespace WHERE i.relkind IN ('i', 'I') AND t.relname = 'users' AND n.nspname = ANY (current_schemas(false)) ORDER BY i.relname
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conkey, c.confkey, c.conrelid, c.confrelid FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid JOIN pg_namespace t3 ON c.connamespace = t3.oid WHERE c.contype = 'f' AND t1.relname = 'orders' AND t3.nspname = ANY (current_schemas(false)) ORDER BY c.conname
SELECT type.typname AS name, type.OID AS oid, n.nspname AS schema, string_agg(enum.enumlabel, ',' ORDER BY enum.enumsortorder) AS value FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid WHERE n.nspname = ANY (current_schemas(false)) GROUP BY type.OID, n.nspname, type.typname
SELECT pg_catalog.obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'nosuch' AND c.relkind IN ('r') AND n.nspname = ANY (current_schemas(false))
SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false)) ORDER BY 2
SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_.*' AND nspname NOT IN ('information_schema') ORDER by nspname
SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()
SELECT conname, contype FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'u' AND t.relname = 'products' ORDER BY 1
SELECT a.attname, pg_get_serial_sequence('orders', a.attname) FROM pg_attribute a WHERE a.attrelid = 'orders'::regclass AND a.attnum > 0 ORDER BY a.attnum
-- Django
SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1
SELECT a.attname AS column_name, NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull)) AS is_nullable, pg_get_expr(ad.adbin, ad.adrelid) AS column_default, CASE WHEN collname = 'default' THEN NULL ELSE collname END AS collation, a.attidentity != '' AS is_autofield, col_description(a.attrelid, a.attnum) AS column_comment FROM pg_attribute a LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum LEFT JOIN pg_collation co ON a.attcollation = co.oid JOIN pg_type t ON a.atttypid = t.oid JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON c.relnamespace = n.oid WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND c.relname = 'orders' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY a.attnum
-- in 18: not-null constraints have rows
SELECT c.conname, array( SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx) JOIN pg_attribute AS ca ON cols.colid = ca.attnum WHERE ca.attrelid = c.conrelid ORDER BY cols.arridx ), c.contype, (SELECT fkc.relname || '.' || fka.attname FROM pg_attribute AS fka JOIN pg_class AS fkc ON fka.attrelid = fkc.oid WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]), cl.reloptions FROM pg_constraint AS c JOIN pg_class AS cl ON c.conrelid = cl.oid WHERE cl.relname = 'orders' AND pg_catalog.pg_table_is_visible(cl.oid) ORDER BY 1
SELECT indexname, array_agg(attname ORDER BY arridx), indisunique, indisprimary, array_agg(ordering ORDER BY arridx), amname, exprdef, s2.attoptions FROM ( SELECT c2.relname as indexname, idx.*, attr.attname, am.amname, CASE WHEN idx.indexprs IS NOT NULL THEN pg_get_indexdef(idx.indexrelid) END AS exprdef, CASE am.amname WHEN 'btree' THEN CASE (option & 1) WHEN 1 THEN 'DESC' ELSE 'ASC' END END as ordering, c2.reloptions as attoptions FROM ( SELECT * FROM pg_index i, unnest(i.indkey, i.indoption) WITH ORDINALITY koi(key, option, arridx) ) idx LEFT JOIN pg_class c ON idx.indrelid = c.oid LEFT JOIN pg_class c2 ON idx.indexrelid = c2.oid LEFT JOIN pg_am am ON c2.relam = am.oid LEFT JOIN pg_attribute attr ON attr.attrelid = c.oid AND attr.attnum = idx.key WHERE c.relname = 'orders' AND pg_catalog.pg_table_is_visible(c.oid) ) s2 GROUP BY indexname, indisunique, indisprimary, amname, exprdef, attoptions ORDER BY 1
SELECT s.relname AS sequence_name, a.attname AS colname FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass JOIN pg_attribute a ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum JOIN pg_class tbl ON tbl.oid = d.refobjid AND tbl.relname = 'orders' AND pg_catalog.pg_table_is_visible(tbl.oid) WHERE s.relkind = 'S'
SELECT a1.attname, c2.relname, a2.attname FROM pg_constraint con LEFT JOIN pg_class c1 ON con.conrelid = c1.oid LEFT JOIN pg_class c2 ON con.confrelid = c2.oid LEFT JOIN pg_attribute a1 ON c1.oid = a1.attrelid AND a1.attnum = con.conkey[1] LEFT JOIN pg_attribute a2 ON c2.oid = a2.attrelid AND a2.attnum = con.confkey[1] WHERE c1.relname = 'orders' AND con.contype = 'f' AND c1.relnamespace = c2.relnamespace AND pg_catalog.pg_table_is_visible(c1.oid) ORDER BY 1
-- peewee
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' ORDER BY tablename
SELECT viewname, definition FROM pg_catalog.pg_views WHERE schemaname = 'public' ORDER BY viewname
SELECT i.relname, idxs.indexdef, idx.indisunique, array_to_string(ARRAY( SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE) FROM generate_subscripts(idx.indkey, 1) AS k ORDER BY k), ',') FROM pg_catalog.pg_class AS t INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid INNER JOIN pg_catalog.pg_indexes AS idxs ON (idxs.tablename = t.relname AND idxs.indexname = i.relname) WHERE t.relname = 'orders' AND t.relkind = 'r' AND idxs.schemaname = 'public' ORDER BY idx.indisunique DESC, i.relname
SELECT column_name, is_nullable, data_type, column_default FROM information_schema.columns WHERE table_name = 'orders' AND table_schema = 'public' ORDER BY ordinal_position
SELECT pg_attribute.attname FROM pg_index, pg_class, pg_attribute, pg_namespace WHERE pg_class.oid = 'orders'::regclass AND indrelid = pg_class.oid AND nspname = 'public' AND pg_class.relnamespace = pg_namespace.oid AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attnum = any(pg_index.indkey) AND indisprimary
-- differs: not answered as there yet
SELECT DISTINCT kcu.column_name, ccu.table_name, ccu.column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON (tc.constraint_name = kcu.constraint_name AND tc.constraint_schema = kcu.constraint_schema AND tc.table_name = kcu.table_name AND tc.table_schema = kcu.table_schema) JOIN information_schema.constraint_column_usage AS ccu ON (ccu.constraint_name = tc.constraint_name AND ccu.constraint_schema = tc.constraint_schema) WHERE tc.constraint_type = 'FOREIGN KEY' AND tc.table_name = 'events' AND tc.table_schema = 'public' ORDER BY 1
SELECT relname FROM pg_class WHERE relkind = 'S'
-- pgcli
SELECT n.nspname schema_name, c.relname table_name FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = ANY('{r,p,f}') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1,2
SELECT nsp.nspname schema_name, cls.relname table_name, att.attname column_name, att.atttypid::regtype::text type_name, att.atthasdef AS has_default, pg_catalog.pg_get_expr(def.adbin, def.adrelid, true) as default FROM pg_catalog.pg_attribute att INNER JOIN pg_catalog.pg_class cls ON att.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace nsp ON cls.relnamespace = nsp.oid LEFT OUTER JOIN pg_attrdef def ON def.adrelid = att.attrelid AND def.adnum = att.attnum WHERE cls.relkind = ANY(array['r', 'p', 'f']) AND nsp.nspname = 'public' AND NOT att.attisdropped AND att.attnum > 0 ORDER BY 1, 2, att.attnum
SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1
SELECT s_p.nspname AS parentschema, t_p.relname AS parenttable, unnest((select array_agg(attname ORDER BY i) from (select unnest(confkey) as attnum, generate_subscripts(confkey, 1) as i) x JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.confrelid)) AS parentcolumn, s_c.nspname AS childschema, t_c.relname AS childtable, unnest((select array_agg(attname ORDER BY i) from (select unnest(conkey) as attnum, generate_subscripts(conkey, 1) as i) x JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.conrelid)) AS childcolumn FROM pg_catalog.pg_constraint fk JOIN pg_catalog.pg_class t_p ON t_p.oid = fk.confrelid JOIN pg_catalog.pg_namespace s_p ON s_p.oid = t_p.relnamespace JOIN pg_catalog.pg_class t_c ON t_c.oid = fk.conrelid JOIN pg_catalog.pg_namespace s_c ON s_c.oid = t_c.relnamespace WHERE fk.contype = 'f' ORDER BY 2, 5
SELECT n.nspname schema_name, p.proname func_name, p.proargnames, COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[], p.proargmodes, prorettype::regtype::text return_type, p.prokind = 'a' is_aggregate, p.prokind = 'w' is_window, p.proretset is_set_returning, d.deptype = 'e' is_extension, pg_get_expr(proargdefaults, 0) AS arg_defaults FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace LEFT JOIN pg_depend d ON d.objid = p.oid and d.deptype = 'e' WHERE p.prorettype::regtype != 'trigger'::regtype AND n.nspname = 'public' ORDER BY 1, 2
SELECT n.nspname schema_name, t.typname type_name FROM pg_catalog.pg_type t INNER JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE ( t.typrelid = 0 OR ( SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid ) ) AND NOT EXISTS( SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid ) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2
SELECT d.datname FROM pg_catalog.pg_database d WHERE d.datname = current_database() ORDER BY 1
SELECT c.relname, c.relkind::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
SELECT unnest(current_schemas(true))
SELECT current_schemas(false), current_schemas(true)
-- pgJDBC, DBeaver, Hibernate, DataGrip
select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs,absolute,action,ada,add,admin,after,all,allocate,alter,always,and,any,are}'::text[]) and word < 'av'
SELECT word, catcode FROM pg_get_keywords() WHERE word IN ('select', 'from', 'zone') ORDER BY 1
-- in 18: other columns, settings or rows
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1 = 1 AND db.datname='nosuch'
SELECT * FROM pg_catalog.pg_settings where name='standard_conforming_strings' and setting='nosuch'
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass WHERE nspname = 'nosuch' ORDER BY nspname
SELECT c.oid,c.relname,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass WHERE c.relnamespace='public'::regnamespace AND c.relkind not in ('i','I','c') ORDER BY c.relname
-- in 18: other columns, settings or rows
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.relname = 'nosuch' ORDER BY a.attnum
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C') AND t.typname = 'nosuch'
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid WHERE tc.relname = 'nosuch' ORDER BY tabrelname, c.relname
-- in 18: not-null constraints have rows
SELECT c.oid,c.conname,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, case when c.contype='c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass WHERE t.relname = 'orders' ORDER BY c.conname
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME, CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN 'SYSTEM TABLE' ELSE CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'i' THEN 'INDEX' ELSE NULL END END AS TABLE_TYPE, d.description AS REMARKS, '' as TYPE_CAT, '' as TYPE_SCHEM FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass) WHERE c.relnamespace = n.oid AND n.nspname LIKE 'public' AND (false OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) ) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME
SELECT nspname AS TABLE_SCHEM, current_database() AS TABLE_CATALOG FROM pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_' OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_')) ORDER BY TABLE_SCHEM
SELECT result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME, information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true AND ct.relname = 'orders' AND i.indisprimary ) result where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.PK_NAME, result.KEY_SEQ
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid AND fkc.relname = 'orders' ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid FROM pg_catalog.pg_type LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns join ( select s.r, (current_schemas(false))[s.r] as nspname from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname )) as sp ON sp.nspoid = typnamespace WHERE pg_type.typname = '_int4' ORDER BY sp.r, pg_type.oid DESC
SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 1007
SELECT e.typdelim FROM pg_catalog.pg_type t, pg_catalog.pg_type e WHERE t.oid = 1007 and t.typelem = e.oid
select current_database() as a, current_schemas(false) as b
select N.oid::bigint as id, N.xmin as state_number, nspname as name, D.description, pg_catalog.pg_get_userbyid(N.nspowner) = 'nobody' as "owner" from pg_catalog.pg_namespace N left join pg_catalog.pg_description D on N.oid = D.objoid where nspname = 'nosuch' order by case when nspname = pg_catalog.current_schema() then -1::bigint else N.oid::bigint end
select case when pg_catalog.pg_is_in_recovery() then null else (pg_catalog.txid_current() % 4294967296)::varchar::bigint end is not null as current_txid
select T.relkind as table_kind, T.relname as table_name, T.oid > 0 as table_id, pg_catalog.age(T.xmin) >= 0 as state_number, T.relhasoids as table_with_oids from pg_catalog.pg_class T where relnamespace = 2200 and relkind in ('r', 'm', 'v', 'f', 'p') order by table_kind, table_id
select T.relkind as table_kind, T.relname as table_name, T.xmin::text::bigint > 0 as state_number, T.relpersistence = 'u' as unlogged, T.relrowsecurity from pg_catalog.pg_class T where relnamespace = 'public'::regnamespace and relkind in ('r', 'm', 'v', 'f', 'p') order by table_kind, table_name
select age(c.xmin) is null from pg_catalog.pg_class c where c.relname = 'nosuch'
select ind_head.indexrelid is not null index_id, k col_idx, k <= indnkeyatts in_key, ind_head.indkey[k-1] column_position, ind_head.indoption[k-1] column_options, ind_head.indcollation[k-1] as collation, colln.nspname as collation_schema, collname as collation_str, ind_head.indclass[k-1] > 0 as opclass, case when opcdefault then null else opcn.nspname end as opclass_schema, case when indexprs is null then null when ind_head.indkey[k-1] = 0 then chr(27) || pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true) else pg_catalog.pg_get_indexdef(ind_head.indexrelid, k::int, true) end as expression from pg_catalog.pg_index ind_head join pg_catalog.pg_class ind_stor on ind_stor.oid = ind_head.indexrelid cross join unnest(ind_head.indkey) with ordinality u(u, k) left join pg_catalog.pg_collation on pg_collation.oid = ind_head.indcollation[k-1] left join pg_catalog.pg_namespace colln on collnamespace = colln.oid left join pg_catalog.pg_opclass opc on opc.oid = ind_head.indclass[k-1] left join pg_catalog.pg_namespace opcn on opcnamespace = opcn.oid where ind_stor.relnamespace = 'public'::regnamespace and ind_stor.relkind in ('i', 'I') and ind_stor.relname = 'orders_pkey' order by 1, 2
select role_name, is_grantable from information_schema.role_table_grants g, information_schema.enabled_roles e where g.grantee = e.role_name and table_name = 'nosuch'
select L.oid > 0, lanname from pg_catalog.pg_language L where lanname = 'sql'
select rulename from pg_catalog.pg_rules where schemaname = 'public'
select name, abbrev, is_dst from pg_timezone_names() where name = 'UTC'
select usename, usesuper from pg_catalog.pg_user where usename = 'nosuch'
select t.typname, t.typinput::text, t.typoutput::regproc::text from pg_type t where t.typname in ('int4', 'text', '_int4') order by 1
select collname, collencoding, n.nspname from pg_collation c join pg_namespace n on n.oid = c.collnamespace where collname in ('C', 'POSIX') order by 1
select * from pg_catalog.pg_indexes where tablename = 'orders' order by indexname
select tableoid::regclass, relname from pg_class where relname = 'orders'
select c.tableoid, c.oid = c.oid as o from pg_class c where c.relname = 'orders'
select ctid is not null, cmin is not null, xmax from pg_class where relname = 'orders'
-- psql
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT DISTINCT tt.nspname AS "Schema", tt.name AS "Name", tt.object AS "Object", d.description AS "Description" FROM ( SELECT pgc.oid as oid, pgc.tableoid AS tableoid, n.nspname as nspname, CAST(pgc.conname AS pg_catalog.text) as name, CAST('table constraint' AS pg_catalog.text) as object FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_class c ON c.oid = pgc.conrelid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ) AS tt JOIN pg_catalog.pg_description d ON (tt.oid = d.objoid AND tt.tableoid = d.classoid AND d.objsubid = 0) ORDER BY 1, 2, 3
SELECT l.lanname AS "Name", l.lanpltrusted AS "Trusted", d.description AS "Description" FROM pg_catalog.pg_language l LEFT JOIN pg_catalog.pg_description d ON d.classoid = l.tableoid AND d.objoid = l.oid AND d.objsubid = 0 WHERE l.lanplcallfoid != 0 AND l.lanname = 'nosuch' ORDER BY 1
SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = 'orders'::regclass
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull, (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation, a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a WHERE a.attrelid = 'users'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace, false AS conperiod FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x')) WHERE c.oid = 'orders'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid ORDER BY i.indisprimary DESC, c2.relname
SELECT conrelid = 'orders'::pg_catalog.regclass AS sametable, conname, pg_catalog.pg_get_constraintdef(oid, true) AS condef, conrelid::pg_catalog.regclass AS ontable FROM pg_catalog.pg_constraint, pg_catalog.pg_partition_ancestors('orders') WHERE conrelid = relid AND contype = 'f' AND conparentid = 0 ORDER BY sametable DESC, conname
SELECT conname, conrelid::pg_catalog.regclass AS ontable, pg_catalog.pg_get_constraintdef(oid, true) AS condef FROM pg_catalog.pg_constraint c WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('users') UNION ALL VALUES ('users'::pg_catalog.regclass)) AND contype = 'f' AND conparentid = 0 ORDER BY conname
-- differs: the collation is C
SELECT d.datname as "Name", pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding", CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Locale Provider", d.datcollate as "Collate", d.datctype as "Ctype" FROM pg_catalog.pg_database d WHERE d.datname = current_database() ORDER BY 1
SELECT n.nspname AS "Name", pg_catalog.pg_get_userbyid(n.nspowner) <> '' AS "Owner" FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1
SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2, 4
SELECT n.nspname as "Schema", pg_catalog.format_type(t.oid, NULL) AS "Name", pg_catalog.obj_description(t.oid, 'pg_type') as "Description" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2
SELECT pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p') AND substring(pg_catalog.quote_ident(c.relname),1,2)='or' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog')
SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'v', 'm', 'f', 'p') AND (c.relname) LIKE 'or%' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog') UNION ALL SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'or%' AND n.nspname NOT LIKE E'pg\\_%' LIMIT 1000
SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid) FROM pg_catalog.pg_policy pol WHERE pol.polrelid = 'orders'::regclass ORDER BY 1
SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS nsp, stxname, pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns, 'd' = any(stxkind) AS ndist_enabled FROM pg_catalog.pg_statistic_ext WHERE stxrelid = 'orders'::regclass ORDER BY nsp, stxname
SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = 'orders'::regclass ORDER BY inhseqno
SELECT c.oid::pg_catalog.regclass, c.relkind FROM pg_catalog.pg_class c WHERE c.oid = 'public.orders'::regclass
SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid WHERE pc.oid ='orders'::regclass and pg_catalog.pg_relation_is_publishable('orders') ORDER BY 1
SELECT t.spcname, pg_catalog.pg_get_userbyid(spcowner) <> '', pg_catalog.pg_tablespace_location(oid) FROM pg_catalog.pg_tablespace t WHERE spcname = 'pg_default'
SELECT am.amname, CASE am.amtype WHEN 'i' THEN 'Index' WHEN 't' THEN 'Table' END FROM pg_catalog.pg_am am ORDER BY 1
-- drizzle, knex, Prisma, MassiveJS
-- differs: no table can be written to, and columns of the catalogs are not listed
select * from information_schema.tables where table_name = 'orders' and table_schema = current_schema()
-- differs: no table can be written to, and columns of the catalogs are not listed
select * from information_schema.columns where table_name = 'orders' and table_catalog = current_database() and table_schema = current_schema() order by ordinal_position
SELECT s.nspname as table_schema FROM pg_catalog.pg_namespace s JOIN pg_catalog.pg_user u ON u.usesysid = s.nspowner WHERE nspname NOT IN ('information_schema', 'pg_catalog', 'public') AND nspname NOT LIKE 'pg_toast%' AND nspname NOT LIKE 'pg_temp_%' ORDER BY table_schema
SELECT n.nspname AS table_schema, c.relname AS table_name, CASE WHEN c.relkind = 'r' THEN 'table' WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized_view' END AS type, c.relrowsecurity AS rls_enabled FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid::text = c.relnamespace::text WHERE c.relkind IN ('r', 'v', 'm') AND n.nspname IN ('public') ORDER BY 2
SELECT DISTINCT ON (t.relname, ic.relname, k.i) t.relname as table_name, ic.relname AS indexname, k.i AS index_order, i.indisunique as is_unique, am.amname as method, ic.reloptions as with, coalesce(a.attname, pg_get_indexdef(i.indexrelid, k.i, false)) AS column_name, CASE WHEN pg_get_expr(i.indexprs, i.indrelid) IS NOT NULL THEN 1 ELSE 0 END AS is_expression, i.indoption[k.i-1] & 1 = 1 AS descending, i.indoption[k.i-1] & 2 = 2 AS nulls_first, pg_get_expr(i.indpred, i.indrelid) as where, opc.opcname FROM pg_class t LEFT JOIN pg_index i ON t.oid = i.indrelid LEFT JOIN pg_class ic ON ic.oid = i.indexrelid CROSS JOIN LATERAL (SELECT unnest(i.indkey), generate_subscripts(i.indkey, 1) + 1) AS k(attnum, i) LEFT JOIN pg_attribute AS a ON t.oid = a.attrelid AND k.attnum = a.attnum JOIN pg_namespace c on c.oid = t.relnamespace LEFT JOIN pg_am AS am ON ic.relam = am.oid JOIN pg_opclass opc ON opc.oid = ANY(i.indclass) WHERE c.nspname = 'public' AND t.relname = 'orders'
SELECT a.attrelid::regclass::text, a.attname, is_nullable, a.attndims as array_dimensions, CASE WHEN a.atttypid = ANY ('{int,int8,int2}'::regtype[]) AND EXISTS ( SELECT FROM pg_attrdef ad WHERE ad.adrelid = a.attrelid AND ad.adnum = a.attnum ) THEN 'serial' ELSE format_type(a.atttypid, a.atttypmod) END AS data_type, INFORMATION_SCHEMA.COLUMNS.table_name, INFORMATION_SCHEMA.COLUMNS.column_name, INFORMATION_SCHEMA.COLUMNS.column_default, INFORMATION_SCHEMA.COLUMNS.data_type as additional_dt, INFORMATION_SCHEMA.COLUMNS.udt_name as enum_name FROM pg_attribute a JOIN INFORMATION_SCHEMA.COLUMNS ON INFORMATION_SCHEMA.COLUMNS.column_name = a.attname JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = '"public"."orders"'::regclass AND INFORMATION_SCHEMA.COLUMNS.table_name = 'orders' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
SELECT n.nspname AS enum_schema, t.typname AS enum_name, e.enumlabel AS enum_value, e.enumsortorder AS sort_order FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname IN ('public') ORDER BY enum_schema, enum_name, sort_order
SELECT con.contype AS constraint_type, nsp.nspname AS constraint_schema, con.conname AS constraint_name, rel.relname AS table_name, att.attname AS column_name, fnsp.nspname AS foreign_table_schema, frel.relname AS foreign_table_name, fatt.attname AS foreign_column_name, CASE con.confupdtype WHEN 'a' THEN 'NO ACTION' ELSE NULL END AS update_rule FROM pg_catalog.pg_constraint con JOIN pg_catalog.pg_class rel ON con.conrelid = rel.oid JOIN pg_catalog.pg_namespace nsp ON rel.relnamespace = nsp.oid LEFT JOIN pg_catalog.pg_attribute att ON att.attnum = ANY (con.conkey) AND att.attrelid = con.conrelid LEFT JOIN pg_catalog.pg_class frel ON con.confrelid = frel.oid LEFT JOIN pg_catalog.pg_namespace fnsp ON frel.relnamespace = fnsp.oid LEFT JOIN pg_catalog.pg_attribute fatt ON fatt.attnum = ANY (con.confkey) AND fatt.attrelid = con.confrelid WHERE nsp.nspname = 'public' AND rel.relname = 'orders' AND con.contype IN ('f') ORDER BY 3
SELECT jsonb_object_agg(k, v) FROM (VALUES ('a', 1), ('b', 2)) AS t(k, v)
SELECT json_build_object('a', 1, 'b', 'x')::text, json_agg(x)::text, jsonb_agg(x)::text FROM (VALUES (1), (2)) t(x)
SELECT jsonb_build_object('a', 1)::text, to_jsonb(1)::text, json_object_agg('a', 1)::text
SELECT oid, relname, relnamespace::regnamespace::text as schema_name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname
-- differs: the version says what dpsql is
SELECT EXISTS( SELECT 1 FROM pg_namespace WHERE nspname = 'public' ), version(), current_setting('server_version_num')::integer as numeric_version
-- differs: PostgreSQL refuses this with another state, or this is answered
SELECT namespace.nspname as schema_name, tbl.relname AS table_name FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace WHERE tbl.relkind IN ('r', 'p') AND namespace.nspname = ANY ( ARRAY['public'] ) ORDER BY namespace, table_name
SELECT oid.namespace, info.table_name, info.column_name, format_type(att.atttypid, att.atttypmod) as formatted_type, info.numeric_precision, info.numeric_scale, info.datetime_precision, info.data_type, info.udt_name as full_data_type, info.is_nullable, info.is_identity FROM information_schema.columns info JOIN pg_attribute att ON att.attname = info.column_name JOIN ( SELECT pg_class.oid, relname, pg_namespace.nspname as namespace FROM pg_class JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace AND pg_namespace.nspname = ANY ( ARRAY['public'] ) ) as oid on oid.oid = att.attrelid AND relname = info.table_name AND namespace = info.table_schema ORDER BY namespace, table_name, ordinal_position
WITH rawindex AS ( SELECT indrelid, indexrelid, indisunique, indisprimary, unnest(indkey) AS indkeyid, generate_subscripts(indkey, 1) AS indkeyidx, unnest(indclass) AS indclass, unnest(indoption) AS indoption FROM pg_index WHERE indpred IS NULL AND NOT indisexclusion ) SELECT schemainfo.nspname AS namespace, indexinfo.relname AS index_name, tableinfo.relname AS table_name, columninfo.attname AS column_name, rawindex.indisunique AS is_unique, rawindex.indisprimary AS is_primary_key, rawindex.indkeyidx AS column_index, opclass.opcname AS opclass, opclass.opcdefault, indexaccess.amname AS index_algo, CASE rawindex.indoption & 1 WHEN 1 THEN 'DESC' ELSE 'ASC' END AS column_order FROM rawindex INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace LEFT JOIN pg_attribute AS columninfo ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam LEFT JOIN pg_opclass AS opclass ON opclass.oid = rawindex.indclass WHERE schemainfo.nspname = ANY ( ARRAY['public'] ) ORDER BY namespace, table_name, index_name, column_index
-- in 18: not-null constraints have rows
SELECT rel.relname, con.conname, con.conkey, con.confkey, con.confrelid::regclass, con.contype::text FROM pg_constraint con JOIN pg_class rel ON rel.oid = con.conrelid WHERE rel.relnamespace = to_regnamespace('public') ORDER BY 2
SELECT grantee, privilege_type FROM information_schema.role_table_grants WHERE table_name = 'nosuch'
SELECT table_name, privilege_type, is_grantable FROM information_schema.role_table_grants WHERE table_schema = 'public' AND grantee = current_user AND privilege_type = 'SELECT' ORDER BY 1
SELECT table_name, column_name, privilege_type FROM information_schema.column_privileges WHERE table_schema = 'public' AND grantee = current_user AND privilege_type = 'SELECT' AND table_name = 'orders' ORDER BY 2
-- Metabase, Grafana, Superset, SQLAlchemy
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence != 't' AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog' ORDER BY 1
SELECT attr.conname, array_agg(attr.attname ORDER BY attr.ord) AS cols, obj_description(attr.oid, 'pg_constraint') FROM (SELECT con.conrelid AS conrelid, con.oid, con.conname AS conname, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname FROM pg_catalog.pg_attribute JOIN (SELECT c.conrelid, c.oid, c.conname, unnest(c.conkey) AS attnum, generate_subscripts(c.conkey, 1) AS ord FROM pg_catalog.pg_constraint c WHERE c.contype = 'p') AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr JOIN pg_class c ON c.oid = attr.conrelid WHERE c.relnamespace = 'public'::regnamespace GROUP BY attr.conname, attr.oid ORDER BY 1
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname
SELECT CASE WHEN quote_ident(table_schema) IN ( SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series( array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1) ) as i, string_to_array(current_setting('search_path'),',') s ) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ( 'information_schema', 'pg_catalog', '_timescaledb_cache') ORDER BY 1
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN array_length(parse_ident('orders'),1) = 2 THEN quote_ident(table_schema) = (parse_ident('orders'))[1] AND quote_ident(table_name) = (parse_ident('orders'))[2] ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) = 'public' END ORDER BY 1
-- in 18: another version
SELECT current_setting('server_version_num')::int/100 as version
select c.column_name as name, case when c.udt_schema in ('public', 'pg_catalog') then format('%s', c.udt_name) else format('"%s"."%s"', c.udt_schema, c.udt_name) end as database_type, c.ordinal_position - 1 as position, c.table_schema as schema, c.table_name as table_name, pk.column_name is not null as pk, col_description(cast(cast(format('%I.%I', cast(c.table_schema as varchar), cast(c.table_name as varchar)) as regclass) as oid), cast(c.ordinal_position as integer)) as field_comment, ((column_default is null or lower(column_default) = 'null') and is_nullable = 'NO' and not (is_generated = 'ALWAYS') and is_identity = 'NO') as database_required from information_schema.columns as c left join (select tc.table_schema, tc.table_name, kc.column_name from information_schema.table_constraints as tc inner join information_schema.key_column_usage as kc on tc.constraint_name = kc.constraint_name and tc.table_schema = kc.table_schema and tc.table_name = kc.table_name where tc.constraint_type = 'PRIMARY KEY') as pk on c.table_schema = pk.table_schema and c.table_name = pk.table_name and c.column_name = pk.column_name where c.table_schema !~ '^information_schema|catalog_history|pg_' and c.table_schema in ('public') order by table_name, position
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name", pk_table.relname, pk_column.attname FROM pg_constraint c JOIN pg_class fk_table ON c.conrelid = fk_table.oid JOIN pg_namespace fk_ns ON c.connamespace = fk_ns.oid JOIN pg_attribute fk_column ON c.conrelid = fk_column.attrelid JOIN pg_class pk_table ON c.confrelid = pk_table.oid JOIN pg_namespace pk_ns ON pk_table.relnamespace = pk_ns.oid JOIN pg_attribute pk_column ON c.confrelid = pk_column.attrelid WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f'::char AND fk_column.attnum = ANY(c.conkey) AND pk_column.attnum = ANY(c.confkey) ORDER BY 1, 2, 3
SELECT pg_class.oid = to_regclass('orders'), to_regclass('nosuch') IS NULL, to_regtype('int4')::oid, to_regproc('nosuch') FROM pg_class WHERE relname = 'orders'
SELECT pg_catalog.format_type(pg_type.typbasetype, pg_type.typtypmod) AS attype FROM pg_catalog.pg_type WHERE typtype = 'd' AND typnamespace = 'public'::regnamespace
SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = 'public'
-- names, casts, reg types
SELECT 'orders'::regclass
SELECT 'public.orders'::regclass
SELECT '"orders"'::regclass::text
SELECT 'pg_catalog.pg_class'::regclass
SELECT 'pg_class'::regclass::oid
SELECT 1259::regclass
SELECT '1259'::regclass::text
SELECT 0::regclass, 999999::regclass, 0::regtype, 99999999::regtype
SELECT 'nosuch'::regclass
SELECT 'nosuch'::regtype
SELECT 'nosuch'::regnamespace
SELECT 'nosuch'::regproc
SELECT 'nosuch'::regrole
SELECT 'int4'::regtype, 'integer'::regtype, 'varchar'::regtype, 'timestamp with time zone'::regtype, 'int4[]'::regtype, '_text'::regtype
SELECT 23::regtype, 25::regtype::text, 1009::regtype
SELECT 'public'::regnamespace, 'pg_catalog'::regnamespace::oid, 2200::regnamespace::text
SELECT 'int4in'::regproc, 'int4in'::regproc::oid, 'array_in(cstring,oid,integer)'::regprocedure
SELECT 42::regproc, 43::regprocedure, 42::regproc::text
SELECT 'information_schema.tables'::regclass
SELECT c.oid::regclass FROM pg_class c WHERE relname = 'tables'
SELECT oid::regclass AS r FROM pg_class WHERE relname IN ('orders', 'users') ORDER BY r::text
SELECT r::text FROM (SELECT oid::regclass AS r FROM pg_class WHERE relname = 'orders') x
WITH x AS (SELECT 'orders'::regclass AS r) SELECT x.r, c.relname FROM x JOIN pg_class c ON c.oid = x.r
SELECT max(oid::regclass::text) FROM pg_class WHERE relname = 'orders'
SELECT array_agg(oid::regclass ORDER BY relname) FROM pg_class WHERE relname IN ('orders', 'users')
SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'users'::regclass AND attnum > 0 ORDER BY attnum
SELECT typname::regtype FROM pg_type WHERE typname IN ('int4', 'bool') ORDER BY typname
SELECT relname::regclass::oid = oid FROM pg_class WHERE relname = 'orders'
SELECT ('public.' || relname)::regclass FROM pg_class WHERE relname = 'orders'
SELECT '{23,25}'::regtype[], ARRAY[23,25]::oid[]::regtype[]::text[]
SELECT nspname::regnamespace::text FROM pg_namespace WHERE nspname = 'public'
SELECT oid = 'public'::regnamespace FROM pg_namespace WHERE nspname = 'public'
SELECT count(*) FROM pg_class WHERE relnamespace IN ('public'::regnamespace) AND relkind = 'r'
SELECT typinput, typoutput, typreceive FROM pg_type WHERE typname = 'int4'
SELECT typname FROM pg_type WHERE typreceive = 0 ORDER BY 1 LIMIT 2
SELECT typname FROM pg_type WHERE typinput = 'int4in'::regproc
SELECT typname FROM pg_type WHERE typreceive::oid = 0 ORDER BY 1 LIMIT 2
SELECT pg_typeof('a'::text), pg_typeof(1), pg_typeof(1.5), pg_typeof(now()), pg_typeof('a'), pg_typeof(true), pg_typeof(ARRAY[1]), pg_typeof(NULL)
SELECT pg_typeof('orders'::regclass), pg_typeof(oid), pg_typeof(relname) FROM pg_class LIMIT 1
SELECT pg_typeof(1::int8)::text = 'bigint', pg_typeof(1)::oid
-- vectors and arrays
SELECT conkey, confkey FROM pg_constraint WHERE conname = 'orders_user_id_fkey'
SELECT conkey::text FROM pg_constraint WHERE conname = 'orders_user_id_fkey'
SELECT indkey, indkey::text, indkey[0], indoption, indkey::int2[] FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT array_lower(indkey, 1), array_upper(indkey, 1), array_length(indkey, 1), generate_subscripts(indkey, 1) FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT unnest(indkey) FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT string_to_array(indkey::text, ' ') FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT array_to_string(indkey, ',') FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT array_position(indkey, 1::int2) FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT k.n, k.x FROM pg_index i, information_schema._pg_expandarray(i.indkey) AS k WHERE i.indrelid = 'orders'::regclass
SELECT u.key, u.n FROM pg_constraint c, unnest(c.conkey) WITH ORDINALITY AS u(key, n) WHERE c.conname = 'orders_user_id_fkey'
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b']) AS t(x, y)
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) WITH ORDINALITY AS t(x, y, n)
SELECT * FROM unnest(ARRAY['x','y']) WITH ORDINALITY
SELECT k FROM generate_subscripts(ARRAY[5,6,7], 1) AS k
SELECT s FROM generate_series(1, 3) AS s
SELECT * FROM generate_series(1, 5, 2) AS g(i) WHERE i > 1
SELECT ARRAY[1,2,3], ARRAY['a','b c',NULL], ARRAY[[1,2],[3,4]], '{}'::int[]
SELECT '{a,"b c",NULL}'::text[], ('{1,2}'::int[])[2], ARRAY[1,2] || 3
SELECT ARRAY[true,false], ARRAY[1.5,2.25], ARRAY[1,2]::text
SELECT ARRAY[1,2] @> ARRAY[1], ARRAY[1,2] && ARRAY[2,3], ARRAY[1] = ARRAY[1], ARRAY[1] <@ ARRAY[1,2]
SELECT array_length(ARRAY[1,2,3], 1), cardinality(ARRAY[1,2]), array_ndims(ARRAY[[1],[2]]), array_upper(ARRAY[1,2], 1)
SELECT 1 = ANY(ARRAY[1,2]), 1 <> ALL(ARRAY[2,3]), 'a' = ANY('{a,b}'::text[]), 1 = ANY('{1,2}')
SELECT 'x' <> ALL ('{a,b}'::text[]), 'a' <> ALL ('{a,b}')
SELECT array_remove(ARRAY[1,2,1], 1), array_cat(ARRAY[1], ARRAY[2]), array_append(ARRAY[1], 2), array_prepend(0, ARRAY[1])
SELECT array_to_string(ARRAY[1,2,NULL,3], ','), array_to_string(ARRAY['a',NULL], ',', '*'), string_to_array('a,b,c', ',')
SELECT (ARRAY['a','b','c'])[2:3], (string_to_array('a.b', '.'))[1]
SELECT ROW(1, 'a'), (1, 'b'), ROW(1, NULL)
SELECT (1, 2) = (1, 2), ROW(1, 2) < ROW(1, 3), (1, 2) IN ((1, 2), (3, 4))
SELECT array_agg(x ORDER BY x DESC), string_agg(x::text, '-' ORDER BY x) FROM (VALUES (1), (2), (3)) AS t(x)
-- constants and functions
SELECT 1, 1.5, 'a', NULL, true, -7/2, 7/2, 7%3, 7.0/2, 2^3
SELECT 1.5::numeric, 1::numeric, 1.50::numeric, 1.5::numeric(5,2), '2.50'::numeric, 10::numeric(10,0)
SELECT 1.5::float8, 1::float4, 1e3, 1/3.0::float8
SELECT 7/2 AS a, -7/2 AS b, (1+2)/2 AS c, length('abc')/2 AS d
SELECT round(2.5), round(2.567, 2), floor(2.7), ceil(2.1), trunc(2.7), abs(-3), sign(-2), mod(7, 3)
SELECT 'a' || 'b', 'a' || 1, upper('a'), lower('A'), length('abc'), substring('hello' from 2 for 3), substr('hello', 2), left('abc', 2), right('abc', 2), trim('  a '), replace('abc', 'b', 'x'), position('b' in 'abc'), strpos('abc', 'c')
SELECT split_part('a.b.c', '.', 2), lpad('a', 3, 'x'), rpad('a', 3), repeat('ab', 2), reverse('abc'), initcap('hello world'), concat('a', NULL, 1), concat_ws('-', 'a', 'b'), chr(65), ascii('A'), md5('a')
SELECT quote_ident('Odd'), quote_ident('plain'), quote_literal('it''s'), quote_nullable(NULL), format('%s.%I=%L', 'a', 'B', 'c'), quote_ident('select')
SELECT coalesce(NULL, 'x'), nullif(1, 1), greatest(1, 2), least(1, 2), CASE WHEN 1 = 1 THEN 'y' ELSE 'n' END
SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A%', 'abc' ~ '^a', 'abc' ~* '^A', 'abc' !~ 'z', 'abc' SIMILAR TO 'a%', 'abc' NOT LIKE 'b%'
SELECT '2024-01-15'::date, '2024-01-15 10:20:30'::timestamp, date '2024-01-15' + 1, '2024-01-15'::date - '2024-01-01'::date, extract(year from date '2024-01-15'), date_part('month', date '2024-03-15'), to_char(date '2024-01-15', 'YYYY-MM-DD'), date_trunc('month', timestamp '2024-01-15 10:00:00')
SELECT interval '1 day', interval '1 hour' + interval '30 minutes', '1 day'::interval, timestamp '2024-01-01' + interval '1 month', age(timestamp '2024-01-02', timestamp '2024-01-01')
SELECT true AND false, NOT true, true OR NULL, 't'::bool, 'yes'::boolean, 1::bool, true::int, true::text
SELECT '1'::int, '1'::int8, 1::text, 1::varchar, 'a'::char(3), 'abc'::varchar(2), 'a'::name, 'x'::"char"
SELECT NULL::int, NULL::text, NULL::regclass, NULL::date
SELECT 1 WHERE 1 = 0
SELECT 1 UNION SELECT 2 ORDER BY 1
SELECT 1 UNION ALL SELECT 1
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(n, s) ORDER BY n DESC LIMIT 1 OFFSET 1
TABLE pg_am
SELECT count(*), sum(x), avg(x), min(x), max(x), bool_and(x > 0), every(x > 0) FROM (VALUES (1), (2)) t(x)
SELECT x, row_number() OVER (ORDER BY x), rank() OVER (ORDER BY x), lag(x) OVER (ORDER BY x) FROM (VALUES (1), (2)) t(x) ORDER BY x
SELECT count(*) FILTER (WHERE x > 1), count(DISTINCT x) FROM (VALUES (1), (2), (2)) t(x)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n
SELECT * FROM (SELECT 1 AS a) x CROSS JOIN LATERAL (SELECT x.a + 1 AS b) y
SELECT exists(SELECT 1), NOT EXISTS (SELECT 1 WHERE false), (SELECT 2), ARRAY(SELECT 1 UNION SELECT 2 ORDER BY 1)
SELECT current_user = session_user, current_catalog = current_database(), current_role = current_user, user = current_user
SELECT current_schema, current_schema()
SELECT current_setting('server_version_num')::int >= 90000, current_setting('search_path'), current_setting('nosuch.x', true)
SELECT current_setting('nosuch')
SELECT set_config('application_name', 'x', false)
SELECT pg_backend_pid() > 0, inet_server_port() IS NULL OR true, pg_is_in_recovery(), pg_postmaster_start_time() IS NOT NULL
SELECT pg_client_encoding(), getdatabaseencoding(), pg_encoding_to_char(6), pg_char_to_encoding('UTF8')
SELECT pg_size_pretty(0::bigint), pg_size_pretty(10240::bigint), pg_relation_size('pg_enum') >= 0
SELECT has_table_privilege('orders', 'SELECT'), has_table_privilege('public.orders', 'select'), has_schema_privilege('public', 'USAGE')
SELECT has_table_privilege('nosuch', 'SELECT')
SELECT has_table_privilege('nobody', 'orders', 'SELECT')
SELECT has_schema_privilege('nosuch', 'USAGE')
SELECT has_database_privilege(current_database(), 'CONNECT'), has_any_column_privilege('orders', 'SELECT'), has_column_privilege('orders', 'order_id', 'SELECT')
SELECT has_column_privilege('orders', 'nosuch', 'SELECT')
SELECT has_table_privilege('orders', 'NOSUCH')
SELECT pg_has_role(current_user, 'USAGE'), pg_table_is_visible('orders'::regclass), pg_get_userbyid(0)
SELECT format_type(23, -1), format_type(1043, 14), format_type(1700, 655366), format_type(1114, 3), format_type(1009, -1), format_type(0, -1), format_type(NULL, -1), format_type(99999999, -1)
-- in 18: not-null constraints have rows
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY conname
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'orders'::regclass
SELECT obj_description('orders'::regclass) IS NULL OR true, col_description('orders'::regclass, 1) IS NULL OR true
-- differs: there are no transactions
SELECT txid_current() > 0, pg_current_xact_id_if_assigned() IS NULL, now() = transaction_timestamp(), statement_timestamp() IS NOT NULL, clock_timestamp() > '2020-01-01'
SELECT * FROM now() WHERE false
SELECT n IS NOT NULL FROM now() AS n
SELECT gen_random_uuid() IS NOT NULL, random() < 1, pi() > 3
SELECT to_json('a'::text)::text, json_build_array(1, 'a')::text, '{"a": 1}'::json ->> 'a', '{"a": {"b": 2}}'::jsonb -> 'a' ->> 'b', json_array_length('[1,2]')
SELECT regexp_replace('abc', 'b', 'x'), regexp_matches('abc', '(b)(c)'), regexp_split_to_array('a,b', ','), translate('abc', 'ab', 'xy'), btrim('xax', 'x'), overlay('abcdef' placing 'X' from 2 for 3)
SELECT a.n FROM (SELECT 1 AS n) AS a NATURAL JOIN (SELECT 1 AS n) AS b
SELECT 'a' AS "select", 1 AS table, 2 AS role, 3 AS column, 4 AS default, 5 AS order
SELECT 1 AS user, 2 AS all, 3 "Mixed"
SELECT E'a\tb', $$dollar$$, $tag$x$tag$, U&'d\0061t'
SELECT 1::"pg_catalog"."int4", pg_catalog.int4(5), CAST('1' AS pg_catalog.int4), int4 '5', bool 'true', text 'x'
SELECT DISTINCT ON (relkind) relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relkind, relname
SELECT relkind, count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 1
SELECT relname FROM pg_class WHERE relname ~ '^(orders)$' FETCH FIRST 1 ROWS ONLY
-- in 18: other columns, settings or rows
SELECT pg_class.* FROM pg_class WHERE false
SELECT c FROM pg_class c WHERE false
SELECT relname COLLATE "C" FROM pg_class WHERE relname = 'orders'
-- errors
SELECT * FROM nosuch
SELECT nosuch FROM pg_class
SELECT c.nosuch FROM pg_class c
SELECT nosuch()
SELECT nosuch(1, 'a')
SELECT * FROM pg_catalog.nosuch
SELECT * FROM nosuch.pg_class
SELECT 1 + 'a'
SELECT 'a'::int
SELECT '2024-13-01'::date
SELECT 1/0
SELECT 'x'::nosuch
SELECT oid FROM pg_class c, pg_type t
SELECT relname, count(*) FROM pg_class
SELECT relname FROM pg_class GROUP BY oid2
SELECT relname FROM pg_class HAVING count(*) > 1
SELECT * FROM pg_class c JOIN pg_type c ON true
SELECT 9223372036854775807 + 1
SELECT 99999999999::int
SELECT (SELECT oid FROM pg_class)
SELECT 1 FROM pg_class WHERE relname
SELECT x FROM (SELECT 1 AS y) z
SELECT lower(1)
SELECT FROM WHERE
SELECT 1 +
SELECT 'abc
SELEC 1
SELECT relname + 1 FROM pg_class
SELECT max(max(oid)) FROM pg_class
SELECT * FROM generate_series(1, 'a')
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 1
SELECT true + 1
SELECT left('a')
SELECT count() FROM pg_class
SELECT ARRAY[1,'a']
SELECT CAST('abc' AS boolean)
SELECT 1 LIMIT -1
SELECT information_schema.nosuch()
SELECT pg_catalog.nosuch()
SELECT 'a' = 1
SELECT COALESCE(1, 'a')
SELECT * FROM pg_class LIMIT 'a'
SELECT substring('a' from -1 for -5)
-- information_schema
SELECT collation_name, pad_attribute FROM information_schema.collations WHERE collation_name IN ('C', 'POSIX') ORDER BY 1
SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT LIKE 'pg_%' ORDER BY 1
SELECT catalog_name = current_database() FROM information_schema.information_schema_catalog_name
SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, datetime_precision, udt_name, is_identity, is_generated FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position
SELECT constraint_name, table_name, constraint_type, is_deferrable, initially_deferred, enforced FROM information_schema.table_constraints WHERE table_schema = 'public' AND constraint_type <> 'CHECK' ORDER BY 1
SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_schema = 'public' ORDER BY 1, 4
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_schema = 'public' ORDER BY 1
-- differs: not answered as there yet
SELECT constraint_name, table_name, column_name FROM information_schema.constraint_column_usage WHERE constraint_schema = 'public' ORDER BY 1, 3
SELECT count(*) FROM information_schema.routines WHERE routine_schema = 'public'
SELECT count(*) FROM information_schema.triggers
SELECT sequence_name FROM information_schema.sequences
-- differs: not answered as there yet
SELECT character_set_name, default_collate_schema FROM information_schema.character_sets
SELECT table_name, table_type, is_insertable_into FROM information_schema.tables WHERE table_schema = 'pg_catalog' AND table_name IN ('pg_class', 'pg_tables') ORDER BY 1
SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_schema = 'pg_catalog' AND table_name = 'pg_am' ORDER BY ordinal_position
SELECT domain_name, data_type FROM information_schema.domains WHERE domain_schema = 'information_schema' ORDER BY 1
SELECT feature_id FROM information_schema.sql_features WHERE feature_id = 'B012'
SELECT constraint_name, table_name FROM information_schema.constraint_table_usage WHERE table_schema = 'public' ORDER BY 1
SELECT relname, n.nspname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IS NULL
SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'public' ORDER BY 1
SELECT schemaname, relname FROM pg_statio_user_tables WHERE schemaname = 'public' ORDER BY 2
SELECT indexrelname FROM pg_stat_user_indexes WHERE relname = 'orders' ORDER BY 1
SELECT usename = current_user, application_name IS NOT NULL, state FROM pg_stat_activity WHERE pid = pg_backend_pid()
SELECT name, setting, vartype, context FROM pg_settings WHERE name IN ('max_index_keys', 'standard_conforming_strings', 'DateStyle') ORDER BY 1
SELECT name, setting FROM pg_settings WHERE name IN ('TimeZone', 'IntervalStyle') ORDER BY 1
SELECT rolname = current_user, rolsuper IS NOT NULL FROM pg_roles WHERE rolname = current_user
SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast WHERE castsource = 'int4'::regtype AND casttarget = 'int8'::regtype
SELECT oprname, oprleft::regtype, oprright::regtype FROM pg_operator WHERE oprname = '@@@nosuch'
SELECT proname FROM pg_proc WHERE proname = 'array_in'
SELECT aggfnoid FROM pg_aggregate WHERE aggfnoid::oid = 0
SELECT conname FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'p'
SELECT opcname FROM pg_opclass WHERE opcname = 'int8_ops' AND opcmethod = 403
SELECT adnum FROM pg_attrdef
SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
SELECT attname FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum < 0 ORDER BY attnum
SELECT rngtypid::regtype, rngsubtype::regtype FROM pg_range WHERE rngtypid = 'int4range'::regtype
SELECT relname, reltype <> 0, relhasindex, relkind, relpersistence, relnatts, relchecks, relhasrules, relhassubclass, relispartition FROM pg_class WHERE oid = 'users'::regclass
SELECT typname, typrelid::regclass, typtype, typcategory FROM pg_type WHERE typname = 'orders'
SELECT count(*) > 300 FROM pg_type
-- functions, operators and errors
SELECT s.name, current_setting(s.name) FROM pg_settings s WHERE s.name IN ('search_path') ORDER BY 1
SELECT fdwname, (SELECT array_agg(option_name) FROM pg_options_to_table(fdwoptions)) FROM pg_foreign_data_wrapper
SELECT relid::regclass, parentrelid, isleaf, level FROM pg_partition_tree('orders')
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'orders'
SELECT format('%s-%s', 1, 'x'), format('%L', 'o''k'), format('%I', 'Odd one'), format('%%')
SELECT grantee::regrole, privilege_type FROM pg_class c, aclexplode(c.relacl) WHERE c.relname = 'pg_none'
SELECT pg_blocking_pids(1)
SELECT count(*) FROM pg_locks WHERE pid = -1
SELECT key, value FROM json_each_text('{"a": "b"}')
SELECT * FROM json_array_elements_text('["a","b"]') AS x
SELECT value FROM jsonb_array_elements_text('["a","b"]'::jsonb)
SELECT t.typname, t.oid, t.typelem, t.typtype, t.typcategory FROM pg_type t WHERE t.typname IN ('int4', '_int4', 'text', '_text', 'jsonb', 'uuid') ORDER BY t.oid
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM (SELECT t.oid, typname, typnamespace, typtype, typrelid, typnotnull, elemtypoid, CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyptype END AS elemtyptype FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typrelid, typ.typnotnull, typ.typelem AS elemoid, CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype, CASE WHEN proc.proname='array_recv' THEN typ.typelem END AS elemtypoid, typ.typelem FROM pg_type AS typ LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive) AS t LEFT JOIN (SELECT typ.oid AS eoid, typ.typtype AS elemtyptype, typ.typreceive FROM pg_type AS typ) e ON e.eoid = t.typelem LEFT JOIN pg_proc AS elemproc ON elemproc.oid = e.typreceive) AS t JOIN pg_namespace AS ns ON ns.oid = t.typnamespace WHERE t.typname IN ('int4', '_int4', 'int4range') ORDER BY 2
SELECT typ.oid, typ.typname, enumlabel FROM pg_enum JOIN pg_type AS typ ON typ.oid = enumtypid ORDER BY oid, enumsortorder
SELECT oid, nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' ORDER BY nspname
SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_.*' AND nspname NOT IN ('information_schema') ORDER BY nspname
SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast') ORDER BY schema_name
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2
SELECT c.table_name, c.column_name, c.ordinal_position, c.is_nullable, c.data_type, c.udt_name, c.numeric_precision, c.numeric_scale, c.datetime_precision, c.character_maximum_length FROM information_schema.columns c WHERE c.table_schema = 'public' ORDER BY 1, 3
SELECT tc.constraint_name, tc.constraint_type, tc.table_name, kcu.column_name FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage kcu USING (constraint_schema, constraint_name) WHERE tc.constraint_type IN ('PRIMARY KEY','UNIQUE') AND tc.table_schema = 'public' ORDER BY 3, 1, 4
SELECT rc.constraint_name, rc.match_option, rc.update_rule, rc.delete_rule, rc.unique_constraint_name FROM information_schema.referential_constraints rc WHERE rc.constraint_schema = 'public' ORDER BY 1
SELECT kcu.constraint_name, kcu.column_name, kcu.ordinal_position, kcu.position_in_unique_constraint FROM information_schema.key_column_usage kcu WHERE kcu.table_name = 'orders' ORDER BY 1, 3
-- in 18: not-null constraints have rows
SELECT con.conname, con.contype, con.conrelid::regclass::text, con.confrelid::regclass::text, con.conkey, con.confkey, con.confupdtype, con.confdeltype, con.confmatchtype, con.condeferrable, con.condeferred, con.convalidated FROM pg_constraint con WHERE con.connamespace = 'public'::regnamespace ORDER BY 1
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p' AND conrelid = 'users'::regclass
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'orders'::regclass AND i.indisprimary
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS data_type FROM pg_attribute a WHERE a.attrelid = 'orders'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
SELECT i.relname AS index_name, ix.indisunique, ix.indisprimary, array_to_string(array_agg(a.attname ORDER BY k.ord), ',') AS cols FROM pg_index ix JOIN pg_class t ON t.oid = ix.indrelid JOIN pg_class i ON i.oid = ix.indexrelid JOIN LATERAL unnest(ix.indkey) WITH ORDINALITY AS k(attnum, ord) ON true JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum WHERE t.relnamespace = 'public'::regnamespace GROUP BY 1, 2, 3 ORDER BY 1
SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = 'orders' ORDER BY 1
SELECT tablename, tableowner = current_user, hasindexes, hasrules, hastriggers, rowsecurity FROM pg_tables WHERE schemaname = 'public' ORDER BY 1
SELECT c.relname, c.relkind, obj_description(c.oid, 'pg_class') FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r','v','m','f','p') ORDER BY 1
SELECT c.oid::regclass::text, c.reltuples::bigint < 1, pg_total_relation_size(c.oid) >= 0 FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text = 'public' ORDER BY 1
SELECT d.datname, d.datistemplate, d.datallowconn, pg_encoding_to_char(d.encoding), d.datconnlimit FROM pg_database d WHERE d.datname = current_database()
SELECT datname FROM pg_database WHERE NOT datistemplate AND datallowconn AND has_database_privilege(datname, 'CONNECT') AND datname = current_database()
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = current_user
SELECT r.rolname, ARRAY(SELECT b.rolname FROM pg_auth_members m JOIN pg_roles b ON m.roleid = b.oid WHERE m.member = r.oid) AS memberof FROM pg_roles r WHERE r.rolname = current_user
SELECT usename, usesuper, usecreatedb FROM pg_user WHERE usename = current_user
SELECT extname, extversion FROM pg_extension ORDER BY 1
SELECT name FROM pg_available_extensions WHERE name = 'plpgsql'
SELECT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public'
SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = 'public'
SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema = 'public'
SELECT sequencename, start_value, increment_by FROM pg_sequences WHERE schemaname = 'public'
SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'
SELECT matviewname FROM pg_matviews WHERE schemaname = 'public'
SELECT tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
SELECT trigger_name, event_manipulation FROM information_schema.triggers WHERE trigger_schema = 'public'
SELECT polname FROM pg_policy WHERE polrelid = 'orders'::regclass
SELECT policyname FROM pg_policies WHERE schemaname = 'public'
SELECT n.nspname, t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname = 'public'
SELECT inhrelid::regclass, inhparent::regclass FROM pg_inherits
SELECT has_schema_privilege('public', 'USAGE'), has_schema_privilege(current_user, 'public', 'USAGE'), has_table_privilege('orders', 'SELECT'), has_table_privilege(current_user, 'public.orders', 'select'), has_column_privilege('orders', 'status', 'SELECT')
SELECT bool_or(has_table_privilege(c.oid, 'SELECT')) FROM pg_class c WHERE c.relname = 'orders'
SELECT pg_table_is_visible('orders'::regclass), pg_type_is_visible('int4'::regtype), to_regclass('nosuch') IS NULL, to_regclass('public.orders')::text
SELECT current_schema(), current_schemas(true), current_schemas(false), current_database(), session_user, current_user, user
SELECT current_catalog, current_role = current_user, inet_server_port() IS NULL OR true, pg_is_in_recovery(), pg_backend_pid() > 0
SELECT current_setting('server_version_num')::int >= 160000, current_setting('TimeZone') IS NOT NULL, current_setting('nosuch.thing', true), current_setting('standard_conforming_strings')
SELECT setting FROM pg_settings WHERE name = 'max_identifier_length'
SELECT name, setting, unit, vartype FROM pg_settings WHERE name IN ('max_index_keys', 'block_size', 'server_encoding', 'integer_datetimes', 'max_identifier_length') ORDER BY 1
SELECT coalesce(null, 'a'), nullif(1, 1), greatest(1, 2, 3), least(1, 2), concat('a', null, 'b'), concat_ws(',', 'a', null, 'b')
SELECT upper('a'), lower('A'), length('abc'), char_length('abc'), octet_length('abc'), substring('abcdef' from 2 for 3), substring('abcdef', 2), position('b' in 'abc'), trim('  a '), ltrim('  a'), replace('abc', 'b', 'x'), split_part('a.b.c', '.', 2), left('abc', 2), right('abc', 2), reverse('abc'), repeat('a', 3), initcap('ab cd')
SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A%', 'abc' ~ '^a', 'abc' ~* '^A', 'abc' !~ '^b', 'abc' SIMILAR TO 'a%', 'a' BETWEEN 'a' AND 'b', 'a' IN ('a', 'b'), NULL IS NULL, 1 IS DISTINCT FROM NULL
SELECT abs(-1), ceil(1.2), floor(1.8), round(1.5), round(1.234, 2), mod(5, 3), power(2, 3), sqrt(4), sign(-2), trunc(1.7), pi() > 3
SELECT 1::text, '1'::int, '1.5'::numeric, 't'::bool, true::text, 1::bool, '2024-01-01'::date, '10:00'::time, '1 day'::interval, 1.5::int, 2.5::float8, '{1,2}'::int[]
SELECT cast(1 as varchar(3)), cast('abcdef' as varchar(3)), cast('a' as char(3)), cast(1.239 as numeric(5,2)), cast('a' as "char")
SELECT array[1,2,3], array_length(array[1,2,3], 1), cardinality(array[1,2]), array[1,2] || 3, 1 = any(array[1,2]), array_append(array[1], 2), array_position(array['a','b'], 'b'), array_to_string(array['a','b'], ','), string_to_array('a,b', ','), unnest(array[1])
SELECT (array['a','b'])[1], (array[1,2,3])[2:3], array_upper(array[1,2], 1), array_lower(array[1,2], 1), array_ndims(array[[1,2],[3,4]]), array_dims(array[1,2])
SELECT * FROM unnest(array['a','b'], array[1,2]) AS t(x, y)
SELECT * FROM generate_series(1, 5, 2) AS g(i)
SELECT i, x FROM unnest(array['a','b']) WITH ORDINALITY AS t(x, i)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(id, name) WHERE id = 2
VALUES (1, 'x'), (2, 'y')
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t
SELECT row_number() OVER (ORDER BY nspname), nspname FROM pg_namespace WHERE nspname IN ('public', 'pg_catalog') ORDER BY 1
SELECT count(*) FILTER (WHERE relkind = 'r') > 0, count(DISTINCT relkind) > 2, string_agg(DISTINCT relkind::text, ',' ORDER BY relkind::text) IS NOT NULL FROM pg_class
SELECT case when 1 = 1 then 'a' else 'b' end, case 'x' when 'x' then 1 end
SELECT row_to_json(t) FROM (SELECT 1 AS a, 'x' AS b) t
SELECT json_agg(t) FROM (SELECT 1 AS a) t
SELECT md5('a'), encode('abc'::bytea, 'hex'), gen_random_uuid() IS NOT NULL, random() < 1
SELECT quote_ident('a b'), quote_ident('ab'), quote_literal('a''b'), quote_nullable(null), format('%I', 'select')
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5), pg_typeof(true), pg_typeof(now()), pg_typeof(array[1]), pg_typeof(null), pg_typeof('a'), pg_typeof(1::bigint), pg_typeof(date '2024-01-01')
SELECT txid_current() IS NOT NULL, pg_postmaster_start_time() IS NOT NULL, pg_conf_load_time() IS NOT NULL, version() LIKE 'PostgreSQL%'
SELECT exists(SELECT 1 FROM information_schema.tables WHERE table_name = 'orders'), not exists(SELECT 1 FROM pg_class WHERE relname = 'x')
SELECT (SELECT count(*) FROM pg_class WHERE relname = 'orders') = 1 AS found
SELECT c.relname FROM pg_class c WHERE c.oid IN (SELECT conrelid FROM pg_constraint WHERE contype = 'f') ORDER BY 1
SELECT relkind, count(*) > 0 FROM pg_class GROUP BY ROLLUP (relkind) HAVING relkind = 'r' ORDER BY 1
SELECT nspname AS "Schema Name", oid::int AS "id" FROM pg_namespace WHERE nspname = 'pg_catalog'
SELECT nspname FROM pg_namespace WHERE nspname IN ('public','pg_catalog') ORDER BY nspname DESC NULLS LAST OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY
SELECT a.attname, pg_get_expr(ad.adbin, ad.adrelid) AS def, a.attidentity, a.attgenerated, a.atthasdef FROM pg_attribute a LEFT JOIN pg_attrdef ad ON ad.adrelid = a.attrelid AND ad.adnum = a.attnum WHERE a.attrelid = 'public.users'::regclass AND a.attnum > 0 ORDER BY a.attnum
SELECT c.relname, a.attname, t.typname, a.attnotnull, a.attlen, a.attnum, a.atttypmod, col_description(c.oid, a.attnum) FROM pg_class c, pg_attribute a, pg_type t WHERE c.relname = 'events' AND a.attnum > 0 AND a.attrelid = c.oid AND a.atttypid = t.oid ORDER BY a.attnum
SELECT objsubid, description FROM pg_description WHERE objoid = 'orders'::regclass AND classoid = 'pg_class'::regclass ORDER BY 1
SELECT pg_get_userbyid(relowner) IS NOT NULL, relpersistence, relreplident, relrowsecurity FROM pg_class WHERE oid = 'orders'::regclass
SELECT nspname, pg_get_userbyid(nspowner) IS NOT NULL, has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = 'public'
SELECT collname, collencoding FROM pg_collation WHERE collname IN ('C', 'default', 'POSIX') ORDER BY 1
SELECT amname, amtype FROM pg_am ORDER BY 1
SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace ORDER BY 1
SELECT lanname, lanpltrusted FROM pg_language ORDER BY 1
SELECT pid, state FROM pg_stat_activity WHERE pid = -1
SELECT * FROM pg_stat_replication
SELECT slot_name FROM pg_replication_slots
SELECT pubname FROM pg_publication
SELECT subname FROM pg_stat_subscription
SELECT relname, n_live_tup >= 0, seq_scan >= 0 FROM pg_stat_user_tables WHERE relname = 'orders'
SELECT relname, indexrelname, idx_scan >= 0 FROM pg_stat_user_indexes WHERE relname = 'orders'
SELECT schemaname, relname, heap_blks_read >= 0 FROM pg_statio_user_tables WHERE relname = 'orders'
SELECT datname, numbackends >= 0 FROM pg_stat_database WHERE datname = current_database()
SELECT grantee, privilege_type FROM information_schema.role_table_grants WHERE table_name = 'orders' AND grantee = current_user AND privilege_type = 'SELECT'
SELECT table_name, privilege_type, is_grantable FROM information_schema.table_privileges WHERE grantee = current_user AND table_name = 'orders' AND privilege_type = 'SELECT'
SELECT table_name, column_name FROM information_schema.column_privileges WHERE grantee = current_user AND table_name = 'users' AND privilege_type = 'SELECT' ORDER BY 2
SELECT role_name FROM information_schema.enabled_roles WHERE role_name = current_user
SELECT catalog_name FROM information_schema.information_schema_catalog_name
SELECT character_set_name FROM information_schema.character_sets
SELECT domain_name FROM information_schema.domains WHERE domain_schema = 'public'
SELECT udt_name FROM information_schema.element_types WHERE object_schema = 'public'
SELECT view_definition FROM information_schema.views WHERE table_schema = 'public'
SELECT * FROM information_schema.check_constraints WHERE constraint_schema = 'public' AND check_clause NOT LIKE '%IS NOT NULL'
SELECT * FROM pg_nosuch
SELECT pg_nosuch(1)
SELECT 'x'::int
SELECT relname FROM pg_class GROUP BY relkind
SELECT sum(relname) FROM pg_class
SELECT oid FROM pg_class c, pg_namespace n
SELECT c.relname FROM pg_class
SELECT count(*) FROM pg_class WHERE count(*) > 1
SELECT (SELECT 1, 2)
SELECT * FROM pg_class ORDER BY 100
SELECT 1::nosuchtype
SELECT has_table_privilege('nosuchrole', 'orders', 'SELECT')
SELECT has_table_privilege('nosuchtable', 'SELECT')
SELECT relname FROM pg_class LIMIT 'a'
SELECT array[1, 'a']
SELECT pg_typeof()
SELECT format_type(23, NULL), format_type(1043, 14), format_type(1700, 655366), format_type(1114, 3), format_type(0, NULL), format_type(99999, NULL), format_type(1007, -1)
SELECT t.oid, format_type(t.oid, NULL) FROM pg_type t WHERE t.typtype = 'b' AND t.typname IN ('bool','int2','int8','float4','float8','numeric','timestamptz','date','time','bpchar','varchar') ORDER BY 1
SELECT typname, typinput, typoutput, typdelim, typbasetype, typlen, typbyval, typalign FROM pg_type WHERE oid IN (16, 17, 20, 25, 1184) ORDER BY oid
SELECT rngtypid::regtype, rngsubtype::regtype FROM pg_range ORDER BY rngtypid
SELECT opcname FROM pg_opclass WHERE opcname = 'int4_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')
SELECT evtname FROM pg_event_trigger
SELECT srvname FROM pg_foreign_server
SELECT ev_class::regclass FROM pg_rewrite WHERE ev_class = 'orders'::regclass
SELECT pg_get_serial_sequence('orders', 'order_id')
SELECT pg_relation_filenode('orders') IS NOT NULL, pg_relation_size('orders') >= 0, pg_stat_get_live_tuples('orders'::regclass) >= 0
SELECT xmin IS NOT NULL, ctid IS NOT NULL, tableoid::regclass FROM pg_class WHERE relname = 'orders'
SELECT pg_encoding_to_char(6), pg_client_encoding(), getdatabaseencoding(), pg_char_to_encoding('UTF8')
SELECT string_agg(x, ',' ORDER BY x DESC) FROM (VALUES ('a'), ('b')) t(x)
SELECT array_agg(x ORDER BY x), min(x), max(x), sum(x), bool_and(x > 0) FROM (VALUES (1), (2)) t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (2)) t(x)
SELECT lag(x) OVER (ORDER BY x), sum(x) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) FROM (VALUES (1), (2)) t(x) ORDER BY 2
SELECT t.* FROM (SELECT 1 AS a, 2 AS b) t
SELECT (t).a FROM (SELECT 1 AS a) t
SELECT ROW(1, 'a'), (1, 2) = (1, 2), (1, 'b') < (2, 'a')
SELECT true AND NOT false, true OR null, null = null, 1 <> 2, 1 != 2, 2 >= 1
SELECT relname FROM pg_class WHERE relname LIKE ANY (ARRAY['ord%','us%']) ORDER BY 1
SELECT relname FROM pg_class WHERE relname LIKE ANY (string_to_array('ord%,us%', ',')) AND relkind='r' ORDER BY 1
SELECT relname FROM pg_class WHERE relkind='r' AND relname NOT LIKE ALL (string_to_array('pg%,sql%', ',')) ORDER BY 1
SELECT relname FROM pg_class WHERE relkind='r' AND relname ILIKE ANY ('{ORD%,us%}') ORDER BY 1
SELECT relname FROM pg_class WHERE relkind='r' AND NOT relname LIKE ANY ('{pg%,sql%}') ORDER BY 1
SELECT 'a' LIKE ALL (ARRAY['a','b']), 'a' NOT LIKE ANY (ARRAY['a','b']), 'a' ~ ANY (ARRAY['a','b']), 1 < ALL (ARRAY[2,3]), 1 = ANY (ARRAY[2,3]), 5 > ANY('{1,2}'::int[])
-- psql 15, further commands
SELECT es.stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS "Schema", es.stxname AS "Name", pg_catalog.format('%s FROM %s', pg_catalog.pg_get_statisticsobjdef_columns(es.oid), es.stxrelid::pg_catalog.regclass) AS "Definition", CASE WHEN 'd' = any(es.stxkind) THEN 'defined' END AS "Ndistinct", CASE WHEN 'f' = any(es.stxkind) THEN 'defined' END AS "Dependencies", CASE WHEN 'm' = any(es.stxkind) THEN 'defined' END AS "MCV" FROM pg_catalog.pg_statistic_ext es WHERE pg_catalog.pg_statistics_obj_is_visible(es.oid) ORDER BY 1, 2
SELECT 'pg_tables'::pg_catalog.regclass::pg_catalog.oid
SELECT DISTINCT tt.nspname AS "Schema", tt.name AS "Name", tt.object AS "Object", d.description AS "Description" FROM ( SELECT pgc.oid as oid, pgc.tableoid AS tableoid, n.nspname as nspname, CAST(pgc.conname AS pg_catalog.text) as name, CAST('table constraint' AS pg_catalog.text) as object FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_class c ON c.oid = pgc.conrelid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL SELECT pgc.oid as oid, pgc.tableoid AS tableoid, n.nspname as nspname, CAST(pgc.conname AS pg_catalog.text) as name, CAST('domain constraint' AS pg_catalog.text) as object FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_type t ON t.oid = pgc.contypid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) UNION ALL SELECT o.oid as oid, o.tableoid as tableoid, n.nspname as nspname, CAST(o.opcname AS pg_catalog.text) as name, CAST('operator class' AS pg_catalog.text) as object FROM pg_catalog.pg_opclass o JOIN pg_catalog.pg_am am ON o.opcmethod = am.oid JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_opclass_is_visible(o.oid) UNION ALL SELECT opf.oid as oid, opf.tableoid as tableoid, n.nspname as nspname, CAST(opf.opfname AS pg_catalog.text) AS name, CAST('operator family' AS pg_catalog.text) as object FROM pg_catalog.pg_opfamily opf JOIN pg_catalog.pg_am am ON opf.opfmethod = am.oid JOIN pg_catalog.pg_namespace n ON opf.opfnamespace = n.oid AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_opfamily_is_visible(opf.oid) UNION ALL SELECT r.oid as oid, r.tableoid as tableoid, n.nspname as nspname, CAST(r.rulename AS pg_catalog.text) as name, CAST('rule' AS pg_catalog.text) as object FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE r.rulename != '_RETURN' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL SELECT t.oid as oid, t.tableoid as tableoid, n.nspname as nspname, CAST(t.tgname AS pg_catalog.text) as name, CAST('trigger' AS pg_catalog.text) as object FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ) AS tt JOIN pg_catalog.pg_description d ON (tt.oid = d.objoid AND tt.tableoid = d.classoid AND d.objsubid = 0) ORDER BY 1, 2, 3
SELECT amname AS "Name", CASE amtype WHEN 'i' THEN 'Index' WHEN 't' THEN 'Table' END AS "Type" FROM pg_catalog.pg_am ORDER BY 1
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(orders)$' COLLATE pg_catalog.default AND n.nspname OPERATOR(pg_catalog.~) '^(public)$' COLLATE pg_catalog.default ORDER BY 2, 3
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(orders)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(orders_pkey)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(pg_class)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(pg_indexes)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(users)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3
SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = '1259' AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno
SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid) FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND i.inhparent = '1259' ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text
SELECT evtname as "Name", evtevent as "Event", pg_catalog.pg_get_userbyid(e.evtowner) as "Owner", case evtenabled when 'O' then 'enabled' when 'R' then 'replica' when 'A' then 'always' when 'D' then 'disabled' end as "Enabled", e.evtfoid::pg_catalog.regproc as "Function", pg_catalog.array_to_string(array(select x from pg_catalog.unnest(evttags) as t(x)), ', ') as "Tags" FROM pg_catalog.pg_event_trigger e ORDER BY 1
SELECT evtname as "Name", evtevent as "Event", pg_catalog.pg_get_userbyid(e.evtowner) as "Owner", case evtenabled when 'O' then 'enabled' when 'R' then 'replica' when 'A' then 'always' when 'D' then 'disabled' end as "Enabled", e.evtfoid::pg_catalog.regproc as "Function", pg_catalog.array_to_string(array(select x from pg_catalog.unnest(evttags) as t(x)), ', ') as "Tags", pg_catalog.obj_description(e.oid, 'pg_event_trigger') as "Description" FROM pg_catalog.pg_event_trigger e ORDER BY 1
SELECT fdw.fdwname AS "Name", pg_catalog.pg_get_userbyid(fdw.fdwowner) AS "Owner", fdw.fdwhandler::pg_catalog.regproc AS "Handler", fdw.fdwvalidator::pg_catalog.regproc AS "Validator" FROM pg_catalog.pg_foreign_data_wrapper fdw ORDER BY 1
SELECT fdw.fdwname AS "Name", pg_catalog.pg_get_userbyid(fdw.fdwowner) AS "Owner", fdw.fdwhandler::pg_catalog.regproc AS "Handler", fdw.fdwvalidator::pg_catalog.regproc AS "Validator" FROM pg_catalog.pg_foreign_data_wrapper fdw WHERE fdwname OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default ORDER BY 1
-- in 18: other columns, settings or rows
SELECT n.nspname AS "Schema", c.collname AS "Name", c.collcollate AS "Collate", c.collctype AS "Ctype", c.colliculocale AS "ICU Locale", CASE c.collprovider WHEN 'd' THEN 'default' WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Provider", CASE WHEN c.collisdeterministic THEN 'yes' ELSE 'no' END AS "Deterministic?" FROM pg_catalog.pg_collation c, pg_catalog.pg_namespace n WHERE n.oid = c.collnamespace AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND c.collencoding IN (-1, pg_catalog.pg_char_to_encoding(pg_catalog.getdatabaseencoding())) AND pg_catalog.pg_collation_is_visible(c.oid) ORDER BY 1, 2
SELECT n.nspname AS "Schema", c.conname AS "Name", pg_catalog.pg_encoding_to_char(c.conforencoding) AS "Source", pg_catalog.pg_encoding_to_char(c.contoencoding) AS "Destination", CASE WHEN c.condefault THEN 'yes' ELSE 'no' END AS "Default?" FROM pg_catalog.pg_conversion c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace WHERE true AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_conversion_is_visible(c.oid) ORDER BY 1, 2
SELECT n.nspname AS "Schema", c.relname AS "Table", s.srvname AS "Server" FROM pg_catalog.pg_foreign_table ft INNER JOIN pg_catalog.pg_class c ON c.oid = ft.ftrelid INNER JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace INNER JOIN pg_catalog.pg_foreign_server s ON s.oid = ft.ftserver WHERE pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2
SELECT n.nspname as "Schema", t.typname as "Name", pg_catalog.format_type(t.typbasetype, t.typtypmod) as "Type", (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as "Collation", CASE WHEN t.typnotnull THEN 'not null' END as "Nullable", t.typdefault as "Default", pg_catalog.array_to_string(ARRAY( SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid ), ' ') as "Check" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END as "Persistence", am.amname as "Access method", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as "Size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('m','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END as "Persistence", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as "Size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('S','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END as "Persistence", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as "Size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END as "Persistence", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as "Size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2
SELECT n.nspname as "Schema", c.relname as "Name", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relkind WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", c2.oid::pg_catalog.regclass as "Table" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid WHERE c.relkind IN ('p','I','') AND NOT c.relispartition AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY "Schema", "Type" DESC, "Name"
SELECT n.nspname as "Schema", c.relname as "Name", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relkind WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", c2.oid::pg_catalog.regclass as "Table", s.tps as "Total size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid, LATERAL (SELECT pg_catalog.pg_size_pretty(sum( CASE WHEN ppt.isleaf AND ppt.level = 1 THEN pg_catalog.pg_table_size(ppt.relid) ELSE 0 END)) AS dps, pg_catalog.pg_size_pretty(sum(pg_catalog.pg_table_size(ppt.relid))) AS tps FROM pg_catalog.pg_partition_tree(c.oid) ppt) s WHERE c.relkind IN ('p','I','') AND NOT c.relispartition AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY "Schema", "Type" DESC, "Name"
SELECT n.nspname as "Schema", o.oprname AS "Name", CASE WHEN o.oprkind='l' THEN NULL ELSE pg_catalog.format_type(o.oprleft, NULL) END AS "Left arg type", CASE WHEN o.oprkind='r' THEN NULL ELSE pg_catalog.format_type(o.oprright, NULL) END AS "Right arg type", pg_catalog.format_type(o.oprresult, NULL) AS "Result type", o.oprcode AS "Function", coalesce(pg_catalog.obj_description(o.oid, 'pg_operator'), pg_catalog.obj_description(o.oprcode, 'pg_proc')) AS "Description" FROM pg_catalog.pg_operator o LEFT JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_operator_is_visible(o.oid) ORDER BY 1, 2, 3, 4
SELECT n.nspname as "Schema", p.proname AS "Name", pg_catalog.format_type(p.prorettype, NULL) AS "Result data type", CASE WHEN p.pronargs = 0 THEN CAST('*' AS pg_catalog.text) ELSE pg_catalog.pg_get_function_arguments(p.oid) END AS "Argument data types", pg_catalog.obj_description(p.oid, 'pg_proc') as "Description" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.prokind = 'a' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_function_is_visible(p.oid) ORDER BY 1, 2, 4
SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as "Type" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2, 4
SELECT oid as "ID", pg_catalog.pg_get_userbyid(lomowner) as "Owner", pg_catalog.obj_description(oid, 'pg_largeobject') as "Description" FROM pg_catalog.pg_largeobject_metadata ORDER BY oid
SELECT oid, pubname, pg_catalog.pg_get_userbyid(pubowner) AS owner, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_catalog.pg_publication ORDER BY 2
SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS nsp, stxname, pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns, 'd' = any(stxkind) AS ndist_enabled, 'f' = any(stxkind) AS deps_enabled, 'm' = any(stxkind) AS mcv_enabled, stxstattarget FROM pg_catalog.pg_statistic_ext WHERE stxrelid = '1259' ORDER BY nsp, stxname
SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid), pg_catalog.pg_get_expr(pol.polwithcheck, pol.polrelid), CASE pol.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' END AS cmd FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '1259' ORDER BY 1
SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid WHERE pc.oid ='1259' and pg_catalog.pg_relation_is_publishable('1259') UNION SELECT pubname , pg_get_expr(pr.prqual, c.oid) , (CASE WHEN pr.prattrs IS NOT NULL THEN (SELECT string_agg(attname, ', ') FROM pg_catalog.generate_series(0, pg_catalog.array_upper(pr.prattrs::pg_catalog.int2[], 1)) s, pg_catalog.pg_attribute WHERE attrelid = pr.prrelid AND attnum = prattrs[s]) ELSE NULL END) FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid JOIN pg_catalog.pg_class c ON c.oid = pr.prrelid WHERE pr.prrelid = '1259' UNION SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('1259') ORDER BY 1
SELECT pubname FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid JOIN pg_catalog.pg_namespace n ON n.oid = pn.pnnspid WHERE n.nspname = 'pub*' ORDER BY 1
SELECT pubname AS "Name", pg_catalog.pg_get_userbyid(pubowner) AS "Owner", puballtables AS "All tables", pubinsert AS "Inserts", pubupdate AS "Updates", pubdelete AS "Deletes", pubtruncate AS "Truncates", pubviaroot AS "Via root" FROM pg_catalog.pg_publication ORDER BY 1
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof , pg_catalog.shobj_description(r.oid, 'pg_authid') AS description , r.rolreplication , r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.~) '^(ann)$' COLLATE pg_catalog.default ORDER BY 1
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof , r.rolreplication , r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.~) '^(public)$' COLLATE pg_catalog.default ORDER BY 1
SELECT s.name AS "Parameter", pg_catalog.current_setting(s.name) AS "Value" FROM pg_catalog.pg_settings s WHERE pg_catalog.lower(s.name) OPERATOR(pg_catalog.~) '^(work_mem)$' COLLATE pg_catalog.default ORDER BY 1
SELECT s.srvname AS "Name", pg_catalog.pg_get_userbyid(s.srvowner) AS "Owner", f.fdwname AS "Foreign-data wrapper" FROM pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper f ON f.oid=s.srvfdw ORDER BY 1
SELECT subname AS "Name" , pg_catalog.pg_get_userbyid(subowner) AS "Owner" , subenabled AS "Enabled" , subpublications AS "Publication" FROM pg_catalog.pg_subscription WHERE subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())ORDER BY 1
SELECT um.srvname AS "Server", um.usename AS "User name" FROM pg_catalog.pg_user_mappings um ORDER BY 1, 2
-- DBD::Pg, keys by their dependencies
-- in 18: not-null constraints have rows
SELECT d.classid::regclass::text, d.objid, d.objsubid, d.refclassid::regclass::text, d.refobjid, d.refobjsubid, d.deptype FROM pg_depend d WHERE d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT oid FROM pg_constraint WHERE connamespace = 'public'::regnamespace)
SELECT uk.relname, fk.relname, con.conname, ukc.conname FROM pg_catalog.pg_constraint con JOIN pg_catalog.pg_class uk ON con.confrelid = uk.oid JOIN pg_catalog.pg_class fk ON con.conrelid = fk.oid JOIN pg_catalog.pg_depend dep ON (dep.classid = 'pg_catalog.pg_constraint'::regclass AND dep.objid = con.oid AND dep.objsubid = 0 AND dep.deptype = 'n' AND dep.refclassid = 'pg_catalog.pg_class'::regclass AND dep.refobjsubid = 0) JOIN pg_catalog.pg_class idx ON (idx.oid = dep.refobjid AND idx.relkind = 'i') LEFT JOIN pg_catalog.pg_depend dep2 ON (dep2.classid = 'pg_catalog.pg_class'::regclass AND dep2.objid = idx.oid AND dep2.objsubid = 0 AND dep2.deptype = 'i' AND dep2.refclassid = 'pg_catalog.pg_constraint'::regclass AND dep2.refobjsubid = 0) LEFT JOIN pg_catalog.pg_constraint ukc ON (ukc.oid = dep2.refobjid AND ukc.contype IN ('p', 'u')) ORDER BY con.conname
SELECT c.relname, d.deptype, d.refobjsubid FROM pg_depend d JOIN pg_class c ON c.oid = d.objid WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_constraint'::regclass AND c.relnamespace = 'public'::regnamespace ORDER BY 1
-- queries in other forms
SELECT n.nspname FROM pg_namespace n WHERE n.nspname = ANY(current_schemas(false)) ORDER BY 1
SELECT table_name FROM information_schema.tables WHERE table_schema = ANY(current_schemas(false)) AND table_type = 'BASE TABLE' ORDER BY 1
SELECT c.relname, x.cnt FROM pg_class c CROSS JOIN LATERAL (SELECT count(*) AS cnt FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) x WHERE c.relname = 'orders'
-- in 18: not-null constraints have rows
SELECT c.relname, k.conname FROM pg_class c LEFT JOIN LATERAL (SELECT conname FROM pg_constraint WHERE conrelid = c.oid ORDER BY 1 LIMIT 1) k ON true WHERE c.relname IN ('orders', 'users') ORDER BY 1
SELECT con.conname, u.attnum, u.ord FROM pg_constraint con CROSS JOIN LATERAL unnest(con.conkey) WITH ORDINALITY AS u(attnum, ord) WHERE con.conname = 'orders_pkey'
-- in 18: not-null constraints have rows
SELECT con.conname, unnest(con.conkey) AS k FROM pg_constraint con WHERE con.conname LIKE 'orders\_%' ORDER BY 1, 2
SELECT conname, array_agg(a.attname ORDER BY a.attnum) FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey) WHERE c.contype = 'p' AND c.connamespace = 'public'::regnamespace GROUP BY conname ORDER BY 1
SELECT array_agg(DISTINCT relkind ORDER BY relkind) IS NOT NULL FROM pg_class
SELECT ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = 'users'::regclass AND attnum > 0 ORDER BY attnum)
SELECT coalesce((SELECT relname FROM pg_class WHERE relname = 'nosuch'), 'none')
SELECT relname FROM pg_class c WHERE EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AND relnamespace = 'public'::regnamespace ORDER BY 1
SELECT relname FROM pg_class c WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid) AND relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public') ORDER BY 1
SELECT nspname FROM pg_namespace INTERSECT SELECT 'public' ORDER BY 1
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_c%' EXCEPT SELECT 'public' ORDER BY 1
(SELECT 1 AS a) UNION ALL (SELECT 2) ORDER BY a DESC
SELECT * FROM (SELECT relname, rank() OVER (ORDER BY relname) AS r FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') s WHERE r <= 2 ORDER BY r
SELECT n.nspname, count(c.oid) > 0 FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid GROUP BY n.nspname HAVING n.nspname IN ('public', 'pg_catalog') ORDER BY 1
SELECT a.* FROM (VALUES (1), (2)) AS a(x) NATURAL JOIN (VALUES (2), (3)) AS b(x)
SELECT x, y FROM (VALUES (1)) a(x) FULL OUTER JOIN (VALUES (2)) b(y) ON a.x = b.y ORDER BY 1 NULLS FIRST
SELECT relname::varchar(3), relname::name, relname::text || '.x', upper(relname::text) FROM pg_class WHERE relname = 'orders'
SELECT oid::regclass::text, oid::regclass::oid = oid, 'orders'::regclass::int = oid::int FROM pg_class WHERE relname = 'orders'
SELECT 'public.orders'::regclass = 'orders'::regclass, 'pg_class'::regclass::oid, 'pg_catalog.pg_class'::regclass::text, '"orders"'::regclass::text
SELECT 'int4'::regtype, 'integer[]'::regtype, 'character varying'::regtype::oid, 'timestamp with time zone'::regtype::oid, 1043::regtype, 23::oid::regtype::text
SELECT 'pg_catalog'::regnamespace, 2200::regnamespace, 'public'::regnamespace::oid
SELECT a.attname, a.atttypid::regtype, a.attrelid::regclass FROM pg_attribute a WHERE a.attrelid = 'countries'::regclass AND a.attnum > 0 ORDER BY a.attnum
SELECT current_user::text, current_database()::text, current_schema()::text, session_user::regrole::text = session_user
SELECT t.table_name, (SELECT count(*) FROM information_schema.columns c WHERE c.table_name = t.table_name AND c.table_schema = t.table_schema) AS n FROM information_schema.tables t WHERE t.table_schema = 'public' ORDER BY 1
SELECT kcu.table_name, kcu.column_name, kcu2.table_name AS ref_table, kcu2.column_name AS ref_column FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage kcu ON kcu.constraint_name = rc.constraint_name JOIN information_schema.key_column_usage kcu2 ON kcu2.constraint_name = rc.unique_constraint_name AND kcu2.ordinal_position = kcu.position_in_unique_constraint WHERE kcu.table_schema = 'public' ORDER BY 1, 2
SELECT column_name, CASE WHEN data_type = 'ARRAY' THEN 'a' WHEN data_type = 'USER-DEFINED' THEN udt_name ELSE data_type END AS t, coalesce(character_maximum_length, numeric_precision, -1) AS len FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'products' ORDER BY ordinal_position
SELECT column_name FROM information_schema.columns WHERE (table_schema, table_name) = ('public', 'orders') AND column_name ~* '^(ORDER|user)_id$' ORDER BY 1
SELECT table_name FROM information_schema.tables WHERE table_schema || '.' || table_name = 'public.users'
SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT LIKE 'pg\_%' AND table_schema != 'information_schema' ORDER BY table_name DESC LIMIT 2 OFFSET 1
SELECT lower(table_name), length(table_name), table_name LIKE '%s', position('r' IN table_name) FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1
SELECT pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true), indisunique, indkey::int2[] IS NOT NULL FROM pg_index WHERE indrelid = 'users'::regclass
SELECT i.indexrelid::regclass, a.attname, a.attnum = ANY (i.indkey), array_position(i.indkey::int2[], a.attnum) IS NOT NULL FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = 'products'::regclass
SELECT (i.keys).n, (i.keys).x FROM (SELECT information_schema._pg_expandarray(indkey) AS keys FROM pg_index WHERE indrelid = 'orders'::regclass) i
SELECT ct.conname, a.attname, af.attname AS fattname, ct.confrelid::regclass FROM pg_constraint ct JOIN pg_attribute a ON a.attrelid = ct.conrelid AND a.attnum = ct.conkey[1] JOIN pg_attribute af ON af.attrelid = ct.confrelid AND af.attnum = ct.confkey[1] WHERE ct.contype = 'f' ORDER BY 1
SELECT generate_subscripts(conkey, 1) AS i, conname FROM pg_constraint WHERE conname = 'orders_user_id_fkey'
SELECT s.i, s.k FROM (SELECT generate_series(1, array_upper(conkey, 1)) AS i, conkey AS k FROM pg_constraint WHERE conname = 'orders_pkey') s
SELECT d.description FROM pg_class c LEFT JOIN pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass WHERE c.relname = 'users'
SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = current_database()
SELECT format('%I.%I', table_schema, table_name)::regclass::text FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1
SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS full_name, pg_table_size((quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass) >= 0 FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1
SELECT json_agg(json_build_object('name', column_name, 'type', data_type) ORDER BY ordinal_position)::text IS NOT NULL FROM information_schema.columns WHERE table_name = 'countries'
SELECT string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'countries' AND table_schema = 'public'
SELECT bool_or(is_nullable = 'YES'), max(ordinal_position), min(column_name), count(DISTINCT data_type) FROM information_schema.columns WHERE table_name = 'users' AND table_schema = 'public'
WITH cols AS (SELECT * FROM information_schema.columns WHERE table_schema = 'public'), counted AS MATERIALIZED (SELECT table_name, count(*) AS n FROM cols GROUP BY table_name) SELECT * FROM counted ORDER BY n DESC, table_name
WITH RECURSIVE deps AS (SELECT conrelid, confrelid, 1 AS depth FROM pg_constraint WHERE contype = 'f' UNION ALL SELECT d.conrelid, c.confrelid, d.depth + 1 FROM deps d JOIN pg_constraint c ON c.conrelid = d.confrelid AND c.contype = 'f' WHERE d.depth < 5) SELECT max(depth) FROM deps
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE relkind::text END AS kind, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 2
SELECT relname, CASE WHEN relkind IN ('r', 'p') THEN true ELSE false END, NOT relispartition, relhasindex IS TRUE, relrowsecurity IS NOT TRUE FROM pg_class WHERE relname = 'users'
SELECT count(*) FROM pg_class WHERE relname IN (SELECT table_name FROM information_schema.tables WHERE table_schema = 'public')
SELECT 1 AS "Column with space", 2 AS "select", 3 AS "Ünïcode", 4 AS table
SELECT NULL::int, NULL::text, NULL AS n, ''::text, ' '::bpchar, 'a'::char
SELECT interval '1 day 2 hours', interval '90 minutes', '1 mon'::interval, interval '1' year
SELECT date '2024-02-29' + 365, timestamp '2024-01-01 00:00' + interval '36 hours', date '2024-03-01' - date '2024-02-01', timestamp '2024-01-02' - timestamp '2024-01-01'
SELECT 10 / 4, 10 / 4.0 > 2.4, 10 % 4, -10 % 3, 2 * 3 + 1, (1 + 2) * 3
SELECT 3 = 3.0, 'abc' < 'abd', 'A' < 'a', NULL IS NOT DISTINCT FROM NULL, 1 BETWEEN 0 AND 2, 5 NOT IN (1, 2)
SELECT greatest(1, NULL, 3), least(NULL, 2), coalesce(NULL, NULL, 5), nullif('a', 'b')
SELECT count(*) FROM pg_am WHERE amname IN ('btree', 'hash') OR amname ILIKE 'GI%'
SELECT pg_relation_size('pg_class') >= 0, pg_total_relation_size('orders'::regclass) >= 0, pg_size_pretty(0::bigint)
SELECT has_any_column_privilege('orders', 'SELECT'), has_database_privilege(current_database(), 'CONNECT'), has_schema_privilege('pg_catalog', 'USAGE'), has_table_privilege('pg_catalog.pg_class', 'SELECT')
SELECT pg_has_role(current_user, 'USAGE'), pg_has_role('ann', 'MEMBER')
SELECT proname, prorettype::regtype, pronargs FROM pg_proc WHERE proname = 'int4in'
SELECT typname, typinput, typreceive FROM pg_type WHERE typname = 'int8'
SELECT e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid WHERE t.typname = 'nosuch'
SELECT relname, last_value FROM pg_sequences s JOIN pg_class c ON c.relname = s.sequencename
SELECT * FROM pg_stat_ssl WHERE pid = -1
SELECT name, default_version FROM pg_available_extensions WHERE name = 'nosuch'
SELECT * FROM pg_prepared_statements WHERE name = 'x'
SELECT * FROM pg_cursors WHERE name = 'x'
SELECT * FROM pg_prepared_xacts
SELECT pg_class.nosuch FROM pg_class
SELECT x.relname FROM pg_class c
SELECT relname FROM pg_class WHERE oid = 'abc'
SELECT relname FROM pg_class ORDER BY nosuch
SELECT count(relname, oid) FROM pg_class
SELECT relname, sum(oid::int8) OVER (), count(*) FROM pg_class
SELECT * FROM (SELECT 1)
SELECT 'abc'::date
SELECT '25:00'::time
SELECT 300::smallint, 70000::smallint
SELECT 'x'::bool
SELECT ''::int
SELECT array_length(1, 1)
SELECT * FORM pg_class
SELECT (1
SELECT 1; SELECT nosuch
SELECT count FROM (SELECT count(*) FROM pg_am) t
SELECT max FROM (SELECT max(amname) FROM pg_am WHERE amname LIKE 'b%') t
WITH t AS (SELECT array_agg(amname ORDER BY amname), 1 FROM pg_am) SELECT array_agg, "?column?" FROM t
SELECT jsonb_agg(amname ORDER BY amname DESC)->>0 FROM pg_am
SELECT * FROM (SELECT 1 + 1, lower('A'), 'x'::text, CASE WHEN true THEN 1 END) t
SELECT upper FROM (SELECT upper(relname) FROM pg_class WHERE relname = 'orders') t
-- pgAdmin 4
-- differs: not answered as there yet
SELECT db.oid as did, db.datname as name, ta.spcname as spcname, db.datallowconn, db.datistemplate AS is_template, pg_catalog.has_database_privilege(db.oid, 'CREATE') as cancreate, datdba as owner, descr.description FROM pg_catalog.pg_database db LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid LEFT OUTER JOIN pg_catalog.pg_shdescription descr ON (db.oid=descr.objoid AND descr.classoid='pg_database'::regclass) WHERE db.datname = current_database() ORDER BY datname
-- differs: not answered as there yet
SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser, CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role, CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db, CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (SELECT pg_roles.oid,pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid UNION ALL SELECT m.roleid, pgr.rolname FROM cte cte_1 JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid) SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend FROM pg_catalog.pg_roles as roles WHERE rolname = current_user
SELECT nsp.nspname schema_name, (nsp.nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)) OR (nsp.nspname = 'information_schema' AND EXISTS (SELECT 1 FROM pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1)) AS is_catalog, CASE WHEN nsp.nspname = ANY('{information_schema}') THEN false ELSE true END AS db_support FROM pg_catalog.pg_namespace nsp WHERE nsp.nspname IN ('public', 'pg_catalog', 'information_schema') ORDER BY 1
SELECT nsp.oid, nsp.nspname as name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') IS NOT NULL as can_create, pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') as has_usage FROM pg_catalog.pg_namespace nsp WHERE nspname NOT LIKE E'pg\\_%' AND NOT ((nsp.nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)) OR (nsp.nspname = 'pgagent' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pga_job' AND relnamespace = nsp.oid LIMIT 1)) OR (nsp.nspname = 'information_schema' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1))) ORDER BY nspname
SELECT rel.oid, rel.relname AS name, (SELECT count(*) FROM pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount, (SELECT count(*) FROM pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE AND tgenabled = 'O') AS has_enable_triggers, (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned, (SELECT count(1) FROM pg_inherits WHERE inhrelid=rel.oid LIMIT 1) as is_inherits, (SELECT count(1) FROM pg_inherits WHERE inhparent=rel.oid LIMIT 1) as is_inherited, des.description FROM pg_class rel LEFT OUTER JOIN pg_description des ON (des.objoid=rel.oid AND des.objsubid=0 AND des.classoid='pg_class'::regclass) WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 'public'::regnamespace AND NOT rel.relispartition ORDER BY rel.relname
SELECT att.attname as name, att.attnum as OID, format_type(ty.oid,NULL) AS datatype, pg_catalog.format_type(ty.oid, att.atttypmod) AS displaytypname, att.attnotnull as not_null, CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True ELSE False END as has_default_val, des.description, seq.seqtypid FROM pg_attribute att JOIN pg_type ty ON ty.oid=atttypid JOIN pg_namespace tn ON tn.oid=ty.typnamespace JOIN pg_class cl ON cl.oid=att.attrelid JOIN pg_namespace na ON na.oid=cl.relnamespace LEFT OUTER JOIN pg_type et ON et.oid=ty.typelem LEFT OUTER JOIN pg_attrdef def ON adrelid=att.attrelid AND adnum=att.attnum LEFT OUTER JOIN (pg_depend JOIN pg_class cs ON classid='pg_class'::regclass AND objid=cs.oid AND cs.relkind='S') ON refobjid=att.attrelid AND refobjsubid=att.attnum LEFT OUTER JOIN pg_namespace ns ON ns.oid=cs.relnamespace LEFT OUTER JOIN pg_index pi ON pi.indrelid=att.attrelid AND indisprimary LEFT OUTER JOIN pg_description des ON (des.objoid=att.attrelid AND des.objsubid=att.attnum AND des.classoid='pg_class'::regclass) LEFT OUTER JOIN pg_sequence seq ON cs.oid=seq.seqrelid WHERE att.attrelid = 'orders'::regclass AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum
SELECT cls.oid, cls.relname as idxname, indrelid, indkey, indisclustered, indisvalid, indisunique, indisprimary, n.nspname, indnatts, cls.reltablespace AS spcoid, CASE WHEN (length(spcname::text) > 0 OR cls.relkind = 'I') THEN spcname ELSE (SELECT sp.spcname FROM pg_catalog.pg_database dtb JOIN pg_catalog.pg_tablespace sp ON dtb.dattablespace=sp.oid WHERE dtb.datname = current_database()) END as spcname, conname, tab.relname as tabname, indclass, con.oid AS conoid, CASE WHEN contype IN ('p', 'u', 'x') THEN desp.description ELSE des.description END AS description, pg_catalog.pg_get_expr(indpred, indrelid, true) as indconstraint, contype, condeferrable, condeferred, amname, (SELECT array_to_string(array_agg(a.attname), ',') FROM pg_attribute a WHERE a.attrelid = indrelid AND a.attnum = ANY(indkey)) AS cols FROM pg_catalog.pg_index idx JOIN pg_catalog.pg_class cls ON cls.oid=indexrelid JOIN pg_catalog.pg_class tab ON tab.oid=indrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ta on ta.oid=cls.reltablespace JOIN pg_catalog.pg_namespace n ON n.oid=tab.relnamespace JOIN pg_catalog.pg_am am ON am.oid=cls.relam LEFT JOIN pg_catalog.pg_depend dep ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0' AND dep.refclassid=(SELECT oid FROM pg_catalog.pg_class WHERE relname='pg_constraint') AND dep.deptype='i') LEFT OUTER JOIN pg_catalog.pg_constraint con ON (con.tableoid = dep.refclassid AND con.oid = dep.refobjid) LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=cls.oid AND des.classoid='pg_class'::regclass) LEFT OUTER JOIN pg_catalog.pg_description desp ON (desp.objoid=con.oid AND desp.objsubid = 0 AND desp.classoid='pg_constraint'::regclass) WHERE indrelid = 'orders'::regclass ORDER BY cls.relname
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) IS NOT NULL AS chart_data FROM (SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) AS "Total", (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND datname = current_database()) AS "Active") t
SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()
SELECT set_config('bytea_output','hex',false) FROM pg_settings WHERE name = 'bytea_output'
SELECT CASE WHEN usesuper THEN pg_catalog.pg_is_in_recovery() ELSE FALSE END as inrecovery, CASE WHEN usesuper AND pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE FALSE END as isreplaypaused FROM pg_catalog.pg_user WHERE usename=current_user
SELECT ct.conindid as oid, conname as name, NOT convalidated as convalidated FROM pg_catalog.pg_constraint ct WHERE contype='x' AND conrelid = 'orders'::regclass
SELECT ARRAY(SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'f' ORDER BY conname)
-- DBeaver
-- in 18: other columns, settings or rows
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND datname = 'nosuch' ORDER BY db.datname
-- in 18: other columns, settings or rows
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass WHERE c.relnamespace='public'::regnamespace AND c.relkind not in ('i','I','c') AND c.relname = 'nosuch'
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid WHERE t.typname IN ('int4', 'text') ORDER BY t.oid
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,pg_catalog.pg_relation_size(i.indexrelid) >= 0 as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) >= 0 as index_num_scans FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid WHERE i.indrelid='orders'::regclass ORDER BY tabrelname, c.relname
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname,pg_get_expr(ad.adbin, ad.adrelid) adefval FROM pg_depend dep LEFT JOIN pg_class cl ON dep.objid=cl.oid LEFT JOIN pg_attribute attr ON dep.objid=attr.attrelid AND dep.objsubid=attr.attnum LEFT JOIN pg_attrdef ad ON ad.adrelid=attr.attrelid AND ad.adnum=attr.attnum WHERE dep.refobjid = 0 ORDER BY 1
select * from pg_catalog.pg_settings where name = 'nosuch'
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid WHERE a.rolname = 'nosuch' ORDER BY a.rolname
select string_agg(word, ',' order by word) from pg_catalog.pg_get_keywords() where catcode = 'R' and word < 'c'
SELECT reltype, typname FROM pg_class c JOIN pg_type t ON t.typrelid = c.oid WHERE c.relname = 'nosuch'
SHOW search_path
-- DataGrip
select L.transactionid::varchar::bigint as transaction_id from pg_catalog.pg_locks L where L.transactionid is not null order by pg_catalog.age(L.transactionid) desc limit 1
select case when pg_catalog.pg_is_in_recovery() then 1 else pg_catalog.txid_current() end > 0 as current_txid
select round(extract(epoch from pg_postmaster_start_time() at time zone 'UTC')) > 0 as startup_time
select N.oid::bigint > 0 as id, datname as name, D.description, datistemplate as is_template, datallowconn as allow_connections, pg_catalog.pg_get_userbyid(N.datdba) <> '' as "owner" from pg_catalog.pg_database N left join pg_catalog.pg_shdescription D on N.oid = D.objoid where N.datname = current_database() order by case when datname = pg_catalog.current_database() then -1::bigint else N.oid::bigint end
select member > 0 id, roleid::regrole role_id, admin_option from pg_catalog.pg_auth_members where member = 0 order by id, roleid::text
select T.oid table_id, relnamespace::regnamespace table_schema, T.relname, C.attnum as column_position, C.attname as column_name, C.xmin::text::bigint > 0 as column_state_number, C.atttypmod as type_mod, C.attndims as dimensions_number, pg_catalog.format_type(C.atttypid, C.atttypmod) as type_spec, C.atttypid as type_id, C.attnotnull as mandatory, pg_catalog.pg_get_expr(D.adbin, D.adrelid) as column_default_expression, not C.attislocal as column_is_inherited, C.attfdwoptions as options, C.attisdropped as column_is_dropped, C.attidentity as identity_kind, C.attgenerated as generated from pg_catalog.pg_attribute C join pg_catalog.pg_class T on T.oid = C.attrelid left outer join pg_catalog.pg_attrdef D on (C.attrelid, C.attnum) = (D.adrelid, D.adnum) where T.relnamespace = 'public'::regnamespace and C.attnum > 0 and T.relkind in ('r', 'm', 'v', 'f', 'p') order by relname, attnum
select tab.relname, ind_stor.relname index_name, ind_head.indisunique is_unique, ind_head.indisprimary is_primary, ind_head.indkey as column_positions, ind_head.indclass::text <> '' as column_operators, ind_head.indoption as column_options, pg_catalog.pg_get_expr(ind_head.indpred, ind_head.indrelid) as condition, case when ind_stor.relam > 0 then am.amname end access_method_name, pg_catalog.array_to_string(array(select case when k = 0 then pg_catalog.pg_get_indexdef(ind_head.indexrelid, generate_subscripts + 1, true) else null end from (select generate_subscripts(ind_head.indkey, 1), unnest(ind_head.indkey) as k) s order by generate_subscripts), chr(28)) as exprs from pg_catalog.pg_class tab join pg_catalog.pg_index ind_head on ind_head.indrelid = tab.oid join pg_catalog.pg_class ind_stor on tab.relnamespace = ind_stor.relnamespace and ind_stor.oid = ind_head.indexrelid left join pg_catalog.pg_am am on ind_stor.relam = am.oid where tab.relnamespace = 'public'::regnamespace and tab.relkind in ('r','m','v','p') order by 1, 2
select T.relname, C.conname, C.contype::char as con_kind, C.conkey con_columns, conindid::regclass index_id, confrelid::regclass ref_table, condeferrable, condeferred, confupdtype::char, confdeltype::char, connoinherit, pg_catalog.pg_get_expr(conbin, conrelid) con_expression, confkey, conexclop::int[], contypid from pg_catalog.pg_constraint C join pg_catalog.pg_class T on C.conrelid = T.oid where T.relkind in ('r','v','f','p') and C.contype in ('p','u','f','c','x') and T.relnamespace = 'public'::regnamespace order by 1, 2
with system_languages as ( select oid as lang from pg_catalog.pg_language where lanname in ('c','internal') ) select PC.oid from pg_catalog.pg_proc PC where PC.pronamespace = 'public'::regnamespace and PC.prolang not in (select lang from system_languages)
select D.objoid = 'orders'::regclass, case when 'pg_catalog.pg_class'::pg_catalog.regclass = classoid then 'C' end as kind, D.objsubid sub_id, D.description from pg_catalog.pg_description D where classoid in ('pg_catalog.pg_class'::pg_catalog.regclass, 'pg_catalog.pg_type'::regclass) and objoid = 'orders'::regclass order by 3
-- pgJDBC DatabaseMetaData
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME, CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN CASE WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind WHEN 'r' THEN 'SYSTEM TABLE' WHEN 'v' THEN 'SYSTEM VIEW' WHEN 'i' THEN 'SYSTEM INDEX' ELSE NULL END WHEN n.nspname = 'pg_toast' THEN CASE c.relkind WHEN 'r' THEN 'SYSTEM TOAST TABLE' WHEN 'i' THEN 'SYSTEM TOAST INDEX' ELSE NULL END ELSE NULL END WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'i' THEN 'INDEX' WHEN 'v' THEN 'VIEW' ELSE NULL END ELSE NULL END AS TABLE_TYPE, d.description AS REMARKS, '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass) WHERE c.relnamespace = n.oid AND n.nspname LIKE 'public' AND c.relname LIKE 'or%' AND (false OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum) LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class') LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog') WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped AND n.nspname LIKE 'public' AND c.relname LIKE 'orders') c WHERE true ORDER BY nspname,c.relname,attnum
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid AND fkn.nspname = 'public' AND fkc.relname = 'orders' ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n
-- differs: rows of PostgreSQL's own that nobody needs are not kept
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE, NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME, CASE i.indisclustered WHEN true THEN 1 ELSE CASE am.amname WHEN 'hash' THEN 2 ELSE 3 END END AS TYPE, (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION, ci.reltuples AS CARDINALITY, ci.relpages AS PAGES, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION, ci.oid AS CI_OID, i.indoption AS I_INDOPTION, am.amname AS AM_NAME FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) JOIN pg_catalog.pg_am am ON (ci.relam = am.oid) WHERE true AND n.nspname = 'public' AND ct.relname = 'users' ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION
SELECT NULL AS PROCEDURE_CAT, n.nspname AS PROCEDURE_SCHEM, p.proname AS PROCEDURE_NAME, NULL, NULL, NULL, d.description AS REMARKS, 2 AS PROCEDURE_TYPE, p.proname || '_' || p.oid AS SPECIFIC_NAME FROM pg_catalog.pg_namespace n, pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_description d ON (p.oid=d.objoid) LEFT JOIN pg_catalog.pg_class c ON (d.classoid=c.oid AND c.relname='pg_proc') LEFT JOIN pg_catalog.pg_namespace pn ON (c.relnamespace=pn.oid AND pn.nspname='pg_catalog') WHERE p.pronamespace=n.oid AND p.prokind='p' ORDER BY PROCEDURE_SCHEM, PROCEDURE_NAME, p.oid::text
SELECT n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME, r.rolname <> '', c.relacl IS NULL FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c, pg_catalog.pg_roles r WHERE c.relnamespace = n.oid AND c.relowner = r.oid AND c.relkind = 'nosuch' ORDER BY TABLE_SCHEM, TABLE_NAME
SELECT a.attname, a.attnum, i.indkey, information_schema._pg_expandarray(i.indkey) AS keys FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_index i ON a.attrelid = i.indrelid WHERE i.indisprimary AND i.indrelid = 'orders'::regclass ORDER BY a.attnum
SELECT t.typname,t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid) WHERE n.nspname = 'pg_catalog' AND t.typname IN ('bool', 'bytea', 'int2') ORDER BY t.typname
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid FROM pg_catalog.pg_type LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns join ( select s.r, (current_schemas(false))[s.r] as nspname from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname ) ) as sp ON sp.nspoid = typnamespace WHERE pg_type.typname = 'int4' ORDER BY sp.r, pg_type.oid DESC
SELECT datname AS TABLE_CAT FROM pg_catalog.pg_database WHERE datallowconn = true AND datname = current_database() ORDER BY datname
-- psqlODBC
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname = E'orders' and n.nspname = E'public') inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum
select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n where relkind in ('r', 'v', 'm', 'f', 'p') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') and n.oid = relnamespace order by nspname, relname
select ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname from pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic where tc.relname = E'orders' AND n.nspname = E'public' AND tc.oid = i.indrelid AND n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum-1] AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) AND ic.oid = i.indexrelid order by ia.attnum
select c.relname, i.indkey, i.indisunique, i.indisclustered, a.amname, c.relhasrules, n.nspname, c.oid, 0, case when i.indoption[0] & 1 = 1 then 'D' else 'A' end from pg_catalog.pg_index i, pg_catalog.pg_class c, pg_catalog.pg_class d, pg_catalog.pg_am a, pg_catalog.pg_namespace n where d.relname = E'orders' and n.nspname = E'public' and n.oid = d.relnamespace and d.oid = i.indrelid and i.indexrelid = c.oid and c.relam = a.oid order by i.indisprimary desc, i.indisunique, n.nspname, c.relname
select 'x'::name as "a", conname, pt.tgname from pg_catalog.pg_constraint co left join pg_catalog.pg_trigger pt on pt.tgconstraint = co.oid and not pt.tgisinternal where co.conrelid = 'orders'::regclass and contype = 'p'
-- Npgsql 4 to 9
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM ( SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind, CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype, typ.typcategory FROM ( SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype, CASE WHEN proc.proname='array_recv' THEN typ.typelem WHEN typ.typtype='r' THEN rngsubtype WHEN typ.typtype='m' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid) WHEN typ.typtype='d' THEN typ.typbasetype END AS elemtypoid, typ.typcategory FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid) ) AS typ LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive ) AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE ( typtype IN ('b', 'r', 'm', 'e', 'd') OR (typtype = 'c' AND relkind='c') OR (typtype = 'p' AND typname IN ('record', 'void', 'unknown')) OR (typtype = 'a' AND ( elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR (elemtyptype = 'c' AND elemrelkind='c') )) ) AND ns.nspname = 'pg_catalog' AND t.oid < 4000 ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'c' THEN 1 WHEN typtype = 'r' THEN 2 WHEN typtype = 'm' THEN 3 WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4 WHEN typtype = 'a' THEN 5 WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6 END, t.oid
SELECT typ.oid, att.attname, att.atttypid FROM pg_type AS typ JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace) JOIN pg_class AS cls ON (cls.oid = typ.typrelid) JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid) WHERE (typ.typtype = 'c' AND cls.relkind='c') AND attnum > 0 AND NOT attisdropped ORDER BY typ.oid, att.attnum
SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid=enumtypid ORDER BY oid, enumsortorder
-- in 18: another version
SELECT current_setting('server_version_num'), current_setting('max_identifier_length')::int4
SELECT table_catalog, table_schema, table_name, column_name, ordinal_position, column_default, is_nullable, udt_name::regtype::text AS data_type, CASE WHEN udt_schema <> 'pg_catalog' THEN udt_schema || '.' || udt_name END, character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, character_set_catalog, collation_catalog FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'orders' ORDER BY ordinal_position
SELECT cls.relname, attr.attname, attr.attnum, coll.collname FROM pg_class AS cls JOIN pg_attribute AS attr ON attr.attrelid = cls.oid AND attr.attnum > 0 AND attr.attisdropped = FALSE LEFT JOIN pg_collation AS coll ON coll.oid = attr.attcollation WHERE cls.relname = 'users' ORDER BY attnum
-- Power BI
select character_set_name from INFORMATION_SCHEMA.character_sets
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'orders' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA, fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL, fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'users' || '_' || fkcon.CONSTRAINT_NAME as FK_NAME from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'users' and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION order by FK_NAME, fkcol.ORDINAL_POSITION
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'orders' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE') order by i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME, ii.TABLE_SCHEMA, ii.TABLE_NAME, ii.ORDINAL_POSITION
-- Metabase
select "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type", "d"."description" AS "description", NULLIF("stat"."n_live_tup", 0) AS "estimated_row_count" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^information_schema|catalog_history|pg_') AND (c.relkind in ('r', 'p', 'v', 'f', 'm')) AND ("n"."nspname" IN ('public')) ORDER BY "type" ASC, "schema" ASC, "name" ASC
with table_privileges as ( select NULL as role, t.schemaname as schema, t.objectname as table, pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update, pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select from ( select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname as objectname from pg_catalog.pg_views union select schemaname, matviewname as objectname from pg_catalog.pg_matviews ) t where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage') ) select t.schema, t."table", t.select from table_privileges t order by 1, 2
SELECT "c"."column_name" AS "name", CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "c"."udt_name") ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type", "c"."ordinal_position" - 1 AS "database-position", "c"."table_schema" AS "table-schema", "c"."table_name" AS "table-name", "pk"."column_name" IS NOT NULL AS "pk?", col_description(CAST(CAST(format('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment", (("column_default" IS NULL) OR (LOWER("column_default") = 'null')) AND ("is_nullable" = 'NO') AND NOT ((("column_default" IS NOT NULL) AND ("column_default" LIKE '%nextval(%')) OR ("is_identity" <> 'NO')) AS "database-required", (("column_default" IS NOT NULL) AND ("column_default" LIKE '%nextval(%')) OR ("is_identity" <> 'NO') AS "database-is-auto-increment" FROM "information_schema"."columns" AS "c" LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name" FROM "information_schema"."table_constraints" AS "tc" INNER JOIN "information_schema"."key_column_usage" AS "kc" ON ("tc"."constraint_name" = "kc"."constraint_name") AND ("tc"."table_schema" = "kc"."table_schema") AND ("tc"."table_name" = "kc"."table_name") WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk" ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name") AND ("c"."column_name" = "pk"."column_name") WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND ("c"."table_schema" IN ('public')) ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC
SELECT "fk_ns"."nspname" AS "fk-table-schema", "fk_table"."relname" AS "fk-table-name", "fk_column"."attname" AS "fk-column-name", "pk_ns"."nspname" AS "pk-table-schema", "pk_table"."relname" AS "pk-table-name", "pk_column"."attname" AS "pk-column-name" FROM "pg_constraint" AS "c" INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid" INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid" INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid" INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid" INNER JOIN "pg_namespace" AS "pk_ns" ON "pk_table"."relnamespace" = "pk_ns"."oid" INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid" WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char) AND ("fk_column"."attnum" = ANY(c.conkey)) AND ("pk_column"."attnum" = ANY(c.confkey)) AND ("fk_ns"."nspname" IN ('public')) ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC, "fk-column-name"
SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)
SELECT tmp.table_schema, tmp.table_name, trim(both '"' from pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.pos, false)) AS field_name FROM (SELECT n.nspname AS table_schema, ct.relname AS table_name, ci.oid AS ci_oid, (information_schema._pg_expandarray(i.indkey)).n AS pos FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON ct.relnamespace = n.oid JOIN pg_catalog.pg_index i ON ct.oid = i.indrelid JOIN pg_catalog.pg_class ci ON ci.oid = i.indexrelid WHERE pg_catalog.pg_get_expr(i.indpred, i.indrelid) IS NULL AND n.nspname !~ '^information_schema|catalog_history|pg_') AS tmp WHERE tmp.pos = 1 ORDER BY 1, 2, 3
-- differs: not answered as there yet
SHOW timezone_abbreviations
-- Grafana
SELECT quote_ident(table_name) as "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental') AND quote_ident(table_schema) IN ( SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series( array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1) ) as i, string_to_array(current_setting('search_path'),',') s ) ORDER BY 1
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN array_length(parse_ident('public.orders'),1) = 2 THEN quote_ident(table_schema) = (parse_ident('public.orders'))[1] AND quote_ident(table_name) = (parse_ident('public.orders'))[2] ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) IN ('public') END ORDER BY 1
-- in 18: another version
SELECT current_setting('server_version_num')::int/100 AS version, (SELECT extversion FROM pg_extension WHERE extname = 'timescaledb') AS ts
-- Tableau, Looker
SELECT n.nspname AS TABLE_SCHEM, c.relname, c.relkind, t.typname, a.attname, a.attnum FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid WHERE a.attnum > 0 AND NOT a.attisdropped AND (c.relkind = 'r' OR c.relkind = 'v' OR c.relkind = 'm') AND n.nspname = 'public' ORDER BY c.relname, a.attnum
SELECT 1 AS "Looker_1", CURRENT_TIMESTAMP IS NOT NULL AS "now", extract(timezone from now()) AS "tz"
SELECT proname, pronargs, prorettype::regtype FROM pg_proc WHERE proname = 'int4in'
SELECT oid, typname, typlen, typbyval, typcategory, typispreferred, typdelim FROM pg_type WHERE typcategory IN ('S', 'N') AND oid < 2000 ORDER BY oid
select kcu.ordinal_position, kcu.position_in_unique_constraint, tc.is_deferrable, tc.enforced, tc.nulls_distinct from information_schema.table_constraints tc join information_schema.key_column_usage kcu using (constraint_catalog, constraint_schema, constraint_name) where tc.table_name = 'orders' order by tc.constraint_name
-- Hasura
SELECT coalesce(json_agg(row_to_json(info)), '[]' :: json) IS NOT NULL AS tables FROM (SELECT c.relname AS table_name, n.nspname AS table_schema FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = 'public') info
SELECT schema.nspname AS table_schema, "table".relname AS table_name, coalesce(columns.info, '[]') IS NOT NULL AS info FROM pg_class "table" JOIN pg_namespace schema ON schema.oid = "table".relnamespace LEFT JOIN LATERAL ( SELECT jsonb_agg(jsonb_build_object('name', "column".attname, 'position', "column".attnum, 'type', jsonb_build_object('name', coalesce(base_type.typname, type.typname), 'type', type.typtype), 'is_nullable', NOT "column".attnotnull, 'description', col_description("table".oid, "column".attnum)) ORDER BY "column".attnum) AS info FROM pg_attribute "column" LEFT JOIN pg_type type ON type.oid = "column".atttypid LEFT JOIN pg_type base_type ON type.typtype = 'd' AND base_type.oid = type.typbasetype WHERE "column".attrelid = "table".oid AND "column".attnum > 0 AND NOT "column".attisdropped ) columns ON true WHERE "table".relkind IN ('r', 't', 'v', 'm', 'f', 'p') AND schema.nspname NOT LIKE 'pg_%' AND schema.nspname <> 'information_schema' ORDER BY 1, 2
SELECT q.table_schema::text, q.table_name::text, q.constraint_name::text, min(q.ref_table_table_schema::text) as ref_table_table_schema, min(q.ref_table::text) as ref_table, json_object_agg(ac.attname, afc.attname)->>'user_id' as column_mapping, min(q.confupdtype::text) as on_update, min(q.confdeltype::text) as on_delete FROM ( SELECT ctn.nspname AS table_schema, ct.relname AS table_name, r.conrelid AS table_id, r.conname AS constraint_name, cftn.nspname AS ref_table_table_schema, cft.relname as ref_table, r.confrelid as ref_table_id, r.confupdtype, r.confdeltype, unnest(r.conkey) AS column_id, unnest(r.confkey) AS ref_column_id FROM pg_catalog.pg_constraint r JOIN pg_catalog.pg_class ct ON r.conrelid = ct.oid JOIN pg_catalog.pg_namespace ctn ON ct.relnamespace = ctn.oid JOIN pg_catalog.pg_class cft ON r.confrelid = cft.oid JOIN pg_catalog.pg_namespace cftn ON cft.relnamespace = cftn.oid WHERE r.contype = 'f'::"char" ) q JOIN pg_catalog.pg_attribute ac ON q.column_id = ac.attnum AND q.table_id = ac.attrelid JOIN pg_catalog.pg_attribute afc ON q.ref_column_id = afc.attnum AND q.ref_table_id = afc.attrelid GROUP BY q.table_schema, q.table_name, q.constraint_name ORDER BY 1, 2, 3
SELECT jsonb_build_object('oid', "table".oid :: integer > 0, 'unique', coalesce((SELECT jsonb_agg(c.conname) FROM pg_constraint c WHERE c.conrelid = "table".oid AND c.contype = 'p'), '[]')) FROM pg_class "table" WHERE relname = 'orders'
-- dbt
-- differs: not answered as there yet
select 'shop' as database, tablename as name, schemaname as schema, 'table' as type from pg_tables where schemaname ilike 'public' union all select 'shop' as database, viewname as name, schemaname as schema, 'view' as type from pg_views where schemaname ilike 'public' order by 2
select distinct nspname from pg_namespace where nspname ilike 'pub%'
with relation as ( select pg_rewrite.ev_class as class, pg_rewrite.oid as id from pg_rewrite ), class as ( select oid as id, relname as name, relnamespace as schema, relkind as kind from pg_class ), dependency as ( select distinct pg_depend.objid as id, pg_depend.refobjid as ref from pg_depend ), schema as ( select pg_namespace.oid as id, pg_namespace.nspname as name from pg_namespace where nspname != 'information_schema' and nspname not like 'pg\_%' ), referenced as ( select relation.id AS id, referenced_class.name , referenced_class.schema , referenced_class.kind from relation join class as referenced_class on relation.class=referenced_class.id where referenced_class.kind in ('r', 'v', 'm') ), relationships as ( select referenced.name as referenced_name, referenced.schema as referenced_schema_id, dependent_class.name as dependent_name, dependent_class.schema as dependent_schema_id, referenced.kind as kind from referenced join dependency on referenced.id=dependency.id join class as dependent_class on dependency.ref=dependent_class.id where (referenced.name != dependent_class.name or referenced.schema != dependent_class.schema) ) select referenced_schema.name as referenced_schema, relationships.referenced_name as referenced_name, dependent_schema.name as dependent_schema, relationships.dependent_name as dependent_name from relationships join schema as dependent_schema on relationships.dependent_schema_id=dependent_schema.id join schema as referenced_schema on relationships.referenced_schema_id=referenced_schema.id group by referenced_schema, referenced_name, dependent_schema, dependent_name order by referenced_schema, referenced_name, dependent_schema, dependent_name
-- differs: not answered as there yet
select column_name, data_type, character_maximum_length, numeric_precision, numeric_scale from "shop".INFORMATION_SCHEMA.columns where table_name = 'nosuch' and table_schema = 'public' order by ordinal_position
select count(*) from information_schema.schemata where schema_name = 'public'
select sch.nspname as table_schema, tbl.relname as table_name, tbl_desc.description as table_comment, col.attname as column_name, col.attnum as column_index, pg_catalog.format_type(col.atttypid, col.atttypmod) as column_type, col_desc.description as column_comment, pg_get_userbyid(tbl.relowner) <> '' as table_owner from pg_catalog.pg_namespace sch join pg_catalog.pg_class tbl on tbl.relnamespace = sch.oid join pg_catalog.pg_attribute col on col.attrelid = tbl.oid left outer join pg_catalog.pg_description tbl_desc on (tbl_desc.objoid = tbl.oid and tbl_desc.objsubid = 0) left outer join pg_catalog.pg_description col_desc on (col_desc.objoid = tbl.oid and col_desc.objsubid = col.attnum) where ( upper(sch.nspname) = upper('public') ) and not pg_is_other_temp_schema(sch.oid) and tbl.relpersistence in ('p', 'u') and tbl.relkind in ('r', 'v', 'f', 'p', 'm') and col.attnum > 0 and not col.attisdropped order by sch.nspname, tbl.relname, col.attnum
-- sqlx
SELECT oid, typname, typtype, typcategory, typrelid, typelem, typbasetype FROM pg_catalog.pg_type WHERE oid = 1009
SELECT oid FROM pg_catalog.pg_type WHERE typname ILIKE 'int8'
SELECT $1::text = 'x' AS a FROM pg_type LIMIT 0
SELECT col.idx, attnotnull FROM ( VALUES (1::int4, 'orders'::regclass::oid, 1::int2) ) AS col(idx, table_id, col_idx) LEFT JOIN pg_catalog.pg_attribute ON table_id IS NOT NULL AND attrelid = table_id AND attnum = col_idx ORDER BY col.idx
SELECT rngsubtype FROM pg_catalog.pg_range WHERE rngtypid = 3904
SELECT has_table_privilege('pg_catalog.pg_class', 'SELECT'), current_setting('is_superuser', true)
-- Prisma
SELECT namespace.nspname as namespace_name FROM pg_namespace as namespace WHERE namespace.nspname = ANY ( '{public}' ) ORDER BY namespace_name
SELECT tbl.relname AS table_name, namespace.nspname as namespace, (tbl.relhassubclass and tbl.relkind = 'p') as is_partition, (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass, tbl.relrowsecurity as has_row_level_security, reloptions, obj_description(tbl.oid, 'pg_class') as description FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace WHERE ( tbl.relkind = 'r' AND tbl.relispartition = 'f' OR tbl.relkind = 'p' ) AND namespace.nspname = ANY ( '{public}' ) ORDER BY namespace.nspname, table_name
SELECT oid.namespace, info.table_name, info.column_name, format_type(att.atttypid, att.atttypmod) as formatted_type, info.numeric_precision, info.numeric_scale, info.numeric_precision_radix, info.datetime_precision, info.data_type, info.udt_schema as type_schema_name, info.udt_name as full_data_type, pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default, info.is_nullable, info.is_identity, info.character_maximum_length, col_description(att.attrelid, ordinal_position) AS description FROM information_schema.columns info JOIN pg_attribute att ON att.attname = info.column_name JOIN ( SELECT pg_class.oid, relname, pg_namespace.nspname as namespace FROM pg_class JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace AND pg_namespace.nspname = ANY ( '{public}' ) WHERE reltype > 0 OR relkind = 'r' ) as oid on oid.oid = att.attrelid AND relname = info.table_name AND namespace = info.table_schema LEFT OUTER JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid AND attdef.adnum = att.attnum AND table_schema = namespace WHERE table_schema = ANY ( '{public}' ) ORDER BY namespace, table_name, ordinal_position
SELECT con.oid AS "con_id", att2.attname AS "child_column", cl.relname AS "parent_table", att.attname AS "parent_column", con.confdeltype, con.confupdtype, rel_ns.nspname AS "referenced_schema_name", conname AS constraint_name, child, parent, table_name, namespace, condeferrable, condeferred FROM (SELECT ns.nspname AS "namespace", unnest(con1.conkey) AS "parent", unnest(con1.confkey) AS "child", cl.relname AS table_name, ns.nspname AS schema_name, generate_subscripts(con1.conkey, 1) AS colidx, con1.oid, con1.confrelid, con1.conrelid, con1.conname, con1.confdeltype, con1.confupdtype, con1.condeferrable, con1.condeferred FROM pg_class cl join pg_constraint con1 on con1.conrelid = cl.oid join pg_namespace ns on cl.relnamespace = ns.oid WHERE ns.nspname = ANY ( '{public}' ) and con1.contype = 'f' and con1.conparentid = 0 ORDER BY colidx) con JOIN pg_attribute att on att.attrelid = con.confrelid and att.attnum = con.child JOIN pg_class cl on cl.oid = con.confrelid JOIN pg_attribute att2 on att2.attrelid = con.conrelid and att2.attnum = con.parent JOIN pg_class rel_cl on con.confrelid = rel_cl.oid JOIN pg_namespace rel_ns on rel_cl.relnamespace = rel_ns.oid ORDER BY namespace, table_name, constraint_name, con.colidx
WITH rawindex AS ( SELECT indrelid, indexrelid, indisunique, indisprimary, unnest(indkey) AS indkeyid, generate_subscripts(indkey, 1) AS indkeyidx, unnest(indclass) AS indclass, unnest(indoption) AS indoption FROM pg_index WHERE indpred IS NULL AND NOT indisexclusion ) SELECT schemainfo.nspname AS namespace, indexinfo.relname AS index_name, tableinfo.relname AS table_name, columninfo.attname AS column_name, rawindex.indisunique AS is_unique, rawindex.indisprimary AS is_primary_key, rawindex.indkeyidx AS column_index, opclass.opcname AS opclass, opclass.opcdefault AS opcdefault, indexaccess.amname AS index_algo, CASE rawindex.indoption & 1 WHEN 1 THEN 'DESC' ELSE 'ASC' END AS column_order, CASE rawindex.indoption & 2 WHEN 2 THEN true ELSE false END AS nulls_first, pc.condeferrable AS condeferrable, pc.condeferred AS condeferred FROM rawindex INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace LEFT JOIN pg_attribute AS columninfo ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam LEFT JOIN pg_opclass AS opclass ON opclass.oid = rawindex.indclass LEFT JOIN pg_constraint pc ON rawindex.indexrelid = pc.conindid AND pc.contype <> 'f' WHERE schemainfo.nspname = ANY ( '{public}' ) ORDER BY namespace, table_name, index_name, column_index
-- in 18: not-null constraints have rows
SELECT conname AS constraint_name, conrelid::regclass::text AS tn, pg_get_constraintdef(con.oid) AS constraint_definition FROM pg_constraint con WHERE contype NOT IN ('p', 'u', 'f') AND conrelid <> 0
SELECT t.typname as name, e.enumlabel as value, n.nspname as namespace, obj_description(t.oid, 'pg_type') as description FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = ANY ( '{public}' ) ORDER BY e.enumsortorder
SELECT views.viewname AS view_name, views.definition AS view_sql, views.schemaname AS namespace, obj_description(class.oid, 'pg_class') as description FROM pg_catalog.pg_views views INNER JOIN pg_catalog.pg_namespace ns ON views.schemaname = ns.nspname INNER JOIN pg_catalog.pg_class class ON class.relnamespace = ns.oid AND class.relname = views.viewname WHERE schemaname = ANY ( '{public}' )
SELECT p.proname AS name, n.nspname as namespace, CASE WHEN l.lanname = 'internal' THEN p.prosrc ELSE pg_get_functiondef(p.oid) END as definition FROM pg_proc p LEFT JOIN pg_namespace n ON p.pronamespace = n.oid LEFT JOIN pg_language l ON p.prolang = l.oid WHERE n.nspname = ANY ( '{public}' )
select sequence_name, sequence_schema as namespace, start_value, minimum_value, maximum_value, increment, cycle_option from information_schema.sequences where sequence_schema = any('{public}')
SELECT ext.extname AS extension_name, ext.extversion AS extension_version, ext.extrelocatable AS extension_relocatable, pn.nspname AS extension_schema FROM pg_extension ext INNER JOIN pg_namespace pn ON ext.extnamespace = pn.oid ORDER BY ext.extname ASC
-- in 18: another version
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = 'public'), version() IS NOT NULL, current_setting('server_version_num')::integer as numeric_version
-- SQLAlchemy 2
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 FROM pg_catalog.pg_attrdef WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, (SELECT json_build_object('always', pg_catalog.pg_attribute.attidentity = 'a', 'start', pg_catalog.pg_sequence.seqstart, 'increment', pg_catalog.pg_sequence.seqincrement, 'minvalue', pg_catalog.pg_sequence.seqmin, 'maxvalue', pg_catalog.pg_sequence.seqmax, 'cache', pg_catalog.pg_sequence.seqcache, 'cycle', pg_catalog.pg_sequence.seqcycle) AS json_build_object_1 FROM pg_catalog.pg_sequence WHERE pg_catalog.pg_attribute.attidentity != '' AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) AS identity_options, CASE WHEN (pg_catalog.pg_collation.collname = 'default') THEN NULL ELSE pg_catalog.pg_collation.collname END AS collation FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > 0 AND NOT pg_catalog.pg_attribute.attisdropped LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum LEFT OUTER JOIN pg_catalog.pg_collation ON pg_catalog.pg_collation.oid = pg_catalog.pg_attribute.attcollation JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname IN ('orders') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum
SELECT attr.conrelid::regclass, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, NULL AS extra FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, pg_catalog.pg_constraint.conindid AS conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum, generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid WHERE pg_catalog.pg_constraint.contype = 'p') AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid::regclass::text, attr.conname
SELECT pg_catalog.pg_index.indrelid::regclass, pg_catalog.pg_class.relname AS relname_index, pg_catalog.pg_index.indisunique, pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_catalog.pg_class.reloptions, pg_catalog.pg_am.amname, CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL) THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition, pg_catalog.pg_index.indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct, idx_cols.elements, idx_cols.elements_is_expr FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_catalog.pg_index.indexrelid = pg_catalog.pg_class.oid JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT idx_attr.indexrelid AS indexrelid, min(idx_attr.indrelid) AS min_1, array_agg(idx_attr.element ORDER BY idx_attr.ord) AS elements, array_agg(idx_attr.is_expr ORDER BY idx_attr.ord) AS elements_is_expr FROM (SELECT idx.indexrelid AS indexrelid, idx.indrelid AS indrelid, idx.ord AS ord, CASE WHEN (idx.attnum = 0) THEN pg_catalog.pg_get_indexdef(idx.indexrelid, idx.ord + 1, true) ELSE CAST(pg_catalog.pg_attribute.attname AS TEXT) END AS element, idx.attnum = 0 AS is_expr FROM (SELECT pg_catalog.pg_index.indexrelid AS indexrelid, pg_catalog.pg_index.indrelid AS indrelid, unnest(pg_catalog.pg_index.indkey) AS attnum, generate_subscripts(pg_catalog.pg_index.indkey, 1) AS ord FROM pg_catalog.pg_index WHERE NOT pg_catalog.pg_index.indisprimary) AS idx LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_attribute.attnum = idx.attnum AND pg_catalog.pg_attribute.attrelid = idx.indrelid) AS idx_attr GROUP BY idx_attr.indexrelid) AS idx_cols ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid AND pg_catalog.pg_constraint.contype = ANY (ARRAY['p', 'u', 'x']) WHERE NOT pg_catalog.pg_index.indisprimary AND pg_catalog.pg_index.indrelid >= 16384 ORDER BY pg_catalog.pg_index.indrelid::text, relname_index
SELECT pg_catalog.pg_type.typname AS name, pg_catalog.format_type(pg_catalog.pg_type.typbasetype, pg_catalog.pg_type.typtypmod) AS attype, NOT pg_catalog.pg_type.typnotnull AS nullable, pg_catalog.pg_type.typdefault AS "default", pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AS visible, pg_catalog.pg_namespace.nspname AS schema, domain_constraints.condefs, domain_constraints.connames, pg_catalog.pg_collation.collname FROM pg_catalog.pg_type JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_type.typnamespace LEFT OUTER JOIN pg_catalog.pg_collation ON pg_catalog.pg_type.typcollation = pg_catalog.pg_collation.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_constraint.contypid AS contypid, array_agg(pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, true)) AS condefs, array_agg(CAST(pg_catalog.pg_constraint.conname AS TEXT)) AS connames FROM pg_catalog.pg_constraint WHERE pg_catalog.pg_constraint.contypid != 0 GROUP BY pg_catalog.pg_constraint.contypid) AS domain_constraints ON pg_catalog.pg_type.oid = domain_constraints.contypid WHERE pg_catalog.pg_type.typtype = 'd' AND pg_namespace.nspname = 'public' ORDER BY pg_catalog.pg_namespace.nspname, pg_catalog.pg_type.typname
-- Django
SELECT a.attname AS column_name, NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull)) AS is_nullable, pg_get_expr(ad.adbin, ad.adrelid) AS column_default, CASE WHEN collname = 'default' THEN NULL ELSE collname END AS collation, a.attidentity != '' AS is_autofield, col_description(a.attrelid, a.attnum) AS column_comment FROM pg_attribute a LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum LEFT JOIN pg_collation co ON a.attcollation = co.oid JOIN pg_type t ON a.atttypid = t.oid JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON c.relnamespace = n.oid WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND c.relname = 'orders' AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY a.attnum
-- Rails
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid, ARRAY( SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS k ORDER BY k ) AS columns, ARRAY( SELECT a.attname FROM pg_attribute a WHERE a.attrelid = d.indexrelid ) FROM pg_class t INNER JOIN pg_index d ON t.oid = d.indrelid INNER JOIN pg_class i ON d.indexrelid = i.oid LEFT JOIN pg_namespace n ON n.oid = t.relnamespace WHERE i.relkind IN ('i', 'I') AND t.relname = 'orders' AND n.nspname = ANY (current_schemas(false)) ORDER BY i.relname
SELECT t2.oid::regclass::text AS to_table, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conrelid = c.confrelid, ( SELECT array_agg(a.attname ORDER BY idx) FROM ( SELECT idx, c.conkey[idx] AS conkey_elem FROM generate_subscripts(c.conkey, 1) AS idx ) indexed_conkeys JOIN pg_attribute a ON a.attrelid = t1.oid AND a.attnum = indexed_conkeys.conkey_elem ) AS conkey_names, ( SELECT array_agg(a.attname ORDER BY idx) FROM ( SELECT idx, c.confkey[idx] AS confkey_elem FROM generate_subscripts(c.confkey, 1) AS idx ) indexed_confkeys JOIN pg_attribute a ON a.attrelid = t2.oid AND a.attnum = indexed_confkeys.confkey_elem ) AS confkey_names FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid JOIN pg_namespace n ON c.connamespace = n.oid WHERE c.contype = 'f' AND t1.relname = 'orders' AND n.nspname = ANY (current_schemas(false)) ORDER BY c.conname
SELECT conname, pg_get_constraintdef(c.oid, true) AS constraintdef, c.convalidated AS valid FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'c' AND t.relname = 'orders' AND n.nspname = ANY (current_schemas(false))
SELECT extname, n.nspname || '.' || extname AS full FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
SELECT attr.attname, nsp.nspname || '.' || seq.relname as s FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid AND attr.attrelid = cons.conrelid AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid AND cons.contype = 'p' AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"orders"'::regclass
-- Sequelize, TypeORM, knex, drizzle, MikroORM
SELECT pk.constraint_type as "Constraint", c.column_name as "Field", c.column_default as "Default", c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'orders' AND c.table_schema = 'public' ORDER BY c.ordinal_position
-- differs: not answered as there yet
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'orders' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname
SELECT c.relname AS table_name, CASE c.relkind WHEN 'r' THEN 'table' END AS type, c.relrowsecurity AS rls_enabled, nspname as schema FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid::regnamespace = c.relnamespace::regnamespace WHERE relkind IN ('r', 'v', 'm') AND nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY relname
-- in 18: not-null constraints have rows
SELECT t.relname as table_name, con.conname AS constraint_name, con.contype, array_agg(a.attname ORDER BY array_position(con.conkey, a.attnum)) AS columns FROM pg_constraint con JOIN pg_class t ON con.conrelid = t.oid JOIN pg_attribute a ON a.attrelid = con.conrelid AND a.attnum = ANY (con.conkey) WHERE con.connamespace = 'public'::regnamespace GROUP BY t.relname, con.conname, con.contype ORDER BY 1, 2
select table_schema as schema_name, table_name, (select pg_catalog.obj_description(c.oid) from pg_catalog.pg_class c where c.oid = (select ('"' || table_schema || '"."' || table_name || '"')::regclass::oid) and c.relname = table_name) as table_comment from information_schema.tables where "table_schema" not in ('information_schema', 'pg_catalog') and table_name != 'geometry_columns' and table_type != 'VIEW' and (pg_catalog.has_schema_privilege(table_schema, 'usage')) order by table_name
select indexrelid::regclass::text, relname as constraint_name, idx.indisunique as unique, idx.indisprimary as primary, unnest(idx.indkey) as index_def_col, idx.indrelid::regclass as table_name, contype from pg_index idx join pg_class t on t.oid = idx.indrelid left join pg_constraint on conindid = idx.indexrelid and contype in ('p', 'u') where idx.indrelid = '"public"."orders"'::regclass order by relname
select kcu.table_name as table_name, rel_kcu.table_name as referenced_table_name, kcu.constraint_name, kcu.column_name, rel_kcu.column_name as referenced_column_name, rco.update_rule, rco.delete_rule from information_schema.table_constraints tco join information_schema.key_column_usage kcu on tco.constraint_schema = kcu.constraint_schema and tco.constraint_name = kcu.constraint_name join information_schema.referential_constraints rco on tco.constraint_schema = rco.constraint_schema and tco.constraint_name = rco.constraint_name join information_schema.key_column_usage rel_kcu on rco.unique_constraint_schema = rel_kcu.constraint_schema and rco.unique_constraint_name = rel_kcu.constraint_name and kcu.position_in_unique_constraint = rel_kcu.ordinal_position where tco.constraint_type = 'FOREIGN KEY' and kcu.table_schema = 'public' order by kcu.constraint_name, kcu.ordinal_position
SELECT table_schema, table_name, column_name, (('"' || table_schema || '"."' || table_name || '"')::regclass)::text FROM information_schema.columns WHERE table_schema = ANY(string_to_array('public', ',')) ORDER BY 1, 2, ordinal_position LIMIT 3
-- in 18: not-null constraints have rows
SELECT con.conname, nsp.nspname, pg_get_constraintdef(con.oid), (SELECT string_agg(att.attname::text, ',' ORDER BY u.o) FROM unnest(con.conkey) WITH ORDINALITY AS u(n, o) JOIN pg_attribute att ON att.attrelid = con.conrelid AND att.attnum = u.n) FROM pg_constraint con INNER JOIN pg_namespace nsp ON nsp.oid = con.connamespace WHERE con.conrelid IN (SELECT oid FROM pg_class WHERE relname IN ('orders', 'users')) ORDER BY 1
SELECT 1 + '2', '3' || 4, 2 * '2.5'::numeric, 1 = '1', '1' < 2
SELECT 1 = 'a'
SELECT 5 / 2, 5.0 / 2, 5 / 2.0, 1.0 / 3, 10 % 3, -5 / 2, 5.5 % 2
SELECT 1.10 + 2.205, 1.5 * 1.5, 2.0 - 1, round(2.567, 2), round(2.5), trunc(2.567, 1), ceil(1.2), floor(-1.2), abs(-3.50)
SELECT avg(x), sum(x), stddev(x) IS NULL, var_pop(x) FROM (VALUES (1.5), (2.5)) t(x)
SELECT avg(x)::float8, count(*) filter (where x > 1), string_agg(x::text, '-' order by x) FROM (VALUES (1), (2)) t(x)
SELECT power(2, 3), sqrt(4), exp(0), ln(1), log(100), mod(7, 3), sign(-2), cbt(8)
SELECT cbrt(27), degrees(pi()), gcd(12, 18), lcm(4, 6), width_bucket(5, 0, 10, 5), div(7, 2)
SELECT json_build_object('a', null, 'b', true, 'c', array[1,2]), jsonb_build_object('z', 1, 'a', 'x'), row_to_json(row(1, 'a'))
SELECT to_json(array['a','b']), array_to_json(array[1,2]), to_jsonb('a'::text), json_build_array(1, 'x', null, true)
SELECT '{"a": {"b": [1, 2]}}'::jsonb #> '{a,b}', '{"a": {"b": [1, 2]}}'::jsonb #>> '{a,b,0}', '[1,2,3]'::jsonb -> 1, '{"a":1}'::jsonb ? 'a'
SELECT '{"b": 1, "a": 2}'::jsonb, '{"b": 1,  "a": 2}'::json, '{"a":1}'::jsonb || '{"b":2}'::jsonb, '{"a":1,"b":2}'::jsonb - 'a', '{"a":1}'::jsonb @> '{"a":1}'
SELECT jsonb_typeof('1'), jsonb_array_length('[1,2]'), jsonb_pretty('{"a":1}'), json_typeof('null')
SELECT * FROM jsonb_each('{"a":1,"b":"x"}') ORDER BY key
SELECT * FROM jsonb_to_recordset('[{"a":1,"b":"x"},{"a":2}]') AS t(a int, b text)
SELECT * FROM json_to_record('{"a":1}') AS x(a int)
SELECT jsonb_array_elements('[1,{"a":2}]'), jsonb_array_elements_text('["a","b"]')
SELECT json_agg(t) FROM (VALUES (1, 'a')) t(x, y)
SELECT jsonb_agg(row_to_json(t)) FROM (SELECT relname FROM pg_class WHERE relname = 'orders') t
SELECT t FROM (SELECT 1 AS a, 'x' AS b) t
SELECT (t).a, (t).* FROM (SELECT 1 AS a, 'x' AS b) t
SELECT c.relname, (SELECT n.nspname FROM pg_namespace n WHERE n.oid = c.relnamespace) FROM pg_class c WHERE c.relname = 'orders'
SELECT ARRAY[1,2] || 3, ARRAY[1,2] || ARRAY[3], 0 || ARRAY[1], array_cat(ARRAY[1], ARRAY[2]), ARRAY[1,2] @> ARRAY[1], ARRAY[1] <@ ARRAY[1,2], ARRAY[1,2] && ARRAY[2,3]
SELECT array_agg(x ORDER BY x DESC), array_length(array_agg(x), 1) FROM generate_series(1, 3) x
SELECT unnest(ARRAY[1,2]), unnest(ARRAY['a','b','c'])
SELECT ARRAY(SELECT generate_series(1, 3)), ARRAY(SELECT relname FROM pg_class WHERE relname IN ('orders','users') ORDER BY 1)
SELECT array_replace(ARRAY[1,2,1], 1, 9), array_fill(0, ARRAY[2]), array_dims(ARRAY[1,2]), trim_array(ARRAY[1,2,3], 1), array_positions(ARRAY[1,2,1], 1)
SELECT ('{1,2,3}'::int[])[2], ('{a,b}'::text[])[1:1], '{{1,2},{3,4}}'::int[], '{"a b","c\"d",NULL}'::text[]
SELECT NULL || ARRAY[1], array_append(NULL, 1), array_to_string(NULL::text[] || ARRAY['a'], ','), coalesce(NULL::text[], '{}')
SELECT '1 day 2 hours'::interval, interval '90 minutes', interval '1 year 3 mons', '2 weeks'::interval, make_interval(days => 3), justify_hours(interval '30 hours')
SELECT extract(epoch from interval '1 day'), extract(dow from date '2024-01-15'), extract(isodow from date '2024-01-14'), extract(doy from date '2024-02-01'), extract(week from date '2024-01-15'), extract(quarter from date '2024-05-01')
SELECT extract(second from timestamp '2024-01-01 10:20:30.5'), extract(epoch from timestamp '2024-01-01'), date_part('year', timestamp '2024-01-01'), date_part('epoch', interval '1 hour')
SELECT timestamp '2024-01-01 10:00' + interval '1 hour', date '2024-01-31' + interval '1 month', timestamp '2024-01-02' - timestamp '2024-01-01 12:00', age(timestamp '2024-03-01', timestamp '2024-01-15')
SELECT to_char(timestamp '2024-01-15 10:20:30', 'YYYY-MM-DD HH24:MI:SS'), to_char(1234.5, 'FM9,999.00'), to_char(12, '000'), to_date('2024-01-15', 'YYYY-MM-DD'), to_timestamp('2024-01-15 10:20', 'YYYY-MM-DD HH24:MI')::timestamp, to_number('12.5', '99.9')
SELECT date_trunc('week', timestamp '2024-01-17 10:00'), date_bin('15 minutes', timestamp '2024-01-01 10:07', timestamp '2024-01-01'), make_date(2024, 1, 2), make_timestamp(2024, 1, 2, 3, 4, 5), date '2024-01-01' - 5
SELECT timestamptz '2024-01-01 00:00+02', timestamp '2024-01-01' at time zone 'UTC', '2024-01-01'::timestamptz, timezone('UTC', timestamp '2024-01-01'), time '10:20', '10:20+02'::timetz
SELECT 'infinity'::timestamp, '-infinity'::date, 'epoch'::timestamp, 'NaN'::float8, 'Infinity'::float8, 'now'::timestamp IS NOT NULL, 'today'::date IS NOT NULL
SELECT concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b'), initcap('hello world'), repeat('ab', 2), reverse('abc'), lpad('a', 3, 'x'), rpad('a', 3), strpos('abc', 'c'), position('b' in 'abc'), split_part('a-b-c', '-', 2), translate('abc', 'ab', 'xy')
SELECT trim(both 'x' from 'xax'), trim(leading from ' a'), ltrim('xxa', 'x'), btrim(' a '), overlay('abcd' placing 'X' from 2), substring('foobar' from 'o(.)b'), substring('foobar' from 3), substring('Thomas' similar '%#"o_a#"_' escape '#')
SELECT regexp_match('foobar', 'o(b)(a)'), regexp_matches('a1b2', '\d', 'g'), regexp_replace('aXbX', 'x', '-', 'gi'), regexp_split_to_array('a b  c', '\s+'), regexp_count('aaa', 'a'), regexp_like('abc', 'B', 'i'), regexp_substr('abc123', '\d+'), regexp_instr('abc', 'c')
SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A_C', 'abc' NOT LIKE '%z', 'a_c' LIKE 'a\_c', 'abc' SIMILAR TO '(a|b)%', 'abc' ~ '^a', 'abc' !~* 'B', 'abc' ~~ 'a%', 'abc' ^@ 'ab'
SELECT encode('\x6162'::bytea, 'base64'), decode('YWI=', 'base64'), '\x4142'::bytea, length('\x4142'::bytea), convert_from('\x61'::bytea, 'UTF8'), md5('a'), sha256('a'::bytea), get_byte('\x41'::bytea, 0)
SELECT E'a\tb', 'it''s', $$dollar$$, $t$x$t$, U&'\0041', B'101', X'1F'
SELECT 1::bit(3), B'101'::int, '101'::bit(3), B'1' || B'0'
SELECT chr(65), ascii('A'), to_hex(255), quote_literal('a''b'), quote_ident('A b'), quote_nullable(NULL), format('%s-%I-%L-%%', 'a', 'B', 'c'), format('%1$s %1$s %2$s', 'a', 'b'), format('%5s|%-5s|', 'a', 'b')
SELECT true AND NULL, NOT NULL::bool, 1 IS DISTINCT FROM NULL, 1 IS NOT DISTINCT FROM 1, NULL IS NULL, (1 > 0) IS TRUE, (NULL::bool) IS UNKNOWN, 1 BETWEEN SYMMETRIC 2 AND 0, bool 'yes', 'off'::bool
SELECT CASE WHEN 1 > 2 THEN 1 END, CASE 1 WHEN 1 THEN 'a' ELSE 'b' END, NULLIF(1, 2), COALESCE(NULL, 'a'), GREATEST(1, 2.5), LEAST('b', 'a')
SELECT 1::int2 + 1::int8, pg_typeof(1::int2 + 1::int8), pg_typeof(1 + 1.5), pg_typeof('a' || 'b'), pg_typeof(now()), pg_typeof(ARRAY[1]), pg_typeof(NULL), pg_typeof(1.5), pg_typeof(count(*)), pg_typeof(sum(1)), pg_typeof(avg(1))
SELECT pg_typeof('a'::name), pg_typeof('a'::"char"), pg_typeof('a'::varchar), pg_typeof('a'::char(3)), pg_typeof('{}'::json), pg_typeof('{}'::jsonb), pg_typeof(gen_random_uuid()), pg_typeof(current_user), pg_typeof(current_database()), pg_typeof(version()), pg_typeof('1'::numeric(5,2))
SELECT pg_typeof(relname), pg_typeof(relkind), pg_typeof(relnatts), pg_typeof(reltuples), pg_typeof(relacl), pg_typeof(reloptions), pg_typeof(relfrozenxid), pg_typeof(oid::regclass), pg_typeof(relnamespace::regnamespace) FROM pg_class LIMIT 1
-- differs: not answered as there yet
SELECT pg_typeof(table_name), pg_typeof(ordinal_position), pg_typeof(is_nullable), pg_typeof(data_type) FROM information_schema.columns LIMIT 1
SELECT '12'::numeric(5,2), 1.005::numeric(10,2), 123.456::numeric(5,1), 1e10::numeric, '0.1'::float8 + 0.2::float8, 1e15::float8, 1e16::float8, 1.5e-7::float8, 1/3::float8, 100000000000000000000::float8
SELECT 12345678901234567890, 0.1 + 0.2, 1e3, 1.0, .5, 5., 1_000
SELECT 123456.789::money, '12.34'::money
SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4 ORDER BY a DESC
SELECT * FROM (SELECT 1 AS x) a JOIN (SELECT 1 AS x) b USING (x)
SELECT * FROM (VALUES (1), (2)) a(x) NATURAL JOIN (VALUES (2), (3)) b(x)
SELECT a.*, b.y FROM (VALUES (1), (2)) a(x) LEFT JOIN (VALUES (1, 'q')) b(x, y) ON a.x = b.x ORDER BY 1
SELECT x, row_number() OVER (ORDER BY x), sum(x) OVER (), ntile(2) OVER (ORDER BY x), first_value(x) OVER w, dense_rank() OVER w, percent_rank() OVER w FROM (VALUES (1), (2)) t(x) WINDOW w AS (ORDER BY x) ORDER BY x
SELECT x, y, count(*) FROM (VALUES (1, 2), (1, 3)) t(x, y) GROUP BY ROLLUP (x, y) ORDER BY 1, 2
SELECT x, grouping(x), count(*) FROM (VALUES (1), (1)) t(x) GROUP BY GROUPING SETS ((x), ()) ORDER BY 1
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x) FROM generate_series(1, 4) x
SELECT corr(x, y), regr_slope(x, y), bit_and(x), bit_or(x), every(x > 0), bool_or(x > 2) FROM (VALUES (1, 2), (2, 4)) t(x, y)
SELECT DISTINCT ON (x) x, y FROM (VALUES (1, 2), (1, 3)) t(x, y) ORDER BY x, y DESC
SELECT x FROM generate_series(1, 10) x WHERE x > 3 ORDER BY x LIMIT 2 OFFSET 1
SELECT generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day')
SELECT d::date FROM generate_series(date '2024-01-01', date '2024-01-03', interval '1 day') d
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS t(a, b)
SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS t(a, b)
SELECT i, s FROM generate_series(1, 2) i CROSS JOIN LATERAL (SELECT i * 10 AS s) q ORDER BY i
WITH a AS (SELECT 1 AS x), b AS MATERIALIZED (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
WITH RECURSIVE t(n, p) AS (VALUES (1, '1') UNION ALL SELECT n + 1, p || '-' || (n + 1) FROM t WHERE n < 3) SELECT * FROM t
SELECT (SELECT 1), EXISTS (SELECT 1), 1 IN (1, 2), 1 NOT IN (SELECT 2), 2 > ALL (SELECT 1), 1 = SOME (SELECT 1)
SELECT relname AS r FROM pg_class WHERE relname = 'orders' GROUP BY r ORDER BY r
SELECT relkind, count(*) c FROM pg_class WHERE relnamespace = 'public'::regnamespace GROUP BY 1 HAVING count(*) > 0 ORDER BY c
SELECT n.nspname, count(*) FROM pg_class c, pg_namespace n WHERE n.oid = c.relnamespace AND nspname = 'public' AND relkind = 'r' GROUP BY n.oid
SELECT ctid IS NOT NULL, oid > 0 FROM pg_class LIMIT 1
SELECT pg_size_pretty(0::bigint), pg_size_pretty(10240::bigint), pg_size_pretty(123456789::bigint), pg_size_bytes('1 kB'), pg_column_size(1)
SELECT current_setting('work_mem'), current_setting('shared_buffers'), current_setting('DateStyle'), current_setting('nosuch', true), current_setting('TimeZone') <> ''
SELECT inet '192.168.0.1', '10.0.0.0/8'::cidr, host('10.0.0.1'::inet), '08:00:2b:01:02:03'::macaddr, inet_client_addr() IS NULL
SELECT point(1, 2), '(1,2)'::point, box '((0,0),(1,1))'
SELECT int4range(1, 5), '[1,3)'::int4range, int4range(1, 5) @> 3, lower(int4range(1, 5)), upper_inf(int4range(1, NULL))
-- differs: types and functions that no catalog needs
SELECT to_tsvector('english', 'the cats'), 'a & b'::tsquery, plainto_tsquery('cat')
SELECT '<a>x</a>'::xml, xmlelement(name a, 'x')
SELECT 'a'::uuid
SELECT '123e4567-e89b-12d3-a456-426614174000'::uuid, gen_random_uuid() <> gen_random_uuid()
SELECT cast('x' AS int)
SELECT cast('99999' AS smallint)
SELECT 2147483647 + 1
SELECT sqrt(-1)
SELECT ln(0)
SELECT 1 % 0
SELECT 'a'::int[]
SELECT '{1,a}'::int[]
SELECT ARRAY[1,2]::text || 'x'
SELECT foo
SELECT foo.bar
SELECT foo() FROM pg_class
SELECT * FROM nosuch.tab
SELECT * FROM pg_class a JOIN pg_class b ON a.oid = b.oid WHERE oid = 1
SELECT * FROM pg_class, pg_class
SELECT relname FROM pg_class WHERE count(*) > 1
SELECT sum(count(*)) FROM pg_class
SELECT relname FROM pg_class ORDER BY 5
SELECT relname FROM pg_class GROUP BY 3
SELECT relname FROM pg_class LIMIT -1
SELECT relname FROM pg_class OFFSET -1
SELECT 1 LIMIT 'x'
SELECT (SELECT relname FROM pg_class)
SELECT 1 IN (SELECT 1, 2)
SELECT 1 UNION SELECT 1, 2
SELECT 1 UNION SELECT 'x'::text
SELECT upper(1)
SELECT upper('a', 'b')
SELECT length(1)
SELECT substring(1, 2)
SELECT abs('x')
SELECT abs('x'::text)
SELECT 'a' + 'b'
SELECT 'a'::text + 1
SELECT NOT 1
SELECT 1 AND true
SELECT 1 WHERE 1
SELECT 1 WHERE 'x'
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'a' END
SELECT COALESCE(1, 'x')
SELECT ARRAY[1, 'x']
SELECT ARRAY[1, 'x'::text]
SELECT GREATEST(1, 'x')
SELECT NULLIF(1, 'x')
SELECT 1 IN (1, 'x')
SELECT relname = 1 FROM pg_class
SELECT oid = 'x' FROM pg_class
SELECT oid || 'x' FROM pg_class WHERE relname = 'nosuch'
SELECT relname::int FROM pg_class
SELECT date '2024-02-30'
SELECT timestamp 'nonsense'
SELECT interval 'x'
SELECT extract(nosuch from now())
SELECT date_trunc('nosuch', now())
SELECT date_part('nosuch', now())
SELECT now() + 1
SELECT date '2024-01-01' + date '2024-01-01'
SELECT 'x'::regtype
SELECT ''::regclass
SELECT to_regclass(''), to_regclass('a.b')
SELECT has_table_privilege('nosuch', 'orders', 'SELECT')
SELECT has_database_privilege('nosuch', 'CONNECT')
SELECT pg_get_indexdef(0), pg_get_constraintdef(0), pg_get_viewdef(0), format_type(0, 0), col_description(0, 0), obj_description(0, 'pg_class')
SELECT pg_get_viewdef('orders'::regclass)
SELECT current_setting('a.b')
SELECT set_config('a.b', 'x', false), current_setting('a.b')
SELECT pg_terminate_backend(0)
SELECT pg_read_file('/etc/passwd')
-- differs: there are no such objects
SELECT lo_get(1)
SELECT dblink('x')
SELECT currval('x')
SELECT nextval('nosuch')
SELECT lastval()
SELECT pg_advisory_xact_lock(1)
-- differs: not answered as there yet
SELECT pg_stat_get_activity(0) IS NULL LIMIT 0
SELECT * FROM pg_show_all_settings() WHERE name = 'nosuch'
SELECT * FROM pg_timezone_abbrevs WHERE abbrev = 'UTC'
SELECT * FROM pg_stat_activity WHERE pid = 0
SELECT * FROM pg_locks WHERE pid = 0
SELECT * FROM pg_prepared_statements
SELECT * FROM pg_available_extension_versions WHERE name = 'nosuch'
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_shadow
SELECT * FROM pg_authid
SELECT * FROM pg_group WHERE groname = 'nosuch'
-- in 18: other columns, settings or rows
SELECT * FROM pg_stats WHERE tablename = 'orders'
SELECT * FROM pg_statistic
SELECT * FROM pg_largeobject
SELECT * FROM pg_user_mapping
-- differs: what holds secrets there has no rows here
SELECT * FROM pg_subscription
SELECT * FROM pg_file_settings
SELECT relname, pg_stat_get_tuples_inserted(oid) FROM pg_class WHERE relname = 'orders'
SELECT * FROM information_schema.applicable_roles WHERE role_name = 'nosuch'
SELECT * FROM information_schema.administrable_role_authorizations WHERE role_name = 'nosuch'
SELECT privilege_type FROM information_schema.table_privileges WHERE table_name = 'orders' AND privilege_type = 'SELECT' AND grantee = current_user
SELECT schema_name, schema_owner IS NOT NULL FROM information_schema.schemata ORDER BY 1
-- differs: not answered as there yet
SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'orders' ORDER BY 1
SELECT check_clause FROM information_schema.check_constraints WHERE constraint_schema = 'public' ORDER BY 1
SELECT parameter_name FROM information_schema.parameters WHERE specific_schema = 'public'
SELECT trigger_name FROM information_schema.triggers
-- in 18: other columns, settings or rows
SELECT * FROM information_schema.element_types WHERE object_schema = 'public'
SELECT * FROM information_schema.user_defined_types WHERE user_defined_type_schema = 'public'
SELECT * FROM information_schema.usage_privileges WHERE object_schema = 'public'
SELECT sizing_id FROM information_schema.sql_sizing WHERE sizing_id = 34
SELECT * FROM information_schema.information_schema_catalog_name
-- differs: nothing can be written
INSERT INTO orders DEFAULT VALUES
-- differs: nothing can be written
UPDATE orders SET price = 1
-- differs: nothing can be written
DELETE FROM orders
-- differs: nothing can be written
CREATE TABLE x (a int)
-- differs: nothing can be written
DROP TABLE orders
-- differs: nothing can be written
ALTER TABLE orders ADD COLUMN x int
-- differs: nothing can be written
TRUNCATE orders
-- differs: nothing can be written
CREATE TEMP TABLE x (a int)
-- differs: not answered as there yet
SELECT 1 INTO x
-- differs: nothing can be written
CREATE VIEW v AS SELECT 1
-- differs: nothing can be written
GRANT SELECT ON orders TO public
-- differs: nothing can be written
COMMENT ON TABLE orders IS 'x'
VACUUM
ANALYZE
ANALYZE orders
-- in 18: who has all rights may maintain
REINDEX TABLE orders
CLUSTER
-- differs: nothing can be written
DO $$ BEGIN END $$
CALL nosuch()
COPY (SELECT 1) TO PROGRAM 'x'
-- differs: nothing can be written
REFRESH MATERIALIZED VIEW nosuch
NOTIFY x
LOAD 'x'
-- differs: nothing can be written
SECURITY LABEL ON TABLE orders IS 'x'
-- differs: nothing can be written
IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z
-- PyGreSQL
SELECT pg_catalog.quote_ident(s.nspname) OPERATOR(pg_catalog.||) '.' OPERATOR(pg_catalog.||) pg_catalog.quote_ident(r.relname) FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) r.relnamespace WHERE r.relkind IN ('r') AND s.nspname NOT SIMILAR TO 'pg/_%|information/_schema' ESCAPE '/' ORDER BY s.nspname, r.relname
SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) '"orders"'::pg_catalog.regclass AND (a.attnum OPERATOR(pg_catalog.>) 0 OR a.attname OPERATOR(pg_catalog.=) 'oid') AND NOT a.attisdropped ORDER BY a.attnum
-- functions and operators without tables
SELECT '{"a": [1,2]}'::json #>> '{a,1}', '{"a":1}'::jsonb #> '{a}', '{"a":1}'::jsonb @> '{"a":1}', '{"a":1}'::jsonb ->> 'a'
SELECT 'character varying(10)'::regtype, 'numeric(10,2)'::regtype, timestamp '2024-01-01 10:00' AT TIME ZONE 'Europe/Berlin'
SELECT sha256('abc'::bytea), to_hex(255), bit_length('a'), width_bucket(5, 0, 10, 5), width_bucket(11, 0, 10, 5), factorial(5), atan2(1, 1), isfinite(date '2024-01-01')
SELECT 0.1::float4, 3.14159274::real, 1::float4, 'on'::boolean, ' OFF '::bool, pg_size_bytes('1 kB'), pg_size_bytes('2.5 MB')
SELECT trim(leading from '  a'), trim(trailing 'x' from 'ax'), trim(both 'x' from 'xax'), ltrim('xxa', 'x'), to_date('2024-05-06', 'YYYY-MM-DD')
SELECT string_to_array('a,b,,c', ','), string_to_array('a,b,,c', ',', ''), string_to_array('abc', NULL), string_to_array('', ',')
SELECT 'a_b' SIMILAR TO 'a\_b', 'axb' SIMILAR TO 'a\_b', 'axb' SIMILAR TO 'a_b', 'abc' SIMILAR TO '%(b|d)%', 'a%' SIMILAR TO 'a#%' ESCAPE '#'
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1),(2),(4)) AS t(x)
SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast WHERE castsource = 'int4'::regtype AND casttarget IN (20, 21, 701) ORDER BY 2
SELECT cfgname, obj_description(oid, 'pg_ts_config') FROM pg_ts_config WHERE cfgname LIKE 'en%' ORDER BY 1
SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname IN ('pg_catalog', 'public') ORDER BY 1
SELECT lanname, obj_description(oid, 'pg_language') FROM pg_language ORDER BY 1
SELECT typname, obj_description(oid, 'pg_type') FROM pg_type WHERE typname IN ('int4', 'text') ORDER BY 1
SELECT regexp_replace('aBab', 'b', 'x', 'gi'), regexp_replace('abab', 'b', 'x'), regexp_replace('abab', 'b', 'x', 'g')
SELECT count(*), 1, 'x'::text, max(oid) > 0, CASE WHEN true THEN 1 END, relname::text, now() IS NULL FROM pg_class WHERE relname = 'orders' GROUP BY relname
-- rows of PostgreSQL's own, and names of functions, operators and types
SELECT p.oid::regprocedure::text, l.lanname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname = 'sql' ORDER BY p.oid LIMIT 12
SELECT c.castfunc::regproc, c.castcontext FROM pg_cast c WHERE c.casttarget = 'bool'::regtype ORDER BY c.castsource
SELECT oc.opcname, oc.opcdefault, f.opfname FROM pg_opclass oc JOIN pg_opfamily f ON f.oid = oc.opcfamily WHERE oc.opcintype = 'int8'::regtype ORDER BY oc.opcmethod, 1
SELECT feature_id, sub_feature_id, feature_name, is_supported FROM information_schema.sql_features WHERE feature_id = 'F031' ORDER BY 2
SELECT domain_name, constraint_name FROM information_schema.domain_constraints ORDER BY 1
SELECT table_name, constraint_name, ordinal_position FROM information_schema.key_column_usage WHERE table_name = 'pg_database' ORDER BY 2, 3
SELECT name, abbrev FROM pg_timezone_names WHERE name LIKE 'Etc/UTC%' OR name = 'Africa/Cairo' ORDER BY 1
SELECT abbrev, is_dst FROM pg_timezone_abbrevs WHERE abbrev IN ('GMT','CEST','JST') ORDER BY 1
SELECT 'upper(text)'::regprocedure, 'upper(anyrange)'::regprocedure::oid
SELECT 'now()'::regprocedure, 'current_database()'::regprocedure, 'array_in(cstring, oid, integer)'::regprocedure
SELECT 'nothing(integer, text)'::regprocedure
SELECT '*(int4,int4)'::regoperator, '-(NONE,int4)'::regoperator
SELECT '~~*(text,text)'::regoperator::oid, '<<(inet,inet)'::regoperator::oid
SELECT '***'::regoper
SELECT '***(int4,int4)'::regoperator
SELECT to_regoper('='), to_regoperator('=(int4,int4)'), to_regproc('sqrt')
SELECT 'spanish'::regconfig, 'spanish_stem'::regdictionary, '"POSIX"'::regcollation
SELECT 'posix'::regcollation
SELECT typname, typtype, typelem::regtype, typarray::regtype FROM pg_type WHERE typname IN ('events','_events') ORDER BY 1
SELECT pg_typeof(typinput), pg_typeof(typname), pg_typeof(typtype), pg_typeof(typlen) FROM pg_type WHERE oid = 16
SELECT * FROM pg_shadow
SELECT usename, passwd FROM pg_shadow
SELECT * FROM pg_statistic LIMIT 1
SELECT pg_has_role(current_user, 'USAGE'), pg_has_role('pg_monitor', 'USAGE')
SELECT pg_has_role('nobody_here', 'USAGE')
SELECT pg_type_is_visible('information_schema.yes_or_no'::regtype), pg_type_is_visible('int4'::regtype), pg_table_is_visible('users'::regclass)
SELECT pg_function_is_visible(oid) FROM pg_proc WHERE proname = '_pg_expandarray'
SELECT pg_encoding_to_char(n) FROM generate_series(0, 12) AS n
SELECT pg_char_to_encoding('SQL_ASCII'), pg_char_to_encoding('win1252'), pg_char_to_encoding('nope')
SELECT '{{{{{{{{{{1}}}}}}}}}}'::int[]
SELECT a, count(*) FILTER (WHERE b > 1) FROM (VALUES ('x', 1), ('x', 2), ('y', 3)) t(a, b) GROUP BY a ORDER BY a
SELECT a FROM (VALUES (1), (1), (2)) t(a) GROUP BY a HAVING count(*) > 1
SELECT b FROM (VALUES (1, 2)) t(a, b) GROUP BY a
SELECT a, b FROM (VALUES (1, 2), (1, 3)) t(a, b) ORDER BY a, b DESC NULLS LAST
SELECT x FROM (VALUES (3), (NULL), (1)) t(x) ORDER BY x NULLS FIRST
SELECT x FROM (VALUES (3), (NULL), (1)) t(x) ORDER BY x DESC
SELECT x FROM (VALUES (3)) t(x) ORDER BY 2
SELECT DISTINCT x FROM (VALUES (1), (2)) t(x) ORDER BY x + 1
SELECT max(x) - min(x) AS spread, avg(x)::int FROM generate_series(1, 9) x
SELECT sum(x) / count(*) FROM generate_series(1, 4) x
SELECT sum(x) FROM generate_series(1::bigint, 3) x
SELECT avg(x), sum(x) FROM (VALUES (1.5::float8), (2)) t(x)
SELECT max(d), min(d) - date '2024-01-01' FROM (VALUES (date '2024-02-01'), (date '2024-03-01')) t(d)
SELECT string_agg(DISTINCT s, '-' ORDER BY s) FROM (VALUES ('b'), ('a'), ('b')) t(s)
SELECT array_agg(s ORDER BY n DESC) FROM (VALUES ('a', 1), ('b', 2)) t(s, n)
SELECT json_object_agg(k, v) FROM (VALUES ('a', 1), ('b', 2)) t(k, v)
SELECT jsonb_agg(t) FROM (SELECT 1 AS a, 'x' AS b) t
SELECT sum(x) OVER (PARTITION BY x % 2 ORDER BY x) FROM generate_series(1, 5) x ORDER BY x
SELECT x, count(*) OVER () FROM generate_series(1, 3) x
SELECT a.x, count(b.y) FROM generate_series(1, 3) a(x) LEFT JOIN (VALUES (1), (1), (3)) b(y) ON a.x = b.y GROUP BY a.x ORDER BY 1
SELECT * FROM (VALUES (1, 'a')) t(id, n) FULL JOIN (VALUES (2, 'b')) u(id2, m) ON t.id = u.id2 ORDER BY 1
SELECT * FROM (VALUES (1, 'a')) t(id, n) JOIN (VALUES (1, 'b')) u(id, m) USING (id)
SELECT id FROM (VALUES (1)) t(id), (VALUES (1)) u(id)
SELECT t.id, u.id FROM (VALUES (1)) t(id), (VALUES (2)) u(id)
SELECT * FROM generate_series(1, 2) x, generate_series(1, x) y
SELECT x FROM generate_series(1, 5) x WHERE EXISTS (SELECT 1 FROM generate_series(3, 4) y WHERE y = x)
SELECT x, (SELECT count(*) FROM generate_series(1, x) y) FROM generate_series(1, 3) x
SELECT x FROM generate_series(1, 5) x WHERE x NOT IN (SELECT 2 UNION SELECT 3)
SELECT x FROM generate_series(1, 3) x WHERE x > (SELECT avg(y) FROM generate_series(1, 3) y)
SELECT (SELECT x FROM generate_series(1, 2) x)
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 50) SELECT a FROM f
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT (n + 1) % 5 FROM t) SELECT count(*) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1.5 FROM t WHERE n < 5) SELECT * FROM t
SELECT 1 AS a UNION SELECT 2 ORDER BY b
(SELECT 1) UNION ALL (SELECT 2 LIMIT 1)
SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 1
SELECT '2024-01-01' UNION SELECT date '2024-01-02' ORDER BY 1
SELECT NULL UNION SELECT 1
SELECT x FROM generate_series(1, 3) x LIMIT 0
SELECT x FROM generate_series(1, 3) x OFFSET -1
SELECT x FROM generate_series(1, 3) x LIMIT 'a'
SELECT x FROM generate_series(1, 3) x LIMIT '2'
SELECT count(*) + 1, count(*) || 'x' FROM generate_series(1, 3)
SELECT x + 1 FROM generate_series(1, 3) x GROUP BY x + 1 ORDER BY x + 1
SELECT x FROM generate_series(1, 3) x GROUP BY x + 1
SELECT sum(sum(x)) FROM generate_series(1, 3) x
SELECT sum(sum(x)) OVER () FROM generate_series(1, 3) x
SELECT x FROM generate_series(1, 3) x WHERE row_number() OVER () = 1
SELECT sum(x) FROM generate_series(1, 3) x WHERE sum(x) > 1
SELECT row_number()
SELECT lower(count(*)) FROM generate_series(1, 3)
SELECT upper(s) FROM (VALUES ('a')) t(s) GROUP BY s
SELECT EXTRACT(year FROM d) AS y, count(*) FROM (VALUES (date '2023-05-01'), (date '2024-05-01')) t(d) GROUP BY y ORDER BY y
SELECT CASE WHEN x > 2 THEN 'big' ELSE 'small' END AS size, count(*) FROM generate_series(1, 5) x GROUP BY size ORDER BY size
SELECT to_char(d, 'YYYY-MM-DD') FROM generate_series(date '2024-02-27', date '2024-03-01', interval '1 day') AS g(d)
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (2)) t(x)
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 3) x
SELECT bool_and(b) FROM (VALUES (true), (NULL)) t(b)
SELECT sum(x) FROM generate_series(1, 0) x
SELECT count(*), max(x), array_agg(x), string_agg('a', ',') FROM generate_series(1, 0) x
SELECT variance(x), stddev_samp(x) FROM generate_series(1, 1) x
SELECT row_to_json(t) FROM (VALUES (1, 'a')) t(id, name)
SELECT t.*, t.a + 1 FROM (VALUES (1, 2)) t(a, b)
SELECT u.* FROM (VALUES (1, 2)) t(a, b)
SELECT t.c FROM (VALUES (1, 2)) t(a, b)
SELECT x.y FROM generate_series(1, 2) x
SELECT (1, 2) IN ((1, 2), (3, 4))
SELECT * FROM (VALUES (1), (2, 3)) t
SELECT * FROM (VALUES (1), ('a')) t
SELECT * FROM generate_series(1, 2) AS t(a, b)
SELECT x, rank() OVER (ORDER BY x), dense_rank() OVER (ORDER BY x), percent_rank() OVER (ORDER BY x), cume_dist() OVER (ORDER BY x), last_value(x) OVER (ORDER BY x), first_value(x) OVER (ORDER BY x DESC) FROM (VALUES (1), (2), (2), (5), (5), (7)) t(x) ORDER BY x
SELECT x, rank() OVER (PARTITION BY x % 2 ORDER BY x DESC), dense_rank() OVER (PARTITION BY x % 2 ORDER BY x / 2) FROM generate_series(1, 7) x ORDER BY x
SELECT rank() OVER (), dense_rank() OVER (), cume_dist() OVER () FROM generate_series(1, 3) x
SELECT x, sum(x) OVER (ORDER BY x RANGE 1 PRECEDING), count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING), max(x) OVER (ORDER BY x DESC RANGE BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING), array_agg(x) OVER (ORDER BY x DESC RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM (VALUES (1), (1), (2), (5), (6), (NULL), (NULL), (2147483647)) t(x) ORDER BY x
SELECT x, count(*) OVER (ORDER BY x NULLS FIRST RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING), count(x) OVER (ORDER BY x DESC NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY x RANGE BETWEEN CURRENT ROW AND 0 FOLLOWING), sum(x) OVER (ORDER BY x RANGE BETWEEN 3 FOLLOWING AND 1 FOLLOWING) FROM (VALUES (1.5), (2), (2.5), (4), (NULL), (NULL)) t(x) ORDER BY x
SELECT d, count(*) OVER (ORDER BY d RANGE INTERVAL '1 day' PRECEDING), array_agg(d) OVER (ORDER BY d RANGE BETWEEN '1 month' PRECEDING AND '1 day'::interval FOLLOWING), count(*) OVER (PARTITION BY extract(month FROM d) ORDER BY d DESC RANGE BETWEEN '2 days' PRECEDING AND CURRENT ROW) FROM (VALUES (date '2024-01-30'), ('2024-01-31'), ('2024-02-29'), ('2024-03-01'), (NULL)) t(d) ORDER BY d
SELECT d, sum(n) OVER w FROM (VALUES (timestamp '2024-01-01 10:00', 1), ('2024-01-01 10:30', 2), ('2024-01-01 12:00', 4)) t(d, n) WINDOW w AS (ORDER BY d RANGE BETWEEN '1 hour' PRECEDING AND '90 min' FOLLOWING) ORDER BY d
SELECT x, avg(x) OVER (ORDER BY x RANGE BETWEEN 0.5 PRECEDING AND 0.5 FOLLOWING), count(*) OVER (ORDER BY make_interval(hours => x::int) RANGE '1 hour' PRECEDING) FROM (VALUES (1::float8), (1.5), (2.25), (4)) t(x) ORDER BY x
SELECT relkind, count(*), sum(count(*)) OVER (ORDER BY min(oid)::int8 RANGE 100 PRECEDING) > 0 FROM pg_class WHERE oid = 1259 GROUP BY relkind
SELECT sum(x) OVER (ORDER BY x RANGE -1 PRECEDING) FROM generate_series(1, 3) x
SELECT sum(x) OVER (ORDER BY x RANGE NULL::int PRECEDING) FROM generate_series(1, 3) x
SELECT sum(x) OVER (ORDER BY x RANGE x PRECEDING) FROM generate_series(1, 3) x
SELECT sum(x) OVER (RANGE 1 PRECEDING) FROM generate_series(1, 3) x
SELECT sum(x) OVER (ORDER BY x, x + 1 RANGE 1 PRECEDING) FROM generate_series(1, 3) x
SELECT count(*) OVER (ORDER BY x RANGE 1 PRECEDING) FROM (VALUES ('a'), ('b')) t(x)
SELECT count(*) OVER (ORDER BY x RANGE 1.5 PRECEDING) FROM generate_series(1, 3) x
SELECT count(*) OVER (ORDER BY x RANGE 1 PRECEDING) FROM (VALUES (date '2024-01-01')) t(x)
SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (NULL, 'n')) t(id, n) FULL JOIN (VALUES (2, 'c'), (3, 'd'), (NULL, 'm')) u(id, m) USING (id) ORDER BY 1, 2, 3
SELECT id, t.id, u.id, t.*, u.* FROM (VALUES (1, 'a'), (2, 'b')) t(id, n) FULL JOIN (VALUES (2, 'c'), (3, 'd')) u(id, m) USING (id) WHERE id > 1 ORDER BY 1
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(id, n) NATURAL FULL JOIN (VALUES (2.0, 'c'), (3, 'd')) u(id, m) ORDER BY id
SELECT * FROM (VALUES (1), (2)) t(id) FULL JOIN (VALUES (2), (3)) u(id) USING (id) FULL JOIN (VALUES (3), (4)) v(id) USING (id) ORDER BY 1
SELECT * FROM (VALUES (1), (2)) t(id) FULL JOIN (VALUES (2), (3)) u(id) USING (id) LEFT JOIN (VALUES (3, 4)) v(id, n) USING (id) ORDER BY 1
SELECT * FROM (VALUES (1, 5), (2, 6)) t(id, n) NATURAL RIGHT JOIN ((VALUES (2, 6)) u(id, n) NATURAL FULL JOIN (VALUES (3, 6)) v(id, n)) ORDER BY 1
SELECT id, count(*), count(t.id) FROM (VALUES (1), (2)) t(id) FULL JOIN (VALUES (2), (3)) u(id) USING (id) GROUP BY id HAVING id < 3 ORDER BY id
SELECT a.x, (SELECT string_agg(id::text || coalesce(n, '-'), ',' ORDER BY id) FROM (SELECT a.x AS id, 'p' AS n) b FULL JOIN (VALUES (2)) c(id) USING (id)) FROM generate_series(1, 2) a(x) ORDER BY 1
SELECT * FROM (VALUES (1)) t(id) FULL JOIN (VALUES ('a')) u(id) USING (id)
SELECT relname, t.typname FROM (SELECT oid, relname FROM pg_class WHERE oid = 1259) c FULL JOIN (SELECT oid, typname FROM pg_type WHERE oid = 23) t USING (oid) ORDER BY oid
SELECT x, sum(x) OVER (ORDER BY x RANGE x PRECEDING) FROM generate_series(1, 3) x GROUP BY x
SELECT x, sum(x) OVER (ORDER BY x RANGE count(*) PRECEDING) FROM generate_series(1, 3) x GROUP BY x
SELECT t.x, (SELECT sum(y) OVER (ORDER BY y RANGE t.x PRECEDING) FROM generate_series(1, 3) y ORDER BY y DESC LIMIT 1) FROM generate_series(0, 1) t(x) ORDER BY 1
SELECT d, count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND '1 day' FOLLOWING) FROM (VALUES (timestamptz '2024-03-30 12:00+00'), ('2024-03-31 12:00+00'), ('2024-04-01 11:30+00'), ('infinity'), ('-infinity')) t(d) ORDER BY d
SELECT d, count(*) OVER (ORDER BY d RANGE '40 min' PRECEDING) FROM (VALUES (interval '1 hour'), ('90 min'), ('1 day'), ('24 hours')) t(d) ORDER BY d, 2
SELECT d, count(*) OVER (ORDER BY d RANGE '1 day' PRECEDING) FROM (VALUES (date 'infinity'), ('2024-01-01'), ('-infinity')) t(d) ORDER BY d
SELECT x, count(*) OVER (ORDER BY x RANGE 1 PRECEDING), min(x) OVER (ORDER BY x DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), string_agg(x::text, ' ') FILTER (WHERE x <> 2) OVER (ORDER BY x RANGE BETWEEN '1' PRECEDING AND '1' FOLLOWING) FROM (VALUES (1::float4), (1.5), (2), (4)) t(x) ORDER BY x
SELECT count(*) OVER (ORDER BY x RANGE 'NaN'::float8 PRECEDING) FROM (VALUES (1::float8)) t(x)
SELECT x, count(*) OVER (ORDER BY x RANGE 1 PRECEDING), count(*) OVER (ORDER BY x DESC RANGE 1e300 FOLLOWING) FROM (VALUES (1::float8), ('NaN'), (3), ('Infinity'), ('-Infinity')) t(x) ORDER BY x
SELECT x, count(*) OVER (ORDER BY x RANGE 1 PRECEDING) FROM (VALUES (9223372036854775807), (-9223372036854775808), (0)) t(x) ORDER BY x
SELECT x, count(*) OVER (ORDER BY x RANGE '1 hour' PRECEDING) FROM (VALUES (date '2024-01-01')) t(x) WHERE false
SELECT count(*) OVER (ORDER BY d RANGE '-1 day' PRECEDING) FROM (VALUES (date '2024-01-01')) t(d)
SELECT count(*) OVER (ORDER BY x RANGE 1.5::float8 PRECEDING) FROM (VALUES (1.5)) t(x)
SELECT count(*) OVER (ORDER BY x ROWS 1 PRECEDING), count(*) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM generate_series(1, 4) x ORDER BY x
SELECT count(*) OVER (ORDER BY 'a' RANGE 1 PRECEDING)
SELECT count(*) OVER (ORDER BY 1 RANGE 'a' PRECEDING)
SELECT a.*, b.*, id, n FROM (VALUES (1), (2)) a(id) NATURAL FULL JOIN (VALUES (2), (3)) b(id), LATERAL (SELECT id + 1 AS n) c ORDER BY n
SELECT * FROM (SELECT 1 AS x) a FULL JOIN (SELECT 1 AS y) b USING (x)
SELECT * FROM (SELECT 1 AS x, 2 AS y) a FULL JOIN (SELECT 2 AS y, 1 AS x) b USING (y, x)
SELECT * FROM (SELECT 1 AS x) a NATURAL FULL JOIN (SELECT 2 AS y) b
SELECT a, id FROM (VALUES (1, 'u')) a(id, n) NATURAL FULL JOIN (VALUES (1)) c(id) LEFT JOIN (VALUES (2)) b(id) USING (id) ORDER BY id
SELECT * FROM (VALUES (1)) a(id) LEFT JOIN ((VALUES (1)) b(id) FULL JOIN (VALUES (2)) c(id) USING (id)) USING (id)
SELECT * FROM (VALUES (1)) a(id) CROSS JOIN ((VALUES (1)) b(id) FULL JOIN (VALUES (2)) c(id) USING (id)) ORDER BY 2
SELECT count(*), count(DISTINCT n.oid) > 1 FROM pg_namespace n FULL JOIN pg_class c USING (oid) WHERE c.relname = 'pg_class'
SELECT 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1
SELECT count(*) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED FOLLOWING AND UNBOUNDED FOLLOWING) FROM generate_series(1, 3) x
SELECT count(*) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM generate_series(1, 3) x
SELECT count(*) OVER (ORDER BY x DESC RANGE BETWEEN 1e300 PRECEDING AND 0.5 FOLLOWING) FROM (VALUES (1::float8), (1.5), (3)) t(x) ORDER BY x
SELECT count(*) OVER (ORDER BY x RANGE '1' PRECEDING) FROM (VALUES ('a'), ('b')) t(x)
-- rows as a whole, rows in questions, and the connection itself
SELECT (pg_am.*) IS NOT NULL, (c).* FROM pg_am JOIN pg_am c USING (oid) WHERE c.amname = 'heap'
SELECT (information_schema._pg_expandarray(ARRAY[5, 6])).*
SELECT (c).nosuch FROM pg_am c
SELECT (oid).x FROM pg_am
SELECT (oid).* FROM pg_am
SELECT (aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner)))).* FROM pg_namespace n WHERE n.nspname IN ('information_schema', 'pg_toast') ORDER BY 3, 2
-- in 18: another right
SELECT k::"char", acldefault(k::"char", 10)::text FROM unnest('{r,s,d,f,l,n,t,T,c}'::text[]) k
SELECT information_schema._pg_truetypid(a.*, t.*), information_schema._pg_truetypmod(a.*, t.*) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE attrelid = 'orders'::regclass
SELECT attrelid::regclass::text, attname FROM pg_attribute WHERE (attrelid, attnum) IN (SELECT conrelid, unnest(conkey) FROM pg_constraint WHERE contype = 'f') ORDER BY 1, 2
SELECT relname FROM pg_class WHERE relkind = 'r' AND (relnamespace, oid) NOT IN (SELECT connamespace, conrelid FROM pg_constraint WHERE contype = 'p') AND relnamespace = 'public'::regnamespace
SELECT (1, NULL::int) IN (SELECT 1, 2), (1, 2) NOT IN (SELECT 1, 3), (1, 2) IN (SELECT 1, 2 WHERE false), (1, 2) = ANY (SELECT 1::int8, 2::int2)
SELECT (1, 2) IN (SELECT 1)
SELECT (1, 2) IN (SELECT 1, 2, 3)
SELECT datname, usename, application_name, state, backend_type, wait_event FROM pg_stat_activity WHERE pid = pg_backend_pid()
SELECT ssl, version, a.gss_authenticated, a.encrypted FROM pg_stat_ssl JOIN pg_stat_gssapi a USING (pid) WHERE pid = pg_backend_pid()
SELECT T.relname FROM pg_class T WHERE relnamespace = 'public'::regnamespace AND pg_catalog.age(T.xmin) <= coalesce(nullif(greatest(pg_catalog.age('1'::varchar::xid), -1), -1), 2147483647)
SELECT '4294967295'::xid, 'x'::xid
-- in 18: another right
SELECT objoid, classoid::regclass, objsubid, privtype, initprivs::text FROM pg_init_privs
SELECT nextval('users')
SELECT currval('nosuch')
SELECT lastval()
SELECT upper('straße'), upper('ŉa'), lower('İ') = 'x'
SELECT nth_value(x, 2) OVER (ORDER BY y), nth_value(x, 3) OVER () FROM (VALUES (1, 1), (2, 1), (3, 2)) t(x, y)
SELECT nth_value(x, 0) OVER () FROM generate_series(1, 2) x
SELECT percentile_cont(ARRAY[0.25, NULL, 0.75]) WITHIN GROUP (ORDER BY x), percentile_disc('{0,1}') WITHIN GROUP (ORDER BY x), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 4) x
SELECT percentile_cont(ARRAY[2]) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 4) x
SELECT regr_count(y, x), regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x) FROM (VALUES (1, 2), (3, NULL), (4, 6)) t(x, y)
SELECT localtime(0) IS NOT NULL, current_timestamp(3) = now()::timestamptz(3), localtimestamp(0)::text !~ '[.]', pg_typeof(current_time(2))
SELECT pg_last_wal_receive_lsn(), pg_last_xact_replay_timestamp()
-- PostGraphile, pg-structure
SELECT '{a,b}'::"char"[], ARRAY['x'::"char"], attrelid = ANY ('{1259}'::oid[]) FROM pg_attribute WHERE attrelid = 1259 AND attnum = 1
SELECT (tgtype::int::bit(7) & b'0000100')::int FROM pg_trigger WHERE false
SELECT 5::bit(4) & B'0110', 5::bit(4) | B'0110', 5::bit(4) # B'0110', ~5::bit(4), 5::bit(4) << 2, 5::bit(4) >> 1, 5::bit(4) << -1, 5::bit(4) >> 9, bit_count(B'0101'), octet_length(B'101010101')
SELECT B'101' & B'11'
SELECT (28::bit(8) & B'00010000') = B'00010000', (13::int::bit(7) & b'0000100')::int
SELECT proname, coalesce(proallargtypes, proargtypes), coalesce(proargtypes, proallargtypes), pg_typeof(coalesce(indkey, '{1}'::int2[])) FROM pg_proc, pg_index WHERE proname IN ('json_each', 'sum') AND indexrelid = 2662
SELECT sinh(1e10::float8), cosh(-1e10::float8), sinh(-1e10::float8)
SELECT 'Hello World'::regclass
SELECT ' pg_class '::regclass, 'pg_catalog . pg_class'::regclass, '"pg_class"'::regclass
SELECT acldefault('x', 10)
SELECT pg_get_functiondef('now'::regproc)
SELECT pg_get_functiondef('generate_series(int,int)'::regprocedure)
SELECT pg_get_functiondef('sum(int)'::regprocedure)
-- in 18: it has other functions
SELECT oid::regprocedure, pg_get_functiondef(oid) FROM pg_proc WHERE prokind <> 'a' AND oid < 1500 AND prolang <> 14 ORDER BY 1
-- in 18: it has other functions
SELECT count(*), max(pg_get_functiondef(oid)), md5(string_agg(pg_get_functiondef(oid), ',' ORDER BY oid)) FROM pg_proc WHERE prokind <> 'a' AND oid < 3000 AND prosqlbody IS NULL
SELECT c.relname, pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class WHERE c.relname IN ('pg_tables', 'columns', 'pg_locks') ORDER BY 1
SELECT pg_describe_object('pg_class'::regclass, 'orders'::regclass, 0), pg_describe_object('pg_class'::regclass, 'orders'::regclass, 1), pg_identify_object('pg_class'::regclass, 'orders'::regclass, 0)
SELECT * FROM pg_identify_object('pg_class'::regclass, 'orders'::regclass, 2)
SELECT * FROM pg_identify_object('pg_namespace'::regclass, 'public'::regnamespace, 0)
SELECT pg_input_is_valid('42', 'int4'), pg_input_is_valid('x', 'int4'), pg_input_is_valid('2024-02-30', 'date'), pg_input_is_valid('{1,2}', 'int[]')
SELECT * FROM pg_input_error_info('x', 'int4')
SELECT oidvectortypes('23 25'::oidvector), oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'lower' ORDER BY 2
SELECT makeaclitem(10, 10, 'SELECT', false), makeaclitem(10, 10, 'SELECT, INSERT', true)
SELECT has_parameter_privilege('work_mem', 'SET'), has_parameter_privilege('ann', 'work_mem', 'ALTER SYSTEM')
SELECT pg_listening_channels()
SELECT * FROM ONLY pg_am ORDER BY oid
SELECT * FROM pg_am * ORDER BY oid
SELECT * FROM pg_am * WHERE oid = 403
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a
WITH a(x, y) AS (SELECT 1) SELECT * FROM a
SELECT x, first_value(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), last_value(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), nth_value(x, 2) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM unnest(ARRAY[1,2,2,3,5]) x ORDER BY 1
SELECT x, sum(x) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW), sum(x) OVER (ORDER BY x GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING), count(*) OVER (ORDER BY x GROUPS UNBOUNDED PRECEDING), count(*) OVER (ORDER BY x GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM unnest(ARRAY[1,2,2,3,5]) x ORDER BY 1
SELECT x, sum(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), sum(x) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP), sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES), sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS) FROM unnest(ARRAY[1,2,2,3,5]) x ORDER BY 1
SELECT sum(x) OVER (GROUPS 1 PRECEDING) FROM unnest(ARRAY[1,2]) x
SELECT amname, count(*) OVER (ORDER BY amtype GROUPS CURRENT ROW) FROM pg_am ORDER BY 1
SELECT range_agg(r), range_intersect_agg(r) FROM (VALUES ('[1,5)'::int4range), ('[3,8)'), ('[10,12)')) t(r)
SELECT int4range(1, 10) - int4range(3, 5)
SELECT int4range(1, 10) - int4range(5, 12), int4range(1, 10) - int4range(0, 5), int4range(1, 10) - int4range(0, 20), int4range(1, 3) - int4range(5, 6), numrange(1, 5, '[]') - numrange(5, 6)
SELECT int4range(1, 3) &< int4range(2, 5), int4range(1, 3) &> int4range(2, 5), int4range(1, 3) -|- int4range(3, 5), int4range(1, 3) -|- int4range(4, 5)
SELECT '{[1,5),[8,10)}'::int4multirange - '{[2,3)}'::int4multirange, '{[1,5)}'::int4multirange * '{[2,9)}'::int4multirange, '{[1,3)}'::int4multirange + '{[2,7)}'::int4multirange
SELECT inet '10.0.0.255' + 1, inet '::1' + 10, inet '10.0.0.0/8' - 1
SELECT inet_merge('10.1.2.3/24', '10.1.3.5/24'), inet_merge('1.1.1.1', '1.1.1.1'), hostmask('10.0.0.1/20'::inet), set_masklen('10.0.0.1'::inet, -1)
SELECT sind(30), cosd(60), tand(45), cotd(45), sind(90), cosd(90), tand(90), asind(1), acosd(0), atand(1), atan2d(1, 2), sind(17.3), tand(33)
SELECT get_bit(B'1001', 0), set_bit(B'1001', 1, 1), get_bit('\x1234'::bytea, 3), set_bit('\x1234'::bytea, 0, 1), set_byte('\x1234'::bytea, 0, 64), bit_count('\x1234'::bytea), get_bit(B'1', 5)
SELECT set_bit(B'1', 0, 2)
SELECT gcd(10.5, 4.5), gcd(0.3, 0.12), width_bucket(35, ARRAY[10, 20, 30]), width_bucket(9, ARRAY[10, 20, 30]), width_bucket('b', ARRAY['a','c'])
SELECT make_timestamptz(2013, 7, 15, 8, 15, 23.5), make_timestamptz(2013, 7, 15, 8, 15, 23.5, 'America/New_York')
SELECT time with time zone '05:40+02' AT TIME ZONE 'UTC'
SELECT interval 'P0001-02-03T04:05:06', interval '@ 1 hour ago', interval '@ 2 days'
SELECT substring('foobar' similar '%#"o_b#"%' escape '#'), substring('foobar' from '%#"o_b#"%' for '#'), substring('abcdefg' similar 'a#"(b_d)#"%' escape '#'), substring('PostgreSQL 16.1' from '#"[0-9]+.[0-9]+#"%' for '#'), substring('16.1 x' from '#"[0-9]+.[0-9]+#"%' for '#')
SELECT tc.constraint_name, tc.constraint_type, pg_get_constraintdef(con.oid) AS constraint_definition FROM information_schema.table_constraints AS tc JOIN pg_constraint AS con ON tc.constraint_name = con.conname AND con.conrelid = ( SELECT oid FROM pg_class WHERE relname = tc.table_name AND relnamespace = ( SELECT oid FROM pg_namespace WHERE nspname = tc.constraint_schema ) ) WHERE tc.table_name = 'users' AND tc.constraint_schema = 'public' AND tc.constraint_type = 'CHECK' AND con.contype = 'c'
SELECT 1 FROM pg_am a JOIN pg_class c ON a.oid = c.relam WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = (SELECT 'public' WHERE a.amname = 'heap'))
-- Grafana, the first table that it proposes; Metabase, keys, indexes and rights
SELECT current_setting('server_version_num')::int/100 > 1500 as version
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'
select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns where quote_ident(table_name) = 'orders'
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN array_length(parse_ident('orders'), 1) = 2 THEN quote_ident(table_schema) = (parse_ident('orders'))[1] AND quote_ident(table_name) = (parse_ident('orders'))[2] ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s) END
SELECT quote_ident(table_name) as table_name, (SELECT quote_ident(column_name) as column_name FROM information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND udt_name IN ('timestamptz','timestamp') ORDER BY ordinal_position LIMIT 1) AS time_column, (SELECT quote_ident(column_name) AS column_name FROM information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND udt_name='float8' ORDER BY ordinal_position LIMIT 1) AS value_column FROM information_schema.tables t WHERE table_schema IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s) AND EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND udt_name IN ('timestamptz','timestamp')) AND EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND udt_name='float8') LIMIT 1
SELECT "fk_table"."relname", "fk_column"."attname", "pk_table"."relname", "pk_column"."attname" FROM "pg_constraint" AS "c" INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid" INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid" INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid" INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid" INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid" WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char) AND ("fk_column"."attnum" = ANY(c.conkey)) AND ("pk_column"."attnum" = ANY(c.confkey))
SELECT "tmp"."table-name", TRIM(BOTH '"' FROM PG_CATALOG.PG_GET_INDEXDEF("tmp"."ci_oid", "tmp"."pos", FALSE)) AS "field-name" FROM (SELECT "ct"."relname" AS "table-name", "ci"."oid" AS "ci_oid", (INFORMATION_SCHEMA._PG_EXPANDARRAY("i"."indkey"))."n" AS "pos" FROM "pg_catalog"."pg_class" AS "ct" INNER JOIN "pg_catalog"."pg_index" AS "i" ON "ct"."oid" = "i"."indrelid" INNER JOIN "pg_catalog"."pg_class" AS "ci" ON "ci"."oid" = "i"."indexrelid" INNER JOIN "pg_namespace" ns ON ns.oid = ct.relnamespace AND ns.nspname = 'public' WHERE (PG_CATALOG.PG_GET_EXPR("i"."indpred", "i"."indrelid") IS NULL)) AS "tmp" WHERE "tmp"."pos" = 1
with table_privileges as (select NULL as role, t.schemaname as schema, t.objectname as table, pg_catalog.has_any_column_privilege(current_user, '"' || t.schemaname || '"."' || t.objectname || '"', 'select') as select, pg_catalog.has_table_privilege(     current_user, '"' || t.schemaname || '"."' || t.objectname || '"',  'select') as whole from (select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname as objectname from pg_catalog.pg_views union select schemaname, matviewname as objectname from pg_catalog.pg_matviews) t where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')) select t.* from table_privileges t where t.select
SELECT format('%s and %I: 100 %%', 'a', 'B c'), format('nothing'), string_to_array('a,b', ',')
SELECT 7 / 2, 7 / 2.0, relnatts / 1 > 0 FROM pg_class WHERE relname = 'orders'
-- names of objects in every spelling
SELECT 'orders'::regclass, 'public.orders'::regclass, 'ORDERS'::regclass, '"orders"'::regclass, '1259'::regclass, '-'::regclass, 'integer'::regtype, 'int4[]'::regtype
SELECT 'pg_catalog.int8'::regtype::oid, '"pg_catalog"."int8"'::regtype::oid, 'public'::regnamespace, 'ann'::regrole, 'array_in(cstring, oid, integer)'::regprocedure::oid, 'pg_catalog.array_in'::regproc::oid
SELECT 'nothing'::regclass
SELECT 'nothing'::regtype
SELECT 'nothing'::regnamespace
SELECT 'nothing'::regrole
SELECT 'nothing'::regproc
SELECT 1259::regclass::text, 7::regclass::text, 0::regclass::text, ARRAY[ARRAY[1, 2], ARRAY[3, 4]]
SELECT current_user, current_schema(), version() ~ '^PostgreSQL'
SELECT 'pg_class'::regclass::oid, 'orders'::regclass::text, 'int4'::regtype::text, set_config('jit', 'off', false)
-- functions of which views are made (\dx of psql 18)
SELECT e.extname, e.extversion, ae.default_version FROM pg_catalog.pg_extension e LEFT JOIN pg_catalog.pg_available_extensions() ae(name, default_version, comment) ON ae.name = e.extname ORDER BY 1
SELECT * FROM pg_available_extension_versions() WHERE name = 'plpgsql'
SELECT * FROM pg_prepared_xact()
SELECT * FROM pg_lock_status() LIMIT 0
SELECT query, state FROM pg_stat_activity WHERE pid = pg_backend_pid()
SELECT datname, numbackends > 0 FROM pg_stat_database WHERE datname = current_database()
SELECT attname, attalign, attlen FROM pg_attribute WHERE attrelid = 'public.users'::regclass ORDER BY attnum
SELECT 'a.b.c.d'::regclass
SELECT has_column_privilege('orders', 'nosuch', 'SELECT')
SELECT pg_relation_filepath('pg_class'::regclass) LIKE 'base/%'
SELECT * FROM json_to_record('{"a":[1,null],"b":[["x","y"],["z","w"]],"c":null}') AS t(a int[], b text[], c int[])
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', interval '1 day')
-- rows that an outer join fills, and rows of which all values are NULL (Supabase's postgres-meta)
select r is not null, r is null, r from (values(1)) a left join (select 1 as x where false) r on true
select r is not null, r is null from (select 1 as x, null::int as y) r
select x.r is null, (null, null) is null, (1, null) is null, (1, null) is not null, row(1, row(null)) is null from (select row(null::int, null::int) as r) x
select jsonb_agg(r) filter (where r is not null), count(r), array_agg(r) from (values(1)) a left join (select 1 as x where false) r on true
select a.i, coalesce(json_agg(r) filter (where r is not null), '[]'), count(r) from (values (1),(2)) a(i) left join (values (1,'x'),(1,'y')) r(i,n) on r.i = a.i group by a.i order by 1
select a is null, b is null, to_json(a) from (values (1)) a(i) right join (values (2)) b(j) on i = j
select a is null, b is null from (values (1)) a(i) full join (values (2)) b(j) on i = j
select row_to_json(c), c is null from (select 1) s left join pg_am c on c.oid = 0
select count(b), array_agg(b), array_agg(coalesce(b::text, 'none') order by i) from (values (1), (2)) a(i) left join (values (null::int, null::text)) b(j, t) on i = 1
select (select to_json(b)), b.* from (values (1)) a(i) left join (select null::int as y, null::text as z) b on true
select to_json(a), to_json(b) from (values (1), (null)) a(x) full join (values (null::int), (2)) b(x) on a.x = b.x order by a.x, b.x
select json_agg(b), json_agg(c), json_agg(a) from (values (1), (2)) a(i) left join ((values (1)) c(k) left join (values (null::int)) b(v) on k = 1) on i = k
select * from (values (1), (2)) a(i) natural left join (values (2, 3)) b(i, j) full join (values (4)) c(k) on j = k order by 1, 3
-- WITH RECURSIVE of questions that do not name themselves, rows within brackets
with recursive a as (select 1 union all select 2) select * from a
with recursive a(x) as (select 1 union select 2 union select 1), b as (select x from a union all select x + 1 from b where x < 3) select * from b order by 1
with recursive keys as (select contype::text as kind, conname, col from pg_constraint left join lateral unnest(conkey) with ordinality as _(col, ord) on true where contype = 'p' union select concat(contype, '_ref'), conname, col from pg_constraint left join lateral unnest(confkey) with ordinality as _(col, ord) on true where contype = 'f') select kind, count(*) from keys where conname ~ '^(orders|users|events)' group by kind order by 1
SELECT (string_to_array(unnest(array['a=b','c=d']), '='))[1], (regexp_matches('a1b2', '([a-z])(\d)', 'g'))[1:1]
SELECT (array[[1,2],[3,4]])[1][null::int], (array[1,2,3])[null:2], (array[1,2,3])[:2], (array[1,2])[5], (null::int[])[1]
SELECT array['null', 'NULL', null, '', ' a', 'b c', '{', '}', ',', '"', '\', 'é']
-- what only superusers read
SELECT nspname, has_schema_privilege(oid, 'USAGE'), has_schema_privilege(nspname, 'CREATE, USAGE') FROM pg_namespace WHERE nspname !~ 'temp' ORDER BY 1
-- in 18: further relations
SELECT relname FROM pg_class WHERE relnamespace = 11 AND relkind IN ('r', 'v') AND relname <> 'pg_subscription' AND NOT has_table_privilege(oid, 'SELECT') ORDER BY 1
SELECT has_table_privilege('pg_authid', 'SELECT'), has_table_privilege('ann', 'pg_shadow', 'SELECT'), has_any_column_privilege('pg_authid', 'SELECT'), has_column_privilege('pg_authid', 'rolname', 'SELECT'), has_column_privilege('pg_roles', 'rolname', 'SELECT')
SELECT has_table_privilege('orders', 'SELECT, FLY , INSERT')
-- PostGraphile 5
SELECT length(introspection) > 100000 FROM (with database as ( select pg_database.oid as _id, * from pg_catalog.pg_database where datname = current_database() ), namespaces as ( select pg_namespace.oid as _id, * from pg_catalog.pg_namespace where nspname <> 'information_schema' ), classes as ( select pg_class.oid as _id, *, pg_catalog.pg_relation_is_updatable(oid, true)::bit(8)::int4 as "updatable_mask" from pg_catalog.pg_class where relnamespace in (select namespaces._id from namespaces where nspname <> 'information_schema' and nspname not like 'pg\_%') ), attributes as ( select * from pg_catalog.pg_attribute where attrelid in (select classes._id from classes) AND attnum > 0 ), constraints as ( select pg_constraint.oid as _id, * from pg_catalog.pg_constraint where connamespace in (select namespaces._id from namespaces where nspname <> 'information_schema' and nspname not like 'pg\_%') ), procs as ( select pg_proc.oid as _id, * from pg_catalog.pg_proc where pronamespace in (select namespaces._id from namespaces where nspname <> 'information_schema' and nspname not like 'pg\_%') and prorettype operator(pg_catalog.<>) 2279 ), roles as ( select pg_roles.oid as _id, * from pg_catalog.pg_roles ), auth_members as ( select * from pg_catalog.pg_auth_members where roleid in (select roles._id from roles) ), types as ( select pg_type.oid as _id, * from pg_catalog.pg_type where (typnamespace in (select namespaces._id from namespaces where nspname <> 'information_schema' and nspname not like 'pg\_%')) or (typnamespace = 'pg_catalog'::regnamespace) ), enums as ( select pg_enum.oid as _id, * from pg_catalog.pg_enum where enumtypid in (select types._id from types) ), extensions as ( select pg_extension.oid as _id, * from pg_catalog.pg_extension ), indexes as ( select * from pg_catalog.pg_index where indrelid in (select classes._id from classes) ), inherits as ( select * from pg_catalog.pg_inherits where inhrelid in (select classes._id from classes) ), languages as ( select pg_language.oid as _id, * from pg_catalog.pg_language ), ranges as ( select * from pg_catalog.pg_range where rngtypid in (select types._id from types) ), depends as ( select * from pg_catalog.pg_depend where deptype IN ('a', 'e') and ( (classid = 'pg_catalog.pg_namespace'::regclass and objid in (select namespaces._id from namespaces)) or (classid = 'pg_catalog.pg_class'::regclass and objid in (select classes._id from classes)) or (classid = 'pg_catalog.pg_attribute'::regclass and objid in (select classes._id from classes) and objsubid > 0) or (classid = 'pg_catalog.pg_constraint'::regclass and objid in (select constraints._id from constraints)) or (classid = 'pg_catalog.pg_proc'::regclass and objid in (select procs._id from procs)) or (classid = 'pg_catalog.pg_type'::regclass and objid in (select types._id from types)) or (classid = 'pg_catalog.pg_enum'::regclass and objid in (select enums._id from enums)) or (classid = 'pg_catalog.pg_extension'::regclass and objid in (select extensions._id from extensions)) ) ), descriptions as ( select * from pg_catalog.pg_description where ( (classoid = 'pg_catalog.pg_namespace'::regclass and objoid in (select namespaces._id from namespaces)) or (classoid = 'pg_catalog.pg_class'::regclass and objoid in (select classes._id from classes)) or (classoid = 'pg_catalog.pg_attribute'::regclass and objoid in (select classes._id from classes) and objsubid > 0) or (classoid = 'pg_catalog.pg_constraint'::regclass and objoid in (select constraints._id from constraints)) or (classoid = 'pg_catalog.pg_proc'::regclass and objoid in (select procs._id from procs)) or (classoid = 'pg_catalog.pg_type'::regclass and objoid in (select types._id from types)) or (classoid = 'pg_catalog.pg_enum'::regclass and objoid in (select enums._id from enums)) or (classoid = 'pg_catalog.pg_extension'::regclass and objoid in (select extensions._id from extensions)) ) ) select json_build_object( 'database', (select row_to_json(database) from database), 'namespaces', (select coalesce((select json_agg(row_to_json(namespaces) order by nspname) from namespaces), '[]'::json)), 'classes', (select coalesce((select json_agg(row_to_json(classes) order by relnamespace, relname) from classes), '[]'::json)), 'attributes', (select coalesce((select json_agg(row_to_json(attributes) order by attrelid, attnum) from attributes), '[]'::json)), 'constraints', (select coalesce((select json_agg(row_to_json(constraints) order by connamespace, conrelid, conname) from constraints), '[]'::json)), 'procs', (select coalesce((select json_agg(row_to_json(procs) order by pronamespace, proname, pg_get_function_identity_arguments(procs._id)) from procs), '[]'::json)), 'roles', (select coalesce((select json_agg(row_to_json(roles) order by rolname) from roles), '[]'::json)), 'auth_members', (select coalesce((select json_agg(row_to_json(auth_members) order by roleid, member, grantor) from auth_members), '[]'::json)), 'types', (select coalesce((select json_agg(row_to_json(types) order by typnamespace, typname) from types), '[]'::json)), 'enums', (select coalesce((select json_agg(row_to_json(enums) order by enumtypid, enumsortorder) from enums), '[]'::json)), 'extensions', (select coalesce((select json_agg(row_to_json(extensions) order by extname) from extensions), '[]'::json)), 'indexes', (select coalesce((select json_agg(row_to_json(indexes) order by indrelid, indexrelid) from indexes), '[]'::json)), 'inherits', (select coalesce((select json_agg(row_to_json(inherits) order by inhrelid, inhseqno) from inherits), '[]'::json)), 'languages', (select coalesce((select json_agg(row_to_json(languages) order by lanname) from languages), '[]'::json)), 'ranges', (select coalesce((select json_agg(row_to_json(ranges) order by rngtypid) from ranges), '[]'::json)), 'depends', (select coalesce((select json_agg(row_to_json(depends) order by classid, objid, objsubid, refclassid, refobjid, refobjsubid) from depends), '[]'::json)), 'descriptions', (select coalesce((select json_agg(row_to_json(descriptions) order by objoid, classoid, objsubid) from descriptions), '[]'::json)), 'catalog_by_oid', ( select json_object_agg(oid::text, relname order by relname asc) from pg_class where relnamespace = ( select oid from pg_namespace where nspname = 'pg_catalog' ) and relkind = 'r' ), 'current_user', current_user, 'pg_version', version(), 'introspection_version', 1 )::text as introspection) AS asked
-- --- arrays that count from another number, JSON paths, money, geometry, VARIADIC, ties, rights as values
SELECT p.proname, p.proargtypes::regtype[], p.prorettype::regtype FROM pg_proc p WHERE p.proname IN ('lower','upper','substr') ORDER BY p.oid
SELECT '[2:4]={1,2,3}'::int[], ('[2:4]={1,2,3}'::int[])[2], array_lower('[2:4]={1,2,3}'::int[],1), array_dims('[-1:1][0:1]={{1,2},{3,4},{5,6}}'::int[]), ('[2:4]={1,2,3}'::int[])[:3]
SELECT array_fill(0, ARRAY[2], ARRAY[5]), array_upper(array_fill(0, ARRAY[2], ARRAY[5]),1), '[2:3]={a,b}'::text[]::varchar[], array_positions('[0:1]={1,2}'::int[], 2)
SELECT '[3:2]={1}'::int[]
SELECT '[1:2]={1}'::int[]
SELECT jsonb_path_query_array('["a\nb", "a.b"]', '$[*] ? (@ like_regex "a.b")'), jsonb_path_query_array('["a\nb"]', '$[*] ? (@ like_regex "a.b" flag "s")'), jsonb_path_query_array('["a\nb"]', '$[*] ? (@ like_regex "^b" flag "m")'), jsonb_path_query_array('["a\nb"]', '$[*] ? (@ like_regex "a.b" flag "sm")'), jsonb_path_query_array('["a\nb"]', '$[*] ? (@ like_regex "^b")')
SELECT regexp_like(E'a\nb', 'a.b', 'p'), regexp_like(E'a\nb', '^b', 'p'), regexp_like(E'a\nb', 'a.b', 'w'), regexp_like(E'a\nb', '^b', 'w'), regexp_like(E'a\nb', 'a.b', 'ns'), regexp_like(E'a\nb', 'a.b', 'sn')
SELECT '(1e400,1)'::point
SELECT '<(1,1),1_0>'::circle
SELECT '(١,1)'::point
SELECT '١'::int
SELECT '$[١]'::jsonpath
SELECT '[١:١]={1}'::int[]
SELECT '١'::numeric
SELECT '{١}'::float8[]
SELECT '٢020-01-01'::date
SELECT '1٢:00'::time
SELECT '٢ days'::interval
SELECT '١'::money
SELECT '١'::text, '{١}'::text[], '"١"'::jsonb, '١'::bytea
SELECT '{1e-400,1,2}'::line
SELECT '<(1,1),1e400>'::circle
SELECT jsonb_path_query('{"a":[1,2,3,4]}', '$.a[*] ? (@ > 2)')
SELECT jsonb_path_exists('{"a":1}', '$.a ? (@ == 1)'), jsonb_path_match('{"a":1}', '$.a == 1'), jsonb_path_query_array('[1,2,3]', '$[*] ? (@ >= 2)'), jsonb_path_query_first('[1,2,3]', '$[last]'), '{"a":[1,2]}'::jsonb @? '$.a[*] ? (@ > 1)', '{"a":5}'::jsonb @@ '$.a > 3'
SELECT '$.a[*] ? (@.b > 1 && @.c like_regex "^x" flag "i")'::jsonpath, 'strict $.**{2 to 3}.a.size()'::jsonpath, 'lax $."x y"[0, 2 to last].double()'::jsonpath, '-($.a + 2) * 3'::jsonpath, '$ ? (exists (@.a) || !(@.b starts with "x")) ? ((@ == 1) is unknown)'::jsonpath
SELECT jsonb_path_query('{"d":"2024-01-02","n":-1.7,"s":"5"}', '$.d.datetime()'), jsonb_path_query('{"n":-1.7}', '$.n.abs().ceiling()'), jsonb_path_query('{"a":1,"b":[2]}', '$.keyvalue().key'), jsonb_path_query('{"v":3}', '$.v + $x', '{"x":4}'), jsonb_path_query('{"a":1}', '$.a.type()')
SELECT jsonb_path_query('{"a":1}', 'strict $.b')
SELECT jsonb_path_query('[1,2]', '$[*] / 0'), jsonb_path_query_array('[1,2]', '$[5]', '{}', true)
SELECT jsonb_path_query('{"a":1}', '$.a +')
SELECT jsonb_path_query('{"a":{"b":[1,{"c":"x"}]}}', '$.**'), jsonb_path_query('[[1,2],[3]]', 'strict $[*][0 to 1]')
SELECT '@.a'::jsonpath
SELECT '{"a":1}' IS JSON, '1' IS JSON SCALAR, '[]' IS JSON ARRAY, 'x' IS NOT JSON, '{"a":1,"a":2}' IS JSON OBJECT WITH UNIQUE KEYS, NULL IS JSON
SELECT concat_ws(',', VARIADIC ARRAY['a','b']), concat(VARIADIC ARRAY[1,2]), format('%s %s', VARIADIC ARRAY['a','b']), num_nonnulls(VARIADIC ARRAY[1,NULL]), jsonb_extract_path('{"a":{"b":1}}', VARIADIC '{a,b}')
SELECT lower(VARIADIC ARRAY['a'])
SELECT x FROM (VALUES (1),(2),(2),(3)) v(x) ORDER BY x FETCH FIRST 2 ROWS WITH TIES
SELECT x, y FROM (VALUES (1,'b'),(2,'a'),(2,'c'),(3,'d')) v(x,y) UNION ALL SELECT 2, 'e' ORDER BY 1 OFFSET 1 FETCH NEXT 1 ROW WITH TIES
SELECT 1 FETCH FIRST ROW WITH TIES
SELECT 'ann=r/postgres'::aclitem, '{ann=arw/postgres}'::aclitem[], makeaclitem('ann'::regrole,'postgres'::regrole,'SELECT',false), 'ann=wr*a/postgres'::aclitem, '=U/postgres'::aclitem
SELECT 'nosuch=r/postgres'::aclitem
SELECT 'ann=q/postgres'::aclitem
SELECT array_agg(DISTINCT x ORDER BY x DESC), string_agg(DISTINCT y, ',' ORDER BY y DESC) FROM (VALUES (1,'a'),(2,'b'),(2,'b')) v(x,y)
SELECT array_agg(DISTINCT x ORDER BY y) FROM (VALUES (1,2)) v(x,y)
SELECT 65::"char", 'A'::"char"::int, 300::"char"
SELECT '$1,234.56'::money, -1.5::numeric::money, '10'::money * 2, '10'::money / '4'::money, '12.5'::money::numeric, 5::money, '(7.25)'::money, '10'::money / 3, '1.005'::money * 2.5::float8
SELECT sum(x), min(x), max(x) FROM (VALUES ('1.10'::money),('2.20')) v(x)
SELECT '((0,0),(1,1))'::box, '[(0,0),(3,4)]'::lseg, '<(0,0),5>'::circle, '((0,0),(1,0),(1,1))'::polygon, '[(0,0),(1,1)]'::path, '{1,-1,0}'::line, '1,2'::point, '(0,0),(1,1)'::path
SELECT point(1,2) <-> point(4,6), box(point(0,0),point(2,2)) @> point(1,1), area('<(0,0),1>'::circle), length(lseg(point(0,0),point(3,4))), center(box '((0,0),(2,2))'), (point '(1,2)')[0], point(1,2) * point(0,1), circle '<(0,0),2>' @> point '(1,1)'
SELECT '(1)'::point
SELECT '16/b374d848'::pg_lsn, '16/B374D848'::pg_lsn - '16/0'::pg_lsn, '(1,2)'::tid, '5'::xid, '6'::cid, '7'::xid8, '0/0'::pg_lsn < '0/1'::pg_lsn
SELECT U&'d!0061!!' UESCAPE '!', unistr('\0041\+000042\\'), interval '1.123456789' second(3), substring(B'10110' from 2 for 2), abbrev('10.1.0.0/16'::cidr)
SELECT 1 IN (SELECT 1, 2)
SELECT * FROM json_to_recordset('[{"a":1}]')
SELECT (x).a FROM (SELECT ROW(1,2) x) s
SELECT 1 FROM
TABLE nosuch
-- --- routines and their parameters
SELECT routine_name, routine_type, data_type, external_language, is_null_call, security_type FROM information_schema.routines WHERE specific_schema='pg_catalog' AND routine_name IN ('lower','now','abs','sum','generate_series') ORDER BY specific_name
SELECT specific_name, parameter_name, data_type, ordinal_position, parameter_mode FROM information_schema.parameters WHERE specific_name LIKE ANY (ARRAY['width_bucket%', 'pg_get_keywords%', 'concat%']) ORDER BY 1,4
SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'public'
-- --- values of functions as rows, arrays in questions, subscripts of vectors
SELECT x->>'n', (x->>'v')::int + 1, x FROM jsonb_array_elements('[{"n":"a","v":1},{"n":"b","v":2}]') x
SELECT g, g + 1 FROM generate_series(1,2) g(n)
SELECT ARRAY[1] IN (SELECT ARRAY[1]), ARRAY[2] = ANY (SELECT ARRAY[i] FROM generate_series(3,4) i), (ROW(1,2)).*
SELECT indkey::text, indkey::int2[], indkey[0:0], array_length(indkey, 1) FROM pg_index WHERE indrelid='orders'::regclass
SELECT '::ffff:1.2.3.4'::inet, '::ffff:1.2.3.4/100'::inet, '"Users"'::regclass
SELECT conname, array_agg(row(a.attname, a.attnum) ORDER BY a.attnum) FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) WHERE c.connamespace = 'public'::regnamespace AND c.contype IN ('p', 'f') GROUP BY 1 ORDER BY 1
-- liquibase, flyway
SELECT COUNT(*) FROM pg_namespace WHERE nspname='public'
SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema='public' AND table_type='BASE TABLE' AND table_name='flyway_schema_history')
SELECT NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_depend d ON d.objid = c.oid AND d.deptype = 'e' WHERE n.nspname = 'public' AND d.objid IS NULL AND c.relkind IN ('r', 'v', 'S', 't') UNION ALL SELECT 1 FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_depend d ON d.objid = t.oid AND d.deptype = 'e' WHERE n.nspname = 'public' AND d.objid IS NULL AND t.typcategory NOT IN ('A', 'C'))
select t.schemaname, t.tablename from pg_tables t left join pg_class c on c.relname = t.tablename left join pg_inherits i on i.inhrelid = c.oid where t.schemaname = 'public' and i.inhparent is null order by 2
SELECT tablename || '.' || indexname AS idx, indexdef FROM pg_indexes WHERE schemaname NOT IN ('pg_catalog') ORDER BY 1
SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema='public'
SELECT domain_name FROM information_schema.domains WHERE domain_schema='public'
-- sqitch
SELECT count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON p.pronamespace = n.oid WHERE nspname = 'pg_catalog' AND proname = 'pgxc_version'
SELECT pg_try_advisory_lock(75474063)
select to_char(timestamptz '2024-02-03 04:05:06+02' AT TIME ZONE 'UTC', '"year":YYYY:"month":MM:"day":DD:"hour":HH24:"minute":MI:"second":SS:"time_zone":"UTC"')
SELECT tid, tg, at FROM ( VALUES ('a', 'b', '2024-01-01T00:00:00Z'::timestamptz) ) i(tid, tg, at) LEFT JOIN pg_class ON i.tid = relname WHERE relname IS NULL
-- hasura
SELECT ct.relname, jsonb_agg(jsonb_build_object('constraint', jsonb_build_object('name', q.conname), 'columns', q.columns, 'foreign_columns', q.ref_columns) ORDER BY q.conname) AS info FROM (SELECT r.conrelid, r.conname, json_agg(ac.attname) AS columns, json_agg(afc.attname) AS ref_columns FROM (SELECT conrelid, conname, confrelid, UNNEST (r.conkey) AS column_id, UNNEST (r.confkey) AS ref_column_id FROM pg_catalog.pg_constraint r WHERE r.contype = 'f') r JOIN pg_catalog.pg_attribute ac ON r.column_id = ac.attnum AND r.conrelid = ac.attrelid JOIN pg_catalog.pg_attribute afc ON r.ref_column_id = afc.attnum AND r.confrelid = afc.attrelid GROUP BY r.conrelid, r.conname) q JOIN pg_class ct ON ct.oid = q.conrelid GROUP BY ct.relname ORDER BY 1
-- in 18: other columns, settings or rows
SELECT "table".relname, columns.info FROM pg_catalog.pg_class "table" JOIN pg_catalog.pg_namespace "schema" ON schema.oid = "table".relnamespace LEFT JOIN LATERAL ( SELECT jsonb_agg(jsonb_build_object( 'name', "column".attname, 'position', "column".attnum, 'type', json_build_object('name', coalesce(base_type.typname, "type".typname), 'type', "type".typtype), 'is_nullable', NOT "column".attnotnull, 'mutability', jsonb_build_object( 'is_insertable', NOT (identitypolyfill.attidentity = 'a' OR false)) )) AS info FROM pg_catalog.pg_attribute "column" INNER JOIN ( SELECT attrelid, attnum, attname, CASE WHEN attidentity_exists THEN attidentity::text ELSE ''::text END as attidentity FROM pg_catalog.pg_attribute CROSS JOIN (SELECT current_setting('server_version_num')::int >= 100000) AS attidentity(attidentity_exists) ) AS identitypolyfill ON  identitypolyfill.attrelid = "column".attrelid AND identitypolyfill.attnum = "column".attnum AND identitypolyfill.attname = "column".attname LEFT JOIN pg_catalog.pg_type "type" ON "type".oid = "column".atttypid LEFT JOIN pg_catalog.pg_type base_type ON "type".typtype = 'd' AND base_type.oid = "type".typbasetype WHERE "column".attrelid = "table".oid AND "column".attnum > 0 AND NOT "column".attisdropped ) columns ON true WHERE "schema".nspname = 'public' AND "table".relkind = 'r' ORDER BY 1
-- postgrest
SELECT c.castsource::regtype::text, c.casttarget::regtype::text, c.castfunc::regproc::text FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_type src_t ON c.castsource::oid = src_t.oid JOIN pg_catalog.pg_type dst_t ON c.casttarget::oid = dst_t.oid WHERE c.castcontext = 'i' AND c.castmethod = 'f' AND has_function_privilege(c.castfunc, 'execute') AND ((src_t.typtype = 'd' AND c.casttarget IN ('json'::regtype::oid , 'text'::regtype::oid)) OR (dst_t.typtype = 'd' AND c.castsource IN ('json'::regtype::oid , 'text'::regtype::oid)))
WITH base_types AS ( WITH RECURSIVE recurse AS ( SELECT oid, typbasetype, COALESCE(NULLIF(typbasetype, 0), oid) AS base FROM pg_type UNION SELECT t.oid, b.typbasetype, COALESCE(NULLIF(b.typbasetype, 0), b.oid) AS base FROM recurse t JOIN pg_type b ON t.typbasetype = b.oid ) SELECT oid, base FROM recurse WHERE typbasetype = 0 ), arguments AS ( SELECT oid, array_agg(( COALESCE(name, ''), type::regtype::text, CASE type WHEN 'bit'::regtype THEN 'bit varying' WHEN 'bit[]'::regtype THEN 'bit varying[]' WHEN 'character'::regtype THEN 'character varying' WHEN 'character[]'::regtype THEN 'character varying[]' ELSE type::regtype::text END, idx <= (pronargs - pronargdefaults), COALESCE(mode = 'v', FALSE) ) ORDER BY idx) AS args, CASE COUNT(*) - COUNT(name) WHEN 0 THEN true WHEN 1 THEN (array_agg(type))[1] IN ('bytea'::regtype, 'json'::regtype, 'jsonb'::regtype, 'text'::regtype, 'xml'::regtype) ELSE false END AS callable FROM pg_proc, unnest(proargnames, proargtypes, proargmodes) WITH ORDINALITY AS _ (name, type, mode, idx) WHERE type IS NOT NULL GROUP BY oid ) SELECT pn.nspname AS proc_schema, p.proname AS proc_name, COALESCE(a.args, '{}') AS args, tn.nspname AS schema, COALESCE(comp.relname, t.typname) AS name, p.proretset AS rettype_is_setof, (t.typtype = 'c' or COALESCE(proargmodes::text[] && '{t,b,o}', false) ) AS rettype_is_composite, bt.oid <> bt.base as rettype_is_composite_alias, p.provolatile, p.provariadic > 0 as hasvariadic, lower((regexp_split_to_array((regexp_split_to_array(iso_config, '='))[2], ','))[1]) AS transaction_isolation_level, coalesce(func_settings.kvs, '{}') as kvs FROM pg_proc p LEFT JOIN arguments a ON a.oid = p.oid JOIN pg_namespace pn ON pn.oid = p.pronamespace JOIN base_types bt ON bt.oid = p.prorettype JOIN pg_type t ON t.oid = bt.base JOIN pg_namespace tn ON tn.oid = t.typnamespace LEFT JOIN pg_class comp ON comp.oid = t.typrelid LEFT JOIN LATERAL unnest(proconfig) iso_config ON iso_config like 'default_transaction_isolation%' LEFT JOIN LATERAL ( SELECT array_agg(row( substr(setting, 1, strpos(setting, '=') - 1), lower(substr(setting, strpos(setting, '=') + 1)) )) as kvs FROM unnest(proconfig) setting WHERE setting not LIKE 'default_transaction_isolation%' ) func_settings ON TRUE WHERE t.oid <> 'trigger'::regtype AND COALESCE(a.callable, true) AND prokind = 'f' AND pn.nspname = 'public'
WITH pks_uniques_cols AS ( SELECT connamespace, conrelid, jsonb_agg(column_info.cols) as cols FROM pg_constraint JOIN lateral ( SELECT array_agg(cols.attname order by cols.attnum) as cols FROM ( select unnest(conkey) as col) _ JOIN pg_attribute cols on cols.attrelid = conrelid and cols.attnum = col ) column_info ON TRUE WHERE contype IN ('p', 'u') and connamespace::regnamespace::text <> 'pg_catalog' GROUP BY connamespace, conrelid ) SELECT ns1.nspname AS table_schema, tab.relname AS table_name, ns2.nspname AS foreign_table_schema, other.relname AS foreign_table_name, (ns1.nspname, tab.relname) = (ns2.nspname, other.relname) AS is_self, traint.conname  AS constraint_name, column_info.cols_and_fcols, (column_info.cols IN (SELECT * FROM jsonb_array_elements(pks_uqs.cols))) AS one_to_one FROM pg_constraint traint JOIN LATERAL ( SELECT array_agg(row(cols.attname, refs.attname) order by ord) AS cols_and_fcols, jsonb_agg(cols.attname order by ord) AS cols FROM unnest(traint.conkey, traint.confkey) WITH ORDINALITY AS _(col, ref, ord) JOIN pg_attribute cols ON cols.attrelid = traint.conrelid AND cols.attnum = col JOIN pg_attribute refs ON refs.attrelid = traint.confrelid AND refs.attnum = ref ) AS column_info ON TRUE JOIN pg_namespace ns1 ON ns1.oid = traint.connamespace JOIN pg_class tab ON tab.oid = traint.conrelid JOIN pg_class other ON other.oid = traint.confrelid JOIN pg_namespace ns2 ON ns2.oid = other.relnamespace LEFT JOIN pks_uniques_cols pks_uqs ON pks_uqs.connamespace = traint.connamespace AND pks_uqs.conrelid = traint.conrelid WHERE traint.contype = 'f' and traint.conparentid = 0 ORDER BY tab.relname, traint.conname
with all_relations as ( select reltype from pg_class where relkind in ('v','r','m','f','p') ), computed_rels as ( select (parse_ident(p.pronamespace::regnamespace::text))[1] as schema, p.proname::text                  as name, arg_schema.nspname::text         as rel_table_schema, arg_name.typname::text           as rel_table_name, not p.proretset or p.prorows = 1 as single_row from pg_proc p join pg_type      arg_name   on arg_name.oid = p.proargtypes[0] join pg_namespace arg_schema on arg_schema.oid = arg_name.typnamespace join pg_type      ret_name   on ret_name.oid = p.prorettype join pg_namespace ret_schema on ret_schema.oid = ret_name.typnamespace where p.pronargs = 1 and p.proargtypes[0] in (select reltype from all_relations) and p.prorettype in (select reltype from all_relations) ) select *, row(rel_table_schema, rel_table_name) = row(rel_table_schema, rel_table_name) as is_self from computed_rels
with recursive pks_fks as ( select contype::text as contype, conname, array_length(conkey, 1) as ncol, conrelid as resorigtbl, col as resorigcol, ord from pg_constraint left join lateral unnest(conkey) with ordinality as _(col, ord) on true where contype IN ('p', 'f') union select concat(contype, '_ref') as contype, conname, array_length(confkey, 1) as ncol, confrelid, col, ord from pg_constraint left join lateral unnest(confkey) with ordinality as _(col, ord) on true where contype='f' ) select * from pks_fks order by contype, conname, ord
-- in 18: other columns, settings or rows
SELECT current_setting('server_version_num')::integer, current_setting('server_version'), version()::text LIKE 'PostgreSQL%'
select set_config('search_path', '"public"', true), set_config('role', 'ann', true), set_config('request.jwt.claims', '{"role":"ann"}', true)
SELECT name FROM pg_timezone_names WHERE name IN ('UTC', 'Europe/Berlin') ORDER BY 1
-- tbls
-- in 18: other columns, settings or rows
SELECT cons.conname AS name, CASE WHEN cons.contype = 't' THEN pg_get_triggerdef(trig.oid) ELSE pg_get_constraintdef(cons.oid) END AS def, cons.contype AS type, fcls.relname, ARRAY_AGG(attr.attname), ARRAY_AGG(fattr.attname), descr.description AS comment FROM pg_constraint AS cons LEFT JOIN pg_trigger AS trig ON trig.tgconstraint = cons.oid AND NOT trig.tgisinternal LEFT JOIN pg_class AS fcls ON cons.confrelid = fcls.oid LEFT JOIN pg_attribute AS attr ON attr.attrelid = cons.conrelid LEFT JOIN pg_attribute AS fattr ON fattr.attrelid = cons.confrelid LEFT JOIN pg_description AS descr ON cons.oid = descr.objoid WHERE cons.conrelid = 'orders'::regclass::oid AND (cons.conkey IS NULL OR attr.attnum = ANY(cons.conkey)) AND (cons.confkey IS NULL OR fattr.attnum = ANY(cons.confkey)) GROUP BY cons.conindid, cons.conname, cons.contype, cons.oid, trig.oid, fcls.relname, descr.description ORDER BY cons.conname
SELECT tgname, pg_get_triggerdef(trig.oid), descr.description AS comment FROM pg_trigger AS trig LEFT JOIN pg_description AS descr ON trig.oid = descr.objoid WHERE tgisinternal = false AND tgrelid = 'orders'::regclass::oid ORDER BY tgrelid
SELECT attr.attname AS column_name, pg_get_expr(def.adbin, def.adrelid) AS column_default, attr.attgenerated, NOT (attr.attnotnull OR tp.typtype = 'd' AND tp.typnotnull) AS is_nullable, CASE WHEN 'character varying'::regtype = ANY(ARRAY[attr.atttypid, tp.typelem]) THEN REPLACE(format_type(attr.atttypid, attr.atttypmod), 'character varying', 'varchar') ELSE format_type(attr.atttypid, attr.atttypmod) END AS data_type, descr.description AS comment FROM pg_attribute AS attr INNER JOIN pg_type AS tp ON attr.atttypid = tp.oid LEFT JOIN pg_attrdef AS def ON attr.attrelid = def.adrelid AND attr.attnum = def.adnum AND attr.atthasdef LEFT JOIN pg_description AS descr ON attr.attrelid = descr.objoid AND attr.attnum = descr.objsubid WHERE attr.attnum > 0 AND NOT attr.attisdropped AND attr.attrelid = 'users'::regclass::oid ORDER BY attr.attnum
SELECT cls.relname AS indexname, pg_get_indexdef(idx.indexrelid) AS indexdef, ARRAY_AGG(attr.attname ORDER BY attr.attnum ASC), descr.description AS comment FROM pg_index AS idx INNER JOIN pg_class AS cls ON idx.indexrelid = cls.oid INNER JOIN pg_attribute AS attr ON idx.indexrelid = attr.attrelid LEFT JOIN pg_description AS descr ON idx.indexrelid = descr.objoid WHERE idx.indrelid = 'users'::regclass::oid GROUP BY cls.relname, idx.indexrelid, descr.description ORDER BY idx.indexrelid
SELECT n.nspname AS schema_name, p.proname AS specific_name, CASE WHEN p.prokind = 'p' THEN TEXT 'PROCEDURE' ELSE CASE WHEN p.prokind = 'f' THEN TEXT 'FUNCTION' ELSE CAST(p.prokind AS TEXT) END END, t.typname AS return_type, pg_get_function_arguments(p.oid) AS arguments FROM pg_proc AS p LEFT JOIN pg_namespace AS n ON p.pronamespace = n.oid LEFT JOIN pg_type AS t ON t.oid = p.prorettype WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY p.oid
SELECT n.nspname, t.typname AS enum_name, ARRAY_AGG(e.enumlabel) AS enum_values FROM pg_type t, pg_enum e, pg_catalog.pg_namespace n WHERE t.typcategory = 'E' AND t.oid = e.enumtypid AND n.oid = t.typnamespace GROUP BY n.nspname, t.typname
-- atlas
SELECT t1.table_schema, t1.table_name, pg_catalog.obj_description(t3.oid, 'pg_class') AS comment, t4.partattrs AS partition_attrs, t4.partstrat AS partition_strategy, pg_get_expr(t4.partexprs, t4.partrelid) AS partition_exprs FROM INFORMATION_SCHEMA.TABLES AS t1 JOIN pg_catalog.pg_namespace AS t2 ON t2.nspname = t1.table_schema JOIN pg_catalog.pg_class AS t3 ON t3.relnamespace = t2.oid AND t3.relname = t1.table_name LEFT JOIN pg_catalog.pg_partitioned_table AS t4 ON t4.partrelid = t3.oid WHERE t1.table_type = 'BASE TABLE' AND NOT COALESCE(t3.relispartition, false) AND t1.table_schema IN ('public') ORDER BY t1.table_schema, t1.table_name
SELECT t1.table_name, t1.column_name, t1.data_type, pg_catalog.format_type(a.atttypid, a.atttypmod) AS format_type, t1.is_nullable, t1.column_default, t1.character_maximum_length, t1.numeric_precision, t1.datetime_precision, t1.numeric_scale, t1.interval_type, t1.character_set_name, t1.collation_name, t1.is_identity, t1.identity_start, t1.identity_increment, (CASE WHEN t1.is_identity = 'YES' THEN (SELECT last_value FROM pg_sequences WHERE quote_ident(schemaname) || '.' || quote_ident(sequencename) = pg_get_serial_sequence(quote_ident(t1.table_schema) || '.' || quote_ident(t1.table_name), t1.column_name)) END) AS identity_last, t1.identity_generation, t1.generation_expression, col_description(t3.oid, "ordinal_position") AS comment, t4.typtype, t4.typelem, (CASE WHEN t4.typcategory = 'A' AND t4.typelem <> 0 THEN (SELECT t.typtype FROM pg_catalog.pg_type t WHERE t.oid = t4.typelem) END) AS elemtyp, t4.oid FROM "information_schema"."columns" AS t1 JOIN pg_catalog.pg_namespace AS t2 ON t2.nspname = t1.table_schema JOIN pg_catalog.pg_class AS t3 ON t3.relnamespace = t2.oid AND t3.relname = t1.table_name JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t3.oid AND a.attname = t1.column_name LEFT JOIN pg_catalog.pg_type AS t4 ON t4.oid = a.atttypid WHERE t1.table_schema = 'public' AND t1.table_name IN ('users', 'orders') ORDER BY t1.table_name, t1.ordinal_position
SELECT fk.constraint_name, fk.table_name, a1.attname AS column_name, fk.schema_name, fk.referenced_table_name, a2.attname AS referenced_column_name, fk.referenced_schema_name, rc.update_rule, rc.delete_rule FROM ( SELECT con.conname AS constraint_name, con.conrelid, con.confrelid, t1.relname AS table_name, ns1.nspname AS schema_name, t2.relname AS referenced_table_name, ns2.nspname AS referenced_schema_name, unnest(con.conkey) AS conkey, unnest(con.confkey) AS confkey FROM pg_constraint con JOIN pg_class t1 ON t1.oid = con.conrelid JOIN pg_class t2 ON t2.oid = con.confrelid JOIN pg_namespace ns1 on t1.relnamespace = ns1.oid JOIN pg_namespace ns2 on t2.relnamespace = ns2.oid WHERE ns1.nspname = 'public' AND t1.relname IN ('orders', 'events') AND con.contype = 'f' ) AS fk JOIN pg_attribute a1 ON a1.attnum = fk.conkey AND a1.attrelid = fk.conrelid JOIN pg_attribute a2 ON a2.attnum = fk.confkey AND a2.attrelid = fk.confrelid JOIN information_schema.referential_constraints rc ON rc.constraint_name = fk.constraint_name AND rc.constraint_schema = fk.schema_name ORDER BY fk.table_name, fk.constraint_name
SELECT rel.relname AS table_name, t1.conname AS constraint_name, pg_get_expr(t1.conbin, t1.conrelid) as expression, t2.attname as column_name, t1.conkey as column_indexes, t1.connoinherit as no_inherit FROM pg_constraint t1 JOIN pg_attribute t2 ON t2.attrelid = t1.conrelid AND t2.attnum = ANY (t1.conkey) JOIN pg_class rel ON rel.oid = t1.conrelid JOIN pg_namespace nsp ON nsp.oid = t1.connamespace WHERE t1.contype = 'c' AND nsp.nspname = 'public' ORDER BY t1.conname, array_position(t1.conkey, t2.attnum)
SELECT t.relname AS table_name, i.relname AS index_name, am.amname AS index_type, a.attname AS column_name, (a.attname <> '' AND idx.indnatts > idx.indnkeyatts AND idx.ord > idx.indnkeyatts) AS included, idx.indisprimary AS primary, idx.indisunique AS unique, con.nametypes AS constraints, pg_get_expr(idx.indpred, idx.indrelid) AS predicate, pg_get_indexdef(idx.indexrelid, idx.ord, false) AS expression, pg_index_column_has_property(idx.indexrelid, idx.ord, 'desc') AS isdesc, pg_index_column_has_property(idx.indexrelid, idx.ord, 'nulls_first') AS nulls_first, pg_index_column_has_property(idx.indexrelid, idx.ord, 'nulls_last') AS nulls_last, obj_description(i.oid, 'pg_class') AS comment, i.reloptions AS options, op.opcname AS opclass_name, op.opcdefault AS opclass_default, a2.attoptions AS opclass_params FROM ( select *, generate_series(1,array_length(i.indkey,1)) as ord, unnest(i.indkey) AS key from pg_index i ) idx JOIN pg_class i ON i.oid = idx.indexrelid JOIN pg_class t ON t.oid = idx.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace LEFT JOIN ( select conindid, jsonb_object_agg(conname, contype) AS nametypes from pg_constraint group by conindid ) con ON con.conindid = idx.indexrelid LEFT JOIN pg_attribute a ON (a.attrelid, a.attnum) = (idx.indrelid, idx.key) JOIN pg_am am ON am.oid = i.relam LEFT JOIN pg_opclass op ON op.oid = idx.indclass[idx.ord-1] LEFT JOIN pg_attribute a2 ON (a2.attrelid, a2.attnum) = (idx.indexrelid, idx.ord) WHERE n.nspname = 'public' AND t.relname IN ('products') ORDER BY table_name, index_name, idx.ord
-- dbgate
with pkey as ( select cc.conrelid, 'create constraint ' || cc.conname || ' primary key(' || string_agg(a.attname, ', ' order by array_position(cc.conkey, a.attnum)) || ');\n' pkey from pg_catalog.pg_constraint cc join pg_catalog.pg_class c on c.oid = cc.conrelid join pg_catalog.pg_attribute a on a.attrelid = cc.conrelid and a.attnum = any(cc.conkey) where cc.contype = 'p' group by cc.conrelid, cc.conname )
SELECT oid as "objectId", nspname as "schemaName", relname as "pureName", md5('CREATE TABLE ' || nspname || '.' || relname || E'\n(\n' || array_to_string( array_agg( '    ' || column_name || ' ' ||  type || ' '|| not_null ) , E',\n' ) || E'\n);\n' || coalesce((select pkey from pkey where pkey.conrelid = oid),'NO_PK')) as "hashCode" from ( SELECT c.relname, a.attname AS column_name, c.oid, n.nspname, pg_catalog.format_type(a.atttypid, a.atttypmod) as type, case when a.attnotnull then 'NOT NULL' else 'NULL' END as not_null FROM pg_class c, pg_namespace n, pg_attribute a, pg_type t
WHERE c.relkind = 'r' AND a.attnum > 0 AND a.attrelid = c.oid AND a.atttypid = t.oid AND n.oid = c.relnamespace AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_toast' ORDER BY a.attnum ) as tabledefinition where ('tables:' || nspname || '.' ||  relname) is not null group by relname, nspname, oid
SELECT proc.specific_schema AS schema_name, proc.routine_name AS pure_name, proc.routine_type as routine_type, args.parameter_name AS parameter_name, args.parameter_mode, args.data_type AS data_type, args.ordinal_position AS parameter_index, args.parameter_mode AS parameter_mode FROM information_schema.routines proc LEFT JOIN information_schema.parameters args ON proc.specific_schema = args.specific_schema AND proc.specific_name = args.specific_name WHERE proc.specific_schema NOT IN ('pg_catalog', 'information_schema') AND proc.routine_type IN ('PROCEDURE', 'FUNCTION') AND proc.specific_schema !~ '^_timescaledb_' ORDER BY schema_name, args.ordinal_position
-- beekeeper
select r.specific_name as id, r.routine_schema as routine_schema, r.routine_name as name, r.routine_type as routine_type, r.data_type as data_type FROM INFORMATION_SCHEMA.ROUTINES r where r.routine_schema not in ('sys', 'information_schema', 'pg_catalog', 'performance_schema') ORDER BY routine_schema, routine_name
SELECT table_schema, table_name, column_name, is_nullable, is_generated, ordinal_position, column_default, CASE WHEN character_maximum_length is not null  and udt_name != 'text' THEN udt_name || '(' || character_maximum_length::varchar(255) || ')' WHEN numeric_precision is not null and numeric_scale is not null THEN udt_name || '(' || numeric_precision::varchar(255) || ',' || numeric_scale::varchar(255) || ')' WHEN numeric_precision is not null and numeric_scale is null THEN udt_name || '(' || numeric_precision::varchar(255) || ')' WHEN datetime_precision is not null AND udt_name != 'date' THEN udt_name || '(' || datetime_precision::varchar(255) || ')' ELSE udt_name END as data_type, CASE WHEN data_type = 'ARRAY' THEN 'YES' ELSE 'NO' END as is_array, pg_catalog.col_description(format('%I.%I', table_schema, table_name)::regclass::oid, ordinal_position) as column_comment FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_schema, table_name, ordinal_position
SELECT tableowner FROM pg_catalog.pg_tables WHERE tablename = 'nosuch'
-- adminer
SELECT datname FROM pg_database WHERE datallowconn = TRUE AND has_database_privilege(datname, 'CONNECT') AND datname = current_database() ORDER BY datname
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name
SELECT relname AS "Name", CASE relkind WHEN 'r' THEN 'table' WHEN 'm' THEN 'materialized view' ELSE 'view' END AS "Engine", obj_description(oid, 'pg_class') AS "Comment", '' AS "Oid", current_schema() AS nspname FROM pg_class WHERE relkind IN ('r','v') AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY relname
SELECT relname AS "Name", relhasoids::int AS "Oid", reltuples as "Rows" FROM pg_class WHERE relkind IN ('r','v')
SELECT a.attname AS field, format_type(a.atttypid, a.atttypmod) AS full_type, pg_get_expr(d.adbin, d.adrelid) AS default, a.attnotnull::int, col_description(c.oid, a.attnum) AS comment, a.attidentity FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid JOIN pg_attribute a ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON c.oid = d.adrelid AND a.attnum = d.adnum WHERE c.relname = 'users' AND n.nspname = current_schema() AND NOT a.attisdropped AND a.attnum > 0 ORDER BY a.attnum
SELECT relname, indisunique::int, indisprimary::int, indkey, indoption FROM pg_index i, pg_class ci WHERE i.indrelid = (SELECT oid FROM pg_class WHERE relname = 'users') AND ci.oid = i.indexrelid ORDER BY indisprimary DESC, indisunique DESC
SELECT relname, indisunique::int, indisprimary::int, indkey, indoption, (indpred IS NOT NULL)::int as indispartial, pg_get_expr(indpred, indrelid, true) FROM pg_index i, pg_class ci WHERE ci.oid = i.indexrelid AND relname LIKE 'o%'
SELECT conname, condeferrable::int AS deferrable, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conrelid = (SELECT pc.oid FROM pg_class AS pc INNER JOIN pg_namespace AS pn ON (pn.oid = pc.relnamespace) WHERE pc.relname = 'orders' AND pn.nspname = current_schema()) AND contype = 'f'::char ORDER BY conkey, conname
SELECT * FROM information_schema.triggers WHERE event_object_table = 'orders'
SELECT table_name AS v, 1 FROM information_schema.views WHERE table_schema = current_schema()
SELECT typname FROM pg_type WHERE typnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND typtype IN ('b','d','e') AND typelem = 0
SELECT rolname FROM pg_roles WHERE rolname = current_user
-- joomla
SELECT indexname AS "idxName", indisprimary AS "isPrimary", indisunique  AS "isUnique", CASE WHEN indisprimary = true THEN ( SELECT 'ALTER TABLE ' || tablename || ' ADD ' || pg_catalog.pg_get_constraintdef(const.oid, true) FROM pg_constraint AS const WHERE const.conname= pgClassFirst.relname ) ELSE pg_catalog.pg_get_indexdef(indexrelid, 0, true) END AS "Query" FROM pg_indexes LEFT JOIN pg_class AS pgClassFirst ON indexname=pgClassFirst.relname LEFT JOIN pg_index AS pgIndex ON pgClassFirst.oid=pgIndex.indexrelid WHERE tablename='users' ORDER BY indkey
-- debezium, airbyte, fivetran
SELECT t.oid AS oid, t.typname AS name, n.nspname AS schema_name, t.typelem AS element, t.typbasetype AS parentoid, t.typtypmod as modifiers, t.typcategory as category, e.values as enum_values FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid) LEFT JOIN (SELECT t.enumtypid as id, array_agg(t.enumlabel) as values FROM pg_catalog.pg_enum t GROUP BY id) e ON (t.oid = e.id) WHERE n.nspname != 'pg_toast' AND t.typname = 'int4'
SELECT schemaname, tablename, rowfilter FROM pg_catalog.pg_publication_tables WHERE pubname='dbz'
SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'airbyte' AND plugin = 'pgoutput'
SELECT (case pg_is_in_recovery() when 't' then 'replica' else 'primary' end)
SELECT case when pg_is_in_recovery() then null else 'primary' end, txid_current_snapshot() is not null
SELECT DISTINCT table_catalog, table_schema, table_name, privilege FROM (SELECT table_catalog, table_schema, table_name, 'SELECT' AS privilege FROM information_schema.tables WHERE table_schema = 'public') t ORDER BY 3
SELECT nspname as TABLE_SCHEMA, relname as TABLE_NAME FROM pg_class c JOIN pg_namespace n on c.relnamespace = n.oid JOIN pg_tables t on n.nspname = t.schemaname and c.relname = t.tablename WHERE c.relkind in ('r','m','v','t','f','p') and ((pg_has_role(c.relowner, 'USAGE') or has_table_privilege(c.oid, 'SELECT'))) and n.nspname = 'public' ORDER BY 2
SELECT attname, format_type(atttypid, atttypmod) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = '"public"."orders"'::regclass AND i.indisprimary
select relreplident::text from pg_class where oid = 'public.orders'::regclass
-- schemaspy
select definition as view_definition from pg_views where viewname = 'x' UNION select definition as view_definition from pg_matviews where matviewname = 'x'
SELECT nspname AS schema_name, pg_catalog.obj_description(oid, 'pg_namespace') AS schema_comment FROM pg_catalog.pg_namespace where nspname = 'public'
select r.routine_name || '(' || oidvectortypes(p.proargtypes) || ')' as routine_name, case when p.proretset then 'SETOF ' else '' end || case when r.data_type = 'USER-DEFINED' then r.type_udt_name else r.data_type end as dtd_identifier, r.external_language as routine_body, r.sql_data_access, r.security_type, r.is_deterministic from information_schema.routines r left join pg_namespace ns on r.routine_schema = ns.nspname left join pg_proc p on r.specific_name = p.proname || '_' || p.oid where r.routine_schema = 'pg_catalog' and r.routine_name like 'date_t%'
select tc.table_name, cc.check_clause as text from information_schema.check_constraints cc left join information_schema.table_constraints tc on tc.constraint_catalog = cc.constraint_catalog and tc.constraint_schema = cc.constraint_schema and tc.constraint_name = cc.constraint_name where cc.constraint_name not like '%not_null' and tc.constraint_schema = 'public' order by 1, 2
SELECT reltuples AS row_count from pg_class WHERE oid = CAST('public' || '.' || 'nosuch' AS regclass)
-- xo
SELECT a.attnum::integer AS field_ordinal, a.attname::varchar AS column_name, format_type(a.atttypid, a.atttypmod)::varchar AS data_type, a.attnotnull::boolean AS not_null, COALESCE(pg_get_expr(ad.adbin, ad.adrelid), '')::varchar AS default_value, COALESCE(ct.contype = 'p', false)::boolean AS is_primary_key FROM pg_attribute a JOIN ONLY pg_class c ON c.oid = a.attrelid JOIN ONLY pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_constraint ct ON ct.conrelid = c.oid AND a.attnum = ANY(ct.conkey) AND ct.contype = 'p' LEFT JOIN pg_attrdef ad ON ad.adrelid = c.oid AND ad.adnum = a.attnum WHERE a.attisdropped = false AND n.nspname = 'public' AND c.relname = 'orders' AND (true OR a.attnum > 0) ORDER BY a.attnum
SELECT LEFT( PG_GET_FUNCTION_IDENTITY_ARGUMENTS(p.oid), -LENGTH(UNNEST(STRING_TO_ARRAY(OIDVECTORTYPES(p.proargtypes), ', '))) - 1 )::varchar AS param_name, UNNEST(STRING_TO_ARRAY(OIDVECTORTYPES(p.proargtypes), ', '))::varchar AS param_type FROM pg_proc p JOIN ONLY pg_namespace n ON p.pronamespace = n.oid WHERE n.nspname = 'pg_catalog' AND p.proname = 'make_interval'
SELECT DISTINCT ic.relname::varchar AS index_name, i.indisunique::boolean AS is_unique, i.indisprimary::boolean AS is_primary FROM pg_index i JOIN ONLY pg_class c ON c.oid = i.indrelid JOIN ONLY pg_namespace n ON n.oid = c.relnamespace JOIN ONLY pg_class ic ON ic.oid = i.indexrelid WHERE i.indkey <> '0' AND n.nspname = 'public' AND c.relname = 'orders'
SELECT (row_number() over())::integer AS seq_no, a.attnum::integer AS cid, a.attname::varchar AS column_name FROM pg_index i JOIN ONLY pg_class c ON c.oid = i.indrelid JOIN ONLY pg_namespace n ON n.oid = c.relnamespace JOIN ONLY pg_class ic ON ic.oid = i.indexrelid LEFT JOIN pg_attribute a ON i.indrelid = a.attrelid AND a.attnum = ANY(i.indkey) AND a.attisdropped = false WHERE i.indkey <> '0' AND n.nspname = 'public' AND ic.relname = 'orders_pkey'
SELECT a.attname::varchar as column_name FROM pg_class s JOIN pg_depend d ON d.objid = s.oid JOIN pg_class t ON d.objid = s.oid AND d.refobjid = t.oid JOIN pg_attribute a ON (d.refobjid, d.refobjsubid) = (a.attrelid, a.attnum) JOIN pg_namespace n ON n.oid = s.relnamespace WHERE s.relkind = 'S' AND n.nspname = 'public' AND t.relname = 'users'
-- monitors
SELECT relname, indexrelname, idx_scan FROM pg_stat_user_indexes ORDER BY 1, 2
SELECT pg_size_pretty(123456789::bigint), pg_size_pretty(-5000::numeric), pg_size_bytes('10 MB')
SELECT datname, age(datfrozenxid) > 0 FROM pg_database WHERE datname = current_database()
SELECT mode, count(*) FROM pg_locks WHERE NOT granted GROUP BY mode
SELECT slot_name, active FROM pg_replication_slots
SELECT client_addr, state, sync_state FROM pg_stat_replication
SELECT name, setting, unit, short_desc, vartype FROM pg_settings WHERE name IN ('max_connections_nosuch', 'datestyle', 'statement_timeout') ORDER BY name
SELECT extname, extversion FROM pg_extension ORDER BY extname
SELECT * FROM pg_available_extensions WHERE name = 'nosuch'
-- in 18: other columns, settings or rows
SELECT checkpoints_timed >= 0 FROM pg_stat_bgwriter
SELECT sum(heap_blks_read) as heap_read FROM pg_statio_user_tables
-- drizzle-kit / typeorm / mikro
SELECT n.nspname AS "table_schema", c.relname AS "table_name", a.attname AS "column_name", a.attidentity, pg_get_serial_sequence('"public"."users"', 'user_id') AS seq FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' AND a.attnum > 0 AND c.relkind = 'r' ORDER BY 1, 2, a.attnum
SELECT n.nspname as "enumSchema", t.typname as "enumName", e.enumlabel as "enumValue", e.enumsortorder as "sortOrder" from pg_type t join pg_enum e on t.oid = e.enumtypid join pg_catalog.pg_namespace n ON n.oid = t.typnamespace where n.nspname NOT IN ('pg_catalog', 'information_schema') order by "enumSchema", "enumName", "sortOrder"
select schemaname as schema, tablename as "table", policyname as name, permissive as "as", roles as "to", cmd as "for", qual as "using", with_check as "withCheck" from pg_policies
-- in 18: other columns, settings or rows
SELECT con.conname, con.contype, array_agg(att.attname ORDER BY k.n) AS cols FROM pg_constraint con CROSS JOIN LATERAL unnest(con.conkey) WITH ORDINALITY AS k(attnum, n) JOIN pg_attribute att ON att.attrelid = con.conrelid AND att.attnum = k.attnum WHERE con.connamespace = 'public'::regnamespace GROUP BY con.oid, con.conname, con.contype ORDER BY con.conname
select 'ALTER TABLE '||quote_ident(n.nspname)||'.'||quote_ident(c.relname)||' ADD CONSTRAINT '||quote_ident(con.conname)||' '||pg_get_constraintdef(con.oid)||';' from pg_constraint con join pg_class c on c.oid=con.conrelid join pg_namespace n on n.oid=c.relnamespace where con.contype='f' order by 1
SELECT *, '"' || "schema" || '"."' || "name" || '"' AS full FROM (SELECT table_schema AS "schema", table_name AS "name" FROM information_schema.tables WHERE table_schema = 'public') t ORDER BY 2
SELECT DISTINCT t.typname, format_type(t.oid, NULL) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid IN ('users'::regclass, 'orders'::regclass) AND a.attnum > 0 ORDER BY 1
SELECT tc.table_name, json_agg(json_build_object('name', tc.constraint_name, 'type', tc.constraint_type) ORDER BY tc.constraint_name) FROM information_schema.table_constraints tc WHERE tc.table_schema = 'public' AND tc.constraint_type <> 'CHECK' GROUP BY tc.table_name ORDER BY 1
-- psql 17 meta commands
-- in 18: other columns, settings or rows
SELECT d.datname as "Name", pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding", CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Locale Provider", d.daticulocale as "ICU Locale", d.daticurules as "ICU Rules" FROM pg_catalog.pg_database d WHERE d.datname = current_database() ORDER BY 1
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, r.rolreplication, r.rolbypassrls, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof FROM pg_catalog.pg_roles r WHERE r.rolname = 'ann' ORDER BY 1
SELECT m.rolname AS "Role name", r.rolname AS "Member of", pg_catalog.concat_ws(', ', CASE WHEN pam.admin_option THEN 'ADMIN' END, CASE WHEN pam.inherit_option THEN 'INHERIT' END, CASE WHEN pam.set_option THEN 'SET' END) AS "Options", g.rolname AS "Grantor" FROM pg_catalog.pg_roles m JOIN pg_catalog.pg_auth_members pam ON (pam.member = m.oid) LEFT JOIN pg_catalog.pg_roles r ON (pam.roleid = r.oid) LEFT JOIN pg_catalog.pg_roles g ON (pam.grantor = g.oid) WHERE r.rolname IS NOT NULL ORDER BY 1, 2, 4
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' END as "Type", CASE WHEN pg_catalog.array_length(c.relacl, 1) = 0 THEN '(none)' ELSE pg_catalog.array_to_string(c.relacl, E'\n') END IS NULL AS "Access privileges" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','v','m','S','f','p') AND n.nspname !~ '^pg_' AND pg_catalog.pg_table_is_visible(c.oid) AND n.nspname <> 'information_schema' ORDER BY 1, 2
SELECT pg_catalog.pg_get_userbyid(d.defaclrole) AS "Owner", n.nspname AS "Schema", CASE d.defaclobjtype WHEN 'r' THEN 'table' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'function' WHEN 'T' THEN 'type' WHEN 'n' THEN 'schema' END AS "Type" FROM pg_catalog.pg_default_acl d LEFT JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace ORDER BY 1, 2, 3
SELECT o.amopstrategy, am.amname AS "AM", CASE WHEN pg_catalog.pg_opfamily_is_visible(of.oid) THEN pg_catalog.format('%I', of.opfname) ELSE pg_catalog.format('%I.%I', nsf.nspname, of.opfname) END AS "Operator family", o.amopopr::pg_catalog.regoperator AS "Operator" FROM pg_catalog.pg_amop o LEFT JOIN pg_catalog.pg_opfamily of ON of.oid = o.amopfamily LEFT JOIN pg_catalog.pg_am am ON am.oid = of.opfmethod AND am.oid = o.amopmethod LEFT JOIN pg_catalog.pg_namespace nsf ON of.opfnamespace = nsf.oid WHERE am.amname = 'hash' AND of.opfname = 'integer_ops' ORDER BY 1, 4
SELECT n.nspname AS "Schema", t.typname AS "Name", pg_catalog.format_type(t.typbasetype, t.typtypmod) AS "Type", t.typnotnull, t.typdefault, pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid), ' ') as "Check" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' ORDER BY 1, 2
SELECT evtname, evtevent, pg_catalog.pg_get_userbyid(e.evtowner), case evtenabled when 'O' then 'enabled' end, e.evtfoid::pg_catalog.regproc, pg_catalog.array_to_string(array(select x from pg_catalog.unnest(evttags) as t(x)), ', ') FROM pg_catalog.pg_event_trigger e ORDER BY 1
-- in 18: other columns, settings or rows
SELECT n.nspname, c.cfgname, pg_catalog.obj_description(c.oid, 'pg_ts_config') FROM pg_catalog.pg_ts_config c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace WHERE pg_catalog.pg_ts_config_is_visible(c.oid) AND c.cfgname LIKE 'e%' ORDER BY 1, 2
-- in 18: other columns, settings or rows
SELECT castsource::regtype, casttarget::regtype, CASE castmethod WHEN 'b' THEN '(binary coercible)' WHEN 'i' THEN '(with inout)' ELSE p.proname END, CASE castcontext WHEN 'e' THEN 'no' WHEN 'a' THEN 'in assignment' ELSE 'yes' END FROM pg_cast c LEFT JOIN pg_proc p ON c.castfunc = p.oid WHERE castsource = 'int4'::regtype ORDER BY 1, 2
SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'orders'::regclass ORDER BY 1
SELECT pubname, pg_catalog.pg_get_userbyid(pubowner), puballtables FROM pg_catalog.pg_publication ORDER BY 1
SELECT subname FROM pg_catalog.pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
SELECT l.lanname AS "Name", pg_catalog.pg_get_userbyid(l.lanowner) IS NOT NULL, l.lanpltrusted FROM pg_catalog.pg_language l ORDER BY 1
-- in 18: other columns, settings or rows
SELECT c.collname, c.collprovider, c.collisdeterministic FROM pg_collation c WHERE c.collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding())) AND c.collname IN ('C', 'POSIX', 'default', 'ucs_basic') ORDER BY 1
SELECT srvname, srvoptions FROM pg_foreign_server
-- pgadmin, dbeaver, datagrip, dbvisualizer
SELECT oid, pg_catalog.pg_encoding_to_char(encoding) AS encoding, datlastsysoid FROM pg_database
SELECT x.oid, x.relname, x.reltuples >= -1 AS known, x.relkind FROM pg_catalog.pg_class x WHERE x.relnamespace = 'public'::regnamespace AND x.relkind NOT IN ('i', 'I', 'c', 't') ORDER BY x.relname
-- in 18: other columns, settings or rows
SELECT c.oid, c.relname, a.attnum, a.attname, a.atttypid::regtype::text AS typ, a.attstorage, a.attcompression, a.attstattarget, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) WHERE NOT a.attisdropped AND c.relname = 'products' ORDER BY a.attnum
SELECT rolname, pg_catalog.shobj_description(oid, 'pg_authid') FROM pg_roles WHERE oid > 16000 AND rolname = 'ann'
SELECT i.*, i.indkey as keys, c.relname, pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid WHERE i.indrelid='countries'::regclass
select relkind, count(*) from pg_class where relnamespace = 'information_schema'::regnamespace group by relkind order by 1
select T.oid as id, T.typname as name, T.typcategory, pg_catalog.format_type(T.typelem, null) as elem from pg_catalog.pg_type T where T.typnamespace = 11 and T.typcategory = 'R' order by 2
with languages as (select oid as lang_oid, lanname as lang from pg_catalog.pg_language), routines as (select proname as r_name, prolang as lang_oid, oid as r_id, xmin as r_state_number, proargnames as arg_names, proargmodes as arg_modes, proargtypes::int[] as in_arg_types, proallargtypes::int[] as all_arg_types, provolatile as volatile_kind, proisstrict as is_strict, prosecdef as is_security_definer, proretset as is_table from pg_catalog.pg_proc where pronamespace = 'public'::regnamespace::oid and not (prokind = 'a')) select * from routines natural join languages
select nspname, pg_get_userbyid(nspowner) = 'nosuch' as o, has_schema_privilege(oid, 'CREATE, USAGE') as p, nspacl is not null from pg_namespace where nspname in ('public', 'pg_catalog') order by 1
-- in 18: other columns, settings or rows
select count(*) filter (where relkind = 'r') as tables, count(*) filter (where relkind = 'v') as views from pg_class where relnamespace = 'pg_catalog'::regnamespace
SELECT current_database() AS "CATALOG", schema_name, default_character_set_name FROM information_schema.schemata WHERE schema_name = 'public'
-- looker, tableau, power bi, metabase, superset
SELECT "information_schema"."tables"."table_name" AS "TABLE_NAME" FROM "information_schema"."tables" WHERE ("information_schema"."tables"."table_schema" = 'public') AND ("information_schema"."tables"."table_type" IN ('BASE TABLE', 'VIEW')) ORDER BY "TABLE_NAME"
SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table, pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') AS update FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables UNION SELECT schemaname, viewname FROM pg_views UNION SELECT schemaname, matviewname FROM pg_matviews) t WHERE t.schemaname !~ '^pg_' AND t.schemaname = 'nosuch'
SELECT quote_literal(name) FROM pg_timezone_names WHERE abbrev = 'UTC' AND name LIKE 'Etc/U%' ORDER BY 1
SELECT EXTRACT(epoch FROM (DATE_TRUNC('minute', TIMESTAMP '2024-02-01 10:11:12') - TIMESTAMP '2024-01-01')) / 3600 AS hours, CAST(FLOOR(1.5) AS BIGINT), TO_CHAR(DATE '2024-01-01', 'YYYY-"W"IW')
SELECT CAST(TRUNC(EXTRACT(QUARTER FROM DATE '2024-05-01')) AS INTEGER) AS q, (DATE '2024-05-01' + INTERVAL '-1 months')::date AS d, CAST('2024-05-01' AS TIMESTAMP) AS t
SELECT 1 AS "COL" WHERE 1 = 0
SELECT * FROM (SELECT 1 AS a) AS "Custom SQL Query" LIMIT 0
-- alembic, sqlalchemy, django, rails, ecto
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname = 'alembic_version' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm'])
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, NULL AS extra FROM (SELECT con.conrelid, con.conname, con.conindid, con.description, con.ord, pg_catalog.pg_attribute.attname FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid, pg_catalog.pg_constraint.conname, pg_catalog.pg_constraint.conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum, generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid WHERE pg_catalog.pg_constraint.contype = 'p') AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conname
SELECT c.relname, a.attname, a.attidentity != '' FROM pg_catalog.pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = 'users' AND (pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval%' OR a.attidentity IN ('', 'a', 'd')) AND a.attnum > 0 ORDER BY a.attnum
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), t.oid, pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid FROM pg_class t INNER JOIN pg_index d ON t.oid = d.indrelid INNER JOIN pg_class i ON d.indexrelid = i.oid LEFT JOIN pg_namespace n ON n.oid = t.relnamespace WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 't' AND t.relname = 'users' AND n.nspname = ANY (current_schemas(false)) ORDER BY i.relname
SET SESSION client_min_messages TO 'warning'; SET standard_conforming_strings = on; SET intervalstyle = iso_8601; SELECT t.oid, t.typname FROM pg_type as t WHERE t.typname IN ('int2', 'bool') ORDER BY 1
SELECT pg_try_advisory_lock(4149234234234)
select sum(numbackends) >= 0, current_setting('max_connections')::int > 0 from pg_stat_database
-- functions by the names of operators, JSON constructors, orders, ranks of rows that are not there, words of regular expressions
SELECT float8 '1e-400'
SELECT random() BETWEEN 0 AND 1, setseed(0.5)
SELECT unistr('d\0061t'), normalize('é', NFD) = 'é', 'é' IS NORMALIZED, is_normalized('a')
SELECT to_ascii('x')
SELECT 'Jan 5 2024'::date, '5 January 2024'::date, '20240105'::date, '2024.005'::date, '1/5/2024'::date, 'J2460315'::date, 'epoch'::timestamp, 'infinity'::date, '-infinity'::timestamp, 'yesterday'::date = current_date - 1
SELECT * FROM json_array_elements_text('["a", 1, null]')
SELECT jsonb_path_query('{"a":1}', 'strict $.b', silent => true)
SELECT json_array(1, 'a', NULL), json_array(1, NULL NULL ON NULL), json_object('a': 1, 'b' VALUE NULL ABSENT ON NULL)
SELECT '[2:3]={1,2}'::int[], ('[0:1]={5,6}'::int[])[0], array_lower('[2:3]={1,2}'::int[], 1), array_sample(ARRAY[1], 1), array_shuffle(ARRAY[1])
SELECT '(0,1)'::tid, '16/B374D848'::pg_lsn, '16/B374D848'::pg_lsn - '16/B374D840'::pg_lsn, '10:20:10,14,15'::pg_snapshot, 'ABC'::name || 'd', '5'::xid, 5::oid
SELECT x, count(*), sum(x), avg(x), stddev(x), variance(x), corr(x, y), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1, 2), (2, 3), (2, 5)) t(x, y) GROUP BY x ORDER BY x
SELECT mode() WITHIN GROUP (ORDER BY x), percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY x), count(*) FILTER (WHERE x > 1), bit_and(x), bit_or(x), bit_xor(x), any_value(1) FROM (VALUES (1), (2), (2)) t(x)
SELECT rank(3) WITHIN GROUP (ORDER BY x), dense_rank(3) WITHIN GROUP (ORDER BY x), cume_dist(3) WITHIN GROUP (ORDER BY x), percent_rank(3) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (4)) t(x)
SELECT a, b, sum(c) FROM (VALUES ('x', 'p', 1), ('x', 'q', 2), ('y', 'p', 3)) t(a, b, c) GROUP BY ROLLUP (a, b) ORDER BY a NULLS LAST, b NULLS LAST
SELECT x, count(*) FROM generate_series(1, 3) x GROUP BY CUBE (x) ORDER BY x NULLS FIRST
SELECT 1 WHERE 2 IN ((SELECT generate_series(1, 3)))
SELECT 2 IN ((SELECT 2), 3), 2 = ANY ((SELECT 2)), 1 + ((SELECT 2)), ((SELECT 1) + 1), (((SELECT 5)))
SELECT relname FROM pg_class WHERE relname IN ((SELECT table_name FROM information_schema.tables WHERE table_schema = 'public')) ORDER BY relname
SELECT ((SELECT 1) UNION SELECT 2 LIMIT 1)
-- in 18: other columns, settings or rows
SELECT * FROM pg_stat_progress_vacuum
SELECT * FROM pg_stat_wal_receiver
-- in 18: other columns, settings or rows
SELECT count(*), min(routine_name), count(DISTINCT grantee) FROM information_schema.routine_privileges
SELECT int4pl(1, 2), textcat('a', 'b'), numeric_mul(1.5, 2), numeric_div(1, 3), int8xor(5, 1), jsonb_concat('{"a":1}', '[1]'), network_sub('10.0.0.1', '10.0.0.0/8'), range_contains_elem(int4range(1,4), 2), interval_mul('1 day', 2), tidgt('(0,2)', '(0,1)'), notlike('a'::text, 'b'), dlog10(100), like('a'::text, 'a')
SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x NULLS LAST
SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x DESC NULLS LAST
SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x ASC NULLS FIRST
SELECT int4mod(7, 3), float8mul(2, 1.5), textlike('abc', 'a%'), array_eq(ARRAY[1], ARRAY[1]), date_mi('2024-01-02', '2024-01-01'), dsqrt(4), texteq('a', 'b'), jsonb_contains('{"a": 1}', '{}')
SELECT 'foo bar' ~ '\mbar\M', 'foobar' ~ '\mbar', regexp_replace('a b', '\yb\y', 'x'), 'abc' ~ '\Aabc\Z', 'a-b' ~ '\Yb'
SELECT json_object(), json_array(), json_object('a': 1, 'b': NULL), json_object('a' VALUE 1, 'b': NULL ABSENT ON NULL), json_array(1, NULL NULL ON NULL), json_object('k' VALUE ARRAY[1] RETURNING jsonb)
SELECT json_object('a': 1, 'a': 2 WITH UNIQUE KEYS)
SELECT json_object(NULL: 1)
SELECT rank(2, 'b') WITHIN GROUP (ORDER BY x, y DESC) FROM (VALUES (1, 'a'), (2, 'c'), (2, 'a')) t(x, y)
SELECT dense_rank(2) WITHIN GROUP (ORDER BY x DESC) FILTER (WHERE x > 0) FROM (VALUES (0), (3), (3), (1)) t(x)
SELECT rank(1) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 0) x
SELECT DISTINCT r FROM (VALUES (ROW(1, ARRAY[2])), (ROW(1, ARRAY[2])), (ROW(2, NULL))) t(r)
SELECT indkey = '1', indkey <> '0', indoption = '0' FROM pg_index WHERE indrelid = 'users'::regclass
SELECT normalize('e' || U&'\0301'), 'a' IS NOT NFKC NORMALIZED, COLLATION FOR ('a'::text), normalize('a', NFKD)
SELECT COLLATION FOR (1)
SELECT '10:20:10,14,15'::pg_snapshot, '5:4:'::txid_snapshot
SELECT name, setting, source FROM pg_settings WHERE name IN ('work_mem', 'datestyle', 'search_path') ORDER BY name
SELECT count(*) > 11000, count(DISTINCT object_type) FROM information_schema.data_type_privileges WHERE object_schema <> 'pg_temp'
-- Recursion with orders and cycles, names that mean nothing here, properties of indexes, addresses of objects, text search
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT t, t % 3 + 1 FROM g) CYCLE f SET is_cycle USING path SELECT f, t, is_cycle, path FROM g
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT t, t + 1 FROM g WHERE t < 4) SEARCH DEPTH FIRST BY f SET ord SELECT * FROM g ORDER BY ord
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM g WHERE f < 3) SEARCH BREADTH FIRST BY f SET ord SELECT f, ord FROM g ORDER BY ord
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION SELECT t, t % 3 + 1 FROM g) SEARCH DEPTH FIRST BY f, t SET o CYCLE f, t SET m TO 'Y' DEFAULT 'N' USING p SELECT * FROM g
WITH RECURSIVE tree(id, parent) AS (VALUES (1, NULL::int), (2, 1), (3, 1), (4, 2)), w AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT c.id, c.parent FROM tree c JOIN w r ON c.parent = r.id) SEARCH DEPTH FIRST BY id SET o SELECT id FROM w ORDER BY o
WITH RECURSIVE tree(id, parent) AS (VALUES (1, NULL::int), (2, 1), (3, 1), (4, 2)), w AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT c.id, c.parent FROM tree c JOIN w r ON c.parent = r.id) SEARCH BREADTH FIRST BY id SET o SELECT id, o FROM w ORDER BY o DESC
WITH g(f) AS (SELECT 1) SEARCH DEPTH FIRST BY f SET ord SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1) CYCLE f SET c USING p SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM g) SEARCH DEPTH FIRST BY nosuch SET ord SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM g) CYCLE nosuch SET ord USING p SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM g) CYCLE f SET c TO 1 DEFAULT 'x' USING p SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM g) SEARCH NOSUCH FIRST BY f SET c SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f + 1.5 FROM g) SELECT 1
WITH RECURSIVE g(f) AS (SELECT 1.5 UNION ALL SELECT 1 FROM g WHERE f > 1) SELECT * FROM g
WITH RECURSIVE g(f) AS (SELECT 1::int8 UNION ALL SELECT (f + 1)::int4 FROM g WHERE f < 3) SELECT * FROM g
WITH RECURSIVE g(f, n) AS (SELECT 1, 'a'::text UNION ALL SELECT f + 1, NULL FROM g WHERE f < 3) SELECT * FROM g
WITH RECURSIVE g(f, n) AS (SELECT 1, 'a' UNION ALL SELECT f + 1, n || 'x' FROM g WHERE f < 3) SELECT * FROM g
WITH RECURSIVE g(f) AS (SELECT 1 UNION ALL SELECT f, 1 FROM g) SELECT * FROM g
WITH RECURSIVE i AS (SELECT 'users'::regclass::oid AS o, ARRAY['users'::regclass::oid] p UNION ALL SELECT inhrelid, p || inhrelid FROM pg_inherits JOIN i ON inhparent = o) CYCLE o SET c USING q SELECT o::regclass, c, cardinality(q) FROM i
SELECT relname FROM pg_class WHERE oid IN (SELECT oid, relname FROM pg_class)
SELECT relname FROM pg_class WHERE oid = ANY (SELECT oid, relname FROM pg_class)
SELECT relname FROM pg_class WHERE (oid, relname) IN (SELECT oid FROM pg_class)
SELECT 1, 2 UNION SELECT 1 INTERSECT SELECT 2
SELECT (SELECT 1, 2)
SELECT ARRAY(SELECT 1, 2)
SELECT DISTINCT ON (relkind) relname FROM pg_class ORDER BY relname
SELECT DISTINCT ON (relkind, relname) relname FROM pg_class ORDER BY relname, oid, relkind
SELECT DISTINCT ON (relname, relkind) relname FROM pg_class WHERE relnamespace=2200 ORDER BY relkind DESC, relname, oid
SELECT DISTINCT ON (relkind) relkind FROM pg_class WHERE relnamespace = 2200 ORDER BY relkind, relname
SELECT 1 FROM x.pg_catalog.pg_class
SELECT pg_class.relname FROM pg_class c
SELECT pg_class.* FROM pg_class c
SELECT c.relname FROM pg_class c, (SELECT c.oid FROM pg_namespace) x
SELECT c.relname FROM pg_class c JOIN (SELECT 1 WHERE c.oid = 1) x ON true
SELECT pg_catalog.nosuch(oid) FROM pg_class
SELECT pg_catalog.lower(1, 2)
SELECT pg_catalog.lower(oid) FROM pg_class
SELECT information_schema.nosuch(1)
SELECT information_schema._pg_char_max_length(1043, 14), information_schema._pg_char_octet_length(1043, 14), information_schema._pg_char_octet_length(25, -1), information_schema._pg_numeric_precision(1700, 655366), information_schema._pg_numeric_precision_radix(1700, -1), information_schema._pg_numeric_scale(1700, 655366), information_schema._pg_datetime_precision(1114, -1), information_schema._pg_interval_type(1186, -1)
SELECT information_schema._pg_numeric_precision(t, -1), information_schema._pg_numeric_precision_radix(t, -1), information_schema._pg_numeric_scale(t, -1), information_schema._pg_datetime_precision(t, -1), information_schema._pg_char_max_length(t, -1) FROM unnest(ARRAY[20,21,23,700,701,1700,1082,1083,1114,1184,1186,25,1042]::oid[]) t
SELECT information_schema._pg_index_position('users_pkey'::regclass, 1::int2)
SELECT pg_index_column_has_property('users_pkey'::regclass, 1, p) FROM unnest(ARRAY['asc','desc','nulls_first','nulls_last','orderable','distance_orderable','returnable','search_array','search_nulls','nosuch']) p
SELECT pg_index_has_property('users_pkey'::regclass, p) FROM unnest(ARRAY['clusterable','index_scan','bitmap_scan','backward_scan','nosuch']) p
SELECT a.oid, pg_indexam_has_property(a.oid, p), p FROM pg_am a, unnest(ARRAY['can_order','can_unique','can_multi_col','can_exclude','can_include','nosuch']) p ORDER BY 1, 3
SELECT pg_index_column_has_property('users'::regclass, 1, 'asc'), pg_index_column_has_property('users_pkey'::regclass, 2, 'asc'), pg_indexam_has_property(1, 'can_order')
SELECT 'english'::regconfig, 'simple'::regdictionary, 3748::regconfig, to_regtype('regconfig')
SELECT 'nosuch'::regconfig
SELECT 'nosuch'::regdictionary
SELECT ARRAY[3765]::regdictionary[]
SELECT * FROM ts_token_type('default') ORDER BY tokid LIMIT 3
SELECT alias FROM ts_token_type(3722) WHERE tokid = 2
SELECT * FROM ts_token_type(1)
SELECT ts_token_type('nosuch')
SELECT pg_identify_object_as_address('pg_class'::regclass, 'users'::regclass, 0)
SELECT * FROM pg_identify_object_as_address('pg_class'::regclass, 'users'::regclass, 2)
SELECT * FROM pg_get_object_address('table', '{public,users}', '{}')
SELECT * FROM pg_get_object_address('table column', '{public,users,age}', '{}')
SELECT * FROM pg_shadow
SELECT DISTINCT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid=relnamespace WHERE has_table_privilege(pg_class.oid, 'SELECT') AND relkind IN ('r','t') AND nspname IN ('public','pg_toast') ORDER BY 2
SELECT xmax = 0, xmin <> 0 FROM pg_namespace WHERE nspname = 'public'
SELECT pg_safe_snapshot_blocking_pids(1)
