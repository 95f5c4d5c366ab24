"""What a caller may do."""

import pytest

from app.auth.keys import Principal
from app.errors import Forbidden

GATEWAY = Principal("id", "gw1", frozenset({"gateway"}), frozenset({"a", "b"}))


def test_a_gateway_speaks_for_its_tenants_only():
    """A key that names tenants speaks for those and for no other."""
    assert GATEWAY.may_speak_for("a")
    assert not GATEWAY.may_speak_for("A")
    with pytest.raises(Forbidden, match="may not speak for tenant 'c'"):
        GATEWAY.require_tenant("c")


def test_a_star_speaks_for_all():
    """A key with * speaks for every tenant; one without tenants for none."""
    assert Principal("id", "x", frozenset({"gateway"}), frozenset({"*"})).may_speak_for("any")
    assert not Principal("id", "x", frozenset({"operator"}), frozenset()).may_speak_for("any")


def test_one_of_the_roles_is_enough():
    """A call that several roles may make is open to each of them and closed to the rest, naming what is needed."""
    GATEWAY.require("operator", "gateway")
    with pytest.raises(Forbidden, match="needs operator or admin"):
        GATEWAY.require("operator", "admin")
