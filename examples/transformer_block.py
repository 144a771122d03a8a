"""Is one object between two equal ones? A Transformer answers for new shapes.

Attention to entities compares them by two. 2-simplicial attention weighs pairs:
each entity attends to every two of a few virtual entities. The block here has
heads of both kinds. It takes the nine tiles of an image as entities, learns
from 5,000 images of pentominoes, and is tested on 5,000 of hexominoes.

After 100 epochs it is right about 97.9 % of them. A dense network in its place
is right about 90.2 %. Both together took three minutes of processor time.

Clift et al., 2019, Logic and the 2-Simplicial Transformer,
https://arxiv.org/abs/1909.00668
"""

import argparse

import keras
import matplotlib.pyplot as plt

from keras_relational import layers
from keras_relational.datasets import relations_game

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=100)
args = parser.parse_args()


def data(num_images, object_set, seed):
    """Tiles (num_images, 9, 432), and 1 where an object is between equals."""
    images, labels, _ = relations_game.generate(
        "between", num_images, object_set=object_set, seed=seed
    )
    return relations_game.tiles(images), labels


x_train, y_train = data(5_000, "pentominoes", seed=0)
x_test, y_test = data(5_000, "hexominoes", seed=1)


def hidden_layer(entities):
    return keras.layers.Dense(64, activation="relu")(entities)


def transformer_block(entities):
    # Attention knows no order, so each place adds a learned vector.
    places = layers.PositionalSymbols(max_length=9)(entities)
    entities = keras.layers.Add()([entities, places])
    virtual_entities = layers.VirtualEntities(num_entities=4)(entities)
    block = layers.SimplicialTransformerBlock(
        num_heads=4,
        key_dim=16,
        num_simplicial_heads=1,
        simplicial_key_dim=16,
        hidden_units=64,
        name="block",
    )
    entities, _ = block(entities, virtual_entities)
    return entities


curves, epochs_per_point = {}, max(1, args.epochs // 20)
for name, hidden in {
    "dense network": hidden_layer,
    "Transformer block": transformer_block,
}.items():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((9, 432), name="tiles")
    x = keras.layers.Dense(64)(inputs)
    x = hidden(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(32, activation="relu")(x)
    outputs = keras.layers.Dense(2, name="logits")(x)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(
        x_train,
        y_train,
        batch_size=128,
        epochs=args.epochs,
        validation_data=(x_test, y_test),
        validation_freq=epochs_per_point,
        verbose=0,
    )
    curves[name] = history.history["val_accuracy"]
    print(f"{name}: {curves[name][-1]:.1%} of hexominoes")

figure, panel = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, accuracies in curves.items():
    epochs = range(epochs_per_point, args.epochs + 1, epochs_per_point)
    panel.plot(epochs, accuracies, label=name)
panel.set(xlabel="epochs", ylabel="accuracy on hexominoes")
panel.legend()
figure.savefig("transformer_block.png")
print("How both learn: transformer_block.png")

model.export("transformer_block", verbose=False)
