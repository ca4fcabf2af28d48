"""The JSON schema of a config file, `config/schema.json`: `python -m pytest tests/config/test_configs.py --renew`."""

import json
from collections.abc import Mapping
from typing import Any

from entropy_valley.experiment.config.schema import BLOCKS, Experiment

SHORT_FORMS = {  # keys of a length method's block that stand for others, for the JSON schema
    "each": {
        "description": "one key and the list of its values, {seed: [1, 2]}: a method of each value, named by it",
        "type": "object",
    },
    "same_ratios_as": {"description": "a method whose `ratios` it takes over", "type": "string"},
}


def json_schema(additions: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The JSON schema of a config file, by which editors complete and check keys. No key is required: a file may leave
    it to another one.

    ``additions`` have, by model and field, what only the packages above this one know of a field's values.
    """
    schema = Experiment.model_json_schema()
    for model, fields in additions.items():
        for name, values in fields.items():
            schema["$defs"][model]["properties"][name] |= values
    for name in ("LengthMethods", "UserMethod", *(kind.__name__ for kind in BLOCKS.values())):
        schema["$defs"][name]["properties"] |= SHORT_FORMS
    return json.dumps(_of_a_part(schema), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _of_a_part(schema: Any) -> Any:
    """A schema that a part of what it describes fits too. Of descriptions the first paragraph is enough."""
    if isinstance(schema, list):
        return [_of_a_part(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ["required", "discriminator", *(["title"] if isinstance(schema.get("title"), str) else [])]
    part = {key: _of_a_part(value) for key, value in schema.items() if key not in left_out}
    if isinstance(part.get("default"), dict):  # the defaults of a block are at its keys
        del part["default"]
    if "oneOf" in part:  # without the key that tells them apart, several may fit
        part["anyOf"] = part.pop("oneOf")
    if isinstance(text := part.get("description"), str):
        part["description"] = text.partition("\n\n")[0]
    return part
