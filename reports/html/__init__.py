"""The HTML report: pages that a browser opens from disk, with every case to hear, see and read."""
