"""What to solve: equations and their exact solutions."""
