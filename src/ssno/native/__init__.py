"""Native CPU code, built on demand; everything works without it, only slower."""

from ssno.native.engine import Engine, use

__all__ = ["Engine", "use"]
