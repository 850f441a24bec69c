"""What is done when the package is built: the engine's machine code, the manual pages and the package page are made."""

import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<is_picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>(?!https?:|#)[^)]+)\)")


def package_page(readme: str, source: str = "") -> str:
    """Return the README as it stands on a package page, where a path in the repository leads nowhere.

    Links and pictures lead to ``source``, the address of the repository; without one links are words and pictures gone.
    """

    def instead(found: re.Match[str]) -> str:
        if not source:
            return "" if found["is_picture"] else found["words"]
        kind = "raw" if found["is_picture"] else "blob"
        return f"{found['is_picture']}[{found['words']}]({source.rstrip('/')}/{kind}/HEAD/{found['target']})"

    return _LINK.sub(instead, readme)


class PackagePage(MetadataHookInterface):
    """Gives the package the README as its page, with links to the address that ``project.urls`` has as ``Source``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the page to the metadata."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = package_page(readme, metadata.get("urls", {}).get("Source", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class MadeWhenBuilt(BuildHookInterface):
    """Makes the kernel of all parts, which an installation without it makes on its first run, and manual pages."""

    @property
    def _folder(self) -> Path:
        return Path(self.directory) / "made"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add a kernel for each machine and the pages; a checkout that is installed to be edited makes its own."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            import man_pages  # noqa: PLC0415 - of the package being built
            from vftsim.composition import one_kernel  # noqa: PLC0415

            # A process each: LLVM has one lock for all threads.
            with ProcessPoolExecutor(len(one_kernel.TRIPLES), get_context("spawn")) as processes:
                kernels = processes.map(partial(one_kernel.write, self._folder / "kernels"), one_kernel.TRIPLES)
            pages = man_pages.write(self._folder / "man")
            build_data["shared_data"].update({str(page): f"share/man/man1/{page.name}" for page in pages})
            build_data["force_include"].update({str(path): f"vftsim/_kernels/{path.name}" for path in kernels})
        except Exception as error:
            self.app.display_warning(f"not built in: {error}; the engine will be made on the first run")
        finally:
            sys.path.remove(self.root)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel."""
        shutil.rmtree(self._folder, ignore_errors=True)
