"""The pytest plugin, tables and reports. Reports are made from the run folder alone, never from live objects."""
