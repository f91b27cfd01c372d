"""Speculative decoding: drafts, their windows, the accept test, and how long a window is to be."""
