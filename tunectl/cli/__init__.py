"""The command line: click, one thin file for each command or family of commands."""
