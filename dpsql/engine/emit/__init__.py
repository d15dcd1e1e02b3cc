"""Writing of bounded blocks as an engine's SQL, from few node types; every row expression is total."""
