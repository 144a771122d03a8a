"""The loop over the steps of a sequence that Keras' own recurrent layers use.

It has a gradient on all backends, and Keras has no public name for it:
`keras.layers.RNN`, which calls it, gives a cell one tensor a step and takes one
output, where our layers need several. This is the only use of Keras' private
part in the library.
"""

from keras.src import backend

rnn = backend.rnn
