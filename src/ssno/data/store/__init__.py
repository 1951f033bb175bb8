"""Datasets in our own layout: shards, manifests, verification."""
