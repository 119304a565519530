"""What the parties of a study agree on: study, protocol, roster, policy, signatures."""
