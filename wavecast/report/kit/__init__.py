"""What reports share: numbers with units, tables, plots and pages."""
