"""Messages to bytes and back: compiled functions, and an interpreter that explains the data that they refuse."""
