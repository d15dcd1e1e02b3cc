"""Other systems, each in a separate virtual environment; `drive` runs in ours, everything else in theirs."""
