"""
Random JSON schemas of the subset that this server obeys.
"""

import random

WORDS = ['x', 'box', 'label', 'a "b"', 'café', 'n1', 'color', 'colour', 'co', 'the whole', '座標', 'a\\b', '']
VALUES = ['red', 'green', 'r', '', 'é\n"', 0, 1, -7, 12, 1.5, 1e20 / 3e15, True, False, None, [], [1, 'a'], {'k': [None]}]
PATTERNS = ['^[a-z]+$', 'b', r'^\d{2,4}-[A-Z]$', '^(left|right)( [0-9]{1,3}){1,3}$', r'^[^\s"]{0,9}$', r'^#[0-9a-fA-F]{6}$', 'x$|^y', r'^\S.*é?$']
FORMATS = ['date-time', 'date', 'time', 'uuid', 'email', 'ipv4', 'duration']
NOTES = {'title': 'A title', 'description': 'words', 'default': 7, 'examples': [1], '$comment': 'none'}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = []

    def some(self, list, most):
        return self.random.sample(list, self.random.randint(1, most))

    def bounds(self, low, high, most):
        least, greatest = sorted(self.random.choices(range(most + 1), k=2))
        bounds = {low: least, high: greatest}

        for key in (low, high):
            if self.random.random() < 0.4:
                del bounds[key]

        return bounds

    def bounded(self):
        """A number with bounds, or a string with a pattern or a format."""

        kind = self.random.randrange(4)
        low, high = sorted(self.random.choices(range(-50, 2000), k=2))

        if kind == 0:
            return {'type': 'string', 'pattern': self.random.choice(PATTERNS)}
        if kind == 1:
            return {'type': 'string', 'format': self.random.choice(FORMATS)}
        if kind == 2:
            return {'type': 'integer', 'minimum': low, self.random.choice(['maximum', 'exclusiveMaximum']): high + 1}

        return {'type': 'number', self.random.choice(['minimum', 'exclusiveMinimum']): low / 8, 'maximum': high / 8 + 1}

    def scalar(self):
        kind = self.random.randrange(10)

        if kind > 6:
            return self.bounded()

        if kind == 0:
            return {'type': 'string', **self.bounds('minLength', 'maxLength', 12)}
        if kind == 1:
            return {'enum': self.some(VALUES, 6)}
        if kind == 2:
            return {'const': self.random.choice(VALUES)}
        if kind == 3:
            return {'type': self.random.sample(['integer', 'null', 'boolean', 'string'], 2)}
        if kind == 4:
            return {'type': 'string', 'enum': self.some([v for v in VALUES if isinstance(v, str)], 3)}

        return {'type': self.random.choice(['integer', 'number', 'boolean', 'null', 'string'])}

    def array(self, depth):
        array = {'type': 'array', **self.bounds('minItems', 'maxItems', 4)}

        if self.random.random() < 0.9:
            array['items'] = self.schema(depth - 1)
        if self.random.random() < 0.2:
            array['prefixItems'] = [self.schema(depth - 1) for _ in range(self.random.randint(1, 2))]

        return array

    def object(self, depth):
        keys = self.some(WORDS, 5)
        value = {'type': 'object', 'properties': {key: self.schema(depth - 1) for key in keys}}

        if self.random.random() < 0.7:
            value['required'] = self.some(keys, len(keys))

        kind = self.random.random()

        if kind < 0.4:
            value['additionalProperties'] = False
        elif kind < 0.5:
            value['additionalProperties'] = True
        elif kind < 0.6:
            value['additionalProperties'] = self.schema(0)
            value.setdefault('required', []).append('further')

        return value

    def one_of(self, depth):
        return {'oneOf': [
            {'type': 'object', 'properties': {'kind': {'const': kind}, 'value': self.schema(depth - 1)},
             'required': ['kind', 'value']} for kind in ('a', 'ab', 'b')]}

    def all_of(self, depth):
        return {'allOf': [{'type': 'object', 'properties': {key: self.schema(depth - 1)}, 'required': [key][:self.random.randint(0, 1)]}
                          for key in self.random.sample(['first', 'second', 'third'], 2)]}

    def schema(self, depth):
        kind = self.random.random()

        if depth <= 0 or kind < 0.25:
            schema = self.scalar()
        elif kind < 0.45:
            schema = self.array(depth)
        elif kind < 0.7:
            schema = self.object(depth)
        elif kind < 0.8:
            schema = {'anyOf': [self.schema(depth - 1) for _ in range(self.random.randint(2, 4))]}
        elif kind < 0.85:
            schema = self.one_of(depth)
        elif kind < 0.9:
            schema = {'allOf': [self.schema(depth - 1)]} if self.random.random() < 0.5 else self.all_of(depth)
        else:
            schema = {'$ref': '#/$defs/' + self.random.choice(self.names)}

        if self.random.random() < 0.2:
            schema.update({key: NOTES[key] for key in self.some(list(NOTES), 2)})

        return schema


def schema_of(seed):
    """Returns a schema; definitions refer to themselves through members that may be left out."""

    maker = Maker(seed)
    maker.names = ['leaf']
    leaf = maker.scalar()
    maker.names = ['leaf', 'tree']
    tree = {'type': 'object', 'properties': {
        'v': {'$ref': '#/$defs/leaf'}, 'next': {'anyOf': [{'type': 'null'}, {'$ref': '#/$defs/tree'}]},
        'all': {'type': 'array', 'items': {'$ref': '#/$defs/tree'}, 'maxItems': 2}}, 'required': ['v']}

    return {**maker.object(3), '$defs': {'leaf': leaf, 'tree': tree}}
