"""What weights and duals prove: mathematics on arrays, without iterations."""
