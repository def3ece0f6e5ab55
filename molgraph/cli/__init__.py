"""The same verbs for a shell: one file a verb, loaded only when it is used (see ``main``)."""
