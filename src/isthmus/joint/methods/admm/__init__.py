"""Structure learning across sites by ADMM on model parameters (Ng and Zhang 2022)."""
