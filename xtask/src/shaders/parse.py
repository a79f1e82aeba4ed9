"""Lets crosstl's Metal parser read files. Writes a line of JSON for each: its name, "ok", "syntax" or "partly", and why.

"partly": the text is tokenised and its templates are expanded, but crosstl cannot tell which struct a member function
belongs to, and gives up before the last pass. That is a limit of crosstl and no fault of the text.
"""

import json
import multiprocessing
import sys

from crosstl.backend.Metal.MetalLexer import MetalLexer
from crosstl.backend.Metal.MetalParser import MetalParser
from crosstl.backend.Metal.preprocessor import MetalStructMethodError


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            MetalParser(MetalLexer(file.read()).tokenize()).parse()
    except MetalStructMethodError as error:
        return path, "partly", str(error)
    except Exception as error:  # whatever it is, crosstl does not accept the file
        return path, "syntax", f"{type(error).__name__}: {error}"
    return path, "ok", ""


if __name__ == "__main__":
    with multiprocessing.Pool() as pool:
        for path, state, why in pool.imap_unordered(read, sys.argv[1:], chunksize=1):
            print(json.dumps({"file": path, "state": state, "why": why}), flush=True)
