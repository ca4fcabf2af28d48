"""The list of licences is that of the locked packages."""

from __future__ import annotations

import re

import licences


def test_every_locked_package_is_listed_with_its_version_and_licence():
    listed = licences.PAGE.read_text(encoding="utf-8")
    assert listed == licences.page(), "run `make licences`"
    locked = re.findall(r"^(\S+)==(\S+)", (licences.ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert licences.pinned().items() - set(locked) == {("torch", licences.pinned()["torch"])}
    assert len(licences.pinned()) == len(locked) + 1 and "not stated" not in listed
