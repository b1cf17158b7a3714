"""Front ends: commands with the names, options and files of other programs, which plltool does.

`plltool front-ends DIR` writes them into a folder. Each has tables, ``NAME.txt``, and a module with a function ``run``.
"""
