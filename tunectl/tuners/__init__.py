"""Who else tunes this host: what each of them writes, key by key, and what that means for what is asked for here."""
