#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes tokenizer.json, tokenizer_digits.json, tokenizer_llama3.json and tokenizer_golden.txt beside this file, with the package tokenizers: what it learns from a text, and the ids of other texts."""
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
LEARNED = ["the quick brown fox doesn't jump over the lazy dog, and the dog isn't quick", "low lower lowest new newer newest wide wider widest",
           "Файл не найден: нет такого файла", "Datei nicht gefunden: keine solche Datei", "aaaaaaaa aaaa aa a abab ababab cdcdcd", "1234 12 123 1999 2024",
           "ファイルが見つかりません", "Das ist größer als das größte"] * 2
TEXTS = ["", " ", "the newest fox", "Hello world's  12\n\n x", "DON'T don't we'll", "abc aaaa aaaaa ababc", "  two  spaces \t\r\n", "a\n", "\n\na", "größte Файла",
         "ファイル が", "x²+½=Ⅷ٣", "emoji \U0001F600\U0001F468‍\U0001F469 end", "<end>the<end>low <2de> dog<2de", "no​break space ideographic　x", "é é ñ", "हिन्दी में ไทย",
         "a" * 70, "…'s 's 'S", "tab\tand\x0bvertical\x85next line\x1fcontrol"]

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLIT_TEXTS = TEXTS + ["1999 12345", "a1b22 c", "x = 12;\n\n  y(3)\r\n", "don't DON'T we'LL 'Ve", "!!!\n\n", "tab\tword  end ", "\u00a0\u00a0word", "'", " 'S", "low1 newest"]


def split(tokenizer, name):
    """The tokenizer with another way to split texts."""
    tokenizer = Tokenizer.from_str(tokenizer.to_str().replace('"ignore_merges":false', '"ignore_merges":true') if name == "llama3" else tokenizer.to_str())
    first = pre_tokenizers.Digits(individual_digits=True) if name == "digits" else pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=name == "digits")])
    tokenizer.save(str(HERE / f"tokenizer_{name}.json"), pretty=False)
    return tokenizer


def main():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, min_frequency=2, special_tokens=["<end>", "<2de>", "<2 déjà>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(LEARNED, trainer)
    tokenizer.save(str(HERE / "tokenizer.json"), pretty=False)
    with open(HERE / "tokenizer_golden.txt", "w") as file:
        for text in LEARNED:
            print("learned", text.encode().hex(), file=file)
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            assert tokenizer.decode(ids, skip_special_tokens=False) == text, text
            print("text", text.encode().hex() or "-", *ids, file=file)
        for name in ("digits", "llama3"):
            other = split(tokenizer, name)
            for text in SPLIT_TEXTS:
                print(name, text.encode().hex() or "-", *other.encode(text).ids, file=file)


main()
