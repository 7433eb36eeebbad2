"""The GPU engine: iterations and proofs in torch and Triton. Only what stands in this folder imports torch."""
