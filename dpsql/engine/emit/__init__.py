"""From bounded blocks to engine text: few nodes of our own, every row expression total."""
