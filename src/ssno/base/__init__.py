"""What everything stands on: files, documents, amounts in words, provenance, requirements. Imports nothing of ours."""

from ssno.base.atomic_write import DISK_LIMITS, Kind, check_replaceable, whole_file, write_whole
from ssno.base.checks import did_you_mean, nearest, require_one_of, require_pairs, require_positive, unknown_name
from ssno.base.formatting import byte_size, cost_rows, cost_words, duration
from ssno.base.json_io import (
    DocumentError,
    description_from_json,
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
