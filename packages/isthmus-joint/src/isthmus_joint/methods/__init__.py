"""Methods that learn across organisations and are not sources of statistics."""
