"""From sentences to translations: the library's front door, and the jobs of the workflow that run a model.

Start with :mod:`.translator`: :class:`Translator` is what the library offers, and :mod:`.sentences` the one way to
translations. :mod:`.job` is what all jobs on a model share; :mod:`.translations` is the job of a set.
"""
