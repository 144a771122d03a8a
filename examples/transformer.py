"""A Transformer block with relational heads, beside a dense network.

An image shows four objects on a board of nine tiles: one in the top row, three
below. Is the one on top among the three, while the other two differ? Each tile
is an entity. Half of the heads of a `DualAttentionBlock` attend as those of any
Transformer do. The other half retrieve which relation an entity has to those
that it attends to, and the symbol of their place.

Altabaa and Lafferty, 2024, Disentangling and Integrating Relational and Sensory
Information in Transformer Architectures, https://arxiv.org/abs/2405.16727
"""

import argparse

import keras
import matplotlib.pyplot as plt

from keras_relational import layers
from keras_relational.datasets import relations_game

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-images", type=int, default=20_000)
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

TASK = "xoccurs"


def data(num_images, object_set, seed):
    """Boards as nine entities of 432 numbers each, and the answers."""
    images, labels, _ = relations_game.generate(
        TASK, num_images, object_set=object_set, seed=seed
    )
    return relations_game.tiles(images), labels, images


x_train, y_train, _ = data(args.num_images, "pentominoes", seed=0)
x_test, y_test, images = data(5_000, "hexominoes", seed=1)  # Never seen.


def dual_attention(x):
    # Attention sees no order, so each place has a learned vector.
    x = x + layers.PositionalSymbols(9)(x)
    symbols = layers.PositionalSymbols(9)(x)
    block = layers.DualAttentionBlock(
        num_heads=2, num_relational_heads=2, hidden_units=64, name="block"
    )
    x, scores = block(x, symbols, return_attention_scores=True)
    # The block adds to its inputs and normalizes them, but not their sum.
    return keras.layers.LayerNormalization()(x), scores


def dense(x):
    x = keras.layers.Flatten()(x)
    return keras.layers.Dense(64, activation="relu")(x), None


for reasoner in (dense, dual_attention):
    keras.utils.set_random_seed(0)
    entities = keras.Input((9, 432), name="entities")
    x = keras.layers.Dense(64)(entities)
    x, scores = reasoner(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(32, activation="relu")(x)
    model = keras.Model(entities, keras.layers.Dense(2)(x))
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(x_train, y_train, batch_size=64, epochs=args.epochs, verbose=2)
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"{reasoner.__name__}: right about {accuracy:.1%} of new shapes")

# Which tiles does the object of the top row attend to? The model that is left
# has dual attention: of its scores the first are those of the two heads of
# self-attention, the second those of the two relational heads.
shown = 4
of_heads = keras.Model(entities, scores[:2]).predict(x_test[:shown], verbose=0)
figure, panels = plt.subplots(shown, 5, figsize=(8, 1.7 * shown))
for i, row in enumerate(panels):
    top = x_test[i, :3].sum(axis=-1).argmax()
    row[0].imshow(images[i])
    row[0].set_title("yes" if y_test[i] else "no")
    maps = [*of_heads[0][i, :, top], *of_heads[1][i, :, top]]
    names = ["self 1", "self 2", "relational 1", "relational 2"]
    for panel, name, weights in zip(row[1:], names, maps, strict=True):
        panel.imshow(weights.reshape(3, 3), cmap="Blues", vmin=0, vmax=1)
        panel.set_title(name)
    for panel in row:
        panel.set(xticks=[], yticks=[])
figure.tight_layout()
figure.savefig("transformer_attention.png")
print("What the top object attends to: transformer_attention.png")
