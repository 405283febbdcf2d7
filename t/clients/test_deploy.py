"""
Compares conf/kubernetes with the schemas of Kubernetes and of the Prometheus
operator, and conf/container/compose.yaml with the Compose specification, has
hadolint read the Containerfile, and parses the expressions of conf/grafana and
conf/prometheus.  t/97-deploy.t,
t/98-kubernetes.t and t/live/77-monitoring.t compare all with the server.
"""

import copy
import glob
import json
import os
import re
import subprocess
import sys
import urllib.request

import compose_spec
import kubernetes_validate
import promql_parser
import yaml
from cloudcoil.models.prometheus_operator import v1 as operator

from server import ROOT, URL
from tap import test

VERSIONS = ('1.27', '1.31', kubernetes_validate.latest_version())


def refused(parse, value, *error):
    try:
        parse(value)
    except error or Exception:
        return True

    return False


def checked(resource, version):
    return kubernetes_validate.validate(resource, version, strict=True)


@test
def kubernetes_takes_each_file():
    files = sorted(glob.glob(os.path.join(ROOT, 'conf/kubernetes/*.yaml')))
    kinds = []

    for path in files:
        with open(path) as file:
            resource = yaml.safe_load(file)

        if resource['kind'] == 'ServiceMonitor':        # the operator's
            continue

        kinds.append(resource['kind'])

        for version in VERSIONS:
            checked(resource, version)

        resource['spec']['colour'] = 'blue'
        assert refused(lambda r: checked(r, VERSIONS[0]), resource, kubernetes_validate.ValidationError), path

    assert sorted(kinds) == ['Deployment', 'HorizontalPodAutoscaler', 'PersistentVolumeClaim', 'PodDisruptionBudget',
                             'Service'], kinds


# The operator's models leave out what they do not know.
def monitored(resource):
    monitor = operator.ServiceMonitor.model_validate(resource)
    known = monitor.model_dump(mode='json', by_alias=True, exclude_unset=True)

    assert known == resource, f'{known}, and not {resource}'


def taken(resource):
    if resource['kind'] == 'ServiceMonitor':
        monitored(resource)
    else:
        checked(resource, VERSIONS[0])


@test
def the_operator_takes_the_monitor():
    with open(os.path.join(ROOT, 'conf/kubernetes/servicemonitor.yaml')) as file:
        resource = yaml.safe_load(file)

    monitored(resource)

    for change in (lambda r: r['spec'].update(colour='blue'),
                   lambda r: r['spec'].pop('selector'),
                   lambda r: r['spec']['selector'].update(matchLabel={}),
                   lambda r: r['spec']['endpoints'][0].update(interval='often'),
                   lambda r: r['spec']['endpoints'][0].update(path=7),
                   lambda r: r['spec']['endpoints'][0].update(pad='/metrics'),
                   lambda r: r['metadata'].update(label={}),
                   lambda r: r.update(apiVersion='monitoring.coreos.com/v2')):
        other = copy.deepcopy(resource)
        change(other)
        assert refused(monitored, other), other


def composed(text, **variables):
    """Reads a compose file, with variables replaced as compose does: ${NAME:-word}, ${NAME:?error}."""

    def value(match):
        name, sign, word = match.groups()

        if sign == '?' and not variables.get(name):
            raise ValueError(word)

        return variables.get(name) or word

    text = re.sub(r'\$\{(\w+):([-?])([^}]*)\}', value, text)

    if '${' in text:
        raise ValueError('a variable of another form')

    return compose_spec.PyCompose.from_yaml(text)


@test
def the_compose_file_is_one_of_the_specification():
    with open(os.path.join(ROOT, 'conf/container/compose.yaml')) as file:
        text = file.read()

    for variables in ({'MODEL': '/models/m'}, {'MODEL': '/models/m', 'MEMORY': '6g'}):
        compose = composed(text, **variables)
        assert (compose.name, compose.service_names()) == ('nginx-vlm', ['vlm']), compose

    assert refused(composed, text), 'a file without its model'
    assert refused(lambda t: composed(t, MODEL='/models/m', MEMORY='much'), text), 'a size that is none'

    for right, wrong in (('name: nginx-vlm', 'colour: blue'),
                         ('    read_only:', '    readonly:'),
                         ('read_only: true', 'read_only: often'),
                         ('cap_drop: [ALL]', 'cap_drop: ALL'),
                         ('nofile: 65536', 'nofile: many'),
                         ('dockerfile:', 'containerfile:'),
                         (':/model:ro', ':model:ro'),
                         ('127.0.0.1:5001:5001', '127.0.0.1:5001:x'),
                         ('interval: 30s', 'interval: often'),
                         ('start_period:', 'begin_period:'),
                         ('restart: unless-stopped', 'restart: sometimes'),
                         ('stop_grace_period: 160s', 'stop_grace_period: long')):
        assert right in text, right
        assert refused(lambda t: composed(t, MODEL='/models/m'), text.replace(right, wrong)), wrong


def linted(text):
    """Returns the rules that hadolint finds broken, but one: Debian's pool has one version of a package, so that none is named."""

    hadolint = os.path.join(os.path.dirname(sys.executable), 'hadolint')
    done = subprocess.run([hadolint, '--ignore', 'DL3008', '-'], input=text, capture_output=True, text=True)

    return re.findall(r'^-:\d+ (\w+)', done.stdout, re.M) if done.returncode in (0, 1) and not done.stderr else [done.stderr]


@test
def hadolint_has_nothing_to_say_of_the_containerfile():
    with open(os.path.join(ROOT, 'conf/container/Containerfile')) as file:
        text = file.read()

    assert linted(text) == [], linted(text)

    for right, wrong, rule in (('install -y ', 'install ', 'DL3014'),
                               ('--no-install-recommends', '', 'DL3015'),
                               ('WORKDIR /src', 'WORKDIR src', 'DL3000'),
                               ('USER 10001:10001', 'USER root', 'DL3002'),
                               ('--from=build', '--from=bild', 'DL3022'),
                               ('bookworm-slim AS', 'latest AS', 'DL3007'),
                               ('EXPOSE 5001', 'EXPOSE 500100', 'DL3011'),
                               ('-d -o 10001', '-d -o $OWNER', 'SC2086')):
        assert right in text, right
        assert rule in linted(text.replace(right, wrong)), (wrong, linted(text.replace(right, wrong)))


@test
def prometheus_takes_each_expression():
    with open(os.path.join(ROOT, 'conf/grafana/dashboard.json')) as file:
        board = json.load(file)

    with open(os.path.join(ROOT, 'conf/prometheus/alerts.yml')) as file:
        rules = yaml.safe_load(file)

    exprs = [t['expr'] for p in board['panels'] for t in p['targets']]
    exprs += [r['expr'] for g in rules['groups'] for r in g['rules']]

    for expr in exprs:
        promql_parser.parse(expr)

    assert len(exprs) > 30, len(exprs)
    assert refused(promql_parser.parse, 'sum by (rate(vlm_x[5m]))')
    assert refused(promql_parser.parse, exprs[0] + ')')


@test
def the_scrape_configuration_of_the_page_finds_metrics_and_rules():
    with open(os.path.join(ROOT, 'docs/metrics.md')) as file:
        (text,) = re.findall(r'^```yaml\n(.*?)^```', file.read(), re.S | re.M)

    with open(os.path.join(ROOT, 'conf/prometheus/alerts.yml')) as file:
        (jobs,) = re.findall(r'up\{job=~"(.*?)"\}', file.read())

    conf = yaml.safe_load(text)
    (scrape,) = conf['scrape_configs']
    ((target,),) = (s['targets'] for s in scrape['static_configs'])

    assert conf.keys() == {'scrape_configs', 'rule_files'} and scrape.keys() == {'job_name', 'static_configs'}
    assert re.fullmatch(jobs, scrape['job_name']), 'the rules ask for another job'
    assert conf['rule_files'] == os.listdir(os.path.join(ROOT, 'conf/prometheus'))

    with urllib.request.urlopen(f'http://{target}/metrics'.replace('http://127.0.0.1:5001', URL), timeout=10) as answer:
        assert b'vlm_info{' in answer.read()
