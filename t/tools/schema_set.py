#!/usr/bin/env python3
"""
How many schemas of a public set this server takes, and whether it takes any text that they refuse.

    make build/schema-set build/venv-clients/done
    build/venv-clients/bin/python t/tools/schema_set.py [--walks N] [--show N] DIR...

Below each DIR, files are MaskBench's ({"schema", "tests"}), JSON-Schema-Test-Suite's ([{"schema",
"tests"}, ...]), or schemas themselves.  Instances are tried as they stand, and with the keys of the
outermost object in several orders.  A text that the set or Python's jsonschema calls invalid, and the
automaton takes or writes, is a false accept: it is printed, and the exit status is 1.
"""

import argparse
import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys

import jsonschema

DRAFTS = {'draft3': jsonschema.Draft3Validator, 'draft4': jsonschema.Draft4Validator,
          'draft6': jsonschema.Draft6Validator, 'draft7': jsonschema.Draft7Validator,
          'draft2019-09': jsonschema.Draft201909Validator}


def stripped(schema):
    """MaskBench takes keywords out of a schema by a line before their names."""

    if isinstance(schema, dict):
        return {key: stripped(value) for key, value in schema.items()
                if not key.startswith('_') or isinstance(value, (dict, list))}

    return [stripped(value) for value in schema] if isinstance(schema, list) else schema


def groups(path):
    """Each schema of a file, with its instances."""

    document = json.loads(path.read_text(encoding='utf-8-sig'))

    if isinstance(document, dict) and {'schema', 'tests'} <= document.keys():
        document = [{**document, 'schema': stripped(document['schema'])}]

    if isinstance(document, list):
        yield from ((group['schema'], group['tests']) for group in document)
    else:
        yield document, []


def texts(instance):
    if isinstance(instance, dict) and 1 < len(instance) < 5:
        orders = [dict(items) for items in itertools.permutations(instance.items())]
    else:
        orders = [instance]

    return [json.dumps(order, ensure_ascii=False, separators=(',', ':')) for order in orders]


def checker(path, schema):
    named = next((DRAFTS[part] for part in path.parts if part in DRAFTS), jsonschema.Draft202012Validator)
    kind = jsonschema.validators.validator_for(schema, default=named)

    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def reason(error):
    """The refusal without the place and its numbers; a keyword stays."""

    error = re.sub(r"^the schema's \S*?([^/\s]*) (?=is a keyword|is a format)", r'\1 ', error)
    error = re.sub(r"^the schema's (?:.*/)?([^/\s]+) ", r'\1 ', error)

    return re.sub(r'\d+', 'N', error)[:110]


class Set:
    def __init__(self, program, options):
        self.options = options
        self.tool = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = collections.Counter()
        self.reasons = collections.Counter()
        self.milliseconds = []

    def ask(self, **request):
        self.tool.stdin.write(json.dumps(request) + '\n')
        self.tool.stdin.flush()

        return json.loads(self.tool.stdout.readline())

    def false_accept(self, path, schema, text, why):
        self.count['false accepts'] += 1
        print(f'FALSE ACCEPT {path}: {why}\n  {json.dumps(schema)[:600]}\n  {text[:300]}', flush=True)

    def check_walks(self, path, schema, walks):
        if '"nullable"' in json.dumps(schema):
            self.count['schemas with nullable, whose texts jsonschema reads otherwise'] += 1
            return

        validator = checker(path, schema)

        for text in walks:
            self.count['texts written'] += 1

            if text is None:
                self.false_accept(path, schema, '', 'a text came to no end')
                continue

            try:
                error = next(validator.iter_errors(json.loads(text)), None)
            except (re.error, jsonschema.exceptions.SchemaError) as broken:
                self.count['texts that jsonschema cannot check'] += 1
                error = None

            if error is not None:
                self.false_accept(path, schema, text, error.message[:200])

    def check(self, path, schema, tests):
        forms = [(test['valid'], texts(test['data'])) for test in tests]
        answer = self.ask(schema=json.dumps(schema), texts=[t for _, form in forms for t in form], walks=self.options.walks)
        self.count['schemas'] += 1

        if 'error' in answer:
            self.reasons[reason(answer['error'])] += 1
            return

        self.count['taken'] += 1
        self.milliseconds.append(answer['ms'])
        takes = iter(answer['takes'])

        for valid, form in forms:
            taken = [text for text in form if next(takes)]
            self.count['valid instances' if valid else 'invalid instances'] += 1

            if valid:
                self.count['valid instances, taken in some order of keys'] += bool(taken)
            elif taken:
                self.false_accept(path, schema, taken[0], 'the set calls it invalid')

        self.check_walks(path, schema, answer['walks'])

    def report(self, name):
        times = sorted(self.milliseconds) or [0]
        print(f'\n{name}: {self.count["taken"]} of {self.count["schemas"]} schemas are taken '
              f'({100 * self.count["taken"] / max(1, self.count["schemas"]):.1f} %)')

        for what, n in sorted(self.count.items()):
            print(f'{n:8} {what}')

        print(f'{times[len(times) // 2]:8.2f} ms to compile at the median, {times[len(times) * 99 // 100]:.2f} at the 99th percentile')

        for what, n in self.reasons.most_common(self.options.show):
            print(f'{n:8} refused: {what}')


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--walks', type=int, default=3)
    options.add_argument('--show', type=int, default=30)
    options.add_argument('--program', default='build/schema-set')
    options.add_argument('--model', default='demo/model')
    options.add_argument('dir', nargs='+')
    options = options.parse_args()
    found = 0

    for name in options.dir:
        one = Set([options.program, options.model], options)

        for path in sorted(pathlib.Path(name).rglob('*.json')):
            try:
                for schema, tests in groups(path):
                    one.check(path, schema, tests)
            except (ValueError, KeyError) as broken:
                one.count['files that are neither'] += 1

        one.report(name)
        found += one.count['false accepts']

    return found > 0


if __name__ == '__main__':
    sys.exit(main())
