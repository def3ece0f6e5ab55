"""The core: message passing over rows and relations.

``relation`` pairs of source and target rows; ``relations`` the ones that models ask for, one call each; ``propagate``
message passing along a relation; ``attention`` attention along one; ``segment`` their arithmetic; ``messages``,
``updates``, ``readouts`` the parts that models are put together from; ``deduplicate`` rounds over the rows that look
different; ``joined_linear`` and ``perceptron`` the usual small layers and activations; ``sequence`` layers
over tokens; ``encoder`` the base class of encoders. Shapes stand in the annotations and are checked under pytest alone.
"""
