"""What happened: the ledger and the journal."""
