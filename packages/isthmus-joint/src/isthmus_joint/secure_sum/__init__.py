"""The protocol of secure sums. It handles bytes and does not know what is summed."""
