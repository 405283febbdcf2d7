"""
Receives spans by OTLP over gRPC, as a collector does, and prints each as a line of JSON.

    python3 receive.py PORT
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


def plain(value):
    return getattr(value, value.WhichOneof('value'))


def of_span(span, resource):
    return {
        'name': span.name, 'kind': span.kind, 'status': span.status.code, 'trace': span.trace_id.hex(),
        'span': span.span_id.hex(), 'parent': span.parent_span_id.hex(), 'state': span.trace_state,
        'seconds': (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        'attributes': {a.key: plain(a.value) for a in span.attributes},
        'resource': {a.key: plain(a.value) for a in resource.attributes},
    }


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, request, context):
        for of_resource in request.resource_spans:
            for scope in of_resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps(of_span(span, of_resource.resource)), flush=True)

        return trace_service_pb2.ExportTraceServiceResponse()


server = grpc.server(ThreadPoolExecutor(2))
trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Receiver(), server)
server.add_insecure_port('127.0.0.1:' + sys.argv[1])
server.start()
server.wait_for_termination()
