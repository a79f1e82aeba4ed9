"""Downloads one source distribution with pip's own index, certificates and credentials.

`pip download` would also run the package's build backend, to learn its dependencies; that is slow,
and runs code that nobody has checked. This asks pip where the file is, and stores it.

Usage: REQUIREMENT FOLDER. Exit 3: this version of pip is built differently; use `pip download`.
"""

import os
import sys

requirement, folder = sys.argv[1:]
name, version = requirement.split("==")

try:
    from pip._internal.commands import create_command
    from pip._vendor.packaging.specifiers import SpecifierSet

    command = create_command("download")
    options, _ = command.parse_args(["--no-cache-dir", "--no-binary", name, requirement])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        candidate = finder.find_best_candidate(name, SpecifierSet("==" + version)).best_candidate
        link = candidate.link if candidate else None
        url = link.url_without_fragment if link else None
        filename = link.filename if link else None
except (ImportError, AttributeError, TypeError) as changed:
    print(changed, file=sys.stderr)
    sys.exit(3)

if url is None:
    sys.exit(f"ERROR: no source distribution of {requirement} was found in the configured index")
if url.startswith("file:"):
    sys.exit(3)
try:
    with session.get(url, headers={"Accept-Encoding": "identity"}, stream=True) as answer:
        answer.raise_for_status()
        with open(os.path.join(folder, os.path.basename(filename)), "wb") as file:
            for chunk in answer.iter_content(1 << 20):
                file.write(chunk)
except OSError as failed:
    sys.exit(f"ERROR: {failed}")
