"""A file per verb: its options, its function and its result.

The functions are attributes of `wavecast` where no package has their name (`wavecast.explain`), and
of their file (`wavecast.api.explain.explain`). The command line is made from the same options and
calls the same functions (`cli/verb.py`). These files import nothing heavy before they are called.
"""
