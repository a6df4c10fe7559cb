"""Many conversations at once: on threads, as Arrow record batches, through an engine, from file to file."""

from gatekeeper.batch.arrow import select_batches
from gatekeeper.batch.many import select_many

__all__ = ["select_batches", "select_many"]
