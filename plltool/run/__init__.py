"""What analyses share: inputs, engines, memory, results, checkpoints and worker processes."""
