"""What the ends of ways mean, in words and as findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.model.triage import HANGS, Answer, Verdict, What, as_data, findings

_HUB = Answer(what=What.HUB, url="https://hub.test", verdict=Verdict.ANSWERS, named=True)
_ENDS = [one for one in Verdict if one not in (Verdict.ANSWERS, Verdict.NOT_ASKED)]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_end_has_words_of_its_own(verdict: Verdict) -> None:
    answer = replace(_HUB, verdict=verdict, detail="DETAIL")
    others = {replace(answer, verdict=one).words for one in Verdict if one is not verdict}
    assert answer.words
    assert answer.words not in others
    assert replace(answer, at_proxy=True, proxy="http://p.test").words.startswith("the proxy '")


@pytest.mark.parametrize("verdict", _ENDS)
@pytest.mark.parametrize("what", list(What))
def test_every_end_says_what_to_do(verdict: Verdict, what: What) -> None:
    [found] = findings([replace(_HUB, what=what, verdict=verdict)])
    assert found.code.startswith("network.")
    assert found.hint
    assert found.what[:1] in "'" or found.what[0].islower() or found.what.startswith("DNS")
    assert found.level in ("error", "warning", "info")


@pytest.mark.parametrize("verdict", list(HANGS))
def test_the_usual_state_of_a_closed_machine(verdict: Verdict) -> None:
    """DNS answers and nothing else: one finding, said exactly like that."""
    alone = replace(_HUB, verdict=verdict)
    assert alone.words.startswith("DNS answers but HTTPS hangs: ")
    code = replace(alone, what=What.CODE, url="https://code.test")
    index = replace(alone, what=What.INDEX, verdict=Verdict.CONNECTION_HANGS)
    files = Answer(what=What.FILES, url="", verdict=Verdict.NOT_ASKED)
    [found] = findings([index, files, code, alone])
    assert (found.code, found.level) == ("network.https-hangs", "warning")
    assert found.what == "DNS answers but HTTPS hangs"
    assert found.subject == "index, code host, model hub"
    assert "envlock wheelhouse build" in found.hint
    # not where something answers: then it is those servers, and not the machine
    mirror = replace(index, verdict=Verdict.ANSWERS)
    assert {one.subject for one in findings([mirror, code, alone])} == {"code host, model hub"}
    assert [one.what for one in findings([mirror, alone])] == [f"{alone.words} (https://hub.test)"]


def test_plain_http_and_addresses_are_said_as_they_are() -> None:
    answer = replace(_HUB, verdict=Verdict.CONNECTION_HANGS, named=False)
    assert answer.words == "HTTPS hangs: nobody takes the connection"
    assert not answer.blocked
    plain = replace(answer, url="http://hub.test", named=True)
    assert plain.words == "DNS answers but HTTP hangs: nobody takes the connection"


def test_the_same_end_is_one_finding() -> None:
    index = Answer(what=What.INDEX, url="https://i.test", verdict=Verdict.NAME_HANGS)
    hub = replace(index, what=What.HUB, url="https://h.test", origin="$HF_ENDPOINT")
    refused = replace(index, what=What.CODE, verdict=Verdict.REFUSED)
    first, second = findings([index, hub, refused])
    assert first.subject == "index, model hub"
    assert first.what == (
        "DNS hangs: no answer to the name (https://i.test; https://h.test, from $HF_ENDPOINT)"
    )
    assert second.code == "network.refused"
    assert findings([replace(index, verdict=Verdict.ANSWERS)]) == ()


def test_a_proxy_is_one_finding() -> None:
    """With those who need it, and no word about them besides."""
    proxy = Answer(what=What.PROXY, url="http://p.test", verdict=Verdict.PROXY_LOGIN)
    hub = replace(
        _HUB, verdict=Verdict.PROXY_LOGIN, proxy="http://p.test", at_proxy=True, named=False
    )
    [found] = findings([hub, replace(hub, what=What.INDEX), proxy])
    assert (found.code, found.subject) == ("network.proxy-login", "proxy")
    assert found.what == "'http://p.test': wants a name and a password (status 407)"
    assert found.why == "needed for: model hub, index"
    [lonely] = findings([replace(proxy, verdict=Verdict.REFUSED)])
    assert lonely.code == "network.proxy-refused"


def test_plain_values() -> None:
    answer = replace(_HUB, seconds=1.23456, origin="$HF_ENDPOINT", tools="huggingface_hub")
    assert as_data([answer]) == [
        {
            "what": "model hub",
            "url": "https://hub.test",
            "origin": "$HF_ENDPOINT",
            "tools": "huggingface_hub",
            "verdict": "answers",
            "words": "answers",
            "proxy": "",
            "seconds": 1.23,
        }
    ]
