"""Media relaying on a virtualized host: traffic, applications, metrics."""
