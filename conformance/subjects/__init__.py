"""Subjects: the protocol, process isolation, manifests, and the authorities' adapters."""
