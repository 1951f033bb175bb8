"""Native CPU code, built on demand; everything works without it, only slower."""
