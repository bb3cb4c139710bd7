#!/bin/sh
# Records filters of DCSO's tool, version 0.2.4, Debian's package golang-github-dcso-bloom-cli.
# Needs nothing of this repository. Run it in this folder.
set -eu

# The items are 400 lines, of which the first 100 are in most of the filters. Two are odd: an empty
# line, and bytes that are no UTF-8.
items() {
  printf '\n\377\376 no text\n'
  for i in $(seq 2 399); do printf 'é 😀 %d\n' "$i"; done
}
items >items.txt

head -n 100 items.txt | bloom create -n 100 -p 0.1 rough.bloom
head -n 100 items.txt | bloom create -n 100 -p 0.001 fine.bloom
sed -n 3p items.txt | bloom create -n 1 -p 1e-300 finest.bloom
# Twice the items of its capacity, and the last ones in a second run.
head -n 80 items.txt | bloom create -n 50 -p 0.01 full.bloom
head -n 100 items.txt | tail -n 20 | bloom insert full.bloom
cp fine.bloom data.bloom
printf 'made for tests\nof two lines\n' | bloom set-data data.bloom
for filter in rough fine finest full; do
  bloom check $filter.bloom <items.txt >$filter.found
done

# Capacity, error rate, bits, hashes.
number() { od -A n -t u8 -j "$2" -N 8 "$1" | tr -d ' '; }
for n in 1 2 3 7 10 99 100 1000 123456; do
  for p in 0.9 0.5 0.25 0.1 0.03 0.01 0.001 0.0001 1e-6 1e-9 1e-15; do
    bloom create -n $n -p $p size.tmp </dev/null
    echo "$n $p $(number size.tmp 32) $(number size.tmp 24)"
    rm size.tmp
  done
done >sizes.txt
