raise LookupError("no such shelf")
