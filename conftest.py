"""Enables the plugin and the fixtures; everything else lives in the packages."""

pytest_plugins = ["reports.plugin", "fixtures.devices", "fixtures.run", "fixtures.ifeval", "fixtures.dyadic"]
