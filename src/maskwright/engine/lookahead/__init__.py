"""Drawing from the model's own distribution, given that the output obeys the constraint."""
