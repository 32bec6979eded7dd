import asyncio
import threading

import httpx2
import pytest

from listenwell.dialogue import Dialogue, Turn
from listenwell.listener import Request
from listenwell.serving.api_errors import ApiError
from listenwell.serving.request_queue import RequestQueue
from listenwell.serving.service import each
from tests.serving.fake import FakeListener, fake_app, fake_settings, running, wait_until


def with_queue(scenario, **settings):
    """Run a scenario with a queue whose work doubles numbers and notes its batches, and the load of each."""
    batches, release = [], threading.Event()
    loads = settings.pop("loads", [])
    release.set()

    def work(kind, requests, load):
        assert release.wait(10)
        batches.append((kind, list(requests)))
        loads.append(load)
        if kind == "broken":
            raise RuntimeError
        return [ValueError() if one < 0 else 2 * one for one in requests]

    async def run():
        queue = RequestQueue(work, **({"capacity": 10, "batch_size": 3} | settings))
        queue.open()
        result = await scenario(queue, release)
        release.set()
        await queue.close()
        return result

    return asyncio.run(run()), batches


async def _running(queue):
    """Wait until a request is being processed."""
    while not queue.running:
        await asyncio.sleep(0)


def test_those_who_come_together_are_answered_together_in_order():
    async def scenario(queue, release):
        tickets = [queue.enter("a", number) for number in range(5)]
        return await asyncio.gather(*(ticket.result for ticket in tickets))

    loads = []
    results, batches = with_queue(scenario, loads=loads)
    assert results == [0, 2, 4, 6, 8]
    assert batches == [("a", [0, 1, 2]), ("a", [3, 4])]
    assert loads == [5, 2]  # those who wait are counted, too


def test_a_batch_waits_a_moment_for_others():
    async def scenario(queue, release):
        first = queue.enter("a", 1)
        for _ in range(5):  # the queue looks at what waits, and waits for more
            await asyncio.sleep(0)
        assert queue.waiting == 1
        second = queue.enter("a", 2)
        return await asyncio.gather(first.result, second.result)

    assert with_queue(scenario, batch_window=0.1)[1] == [("a", [1, 2])]


def test_without_a_window_a_request_does_not_wait():
    async def scenario(queue, release):
        await queue.enter("a", 1).result
        await queue.enter("a", 2).result

    assert with_queue(scenario, batch_window=0.0)[1] == [("a", [1]), ("a", [2])]


def test_kinds_are_not_mixed_and_the_oldest_goes_first():
    async def scenario(queue, release):
        tickets = [queue.enter(kind, 1) for kind in "abab"]
        await asyncio.gather(*(ticket.result for ticket in tickets))

    assert with_queue(scenario)[1] == [("a", [1, 1]), ("b", [1, 1])]


def test_a_full_queue_refuses_and_says_when_to_come_back():
    async def scenario(queue, release):
        release.clear()
        tickets = [queue.enter("a", 0)]
        await _running(queue)
        tickets += [queue.enter("a", number) for number in range(2)]
        with pytest.raises(ApiError) as refused:
            queue.enter("a", 9)
        assert queue.leave(tickets[1])
        tickets.append(queue.enter("a", 7))  # the ticket is free again
        release.set()
        await asyncio.gather(tickets[0].result, *(ticket.result for ticket in tickets[2:]))
        return refused.value

    api_error, batches = with_queue(scenario, capacity=2)
    assert api_error.status == 503
    assert int(api_error.headers["Retry-After"]) >= 1
    assert batches == [("a", [0]), ("a", [1, 7])]


def test_a_shared_ticket_is_not_withdrawn():
    async def scenario(queue, release):
        release.clear()
        queue.enter("a", 0)
        await _running(queue)
        ticket = queue.enter("a", 1)
        ticket.watchers += 1
        assert not queue.leave(ticket)
        assert queue.waiting == 1
        assert queue.leave(ticket)
        assert queue.waiting == 0

    with_queue(scenario)


def test_an_error_reaches_only_its_own_place():
    async def scenario(queue, release):
        tickets = [queue.enter("a", number) for number in (1, -1, 2)]
        return await asyncio.gather(*(ticket.result for ticket in tickets), return_exceptions=True)

    results, _ = with_queue(scenario)
    assert (results[0], results[2]) == (2, 4)
    assert isinstance(results[1], ValueError)


def test_work_that_breaks_does_not_stop_the_line():
    async def scenario(queue, release):
        broken = queue.enter("broken", 1)
        with pytest.raises(RuntimeError):
            await broken.result
        return await queue.enter("a", 4).result

    assert with_queue(scenario)[0] == 8


def test_closing_finishes_who_waits():
    async def scenario(queue, release):
        tickets = [queue.enter("a", number) for number in range(7)]
        await queue.close()
        return [ticket.result.result() for ticket in tickets]

    assert with_queue(scenario)[0] == [0, 2, 4, 6, 8, 10, 12]


def test_one_that_fails_does_not_spoil_the_batch():
    listener = FakeListener()
    requests = [Request(Dialogue((Turn("speaker", text),))) for text in ("a", "FAIL", "b")]
    first, second, third = each(requests, listener.reply_batch)
    assert (first.text, third.text) == ("You said: a", "You said: b")
    assert isinstance(second, RuntimeError)
    assert listener.batches == [3, 1, 1, 1]  # all at once, then each alone


def test_users_at_once_share_batches(make_client):
    listener = FakeListener(seconds=0.1)
    with running(fake_app(fake_settings(batch_window=0.05), listener)) as url:
        results = []
        threads = [
            threading.Thread(target=lambda n=n: results.append(_reply(url, f"user {n}"))) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == [f"You said: user {number}" for number in range(8)]
    assert max(listener.batches) >= 4


def test_a_full_queue_answers_503_with_retry_after():
    hold = threading.Event()
    listener = FakeListener(hold=hold)
    app = fake_app(fake_settings(limits={"queue": 1, "batch": 1}), listener)
    service = app.state.service
    with running(app) as url:
        threads = []
        for number in range(2):
            threads.append(threading.Thread(target=_reply, args=(url, f"{number}")))
            threads[-1].start()
            wait_until(lambda n=number: (service.queue.running, service.queue.waiting) == (1, n))
        for path, body in (("/api/reply", {"text": "c"}), ("/api/reply", {"text": "c", "stream": True})):
            answer = httpx2.post(url + path, json=body)
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) >= 1
            assert answer.json()["error"]["code"] == "queue_full"
        hold.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/api/reply", "/v1/chat/completions", "/api/conversations/{id}/messages"])
def test_a_client_that_goes_away_frees_its_ticket(path, stream, tmp_path):
    hold = threading.Event()
    listener = FakeListener(hold=hold)
    app = fake_app(fake_settings(store=str(tmp_path / "talks"), limits={"batch": 1}), listener)
    service = app.state.service
    with running(app) as url, httpx2.Client(base_url=url) as client:
        first = threading.Thread(target=_reply, args=(url, "first"))
        first.start()
        wait_until(lambda: service.queue.running == 1)
        id = client.post("/api/conversations", json={}).json()["id"]
        body = {"text": "impatient", "stream": stream}
        if path.startswith("/v1"):
            body = {"model": "fake", "messages": [{"role": "user", "content": "impatient"}], "stream": stream}
        with (
            pytest.raises(httpx2.ReadTimeout),
            client.stream("POST", path.format(id=id), json=body, timeout=0.3) as answer,
        ):
            wait_until(lambda: service.queue.waiting == 1)
            list(answer.iter_lines())
        client.close()
        wait_until(lambda: service.queue.waiting == 0)
        hold.set()
        first.join()
    assert [talk.turns[-1].text for talk in listener.seen] == ["first"]


def _reply(url, text):
    return httpx2.post(f"{url}/api/reply", json={"text": text}, timeout=20).json()["reply"]
