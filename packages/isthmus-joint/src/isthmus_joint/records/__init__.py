"""What is written down: the ledger of a site, and journals that survive a crash."""
