"""The rows of the table of features in docs/library.md, each with a real, small model."""

import json
import pickle

import akunu
import numpy
import pytest

QUESTION = "What is the capital of France?"


def test_answers_have_a_form(model):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    for form in (schema, json.dumps(schema)):
        reply = model.chat(temperature=0, context=256, json_schema=form).ask(QUESTION)
        assert isinstance(json.loads(reply.read())["city"], str)
        assert reply.stop == "grammar"
    assert model.chat(temperature=0, regex="(yes|no)").ask("Is Paris in France?").read() in ("yes", "no")
    word = model.generate("The capital of France is", grammar='root ::= " Rome" | " Oslo"')
    assert word.read() in (" Rome", " Oslo")
    with pytest.raises(akunu.InvalidArgument, match="JSON"):
        model.chat(json_schema="{")


def test_tokens_say_how_likely_they_were(model):
    for reply in (
        model.chat(temperature=0, logprobs=2).ask(QUESTION),
        model.generate("The capital of France is", max_tokens=5, logprobs=2),
    ):
        text = reply.read()
        assert "".join(token.text for token in reply.tokens).strip() in text + reply.tokens[-1].text
        for token in reply.tokens:
            assert token.top[0] == (token.id, pytest.approx(token.logprob))
            assert len(token.top) == 2 and token.logprob <= 0


def test_a_conversation_is_saved_and_restored(model, tmp_path):
    chat = model.chat(temperature=0, context=256, max_tokens=24, system="Be brief.")
    chat.ask(QUESTION).read()
    chat.save(tmp_path / "talk.json")
    said = chat.messages
    wanted = chat.ask("And of Italy?").read()
    other = model.chat(temperature=0, context=256, max_tokens=24)
    other.restore(tmp_path / "talk.json")
    assert other.messages == said
    assert other.ask("And of Italy?").read() == wanted
    with pytest.raises(FileNotFoundError):
        other.restore(tmp_path / "nowhere.json")


def test_an_answer_is_made_again(model):
    chat = model.chat(temperature=0, max_tokens=24)
    with pytest.raises(akunu.InvalidArgument, match="no question"):
        chat.regenerate().read()
    said = chat.ask(QUESTION).read()
    assert chat.regenerate().read() == said
    chat.undo()
    chat.say("user", QUESTION)
    assert chat.answer().read() == said
    assert [message["role"] for message in chat.messages] == ["user", "assistant"]


def test_many_texts_go_on_together(model):
    texts = [f"{n}. The capital of {name} is" for n, name in enumerate(["France", "Italy", "Japan"] * 7)]
    answers = model.generate_all(texts, max_tokens=6, context=64, stop="\n")
    assert len(answers) == len(texts)
    assert "Paris" in answers[0] and "Tokyo" in answers[2]
    assert not any("\n" in answer for answer in answers)


def test_a_draft_changes_nothing(model):
    draft = pickle.loads(pickle.dumps(model))
    plain = model.generate("The capital of France is", max_tokens=12).read()
    assert model.generate("The capital of France is", max_tokens=12, draft=draft).read() == plain
    with pytest.raises(TypeError):
        model.generate("The", draft="a model")


def test_an_adapter_is_looked_for(model, tmp_path):
    for lora in ("nowhere.gguf", [("nowhere.gguf", 0.5)]):
        with pytest.raises(FileNotFoundError, match="nowhere.gguf"):
            model.chat(lora=lora)


def classifier(folder, embedder_folder):
    """MiniLM with a classifier of one label: zeros, and a bias of 1."""
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((embedder_folder / name).read_bytes())
    whole = (embedder_folder / "model.safetensors").read_bytes()
    n_head = int.from_bytes(whole[:8], "little")
    head, data = json.loads(whole[8 : 8 + n_head]), whole[8 + n_head :]
    for name, values in (
        ("classifier.weight", numpy.zeros((1, 384), "<f4")),
        ("classifier.bias", numpy.ones(1, "<f4")),
    ):
        ends = [len(data), len(data) + values.nbytes]
        head[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": ends}
        data += values.tobytes()
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder


def test_documents_are_ranked(jfk, tmp_path):
    embedder_folder = jfk.parents[1] / "minilm"
    reranker = akunu.Reranker(classifier(tmp_path, embedder_folder))
    assert reranker.scores("a question", ["an answer", "another"]) == [1.0, 1.0]
    assert pickle.loads(pickle.dumps(reranker)).scores("a question", ["an answer"]) == [1.0]
    with pytest.raises(akunu.InvalidArgument, match="text 2 is empty"):
        reranker.scores("a question", ["an answer", ""])
    with pytest.raises(akunu.UnsupportedModel, match="no classifier"):
        akunu.Reranker(embedder_folder)
