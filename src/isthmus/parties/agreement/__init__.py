"""What the parties of a study agree on, and who they are."""
