"""Spec recall and triage for coding agents: grade a requirement, recall spec templates, say the one next step."""
