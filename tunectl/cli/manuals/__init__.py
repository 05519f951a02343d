"""Man pages, completions and reference pages, made of the commands themselves. Nothing here is loaded by a command.

python -m tunectl.cli.manuals DIRECTORY      man pages and completions, laid out as below /usr
python -m tunectl.cli.manuals --docs DOCS    the generated pages of the documentation: knobs.md, reference/
"""
