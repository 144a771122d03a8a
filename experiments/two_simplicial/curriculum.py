"""Puzzles that grow with the share of them that is solved."""

from keras import ops

from keras_relational.environments.batched_world import World


class Curriculum(World):
    """BoxWorld that begins with its smallest puzzles and makes larger ones.

    Every row of the state has a difficulty d, from 0 to 1. The numbers of boxes
    come from the lower part of their ranges: a length from `low` to `high` is

        length = low + ⌊(high − low + 1) d u⌋,  u uniform in [0, 1)

    d begins at 0. Each row also keeps a running share r of its episodes that
    were solved, which begins at 0. When an episode ends,

        r ← r + (solved − r) / num_episodes

    If r has then reached `threshold`, d grows by `step`, and r is 0 again. With
    d = 1 the puzzles are those of `board`. The state of a board has two more
    arrays, `difficulty` and `share_solved`, both float32 `(batch,)`.
    """

    def __init__(self, board, threshold=0.8, step=0.05, num_episodes=10):
        super().__init__(board.max_episode_steps)
        self.board = board
        self.threshold = threshold
        self.step_size = step
        self.num_episodes = num_episodes
        self.actions = board.actions
        self.image_shape = board.image_shape
        self.success_reward = board.success_reward

    def new_episode(self, seed, episode):
        """Makes the smallest puzzles."""
        return self._with_shares(
            self.board.new_episode(seed, episode, 0.0),
            ops.zeros_like(episode, dtype="float32"),
            ops.zeros_like(episode, dtype="float32"),
        )

    def next_episode(self, state):
        """Makes puzzles as large as the difficulty of each row allows."""
        difficulty, share = state["difficulty"], state["share_solved"]
        new = self.board.new_episode(
            state["seed"], state["episode"] + 1, difficulty
        )
        return self._with_shares(new, difficulty, share)

    def move(self, state, actions):
        """The rules of the board."""
        return self.board.move(state, actions)

    def step_or_restart(self, state, actions, over):
        """As for any world. Where an episode ends, r and d change."""
        state, reward, terminated, truncated = super().step_or_restart(
            state, actions, over
        )
        ended = terminated | truncated
        solved = ops.cast(reward >= self.success_reward, "float32")
        difficulty, old = state["difficulty"], state["share_solved"]
        share = old + (solved - old) / self.num_episodes
        grows = ended & (share >= self.threshold)
        harder = ops.minimum(difficulty + self.step_size, 1.0)
        state = self._with_shares(
            state,
            ops.where(grows, harder, difficulty),
            ops.where(grows, 0.0, ops.where(ended, share, old)),
        )
        return state, reward, terminated, truncated

    def render(self, state):
        """Draws the board."""
        return self.board.render(state)

    def expert_moves(self, state):
        """The right moves, as `boxworld.rules.Board.expert_moves` has them."""
        return self.board.expert_moves(state)

    def _with_shares(self, state, difficulty, share):
        return {**state, "difficulty": difficulty, "share_solved": share}
