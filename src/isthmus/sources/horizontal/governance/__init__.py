"""What was agreed on, what a site allows, and what it wrote down."""
