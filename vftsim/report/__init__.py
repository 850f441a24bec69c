"""What a user looks at: plots and tables of results."""
