"""What everything stands on: whole files, documents, provenance, requirements. Imports nothing of ours."""
