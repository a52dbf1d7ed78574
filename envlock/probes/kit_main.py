"""``__main__.py`` of a kit: starts ``start.py`` beside it. Standard library only, Python 3.8 and
newer; imports nothing of envlock and is imported by nobody.

As short as it can be: Python runs it without looking whether its bytes are those that were packed.
"""

import os
import sys
import zipfile

KIT = os.path.dirname(os.path.abspath(__file__))
START = "start.py"

try:
    with zipfile.ZipFile(KIT) as archive:
        code = compile(archive.read(START), START, "exec")  # reading it compares its CRC
except (OSError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
    print("error: kit: '{}' is damaged: {}".format(KIT, error), file=sys.stderr)
    print("hint: copy the kit again, or join its parts again with cat", file=sys.stderr)
    sys.exit(4)
exec(code, {"__name__": "__main__", "__file__": os.path.join(KIT, START)})
