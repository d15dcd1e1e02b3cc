"""Other systems, each in a virtual environment of its own; `drive` runs in ours, everything else in theirs."""
