"""What programs of the 0.9 and 1.x generations use and the modern classes do not need."""
