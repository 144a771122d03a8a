"""Attacks on the server and the readers; `make fuzz` runs them.

Every attack follows from (seed, class, index) alone, so that each can be made
again without the others. Nothing leaves this machine: the servers listen on
127.0.0.1, on ports that were free.
"""
