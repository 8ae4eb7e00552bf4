"""DyaFDB: two live agents talk to each other, each under a private role prompt, and both are scored."""
