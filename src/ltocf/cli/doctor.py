"""ltocf doctor"""

from __future__ import annotations

from ltocf.cli.output import Json, print_json, print_table


def doctor(as_json: Json = False) -> None:
    """Show the cores, memory, caches and GPU of this computer, and how much of them is used."""
    from ltocf.machine.hardware import examine

    found = examine()
    if as_json:
        print_json(found.to_dict())
        return
    quota = "" if found.quota is None else f", {found.quota:g} at a time by the control group"
    memory = "unknown" if found.memory_gb is None else f"{found.memory_gb} GB can be had now"
    cache = f"{found.cache_bytes / 2**20:.0f} MB" if found.cache_bytes else "unknown"
    rows = [
        ["processor", found.processor],
        ["cores", f"{found.cores}{quota}"],
        ["threads", f"{found.threads} will be used; --threads changes that"],
        ["instructions", " ".join(found.instructions) or "unknown"],
        ["last-level cache", cache],
        ["memory", memory],
        ["BLAS", "; ".join(found.blas) or "none found"],
        ["GPU", found.gpu or "none: everything runs on the CPU"],
        ["Python", found.python],
        ["libraries", ", ".join(f"{name} {has}" for name, has in found.libraries.items())],
    ]
    print_table("this computer", ["what", "found"], rows)
    for line in found.advice:
        print(f"note: {line}")
