"""Extracts: the rows that a site froze for one study, and the check that is made once."""
