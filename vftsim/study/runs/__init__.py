"""What is run: models, on which workers, how far it is, and what it will take."""
