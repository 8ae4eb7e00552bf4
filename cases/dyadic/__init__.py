"""DyaFDB as pytest items."""
