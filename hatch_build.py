"""What is done when the package is built: the engine's machine code is made and put into the wheel."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelBuildHook(BuildHookInterface):
    """Makes the kernel of all parts; an installation without it makes it on its first run."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add a file for each machine; a checkout that is installed to be edited makes its own."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from vftsim.composition.one_kernel import write_all  # noqa: PLC0415 - the package being built

            written = write_all(Path(self.directory) / "kernels")
        except Exception as error:
            self.app.display_warning(f"the engine is not built in: {error}; it will be made on the first run")
            return
        finally:
            sys.path.remove(self.root)
        for path in written:
            build_data["force_include"][str(path)] = f"vftsim/_kernels/{path.name}"
