"""`python -m dpsql.policy` prints the JSON Schema of a policy file; `dpsql/policy/policy.schema.json` is its output."""

from __future__ import annotations

import json

from dpsql.policy.shape import json_schema

print(json.dumps(json_schema(), indent=2, ensure_ascii=True))
