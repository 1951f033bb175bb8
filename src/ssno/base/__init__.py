"""What everything stands on: files, documents, amounts in words, provenance, requirements. Imports nothing of ours."""

from ssno.base.amounts import byte_size, cost_rows, cost_words, duration
from ssno.base.descriptions import description_from_json
from ssno.base.documents import (
    DocumentError,
    from_text,
    number,
    read_document,
    read_json,
    read_regular,
    to_text,
    write_document,
    write_json,
)
from ssno.base.provenance import available_cores, package_version, processor_name, provenance, source_commit
from ssno.base.replaceable import Kind, check_replaceable
from ssno.base.requirements import require_one_of, require_pairs, require_positive
from ssno.base.suggestions import did_you_mean, nearest, unknown_name
from ssno.base.whole import DISK_LIMITS, whole_file, write_whole

__all__ = [
    "DISK_LIMITS",
    "DocumentError",
    "Kind",
    "available_cores",
    "byte_size",
    "check_replaceable",
    "cost_rows",
    "cost_words",
    "description_from_json",
    "did_you_mean",
    "duration",
    "from_text",
    "nearest",
    "number",
    "package_version",
    "processor_name",
    "provenance",
    "read_document",
    "read_json",
    "read_regular",
    "require_one_of",
    "require_pairs",
    "require_positive",
    "source_commit",
    "to_text",
    "unknown_name",
    "whole_file",
    "write_document",
    "write_json",
    "write_whole",
]
