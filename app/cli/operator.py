"""Who runs a command, for the log."""

import os
import pwd


def operator() -> str:
    """`cli:` and the name of this user: whoever may run a command on the machine is an operator of it."""
    uid = os.getuid()
    try:
        return f"cli:{pwd.getpwuid(uid).pw_name}"
    except KeyError:  # a container's user need not be in passwd
        return f"cli:{uid}"
