"""The program as its users meet it: what they type, what it prints, how it ends."""
