"""BoxWorld and bridge BoxWorld: keys, locked boxes, and a gem behind them.

The rules of [Zambaldi et al., 2019](https://arxiv.org/abs/1806.01830) and of
[Clift et al., 2019](https://arxiv.org/abs/1909.00668), section 3, as pure
functions of tensors with one row for each episode. Functions of the same kind
make new puzzles. All of them compile.

A board is a grid of tiles. The player walks on blank tiles. The player picks up
a loose key by walking onto it. A box is a key with a lock to its right. To open
a box, the player walks onto its lock while holding a key of the lock's colour.
This key is used up, and the player gets the key of the box. The gem lies in the
last box. On a bridge board this box has two locks, with a gem beside each.
Opening it takes two keys and gives both gems.

Rewards: +1 for a loose key and for a box on the way to the gem, +10 for the
gem, −1 for a distractor box or a bridge. The last two end the episode.

- `tiles`: the colours of tiles, and which entities of an agent match.
- `rules`: `Board`, the rules that both kinds of puzzle share.
- `puzzles`: `BoxWorld` and `BridgeBoxWorld`, which make new puzzles.
- `options`: puzzles by the options of a command.

`python -m keras_relational.environments.boxworld` draws a puzzle.
"""

from keras_relational.environments.boxworld.options import SIZES
from keras_relational.environments.boxworld.options import WORLDS
from keras_relational.environments.boxworld.options import world_of_options
from keras_relational.environments.boxworld.puzzles import BoxWorld
from keras_relational.environments.boxworld.puzzles import BridgeBoxWorld
from keras_relational.environments.boxworld.rules import ACTIONS
from keras_relational.environments.boxworld.rules import GEM_REWARD
from keras_relational.environments.boxworld.tiles import BLANK
from keras_relational.environments.boxworld.tiles import EMPTY
from keras_relational.environments.boxworld.tiles import GEM
from keras_relational.environments.boxworld.tiles import HUES
from keras_relational.environments.boxworld.tiles import NUM_HUES
from keras_relational.environments.boxworld.tiles import PLAYER
from keras_relational.environments.boxworld.tiles import same_colour

__all__ = [
    "ACTIONS",
    "BLANK",
    "EMPTY",
    "GEM",
    "GEM_REWARD",
    "HUES",
    "NUM_HUES",
    "PLAYER",
    "SIZES",
    "WORLDS",
    "BoxWorld",
    "BridgeBoxWorld",
    "same_colour",
    "world_of_options",
]
