"""A served clinic for all tests that leave it unchanged, one whose server a test starts and stops itself, and the libraries of
node."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.served_clinic import own_clinic, served

from clients.steps import CLIENTS

__all__ = ["node_folder", "own_clinic", "served"]


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs for node and, from npm, the libraries that they use."""
    folder = tmp_path_factory.mktemp("node")
    for path in (CLIENTS / "package.json", CLIENTS / "schema.prisma", *CLIENTS.glob("*.js")):
        shutil.copy(path, folder)
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "--ignore-scripts"]
    subprocess.run(install, cwd=folder, check=True, timeout=240)
    # Prisma's client runs in node alone; what only its migrations need is named, so that it is not downloaded.
    environment = {
        **os.environ,
        "URL": "postgresql://",
        "CHECKPOINT_DISABLE": "1",
        "PRISMA_SCHEMA_ENGINE_BINARY": "/bin/true",
    }
    subprocess.run(
        ["npx", "prisma", "generate"], cwd=folder, env=environment, check=True, timeout=240, capture_output=True
    )
    return folder
