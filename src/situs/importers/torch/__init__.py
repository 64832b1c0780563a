"""PyTorch modules to graphs; nothing here reads or needs weights."""
