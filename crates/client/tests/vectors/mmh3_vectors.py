"""Writes mmh3.json: what Python's mmh3 (pip install mmh3) says. Run: python3 mmh3_vectors.py"""

import json
import pathlib

import mmh3

ITEMS = ["", "a", "ab", "abc", "abcd", "user:17", "https://a.example/?q=1", "é", "日本語", "😀", "x" * 100]
BITS = [1, 1000, 10_000_000, 9_585_059, 2**32 - 5, 2**32]
HASHES = 10

vectors = [
    {
        "item": item,
        "bits": bits,
        "positions": [mmh3.hash(item, seed) % bits for seed in range(HASHES)],
    }
    for item in ITEMS
    for bits in BITS
]
path = pathlib.Path(__file__).with_name("mmh3.json")
path.write_text(json.dumps(vectors, ensure_ascii=False, indent=0) + "\n")
