"""The program nvidia-smi: its XML with every word that stands for no figure, and runs that fail, hang or never end."""

import pytest

from app.clock import ManualClock
from app.telemetry.device_memory import MIB, SourceDown
from app.telemetry.nvidia_smi import LEAST_INTERVAL_MS, NvidiaSmi, parse
from app.telemetry.snapshot import Gpu
from tests.unit.telemetry.samples import FOLDER, needs_samples

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'


def memory(used, free):
    return f"<fb_memory_usage><total>1 MiB</total><reserved>9 MiB</reserved><used>{used}</used><free>{free}</free></fb_memory_usage>"


def page(*gpus):
    return f"{HEAD}<nvidia_smi_log>{''.join(f'<gpu>{gpu}</gpu>' for gpu in gpus)}</nvidia_smi_log>".encode()


def one(used="1000 MiB", free="3000 MiB"):
    return page(f"<uuid>GPU-a</uuid>{memory(used, free)}")


def told(used, total, gpu="GPU-a"):
    return Gpu(gpu, total * MIB, used * MIB, used / total, source="nvidia-smi")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def program(tmp_path):
    """Makes a program of a shell script, and its reader."""

    def make(script, clock, deadline_s=5.0):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return NvidiaSmi(clock, find={"nvidia-smi": str(path)}.get, deadline_s=deadline_s)

    return make


def problem(ask):
    with pytest.raises(SourceDown) as down:
        ask()
    return down.value.problem


def test_used_and_free_make_the_share():
    """Both are in MiB; what is reserved is in neither."""
    assert parse(one(), 0) == (told(1000, 4000),)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("N/A", "not_supported"),
        ("[N/A]", "not_supported"),
        ("[Not Supported]", "not_supported"),
        ("Insufficient Permissions", "no_permission"),
        ("[Insufficient Permissions]", "no_permission"),
        ("[GPU is lost]", "lost"),
        ("[Unknown Error]", "missing"),
        ("12 GiB", "missing"),
        ("-1 MiB", "missing"),
        ("", "missing"),
    ],
)
def test_a_word_is_no_figure(word, why):
    """Whatever stands where a figure should leaves the GPU known and its memory unknown, never 0."""
    assert parse(one(used=word), 0) == (Gpu("GPU-a", source="nvidia-smi", problem=why),)
    assert [gpu.memory_ratio for gpu in parse(one(free=word), 0)] == [None]


def test_instances_stand_for_their_gpu():
    """In MIG mode each instance is told once, however many compute instances share it, and the GPU is not."""
    instances = "".join(
        f"<mig_device><gpu_instance_id>{number}</gpu_instance_id>{memory(f'{mib} MiB', f'{mib} MiB')}</mig_device>"
        for number, mib in ((3, 10), (3, 10), (4, 20))
    )
    gpu = f"<uuid>GPU-a</uuid><mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>{instances}</mig_devices>"

    assert parse(page(gpu + memory("1 MiB", "1 MiB")), 0) == (told(10, 20, "GPU-a/3"), told(20, 40, "GPU-a/4"))


def test_a_lost_gpu_has_no_name():
    """What does not tell its UUID is passed over, and the others are told."""
    assert parse(page(f"<uuid>GPU is lost</uuid>{memory('', '')}", f"<uuid>GPU-b</uuid>{memory('1 MiB', '1 MiB')}"), 15) == (
        told(1, 2, "GPU-b"),
    )


@pytest.mark.parametrize(
    ("printed", "code", "why"),
    [
        (b"Failed to initialize NVML: Driver/library version mismatch\n", 18, "driver_mismatch"),
        (b"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", 12, "no_library"),
        (b"", 9, "no_driver"),
        (b"", 255, "failed"),
        (b"", 0, "parse"),
        (one()[:-40], 0, "parse"),
        (page(), 4, "no_permission"),
    ],
)
def test_what_is_not_whole_is_no_reading(printed, code, why):
    """The exit code names the problem, where it is not 0."""
    assert problem(lambda: parse(printed, code)) == why


def test_a_warning_in_the_exit_code_is_no_outage():
    """14 warns of a worn information ROM beside a good page; a machine without GPUs has none."""
    assert parse(one(), 14) == (told(1000, 4000),)
    assert parse(page(), 0) == ()


def test_entities_are_refused_and_no_dtd_is_loaded():
    """A page that could unfold without end is none, also where it names a file of ours."""
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>'
    leak = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><nvidia_smi_log>&a;</nvidia_smi_log>'
    assert [problem(lambda xml=xml: parse(xml, 0)) for xml in (bomb, leak)] == ["parse", "parse"]


def test_it_is_run_at_most_twice_a_second(clock, program, tmp_path):
    """Between two runs nothing is read."""
    (tmp_path / "page").write_bytes(one())
    smi = program(f'[ "$*" = "-q -x" ] && cat {tmp_path}/page', clock)
    assert smi.read() == (told(1000, 4000),)
    clock.advance(LEAST_INTERVAL_MS - 1)
    assert smi.read() is None
    clock.advance(1)
    assert smi.read() == (told(1000, 4000),)


def test_after_a_failure_it_is_left_alone(clock, program, tmp_path):
    """It is tried again after 5 s, then after 10."""
    smi = program("exit 9", clock)
    for pause_ms in (5000, 10_000):
        assert problem(smi.read) == "no_driver"
        clock.advance(pause_ms - 1)
        assert smi.read() is None
        clock.advance(1)
    assert problem(smi.read) == "no_driver"


def test_a_program_that_is_not_there(clock):
    """It is said to be absent, and looked for again later."""
    smi = NvidiaSmi(clock, find=lambda _: None)
    assert problem(smi.read) == "no_program"
    assert smi.read() is None


def test_a_program_that_cannot_be_run(clock, tmp_path):
    """A file that is no program is a failure, not the end of the process."""
    assert problem(NvidiaSmi(clock, find=lambda _: str(tmp_path)).read) == "failed"


def test_one_that_hangs_is_killed_with_what_it_started(clock, program):
    """At the deadline it ends, though a child of it holds the pipe open."""
    assert problem(program("sleep 60 & sleep 60", clock, deadline_s=0.2).read) == "timeout"


def test_one_that_prints_without_end_is_killed(clock, program):
    """Nothing is kept of what is larger than any page."""
    assert problem(program("exec cat /dev/zero", clock).read) == "failed"


@needs_samples
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("tesla-t4.xml", {"GPU-d37e67a5-91dd-3774-a5cb-99096249601a": (1032, 14971)}),
        ("a10g.xml", {"GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94": (22, 22591)}),
        ("a100-sxm4-v12.xml", {f"GPU-513536b6-7d19-9063-b049-1e69664bb298/{number}": (12, 19967) for number in (3, 4, 5, 6)}),
    ],
)
def test_recorded_pages(name, wanted):
    """A T4, an A10G, and an A100 in MIG mode with four instances."""
    gpus = parse((FOLDER / "nvidia-smi" / name).read_bytes(), 0)

    assert {gpu.id: (gpu.used_bytes // MIB, gpu.total_bytes // MIB) for gpu in gpus} == wanted
