"""The workbench: a page in the browser to edit a kernel and see its code, time and findings.

    app (routes and their security)  ->  session (the file, its versions)
      ->  engine (a prepared process)  ->  answering (a fork of it per version of the file)

A version of the file is explained in a fork of a process that has imported everything, so an
answer takes the time of compiling and predicting only. The fork continues to answer questions
about that version, until a later one replaces it.
"""
