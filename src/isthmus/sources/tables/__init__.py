"""Tables in memory, in files and in engines."""
