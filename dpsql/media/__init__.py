"""Text for each medium that dpsql writes, so that what is quoted is shown and never obeyed."""
