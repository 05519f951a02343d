"""The command line: click, one thin file a command."""
