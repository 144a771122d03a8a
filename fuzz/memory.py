"""What memory a process has, as Linux tells it."""


def memory_of(pid, field):
    """Bytes of memory of a process; 0 if it has ended.

    `"VmRSS"` is what it has now, `"VmHWM"` the most that it had, `"VmData"`
    what it has asked for.
    """
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    return 0
