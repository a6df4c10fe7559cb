"""Where gatekeeper meets frameworks: one file each, each an extra, none imported before it is used."""
