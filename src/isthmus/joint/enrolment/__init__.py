"""Enrolment: cards and signatures travel through the coordinator, which nobody has to trust."""
