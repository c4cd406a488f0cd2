"""The scheduler that all faces of the client run on, and the threads and event loops that drive it."""
