"""A clone that tests lay out in a folder. NOT Fun-Audio-Chat: it has its call names and checks how they are used."""
