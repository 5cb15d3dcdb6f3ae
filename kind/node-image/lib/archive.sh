# shellcheck shell=bash disable=SC2154 # build, which reads this file, sets the variables
# Image archives, in the form of `docker save`, without an engine: docker load, kind load image-archive and containerd read them.

# layer FOLDER FILE packs a folder as a layer; the same content gives the same bytes.
layer() { tar --sort=name --mtime=@0 --numeric-owner -C "$1" -cf "$2" .; }

# archive OUT CONFIG TAGS LAYER... packs layers into an image with the settings CONFIG (JSON) and the space separated TAGS.
archive() {
  local out=$1 config=$2 tags=$3 folder diffs=() names=() sum file
  shift 3
  folder=$(mktemp -d "$work/archive.XXXXXX")
  for file; do
    sum=$(sha256sum "$file" | cut -d' ' -f 1)
    diffs+=("sha256:$sum")
    names+=("$sum.tar")
    ln -f "$file" "$folder/$sum.tar" 2>/dev/null || cp "$file" "$folder/$sum.tar"
  done
  jq -nc --argjson config "$config" --arg arch "$arch" --args \
    '{architecture: $arch, os: "linux", config: $config, rootfs: {type: "layers", diff_ids: $ARGS.positional}}' "${diffs[@]}" >"$folder/config"
  sum=$(sha256sum "$folder/config" | cut -d' ' -f 1)
  mv "$folder/config" "$folder/$sum.json"
  jq -nc --arg config "$sum.json" --arg tags "$tags" --args \
    '[{Config: $config, RepoTags: ($tags | split(" ")), Layers: $ARGS.positional}]' "${names[@]}" >"$folder/manifest.json"
  mapfile -t names < <(printf '%s\n' "${names[@]}" | sort -u)
  tar -C "$folder" -cf "$out" manifest.json "$sum.json" "${names[@]}"
  rm -rf "$folder"
}
