"""The JSON documents Wavecast writes: one definition each.

A document is a tree of `JsonObject`s. Its text (`base.values`, `base.dumps`), its JSON Schema
(`schema.json_schema`) and the tables of fields in docs/json.md (`schema.markdown`) come from that
definition. `registry.documents` lists them by schema name.
"""
