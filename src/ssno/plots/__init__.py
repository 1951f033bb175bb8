"""Pictures: every function takes numbers and gives a matplotlib figure; saving is the caller's business."""
