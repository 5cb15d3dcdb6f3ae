# shellcheck shell=bash disable=SC2154 # build, which reads this file, sets the variables
# The images of the pods that every cluster runs, imported into the node's containerd, and the manifests that name them.

# layer_of NAME COMMAND... makes a layer of what the command puts into its last argument, a folder.
layer_of() {
  local name=$1
  shift
  mkdir -p "$work/layer"
  "$@" "$work/layer"
  layer "$work/layer" "$work/$name.tar"
  rm -rf "${work:?}/layer"
}

place() { install -D -m 755 "$1" "$3/$2"; }

place_kubernetes() {
  local name
  place "${bin[kubernetes]}" usr/local/bin/kubernetes "$1"
  for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do ln -s kubernetes "$1/usr/local/bin/$name"; done
}

place_busybox() {
  local applet
  place "$rootfs/bin/busybox" bin/busybox "$1"
  for applet in $("$rootfs/bin/busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"; done
  mkdir -m 1777 "$1/tmp"
}

# place_net copies iptables and nft, a shell and the libraries they need out of the node's file system: kube-proxy and the
# CNI agent call them. They are set to nftables, as they are in the node.
place_net() {
  local to=$1 file real programs libraries name
  mkdir -p "$to"/{etc,run,proc,sys,dev,usr/sbin,usr/bin,usr/lib,usr/lib64}
  mkdir -m 1777 "$to/tmp"
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$to/$name"; done
  echo 'root:x:0:0:root:/root:/usr/sbin/nologin' >"$to/etc/passwd"
  echo 'root:x:0:' >"$to/etc/group"
  programs="/usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /usr/sbin/nft /usr/sbin/conntrack /usr/bin/dash"
  libraries=$(chroot "$rootfs" sh -c "ldd $programs /usr/lib/*-linux-gnu/xtables/*.so" | grep -oE '/(usr/)?lib[^ :]*' | grep -v '/xtables/' | sort -u)
  for file in $programs $libraries; do
    real=$(chroot "$rootfs" realpath "$file")
    install -D -m 755 "$rootfs$real" "$to$real"
    # the name that the loader asks for
    name=$(chroot "$rootfs" realpath "$(dirname "$file")")/$(basename "$file")
    [ "$name" = "$real" ] || ln -sf "$real" "$to$name"
  done
  (cd "$rootfs" && cp -a --parents usr/lib/*-linux-gnu/xtables "$to")
  ln -s dash "$to/usr/bin/sh"
  for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -s xtables-nft-multi "$to/usr/sbin/$name"
    ln -s xtables-legacy-multi "$to/usr/sbin/${name/tables/tables-legacy}"
    ln -s xtables-nft-multi "$to/usr/sbin/${name/tables/tables-nft}"
  done
  chroot "$to" /usr/sbin/iptables --version >/dev/null || die "iptables does not run outside of the node: look at place_net in lib/pods.sh"
}

# wanted_image NAME prints the reference that kubeadm asks for, whose tag must name the version that is built here.
wanted_image() {
  local reference
  reference=$(grep -E "/$1:" "$work/kubeadm-images") || die "kubeadm $version wants no image $1: look at lib/pods.sh"
  echo "$reference"
}

make_pod_images() {
  local path='"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]' name tags=() etcd coredns
  ln -sf "${bin[kubernetes]}" "$work/kubeadm"
  "$work/kubeadm" config images list --kubernetes-version "$version" >"$work/kubeadm-images" 2>/dev/null
  etcd=$(wanted_image etcd)
  coredns=$(wanted_image coredns)
  [[ $etcd == *":$(version_of etcd go.etcd.io/etcd/server/v3 | tr -d v)"* ]] || die "kubeadm $version wants $etcd: change etcd/go.mod"
  [[ $coredns == *":$(version_of coredns github.com/coredns/coredns)" ]] || die "kubeadm $version wants $coredns: change coredns/go.mod"
  for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do tags+=("$(wanted_image "$name")"); done

  layer_of net place_net
  layer_of kubernetes place_kubernetes
  archive "$work/image-1" "{$path}" "${tags[*]}" "$work/net.tar" "$work/kubernetes.tar"
  layer_of etcd place "${bin[etcd]}" usr/local/bin/etcd
  archive "$work/image-2" "{$path}" "$etcd" "$work/etcd.tar"
  layer_of coredns place "${bin[coredns]}" coredns
  archive "$work/image-3" '{"Entrypoint": ["/coredns"]}' "$coredns" "$work/coredns.tar"
  layer_of pause place "${bin[pause]}" pause
  archive "$work/image-4" '{"Entrypoint": ["/pause"], "User": "65535:65535"}' "$pause_image" "$work/pause.tar"
  layer_of agent place "${bin[cni-agent]}" usr/bin/cni-agent
  archive "$work/image-5" "{$path, \"Entrypoint\": [\"/usr/bin/cni-agent\"]}" "$agent_image" "$work/net.tar" "$work/agent.tar"
  layer_of provisioner place "${bin[local-path-provisioner]}" usr/bin/local-path-provisioner
  archive "$work/image-6" '{"Entrypoint": ["/usr/bin/local-path-provisioner"]}' "$provisioner_image" "$work/provisioner.tar"
  layer_of helper place_busybox
  archive "$work/image-7" '{"Env": ["PATH=/bin"]}' "$helper_image" "$work/helper.tar"
}

# import_pod_images starts a containerd of its own on the node's folder; it needs no privilege beyond writing there.
import_pod_images() {
  local socket=$work/containerd.sock image pid
  cat >"$work/containerd.toml" <<EOF
version = 3
root = "$rootfs/var/lib/containerd"
state = "$work/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.nri.v1.nri"]
[grpc]
  address = "$socket"
[ttrpc]
  address = "$socket.ttrpc"
EOF
  "${bin[containerd]}" --config "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
  pid=$!
  children+=("$pid")
  for _ in $(seq 100); do
    "${bin[ctr]}" --address "$socket" version >/dev/null 2>&1 && break
    kill -0 "$pid" 2>/dev/null || { tail -n 5 "$work/containerd.log" >&2; die "containerd does not start on this machine: see above"; }
    sleep 0.1
  done
  for image in "$work"/image-*; do
    "${bin[ctr]}" --address "$socket" --namespace k8s.io images import --label io.cri-containerd.image=managed --no-unpack --digests "$image" >"$work/import.log" 2>&1 ||
      { cat "$work/import.log" >&2; die "containerd cannot import ${image##*/}: see above"; }
    rm "$image"
  done
  kill "$pid"
  wait "$pid" || true
}

# constant FILE NAME prints the manifest that kind keeps in a Go constant.
constant() { awk -v name="$2" '$0 ~ "^const " name " = `" {on = 1; next} on && /^`/ {exit} on' "$1"; }

# write_manifests takes kind's own manifests and puts the names of our images into them.
write_manifests() {
  local from
  from=$(module_dir kind sigs.k8s.io/kind)/pkg/build/nodeimage
  constant "$from/const_cni.go" defaultCNIManifest |
    sed "s|\` + kindnetdImage + \`|$agent_image|" >"$rootfs/kind/manifests/default-cni.yaml"
  constant "$from/const_storage.go" defaultStorageManifest |
    sed "s|\` + storageProvisionerImage + \`|$provisioner_image|; s|\` + storageHelperImage + \`|$helper_image|" >"$rootfs/kind/manifests/default-storage.yaml"
  if ! grep -q "image: $agent_image" "$rootfs/kind/manifests/default-cni.yaml" ||
    ! grep -q "image: $helper_image" "$rootfs/kind/manifests/default-storage.yaml" ||
    grep -q '`' "$rootfs"/kind/manifests/*.yaml; then
    die "kind's manifests have changed: look at write_manifests in lib/pods.sh"
  fi
}
