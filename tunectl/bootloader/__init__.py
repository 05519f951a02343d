"""Boot loaders: who boots this host, what its next boot will have, and the arguments tunectl adds to that.

One file a family. Each renders the arguments in the distribution's own place and parses them back.
"""
