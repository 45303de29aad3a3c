"""What runs in the processes that judge learner code; it imports nothing of the engine."""
