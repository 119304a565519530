"""The rules that decide what may leave a site."""
