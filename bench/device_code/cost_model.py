# SPDX-License-Identifier: BSL-1.0
"""Expected times of kernels on an H200, from the work that the executor of tests/ptx counted.

A kernel takes as long as the resource that it uses longest: issue slots, tensor cores, shared memory, the level-2 cache (kernels that
multiply tiles, which read each operand many times) or device memory (all others). The busiest multiprocessor decides; to each launch its
start is added. A matrix product of cuBLASLt takes the clocks that the plan of the program expects, or what its operands take of memory. No GPU has run this: the constants are
published or typical figures, named in one table, to be fitted once.
"""
import csv
import dataclasses
import math

KINDS = ("product matrix_load global shared copy special division floating conversion integer exchange branch barrier move parameter "
         "other").split()
NOT_ISSUED = ("move", "parameter")  # registers of PTX that become one, and operands that are read where they are


@dataclasses.dataclass(frozen=True)
class Gpu:
    """Rates are of one multiprocessor and clock unless said otherwise, and what kernels reach rather than what is printed on a datasheet."""
    multiprocessors: int = 132
    clocks_per_us: float = 1755
    issued: float = 4 * 0.6         # warp instructions: four schedulers, busy 60 % of the time
    slots_of_division: float = 12   # instructions of one division or square root, IEEE-rounded
    special: float = 0.5            # warp instructions: 16 lanes a clock
    integer: float = 2              # 64 lanes a clock
    operations: float = 4096 * 0.62  # of tensor cores in bf16, by mma.sync: 62 % of what wgmma reaches
    wavefronts: float = 0.9         # of 128 bytes of shared memory
    cache_bytes: float = 5.5e6      # of the level-2 cache, of all multiprocessors, in a microsecond
    memory_bytes: float = 3.8e6     # of the device's memory: 88 % of a copy's 4.3 TB/s
    start_us: float = 1.2 + 1.5     # from one launch to the next in a stream; first loads and last stores of a grid


def read_counts(lines):
    """Rows of a file that PIPE_PTX_COUNTS names, numbers as numbers."""
    return [{key: value if key == "kernel" else int(value) for key, value in row.items()}
            for row in csv.DictReader(lines, delimiter="\t")]


def per_step(after_two_steps, after_one):
    """Counts of a step in the long run: launches that only the first one has are left out. Counts are of one launch, launches of a step."""
    first = {key_of(row): row["launches"] for row in after_one}
    rows = []
    for row in after_two_steps:
        launches = row["launches"] - first.get(key_of(row), 0)
        if launches > 0:
            rows.append(of_launch(row) | {"launches": launches})
    return rows


def key_of(row):
    return row["kernel"], row["grid"], row["shared_bytes"]


def of_launch(row):
    """Counts of one launch, from those of the blocks that were counted."""
    fixed = {"kernel", "grid", "shared_bytes", "threads", "launches", "blocks", "counted_blocks"}
    scale = row["grid"] / row["counted_blocks"]
    return {key: value if key in fixed else value * scale for key, value in row.items()}


def issued(row):
    """Warp instructions, without those that cost nothing."""
    return sum(row[kind] for kind in KINDS if kind not in NOT_ISSUED)


def microseconds_of(row, gpu=Gpu()):
    """{resource: microseconds} of one launch."""
    busiest = math.ceil(row["grid"] / gpu.multiprocessors)  # blocks
    share = busiest / row["grid"] / gpu.clocks_per_us
    bytes_moved = 32 * (row["load_sectors"] + row["store_sectors"])
    alone = busiest * gpu.multiprocessors / row["grid"] if row["grid"] < gpu.multiprocessors else 1
    return {
        "issue": (issued(row) + (gpu.slots_of_division - 1) * row["division"]) * share / gpu.issued,
        "special": row["special"] * share / gpu.special,
        "integer": row["integer"] * share / gpu.integer,
        "tensor": row["operations"] * share / gpu.operations,
        "shared": row["shared_wavefronts"] * share / gpu.wavefronts,
        "cache" if row["product"] else "memory":
            alone * bytes_moved / (gpu.cache_bytes if row["product"] else gpu.memory_bytes),
    }


@dataclasses.dataclass
class Part:
    """What launches of one family cost in a step."""
    launches: int = 0
    microseconds: float = 0
    limits: dict = dataclasses.field(default_factory=dict)

    def add(self, launches, microseconds, limit):
        self.launches += launches
        self.microseconds += launches * microseconds
        self.limits[limit] = self.limits.get(limit, 0) + launches * microseconds

    @property
    def limit(self):
        return max(self.limits, key=self.limits.get)


def expected(rows, library_products, family_of, gpu=Gpu()):
    """{family: Part} of a step. rows: of per_step; library_products: [(launches of a step, clocks, bytes of each)]."""
    parts = {}
    for row in rows:
        times = microseconds_of(row, gpu)
        limit = max(times, key=times.get)
        family = family_of(row["kernel"]) or "other"
        parts.setdefault(family, Part()).add(row["launches"], times[limit] + gpu.start_us, limit)
    for launches, clocks, moved in library_products:
        planned, memory = clocks / gpu.clocks_per_us, moved / gpu.memory_bytes
        limit = "its plan" if planned > memory else "memory"
        parts.setdefault("cuBLASLt", Part()).add(launches, max(planned, memory) + gpu.start_us, limit)
    return parts
