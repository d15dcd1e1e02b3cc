"""Write bounded blocks as SQL of an engine: from few node types, every row expression total."""
