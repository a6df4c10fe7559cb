"""gatekeeper and the libraries one would use instead, on the same work in the same run."""
