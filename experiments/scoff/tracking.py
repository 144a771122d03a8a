"""Following objects: by predictions alone, and by detections in any order.

`predict` is a function from positions `(n, time, objects, 2)` to the next
position of each object at each step, which does not look ahead.
"""

import numpy as np

from keras_relational.datasets.bouncing_balls import COORDINATES_RADIUS

RADIUS = COORDINATES_RADIUS
REACH = 1 - RADIUS  # Where centres of balls turn at a wall.


def same_velocity(positions):
    """Predicts that each object goes on as in its last step."""
    before = positions[:, [0, *range(positions.shape[1] - 1)]]
    return 2 * positions - before


def straight_on(positions, num_steps):
    """The next `num_steps` positions with the velocity of the last step."""
    last = positions[:, -1:]
    steps = np.arange(1, num_steps + 1)[:, None, None]
    return last + steps * (last - positions[:, -2:-1])


def bounced(positions):
    """Positions beyond a wall, folded back into the box."""
    return abs((positions - REACH) % (4 * REACH) - 2 * REACH) - REACH


def shuffle_steps(positions, rng):
    """Each step but the first in an order of its own, and whose each one is."""
    size, time, num_objects, _ = positions.shape
    owners = np.tile(np.arange(num_objects), (size, time, 1))
    owners[:, 1:] = rng.permuted(owners[:, 1:], axis=-1)
    return np.take_along_axis(positions, owners[..., None], axis=2), owners


def roll_out(predict, positions, num_steps):
    """The next `num_steps` positions, each predicted from those before."""
    given = positions.shape[1]
    known = np.pad(positions, [(0, 0), (0, num_steps), (0, 0), (0, 0)])
    for time in range(given, given + num_steps):
        # All times in one shape: what comes later has no effect.
        known[:, time] = predict(known[:, :-1])[:, time - 1]
    return known[:, given:]


def track(predict, detections):
    """Gives each detection to the object that is predicted to be there.

    Objects are numbered by the first step. Returns where each is found, and the
    object that each detection was given to, `(n, time, objects)`.
    """
    known = np.zeros_like(detections)
    known[:, 0] = detections[:, 0]
    size, time, num_objects, _ = detections.shape
    owners = np.tile(np.arange(num_objects), (size, time, 1))
    for now in range(1, time):
        predicted = predict(known[:, :-1])[:, now - 1]
        away = squared_distances(predicted, detections[:, now])
        taken = assignments(away)
        known[:, now] = np.take_along_axis(
            detections[:, now], taken[..., None], axis=1
        )
        owners[:, now] = taken.argsort(axis=1)
    return known, owners


def on_balls(followers, owners):
    """Who follows each ball, from who follows each detection and its ball."""
    found = np.empty_like(followers)
    np.put_along_axis(found, owners, followers, axis=-1)
    return found


def squared_distances(objects, others):
    """Of each object `(..., n, 2)` to each of the others: `(..., n, m)`."""
    away = objects[..., :, None, :] - others[..., None, :, :]
    return np.sum(away**2, axis=-1)


def assignments(costs):
    """The column of each row for which the sum of costs is smallest.

    `costs` is `(n, rows, columns)`, with no more rows than columns. All sets of
    columns are tried for the first rows, one row more at a time, which takes
    2^columns steps.
    """
    size, num_found, num_rows = costs.shape
    # Rows without costs take the columns that are left over.
    spare = np.zeros((size, num_rows - num_found, num_rows))
    costs = np.concatenate([costs, spare], axis=1)
    every = np.arange(size)
    least = np.zeros((2**num_rows, size))
    last = np.zeros((2**num_rows, size), int)
    for columns in range(1, 2**num_rows):  # Bits of the columns in the set.
        row = columns.bit_count() - 1
        among = [x for x in range(num_rows) if columns >> x & 1]
        sums = [least[columns ^ 1 << x] + costs[:, row, x] for x in among]
        best = np.argmin(sums, axis=0)
        least[columns] = np.array(sums)[best, every]
        last[columns] = np.array(among)[best]
    found = np.empty((size, num_rows), int)
    columns = np.full(size, 2**num_rows - 1)
    for row in reversed(range(num_rows)):
        found[:, row] = last[columns, every]
        columns ^= 1 << found[:, row]
    return found[:, :num_found]
