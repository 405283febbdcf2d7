"""
Compares conf/kubernetes with Kubernetes' schemas, and parses the expressions of
conf/grafana and conf/prometheus.  t/98-kubernetes.t and t/live/77-monitoring.t
compare both with the server.
"""

import glob
import json
import os
import re
import urllib.request

import kubernetes_validate
import promql_parser
import yaml

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

        if resource['kind'] == 'ServiceMonitor':        # of an operator, without a schema here
            continue

        kinds.append(resource['kind'])

        for version in VERSIONS:
            checked(resource, version)

        resource['spec']['colour'] = 'blue'
        assert refused(lambda r: checked(r, VERSIONS[0]), resource, kubernetes_validate.ValidationError), path

    assert sorted(kinds) == ['Deployment', 'HorizontalPodAutoscaler', 'PersistentVolumeClaim', 'PodDisruptionBudget',
                             'Service'], kinds


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
