"""Ready jobs: the pipeline of the command line, its runner, and the demo."""
