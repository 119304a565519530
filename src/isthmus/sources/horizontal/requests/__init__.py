"""What can be asked of the sites, and statistics as integers on a grid."""
