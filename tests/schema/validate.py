"""Validates TOML and JSON files against a JSON schema: prints a JSON list of what is wrong with each, null for nothing."""

import datetime
import json
import sys
import tomllib

import jsonschema

schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
said = []
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        # JSON has no times: editors see their text.
        document = json.load(file) if path.endswith(".json") else json.loads(json.dumps(tomllib.load(file), default=datetime.date.isoformat))
    first = next(iter(validator.iter_errors(document)), None)
    said.append(first and first.message)
print(json.dumps(said))
