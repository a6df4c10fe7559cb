"""What is chosen, measured against gold labels of real conversations, beside what one would use instead."""
