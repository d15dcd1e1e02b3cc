"""Room for all tests: packages of shared helpers (`audit`, `sql`, `neighbours`) are found from this folder."""
