"""Code that a checkpoint of the tests carries with it. NOT MiniCPM-o: it has its call names and checks how they are used."""
