#!/usr/bin/env bash
# Solves ten problems and makes the gallery of them: docs/gallery.md, with a picture and an animation of each in docs/gallery.
set -euo pipefail
cd "$(dirname "$0")/.."
problems=(
    cartpole_swingup minimum_time_pendulum five_bar_reach spatial_arm_reach quadrotor_waypoints
    block_push hopper_jump monoped_stairs biped_gait a1_walk_gradients
)
cargo build --release
program=target/release/least-action
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p docs/gallery
{
    printf '# Gallery\n\n'
    printf 'Ten of the shipped problems, solved. Pictures are stroboscopic, faint to strong, beside films. With `--animate` a problem makes a page to\n'
    printf 'turn and to scrub in a browser. Made by `docs/gallery.sh`.\n'
} >"$out/gallery.md"
for name in "${problems[@]}"; do
    file=problems/$name.toml
    "$program" solve "$file" --out "$out/$name" >"$out/told"
    "$program" animate "$out/$name/trajectory.json" --out "docs/gallery/$name.gif" >/dev/null
    cp "$out/$name/motion.svg" "docs/gallery/$name.svg"
    title=$(sed -n 's/^title = "\(.*\)"$/\1/p' "$file")
    {
        printf '\n## %s\n\n' "$title"
        # what the file says of itself: its first paragraph
        sed -n '/^# ./!q; s/^# //p' "$file"
        printf '\n![%s](gallery/%s.svg)\n\n![%s, a film](gallery/%s.gif)\n\n' "$title" "$name" "$title" "$name"
        # without the time it took here
        printf '`least-action solve %s --animate`: %s. ' "$file" "$(sed -n "s/^$title: \(.*\), [0-9.]* s\$/\1/p" "$out/told")"
        printf '[Problem](../%s).\n' "$file"
    } >>"$out/gallery.md"
done
mv "$out/gallery.md" docs/gallery.md
