"""One module for each subject a reader or program may ask about."""
