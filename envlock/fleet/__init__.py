"""The same on every node: started by the scheduler that is there, merged into one verdict."""
