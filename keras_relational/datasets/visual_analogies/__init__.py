"""Visual analogies: a panel must complete the second row like the first.

In the style of Hill et al., 2019, *Learning to Make Analogies by Contrasting
Abstract Relational Structure*, on which Webb et al., 2020, test extrapolation
(sections 2.2 and 5.2). A problem has 2 × 3 panels. In the first row, the
source, a relation holds in one domain, such as the sizes of shapes. In the
second row, the target, the same relation holds in another domain. Its last
panel must be chosen from four candidates. In all other domains the panels vary
at random. This is the distraction.

`generate` makes problems of our own, and `load_npz` reads the published ones.
The values of a panel in a domain are integers:

- `line_colour`: colours of lines, 10 shades from light to dark;
- `line_type`: types of lines, falling, rising, level, upright, diamond, circle;
- `shape_colour`: colours of shapes, 10 shades from light to dark;
- `shape_type`: types of shapes, with 3, 4, 5, 6 and 8 corners, circle, star;
- `shape_size`: sizes of shapes, 10 sizes;
- `shape_quantity`: the number of shapes, 1 to 9, a single value;
- `shape_position`: places of shapes, 9 places, row by row.

The first two panels of a row have the values {v, v + s} and {v + s, v + 2 s},
with a step s of 1 or −1. The third panel has, for each relation,

    and            values of both panels           {v + s}
    or             values of either panel          {v, v + s, v + 2 s}
    xor            values of exactly one panel     {v, v + 2 s}
    progression    the next values                 {v + 2 s, v + 3 s}

The first two quantities of a row are v and v + s. Then `and` is the smaller
one, `or` is the larger one, `progression` is v + 2 s, and `xor` is nothing. So
no row of quantities has the relation `xor`. Among the candidates another
quantity takes its place.

Contrasting candidates are the results of all four relations ("learning
analogies by contrasting"), and any relation can follow the same two panels. So
the target row alone says almost nothing about the answer: a solver that
excludes the other quantity, and guesses, is right in 27 % of the training
problems and in 28 % of the test problems. With random candidates, one that
guesses among the candidates that fit a relation is right in 79 % of the
training problems and in 72 % of the test problems.

- `domains`: the domains and the ranges of their values.
- `problems`: relations, candidates, and `generate`.
- `panels`: draws panels.
- `published`: reads the published problems.
"""

from keras_relational.datasets.visual_analogies.domains import DOMAINS
from keras_relational.datasets.visual_analogies.domains import ORDERED_DOMAINS
from keras_relational.datasets.visual_analogies.problems import CANDIDATES
from keras_relational.datasets.visual_analogies.problems import REGIMES
from keras_relational.datasets.visual_analogies.problems import RELATIONS
from keras_relational.datasets.visual_analogies.problems import Problems
from keras_relational.datasets.visual_analogies.problems import generate
from keras_relational.datasets.visual_analogies.problems import load_data
from keras_relational.datasets.visual_analogies.published import IMAGE_SIZE
from keras_relational.datasets.visual_analogies.published import NUM_PANELS
from keras_relational.datasets.visual_analogies.published import load_npz

__all__ = [
    "CANDIDATES",
    "DOMAINS",
    "IMAGE_SIZE",
    "NUM_PANELS",
    "ORDERED_DOMAINS",
    "REGIMES",
    "RELATIONS",
    "Problems",
    "generate",
    "load_data",
    "load_npz",
]
