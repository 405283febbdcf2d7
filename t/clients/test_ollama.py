"""PyPI's ollama, unmodified, against a server: python test_ollama.py URL MODEL

Prints TAP.  What a client does with an answer is the test: its own types have
read it, its own exceptions have been raised.
"""

import asyncio
import base64
import json
import os
import sys
import time
import urllib.request
from datetime import datetime

import ollama

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("VLM_URL", "http://127.0.0.1:5001")
MODEL = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("VLM_MODEL", "demo")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PICTURE = os.path.join(ROOT, "t/fidelity/pictures/118x62.png")

SAME = {"temperature": 0, "num_predict": 12}
ASK = [{"role": "user", "content": "What is it?"}]

tests = []


def test(function):
    tests.append(function)
    return function


def fails(status, what, call):
    """The exception that the client raises, with this status and these words."""
    try:
        call()
    except ollama.ResponseError as e:
        assert e.status_code == status, f"status {e.status_code}, expected {status}: {e.error}"
        assert what in e.error, f"{e.error!r} does not say {what!r}"
        return
    raise AssertionError(f"no error, expected {status}")


def running():
    with urllib.request.urlopen(URL + "/api/health") as r:
        return json.load(r)["queue"]["running"]


@test
def a_list_of_models(c):
    models = c.list().models
    assert models[0].model == MODEL + ":latest", models
    assert models[0].size > 0 and len(models[0].digest) == 64 and models[0].modified_at.year > 2000
    assert models[0].details.family.startswith("qwen"), models[0].details


@test
def what_is_loaded(c):
    c.generate(MODEL)
    (model,) = c.ps().models
    assert model.name == MODEL + ":latest" and model.expires_at.year > 2100 and model.context_length > 0
    assert 0 <= model.size_vram <= model.size, (model.size_vram, model.size)


@test
def facts_of_the_model(c):
    show = c.show(MODEL)
    family = show.modelinfo["general.architecture"]
    assert "vision" in show.capabilities and "completion" in show.capabilities, show.capabilities
    assert show.modelinfo["general.parameter_count"] > 0
    assert show.modelinfo[family + ".context_length"] == c.ps().models[0].context_length
    assert show.template and show.details.parameter_size and show.modified_at.year > 2000


@test
def a_chat(c):
    r = c.chat(MODEL, ASK, options=SAME)
    assert r.message.role == "assistant" and r.message.content and r.model == MODEL
    assert r.done and r.done_reason in ("stop", "length"), r
    assert r.prompt_eval_count > 0 and 0 < r.eval_count <= 12
    assert r.total_duration >= r.eval_duration > 0 and r.prompt_eval_duration > 0


@test
def a_chat_in_pieces_is_the_same(c):
    whole = c.chat(MODEL, ASK, options=SAME)
    parts = list(c.chat(MODEL, ASK, options=SAME, stream=True))
    assert "".join(p.message.content for p in parts) == whole.message.content
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True] and len(parts) > 1
    assert parts[-1].eval_count == whole.eval_count and parts[-1].done_reason == whole.done_reason
    assert all(datetime.fromisoformat(p.created_at.replace("Z", "+00:00")) for p in parts)


@test
def a_completion_is_the_same_as_a_chat(c):
    chat = c.chat(MODEL, [{"role": "system", "content": "Be short."}] + ASK, options=SAME)
    r = c.generate(MODEL, "What is it?", system="Be short.", options=SAME)
    parts = list(c.generate(MODEL, "What is it?", system="Be short.", options=SAME, stream=True))
    assert r.response == chat.message.content == "".join(p.response for p in parts)
    assert r.prompt_eval_count == chat.prompt_eval_count == parts[-1].prompt_eval_count


@test
def a_raw_completion(c):
    r = c.generate(MODEL, "What is it?", raw=True, options=SAME)
    assert r.prompt_eval_count < c.generate(MODEL, "What is it?", options=SAME).prompt_eval_count


@test
def pictures_by_path_bytes_and_base64(c):
    with open(PICTURE, "rb") as f:
        data = f.read()
    counts = []
    for image in (PICTURE, data, base64.b64encode(data).decode()):
        r = c.chat(MODEL, [{"role": "user", "content": "What is it?", "images": [image]}], options=SAME)
        counts.append((r.prompt_eval_count, r.message.content))
    r = c.generate(MODEL, "What is it?", images=[data], options=SAME)
    counts.append((r.prompt_eval_count, r.response))
    assert len(set(counts)) == 1, counts
    assert counts[0][0] > c.chat(MODEL, ASK, options=SAME).prompt_eval_count


@test
def a_picture_of_an_earlier_turn(c):
    ask = [{"role": "user", "content": "What is it?", "images": [PICTURE]}]
    r = c.chat(MODEL, ask, options=SAME)
    more = c.chat(MODEL, ask + [r.message, {"role": "user", "content": "Why?"}], options=SAME)
    assert more.prompt_eval_count > r.prompt_eval_count and more.message.content


@test
def a_picture_that_is_none(c):
    fails(400, "", lambda: c.generate(MODEL, "hi", images=[b"this is text"]))


@test
def json_at_any_temperature(c):
    for i in range(20):
        r = c.chat(MODEL, ASK, format="json", options={"temperature": 1.5, "num_predict": 2 + 2 * i})
        assert isinstance(json.loads(r.message.content), dict), r.message.content
        assert r.done_reason == "stop"
    parts = c.generate(MODEL, "hi", format="json", options={"temperature": 1.5}, stream=True)
    assert isinstance(json.loads("".join(p.response for p in parts)), dict)


@test
def a_schema_is_refused(c):
    fails(400, "schema", lambda: c.chat(MODEL, ASK, format={"type": "object", "properties": {}}))


@test
def seeds(c):
    a, b = (c.generate(MODEL, "hi", options={"temperature": 2, "seed": 7}).response for _ in range(2))
    assert a == b, (a, b)


@test
def the_options_of_the_package(c):
    r = c.chat(MODEL, ASK, options=ollama.Options(
        num_ctx=8192, num_keep=5, num_batch=2, num_gpu=1, num_thread=8, seed=42, num_predict=4, top_k=20, top_p=0.9,
        typical_p=0.7, repeat_last_n=33, temperature=0.8, repeat_penalty=1.2, presence_penalty=1.5,
        frequency_penalty=1.0, stop=["\n", "user:"], use_mmap=True), keep_alive="10m")
    assert r.eval_count <= 4


@test
def options_that_are_wrong(c):
    fails(400, "temperature", lambda: c.chat(MODEL, ASK, options={"temperature": "hot"}))
    fails(400, "stop", lambda: c.generate(MODEL, "hi", options={"stop": 7}))


@test
def log_probabilities(c):
    r = c.chat(MODEL, ASK, logprobs=True, top_logprobs=3, options=SAME)
    assert len(r.logprobs) > 0 and "".join(t.token for t in r.logprobs).startswith(r.message.content)
    assert all(t.logprob <= 0 and len(t.top_logprobs) == 3 for t in r.logprobs)
    assert all(t.top_logprobs[0].logprob >= t.top_logprobs[2].logprob for t in r.logprobs)
    parts = list(c.chat(MODEL, ASK, logprobs=True, top_logprobs=3, options=SAME, stream=True))
    assert [t for p in parts for t in p.logprobs or []] == list(r.logprobs)


@test
def a_name_that_is_unknown(c):
    fails(404, "not found", lambda: c.chat("nobody", ASK))
    fails(404, "not found", lambda: list(c.chat("nobody", ASK, stream=True)))
    fails(404, "not found", lambda: c.show("nobody"))


@test
def the_name_with_its_tag(c):
    assert c.chat(MODEL + ":latest", ASK, options=SAME).model == MODEL + ":latest"


@test
def no_tools_and_no_thinking(c):
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    fails(400, "does not support tools", lambda: c.chat(MODEL, ASK, tools=[add]))
    fails(400, "does not support thinking", lambda: c.chat(MODEL, ASK, think=True))
    assert c.chat(MODEL, ASK, think=False, options=SAME).message.thinking is None


@test
def load_and_unload(c):
    assert c.generate(MODEL).done_reason == "load"
    assert c.chat(MODEL).done_reason == "load"
    assert c.generate(MODEL, keep_alive=0).done_reason == "unload"
    assert c.ps().models, "and yet it stays"


@test
def what_this_server_does_not_do(c):
    fails(501, "configuration", lambda: c.pull(MODEL))
    fails(501, "configuration", lambda: list(c.pull(MODEL, stream=True)))
    fails(501, "configuration", lambda: c.push(MODEL))
    fails(501, "configuration", lambda: c.create("other", from_=MODEL))
    fails(501, "configuration", lambda: c.create_blob(PICTURE))
    fails(501, "configuration", lambda: c.copy(MODEL, "other"))
    fails(501, "configuration", lambda: c.delete(MODEL))
    fails(501, "embeddings", lambda: c.embed(MODEL, "hi"))
    fails(501, "embeddings", lambda: c.embeddings(MODEL, "hi"))


@test
def a_prompt_that_is_too_long(c):
    fails(400, "tokens", lambda: c.generate(MODEL, "word " * 50000))


@test
def a_conversation_that_is_too_long_goes_on(c):
    turns = [{"role": ("user", "assistant")[i % 2], "content": f"turn {i}: " + "word " * 100} for i in range(81)]
    r = c.chat(MODEL, turns, options=SAME)
    assert r.message.content and r.prompt_eval_count < c.ps().models[0].context_length


@test
def a_client_that_closes_stops_its_answer(c):
    for _ in range(5):
        stream = c.generate(MODEL, "hello", options={"temperature": 100, "top_k": 0, "num_predict": -1}, stream=True)
        assert not next(stream).done
        stream.close()
    end = time.time() + 10
    while running() and time.time() < end:
        time.sleep(0.05)
    assert running() == 0, f"{running()} still run"


@test
def several_at_once(c):
    async def go():
        a = ollama.AsyncClient(URL)

        async def one(i):
            ask = [{"role": "user", "content": f"What is it, {i}?"}]
            if i % 2:
                return "".join([p.message.content async for p in await a.chat(MODEL, ask, options=SAME, stream=True)])
            return (await a.chat(MODEL, ask, options=SAME)).message.content

        return await asyncio.gather(*(one(i) for i in range(8)))

    answers = asyncio.run(go())
    alone = [c.chat(MODEL, [{"role": "user", "content": f"What is it, {i}?"}], options=SAME).message.content
             for i in range(8)]
    assert answers == alone, (answers, alone)


def main():
    client = ollama.Client(URL)
    failed = 0

    print(f"1..{len(tests)}")

    for n, function in enumerate(tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function(client)
            print(f"ok {n} - ollama: {name}", flush=True)
        except Exception as e:
            failed += 1
            print(f"not ok {n} - ollama: {name}\n# {type(e).__name__}: {e}", flush=True)

    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
