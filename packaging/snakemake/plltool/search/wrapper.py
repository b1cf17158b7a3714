"""A search by plltool. The outputs may have any names; which of them there are says what is wanted."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from snakemake.shell import shell

FILES = {  # outputs of the rule, and the files of `plltool search`
    "tree": "best.nwk",
    "record": "json",
    "report": "html",
    "model": "best.model",
    "supports": "support.nwk",
    "bootstraps": "bootstraps.nwk",
}
given = {name: snakemake.input.get(name, "") for name in ("partitions", "constraint", "start")}
given |= {name: snakemake.params.get(name, "") for name in ("model", "seed")}
options = " ".join(f"--{name} '{value}'" for name, value in given.items() if value != "")
extra = snakemake.params.get("extra", "")
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

with TemporaryDirectory() as folder:
    prefix = Path(folder) / "run"
    shell(
        "plltool search '{snakemake.input.alignment}' {options} {extra}"
        " --threads {snakemake.threads} --prefix '{prefix}' {log}"
    )
    for name, path in snakemake.output.items():
        shutil.move(f"{prefix}.{FILES[name]}", path)
