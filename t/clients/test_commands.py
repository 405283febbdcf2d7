"""
Runs commands of README and docs, word for word, that start servers.  The way from a name on the hub
to an answer uses the hub's own program from PyPI; its hub is a server of this file, which has
demo/model under RoboBrain's name and answers what that program asks for: the commit, the list of
files, and each file's bytes, those of weights at another origin.  Only /models and ~ are directories
of the test, and the demos are asked about fewer scenes.  The cluster that kubectl applies files to is
that of cluster.py.
"""

import contextlib
import filecmp
import getpass
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cluster import cluster
from server import ROOT, URL, health
from tap import test
from test_deploy import taken

HERE = os.path.join(ROOT, 'build/live/clients/commands')
DEMO = os.path.join(ROOT, 'demo/model')
COMMIT = '0123456789abcdef0123456789abcdef01234567'
DOCTOR = f'--module build/ngx_http_vlm_module.so --user {getpass.getuser()}'
LIMIT = 900


def bytes_of(name):
    with open(os.path.join(DEMO, name), 'rb') as file:
        return file.read()


def hashes(name):
    """Returns git's name of a file's bytes, and their SHA-256."""

    text = bytes_of(name)

    return hashlib.sha1(b'blob %d\0' % len(text) + text).hexdigest(), hashlib.sha256(text).hexdigest()


def large(name):
    return name.endswith('.safetensors')


class Hub(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    asked = []                          # paths, with the methods
    storage = ''                        # the origin of weights

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split('?')[0]
        repo = 'BAAI/RoboBrain2.0-3B'
        file = f'/{repo}/resolve/{COMMIT}/'

        self.asked.append(f'{self.command} {path}')

        if path == f'/api/models/{repo}/revision/main':
            self.reply(json.dumps({'id': repo, 'sha': COMMIT, 'siblings': [
                {'rfilename': name} for name in os.listdir(DEMO)]}).encode())

        elif path == f'/api/models/{repo}/tree/{COMMIT}':
            self.reply(json.dumps([self.entry(name) for name in os.listdir(DEMO)]).encode())

        elif path.startswith(file) and path.removeprefix(file) in os.listdir(DEMO):
            self.file(path.removeprefix(file))

        elif path.startswith('/large/'):
            self.reply(bytes_of(os.path.basename(path)))

        else:
            self.reply(b'', 404)

    def entry(self, name):
        oid, sha256 = hashes(name)
        entry = {'type': 'file', 'path': name, 'oid': oid, 'size': len(bytes_of(name))}

        if large(name):
            entry['lfs'] = {'oid': sha256, 'size': entry['size'], 'pointerSize': 135}

        return entry

    def file(self, name):
        oid, sha256 = hashes(name)
        size = str(len(bytes_of(name)))

        if large(name):
            self.reply(b'', 302, {'Location': f'{self.storage}/large/{name}', 'X-Repo-Commit': COMMIT,
                                  'X-Linked-Etag': f'"{sha256}"', 'X-Linked-Size': size})
        else:
            self.reply(bytes_of(name), 200, {'X-Repo-Commit': COMMIT, 'ETag': f'"{oid}"'})

    def reply(self, body, code=200, headers={}):
        self.send_response(code)

        for name, value in {**headers, 'Content-Length': str(len(body))}.items():
            self.send_header(name, value)

        self.end_headers()

        if self.command != 'HEAD':
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def hub():
    servers = [ThreadingHTTPServer(('127.0.0.1', 0), Hub) for _ in range(2)]
    urls = [f'http://127.0.0.1:{server.server_port}' for server in servers]
    Hub.storage = urls[1]

    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()

    try:
        yield urls[0]
    finally:
        for server in servers:
            server.shutdown()


def there(command):
    return command.replace('/models/', f'{HERE}/models/')


# t/98-commands.t finds the commands that stand as they are, and whole, in calls of shell() and runs().
def shell(command, *more, **how):
    done = tried(command, *more, **how)

    assert done.returncode == 0, f'{command}\n{done.stdout}{done.stderr}'

    return done.stdout


def tried(command, *more, cwd=ROOT, **env):
    words = ' '.join([there(command), *more])

    return subprocess.run(['sh', '-ec', words], cwd=cwd, env=environment(**env), capture_output=True, text=True, timeout=LIMIT)


def environment(**env):
    """PyPI's packages lie in build/hub, Debian's programs in build/programs; a busy machine may be slow to answer."""

    return {**os.environ, 'HOME': f'{HERE}/home', 'PATH': f'{ROOT}/build/programs:' + os.environ['PATH'],
            'PIP_NO_INDEX': '1', 'PIP_FIND_LINKS': f'{ROOT}/build/hub',
            'HF_HUB_ETAG_TIMEOUT': str(LIMIT), 'HF_HUB_DOWNLOAD_TIMEOUT': str(LIMIT), 'HF_HUB_DISABLE_UPDATE_CHECK': '1', **env}


def free_port():
    with socket.socket() as listen:
        listen.bind(('127.0.0.1', 0))
        return listen.getsockname()[1]


@contextlib.contextmanager
def runs(command, end=lambda make: os.killpg(make, signal.SIGINT)):
    """Runs a server until it has its model, gives its address, and ends it, as Ctrl-C does unless told otherwise."""

    port = free_port()
    address = f'http://127.0.0.1:{port}'
    log_file = f'{HERE}/run-{port}.log'

    with open(log_file, 'w') as log:
        server = subprocess.Popen(['sh', '-c', 'exec ' + there(command)], cwd=ROOT, env=environment(PORT=str(port)), stdout=log,
                                  stderr=log, start_new_session=True)

    try:
        assert loaded(server, address), f'{command}\n' + said(log_file)
        yield address
    finally:
        with contextlib.suppress(ProcessLookupError):
            end(server.pid)

        server.wait(LIMIT)
        shutil.rmtree(f'{ROOT}/run/{port}', ignore_errors=True)


def loaded(server, address):
    end = time.monotonic() + LIMIT

    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if health(address)['model_loaded']:
                return True

        time.sleep(0.1)

    return False


def said(name):
    with open(name) as log:
        return log.read()


@test
def the_readme_leads_from_a_name_on_the_hub_to_an_answer():
    shell('python3 -m venv ~/hf && ~/hf/bin/pip install huggingface_hub')
    assert '--token' in shell('~/hf/bin/hf auth login', '--help')

    with hub() as url:
        shell('~/hf/bin/hf download BAAI/RoboBrain2.0-3B --local-dir /models/RoboBrain2.0-3B', HF_ENDPOINT=url)

    assert 'GET /large/model.safetensors' in Hub.asked, Hub.asked

    names = os.listdir(DEMO)
    same, other, missing = filecmp.cmpfiles(DEMO, there('/models/RoboBrain2.0-3B'), names, shallow=False)

    assert len(same) == len(names) > 5, (other, missing)

    found = shell('build/vlm doctor /models/RoboBrain2.0-3B', DOCTOR)
    assert 'ok: every tensor of the model is in its files' in found, found

    body = json.dumps({'messages': [{'role': 'user', 'content': 'How many cups are there?'}], 'max_tokens': 8}).encode()

    with runs('make run MODEL=/models/RoboBrain2.0-3B') as address:
        with urllib.request.urlopen(f'{address}/v1/chat/completions', body, timeout=LIMIT) as answer:
            assert json.load(answer)['usage']['completion_tokens'] > 0


@test
def make_run_loads_each_demo_model_beside_the_others():
    with (runs('make run') as one, runs('make run MODEL=demo/model-3') as two, runs('make run MODEL=demo/model-bloom') as three):
        for address in one, two, three:
            assert health(address)['model_loaded'], address


@test
def nginx_ends_with_make_run():
    def term(make):
        os.kill(make, signal.SIGTERM)

    with runs('make run', term) as address:
        pass

    try:
        health(address)
    except OSError as error:
        assert isinstance(getattr(error, 'reason', None), ConnectionRefusedError), repr(error)
    else:
        raise AssertionError('the server still answers')


@test
def the_demos_are_asked_about_some_scenes():
    answers = [shell('MODEL=demo/model-3 make demo-eval', SCENES='10'),
               shell('MODEL=demo/model WEIGHTS=f32 t/demo-eval --set plain --scenes 300', '--scenes 10')]

    for answer in answers:
        assert re.search(r'^all +80 ', answer, re.M), answer            # eight questions about each


@test
def git_lfs_replaces_the_pointers_of_a_clone():
    origin = there('/models/origin')
    person = {f'GIT_{who}_{what}': 'test' for who in ('AUTHOR', 'COMMITTER') for what in ('NAME', 'EMAIL')}

    shutil.copytree(DEMO, origin)
    shell('git init -q . && git lfs install --local && git lfs track "*.safetensors" && git add . && git commit -q -m model',
          cwd=origin, **person)
    shell('git clone -q file:///models/origin /models/clone')

    found = tried('build/vlm doctor /models/clone', DOCTOR).stdout
    assert re.search(r'^stop: .*/model\.safetensors: a Git LFS pointer, .*: run "git lfs pull" in its directory', found, re.M), found

    shell('git lfs install --skip-repo')        # Debian's package does that for all users
    shell('git lfs pull', cwd=there('/models/clone'))

    found = shell('build/vlm doctor /models/clone', DOCTOR)
    assert 'ok: every tensor of the model is in its files' in found, found


DOWN = """
rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="robots", instance="a"}', values: '1x5 0x30'}
      - {series: 'vlm_info{job="robots", instance="a", engine="e"}', values: '1x5 _x30'}
      - {series: 'up{job="my-vlm", instance="never"}', values: '0x35'}
      - {series: 'up{job="node", instance="a"}', values: '0x35'}
      - {series: 'up{job="robots", instance="well"}', values: '1x35'}
      - {series: 'vlm_info{job="robots", instance="well", engine="e"}', values: '1x35'}
    alert_rule_test:
      - eval_time: 20m
        alertname: VlmDown
        exp_alerts:
          - exp_labels: {severity: page, job: robots, instance: a}
            exp_annotations:
              summary: Metrics of a cannot be read
              description: &why "The server does not answer, or /metrics refuses Prometheus: unless from=any is set, it answers its own machine alone."
              runbook_url: docs/operations.md#figures-to-watch
          - exp_labels: {severity: page, job: my-vlm, instance: never}
            exp_annotations:
              summary: Metrics of never cannot be read
              description: *why
              runbook_url: docs/operations.md#figures-to-watch
"""


@test
def promtool_takes_the_configuration_the_rules_and_the_metrics():
    metrics, rules, others, config = (f'{HERE}/{name}' for name in ('metrics', 'rules.yml', 'others', 'prometheus.yml'))
    block = re.search(r'^```yaml\n(scrape_configs:.*?)^```', said(f'{ROOT}/docs/metrics.md'), re.M | re.S).group(1)
    shutil.copy(f'{ROOT}/conf/prometheus/alerts.yml', HERE)

    for text, good in (block, True), (block.replace('static_configs', 'static'), False), (block.replace('alerts', 'none'), False):
        with open(config, 'w') as file:
            file.write(text)

        assert (tried(f'promtool check config {config}').returncode == 0) == good, text

    with urllib.request.urlopen(f'{URL}/metrics', timeout=LIMIT) as answer, open(metrics, 'wb') as file:
        file.write(answer.read())

    assert not shell('promtool check metrics', f'2>&1 <{metrics}')
    assert re.search(r'SUCCESS: \d\d+ rules found', shell('promtool check rules', 'conf/prometheus/alerts.yml'))

    with open(f'{ROOT}/conf/prometheus/alerts.yml') as file:
        text = file.read()

    for wrong in text.replace('vlm_ready *', 'vlm_ready * *', 1), text.replace('for: 2m', 'for: soon', 1):
        with open(rules, 'w') as file:
            file.write(wrong)

        assert wrong != text and tried(f'promtool check rules {rules}').returncode != 0, wrong

    # A server that had metrics is missed, whatever the name of its job, and no other that is down.
    with open(f'{HERE}/alerts_test.yml', 'w') as file:
        file.write(DOWN)

    assert re.search(r'SUCCESS', shell('promtool test rules', f'{HERE}/alerts_test.yml'))

    with open(others, 'w') as file:
        file.write(said(metrics) + 'vlm_ready{engine="a"} "b"\n')

    assert tried(f'promtool check metrics <{others}').returncode != 0


@contextlib.contextmanager
def kubectl_has(directory, **how):
    """Copies conf/kubernetes, and starts a cluster.  Gives the arguments of shell(), and what the cluster keeps."""

    config = f'{HERE}/{directory}/config'
    shutil.copytree(f'{ROOT}/conf/kubernetes', f'{HERE}/{directory}/conf/kubernetes')

    with cluster(taken, **how) as (url, kept), open(config, 'w') as file:
        json.dump({'apiVersion': 'v1', 'kind': 'Config', 'clusters': [{'name': 'c', 'cluster': {'server': url}}],
                   'contexts': [{'name': 'c', 'context': {'cluster': 'c'}}], 'current-context': 'c'}, file)
        file.flush()
        yield {'cwd': f'{HERE}/{directory}', 'KUBECONFIG': config}, kept


@test
def kubectl_applies_the_files_and_waits_for_the_pods():
    with kubectl_has('cluster') as (at, kept):
        shell("sed -i 's|image: nginx-vlm$|image: REGISTRY/nginx-vlm:1|' conf/kubernetes/deployment.yaml", **at)
        found = shell('kubectl apply -f conf/kubernetes/', **at)
        files = os.listdir(f'{ROOT}/conf/kubernetes')

        assert found.count(' created\n') == len(kept) == len(files) > 5, (found, kept)

        pods = kept['/apis/apps/v1/namespaces/default/deployments/nginx-vlm']['spec']['template']['spec']
        assert pods['containers'][0]['image'] == 'REGISTRY/nginx-vlm:1', pods

        found = shell('kubectl rollout status deployment/nginx-vlm', **at)
        assert ' 1 out of 2 new replicas' in found and found.endswith(' successfully rolled out\n'), found


@test
def a_cluster_without_the_operator_takes_all_but_its_monitor():
    with kubectl_has('without', operator=False) as (at, kept):
        done = tried('kubectl apply -f conf/kubernetes/', **at)

        assert done.returncode != 0 and 'no matches for kind "ServiceMonitor"' in done.stderr, done
        assert len(kept) == len(os.listdir(f'{ROOT}/conf/kubernetes')) - 1, kept


@test
def kubectl_says_what_a_cluster_refuses():
    with kubectl_has('wrong') as (at, kept):
        shell("sed -i 's/readOnlyRootFilesystem:/readOnlyRoot:/' conf/kubernetes/deployment.yaml", **at)
        done = tried('kubectl apply -f conf/kubernetes/', **at)

        assert done.returncode != 0 and 'readOnlyRoot' in done.stderr, done
        assert not [path for path in kept if 'deployments' in path], kept


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(f'{HERE}/home')
