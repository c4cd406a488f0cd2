"""There so that it can be imported: it once made methods picklable, which Python does itself now."""
