"""What models cost: parameters, operations, memory, time."""
