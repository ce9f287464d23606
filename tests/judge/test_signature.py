"""Signatures: what a digest stands for, and what it does not."""

import pytest

from conformance.judge.signature import Signature, as_digest, satisfied


@pytest.mark.parametrize(
    ("live", "golden"),
    [
        ("quantize:Q8_0:bytes:qs", "quantize:Q8_0:digest:blocks"),
        ("quantize:ref:Q8_0:bytes:qs", "quantize:ref:Q8_0:digest:blocks"),
        ("tensor:F32:bytes:value", "tensor:F32:digest:blocks"),
        ("dequantize:Q4_K:bits:zero-sign", "dequantize:Q4_K:digest:values"),
        ("header:-:value:kv[*].value[*]", "header:-:digest:kv[*].value[*]"),
        ("header:-:value:kv[*].value", "header:-:value:kv[*].value"),
        ("header:-:count:kv[*].value.length", "header:-:count:kv[*].value.length"),
        ("load:-:ok-for-reject-bad-alignment:-", "load:-:ok-for-reject-bad-alignment:-"),
        ("no signature", "no signature"),
    ],
)
def test_a_golden_run_sees_a_digest_where_only_that_is_recorded(live: str, golden: str) -> None:
    assert as_digest(live) == golden
    assert satisfied(live, live)
    assert satisfied(live, golden)


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        ("quantize:Q8_0:digest:blocks", "quantize:Q8_0:bytes:qs"),
        ("quantize:Q8_0:bytes:d", "quantize:Q8_0:bytes:qs"),
        ("quantize:Q8_0:bytes:qs", "quantize:Q4_0:digest:blocks"),
        ("quantize:Q8_0:bytes:qs", "tensor:Q8_0:digest:blocks"),
        ("quantize:Q8_0:bytes:qs", "quantize:Q8_0:size:output"),
        ("dequantize:Q8_0:bits:nan", "dequantize:Q8_0:digest:blocks"),
        ("header:-:value:kv[*].key", "header:-:digest:kv[*].value[*]"),
    ],
)
def test_a_change_that_shows_satisfies_nothing(known: str, shown: str) -> None:
    assert not satisfied(known, shown)


def test_a_variant_belongs_to_the_op() -> None:
    assert Signature.of("dot:simd:Q8_0:bits:value") == ("dot:simd", "Q8_0", "bits", "value")
