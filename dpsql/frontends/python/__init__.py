"""The DB-API 2.0 module and the SQLAlchemy dialect."""
