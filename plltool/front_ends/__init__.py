"""Front ends: the commands, options and files of other programs; `plltool front-ends` writes them into a folder."""
