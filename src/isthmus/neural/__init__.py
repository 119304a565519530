"""Neural networks in JAX: perceptrons for each node, and the Q-network of RBNets."""
