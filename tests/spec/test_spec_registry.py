"""Parts chosen by kind."""

import sys
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import ValidationError
from small_model import SCHEDULERS, CreditSpec, Model, RtdsSpec

from vftsim.errors import ModelFileError
from vftsim.spec import Items, OneOf, PartRegistry, Spec, discover, load


class ShapeSpec(Spec):
    kind: str


def registry():
    return PartRegistry("shape", ShapeSpec)


def test_is_a_sorted_mapping():
    assert dict(SCHEDULERS) == {"credit": CreditSpec, "rtds": RtdsSpec}
    assert list(SCHEDULERS) == ["credit", "rtds"]


def test_the_kind_chooses_the_class():
    model = Model.model_validate({"name": "x", "arrivals": "1 /s", "scheduler": {"kind": "rtds", "period": "9 ms"}})
    assert model.scheduler == RtdsSpec(period=9_000_000)
    assert Model(name="x", arrivals=1, scheduler=model.scheduler).scheduler is model.scheduler


def test_another_family_is_refused():
    class Stranger(Spec):
        kind: Literal["credit"] = "credit"

    with pytest.raises(ValidationError):
        Model(name="x", arrivals=1, scheduler=Stranger())
    with pytest.raises(TypeError, match="Stranger is no SchedulerSpec"):
        SCHEDULERS.register(Stranger)


def test_parts_register_until_the_first_use():
    shapes = registry()

    class Drawing(Spec):
        shape: Annotated[ShapeSpec, OneOf(shapes)]
        more: Items[Annotated[ShapeSpec, OneOf(shapes)]] = ()

    @shapes.register
    class Circle(ShapeSpec):
        kind: Literal["circle"] = "circle"
        within: Annotated[ShapeSpec, OneOf(shapes)] | None = None

    drawing = Drawing.model_validate(
        {"shape": {"kind": "circle", "within": {"kind": "circle"}}, "more": [{"kind": "circle"}]}
    )
    assert drawing.shape == Circle(within=Circle())
    assert drawing.more == (Circle(),)

    class Square(ShapeSpec):
        kind: Literal["square"] = "square"

    with pytest.raises(TypeError, match="'square' comes too late"):
        shapes.register(Square)


def test_a_kind_is_one_new_literal():
    shapes = registry()

    class Plain(ShapeSpec):
        pass

    class Two(ShapeSpec):
        kind: Literal["a", "b"]

    class A(ShapeSpec):
        kind: Literal["a"] = "a"

    class OtherA(ShapeSpec):
        kind: Literal["a"] = "a"

    for wrong in (Plain, Two):
        with pytest.raises(TypeError, match="needs a field such as"):
            shapes.register(wrong)
    shapes.register(A)
    with pytest.raises(TypeError, match="kind 'a' is taken by"):
        shapes.register(OtherA)


def test_an_empty_family_is_a_fault():
    class Drawing(Spec):
        shape: Annotated[ShapeSpec, OneOf(registry())]

    with pytest.raises(TypeError, match="no shape is registered"):
        Drawing.model_validate({})


def test_discover_imports_every_module(tmp_path, monkeypatch):
    package = tmp_path / "spec_parts_for_test"
    (package / "deeper").mkdir(parents=True)
    for name in ("__init__.py", "one.py", "deeper/__init__.py", "deeper/two.py"):
        (package / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("spec_parts_for_test.deeper", "spec_parts_for_test.deeper.two", "spec_parts_for_test.one")
    assert discover("spec_parts_for_test") == names
    assert set(names) <= set(sys.modules)


def test_a_key_may_be_called_like_its_kind(tmp_path):
    """Pydantic puts the kind into an error's location; it must not be taken for the key."""
    shapes = registry()

    @shapes.register
    class Cap(ShapeSpec):
        kind: Literal["cap"] = "cap"
        cap: int
        width: int

    class Drawing(Spec):
        shape: Annotated[ShapeSpec, OneOf(shapes)]

    path = tmp_path / "drawing.yaml"
    path.write_text("shape:\n  kind: cap\n  cap: 1\n  width: x\n")
    with pytest.raises(ModelFileError) as caught:
        load(path, Drawing)
    assert (caught.value.line, caught.value.key) == (4, "shape.width")


def test_what_every_part_of_a_family_must_say_is_missed_when_it_registers():
    class Priced(Spec):
        price: ClassVar[int]

    class Free(Priced):
        kind: Literal["free"] = "free"

    class Dear(Priced):
        kind: Literal["dear"] = "dear"
        price: ClassVar[int] = 3

    goods = PartRegistry("good", Priced)
    with pytest.raises(TypeError, match="Free must say its `price`, as every good does"):
        goods.register(Free)
    goods.register(Dear)
