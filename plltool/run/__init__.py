"""What analyses share: inputs, engines, memory and results."""
