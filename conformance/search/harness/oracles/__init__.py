"""What must hold, whatever is put in: one module an area, each with ``check(document, folder)``, which raises BrokenRule."""
