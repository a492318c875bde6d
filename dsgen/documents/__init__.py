"""Text with its places: readers that keep where every key and value stands, and edits that touch nothing else."""
