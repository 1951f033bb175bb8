"""The models that SS-NO is compared with."""
