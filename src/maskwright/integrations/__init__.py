"""Other programs that use constraints; each module imports its own only when it is imported itself."""
