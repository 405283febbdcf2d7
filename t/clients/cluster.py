"""
A stand-in for the API of a Kubernetes cluster, as far as kubectl asks it: it
lists kinds, keeps what is applied if Kubernetes' schemas take it, and rolls a
Deployment out once someone watches it.
"""

import contextlib
import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CORE = {'services': 'Service', 'persistentvolumeclaims': 'PersistentVolumeClaim'}
GROUPS = {
    'apps/v1': {'deployments': 'Deployment'},
    'autoscaling/v2': {'horizontalpodautoscalers': 'HorizontalPodAutoscaler'},
    'policy/v1': {'poddisruptionbudgets': 'PodDisruptionBudget'},
    'monitoring.coreos.com/v1': {'servicemonitors': 'ServiceMonitor'},
}


def listed(names, version):
    return {'kind': 'APIResourceList', 'groupVersion': version, 'resources': [
        {'name': name, 'singularName': '', 'namespaced': True, 'kind': kind, 'verbs': ['create', 'get', 'list', 'patch', 'watch']}
        for name, kind in names.items()]}


def group(version):
    one = {'groupVersion': version, 'version': version.split('/')[1]}

    return {'name': version.split('/')[0], 'versions': [one], 'preferredVersion': one}


class API(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        path, _, query = self.path.partition('?')
        groups = self.server.groups

        if path == '/api':
            self.reply({'kind': 'APIVersions', 'versions': ['v1']})

        elif path == '/apis':
            self.reply({'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': [group(version) for version in groups]})

        elif path == '/api/v1':
            self.reply(listed(CORE, 'v1'))

        elif path.removeprefix('/apis/') in groups:
            self.reply(listed(groups[path.removeprefix('/apis/')], path.removeprefix('/apis/')))

        elif path == '/openapi/v2':             # an empty one, in protobuf: the schemas are the server's
            self.send(b'', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')

        elif 'watch=' in query:
            self.roll_out(path)

        elif path in self.server.kept:
            self.reply(self.server.kept[path])

        elif path.endswith('/deployments'):
            self.reply({'kind': 'DeploymentList', 'apiVersion': 'apps/v1', 'metadata': {'resourceVersion': '1'},
                        'items': [one for at, one in self.server.kept.items() if at.startswith(path + '/')]})

        else:
            self.refuse(404, 'NotFound')

    def do_POST(self):
        resource = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        path = self.path.split('?')[0]

        try:
            self.server.check(copy.deepcopy(resource))
        except Exception as error:
            self.refuse(400, 'BadRequest', str(error))
            return

        resource['metadata'].update(uid='1', resourceVersion='1', generation=1)

        if resource['kind'] == 'Deployment':
            resource['status'] = {'observedGeneration': 1, 'replicas': resource['spec']['replicas']}

        self.server.kept[f"{path}/{resource['metadata']['name']}"] = resource
        self.reply(resource, 201)

    def roll_out(self, path):
        """Sends two events: of the first pods, and of all."""

        (deployment,) = (one for at, one in self.server.kept.items() if at.startswith(path + '/'))
        text = b''

        for n in range(1, deployment['spec']['replicas'] + 1):
            deployment['metadata']['resourceVersion'] = str(1 + n)
            deployment['status'].update(updatedReplicas=n, readyReplicas=n, availableReplicas=n)
            text += json.dumps({'type': 'MODIFIED', 'object': deployment}).encode() + b'\n'

        self.send(text)

    def refuse(self, code, reason, text=''):
        self.reply({'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'reason': reason, 'code': code, 'message': text}, code)

    def reply(self, value, code=200):
        self.send(json.dumps(value).encode(), 'application/json', code)

    def send(self, body, kind='application/json', code=200):
        self.send_response(code)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def cluster(check, operator=True):
    """Starts one; check() raises an error for a resource of a wrong form.  Gives its address, and what it keeps."""

    server = ThreadingHTTPServer(('127.0.0.1', 0), API)
    server.check, server.kept = check, {}
    server.groups = {version: names for version, names in GROUPS.items() if operator or 'coreos' not in version}
    threading.Thread(target=server.serve_forever, daemon=True).start()

    try:
        yield f'http://127.0.0.1:{server.server_port}', server.kept
    finally:
        server.shutdown()
