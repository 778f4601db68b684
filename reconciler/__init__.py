"""Identity configuration as code: read, judge, plan and apply manifests."""

__version__ = "0.1.0"
