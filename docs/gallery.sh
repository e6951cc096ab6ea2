#!/usr/bin/env bash
# Solves ten problems and makes the gallery of them: docs/gallery.md, with a picture and an animation of each in docs/gallery.
set -euo pipefail
cd "$(dirname "$0")/.."
problems=(
    cartpole_swingup minimum_time_pendulum five_bar_reach spatial_arm_reach quadrotor_waypoints
    block_push hopper_jump monoped_stairs biped_gait a1_walk_gradients
)
cargo build --release
solve=(target/release/least-action solve)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p docs/gallery
{
    printf '# Gallery\n\n'
    printf 'Ten of the shipped problems, solved. Pictures are stroboscopic, faint to strong; the animations are pages to open in a browser, to\n'
    printf 'turn and to scrub. Made by `docs/gallery.sh`.\n'
} >"$out/gallery.md"
for name in "${problems[@]}"; do
    file=problems/$name.toml
    "${solve[@]}" "$file" --out "$out/$name" --animate >"$out/told"
    cp "$out/$name/motion.svg" "docs/gallery/$name.svg"
    cp "$out/$name/motion.html" "docs/gallery/$name.html"
    title=$(sed -n 's/^title = "\(.*\)"$/\1/p' "$file")
    {
        printf '\n## %s\n\n' "$title"
        # what the file says of itself: its first paragraph
        sed -n '/^# ./!q; s/^# //p' "$file"
        printf '\n![%s](gallery/%s.svg)\n\n' "$title" "$name"
        # without the time it took here
        printf '`least-action solve %s --animate`: %s. ' "$file" "$(sed -n "s/^$title: \(.*\), [0-9.]* s\$/\1/p" "$out/told")"
        printf '[Problem](../%s), [animation](gallery/%s.html).\n' "$file" "$name"
    } >>"$out/gallery.md"
done
mv "$out/gallery.md" docs/gallery.md
