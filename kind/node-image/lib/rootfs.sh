# shellcheck shell=bash disable=SC2154 # build, which reads this file, sets the variables
# The file system of a node: Debian, kind's own files, containerd, runc and the CNI plugins.

release=bookworm

# debian_mirror is where apt of this machine finds the release, or Debian's own address.
debian_mirror() {
  local uri
  # shellcheck disable=SC2016 # apt-get expands these
  uri=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v release=$release '$1 == release && $2 == "main" {print $3; exit}') || true
  echo "${WEIR_DEBIAN_MIRROR:-${uri:-http://deb.debian.org/debian}}"
}

packages() { grep -v '^#' "$here/debian.packages" | paste -sd,; }

# fetch_debs OUT downloads the packages and all they depend on, signatures checked, into one tar file.
fetch_debs() {
  debootstrap --variant=minbase --include="$(packages)" --make-tarball="$1" "$release" "$work/debs" "$(debian_mirror)"
}

# list_debs TAR prints sum and name of each package in it.
list_debs() {
  local folder=$work/unpacked
  rm -rf "$folder"
  mkdir "$folder"
  tar -C "$folder" -xf "$1"
  (cd "$folder" && find . -name '*.deb' -exec sha256sum {} + | sed 's, .*/, ,' | sort -k 2)
  rm -rf "$folder"
}

# debs sets the tar file of the pinned packages, downloaded once.
debs() {
  debs=$cache/debs-$(cat "$lock" "$here/debian.packages" | sha256sum | cut -c 1-16).tgz
  [ -f "$debs" ] && return 0
  timed "Debian packages" fetch_debs "$work/debs.tgz"
  diff "$lock" <(list_debs "$work/debs.tgz") >"$work/diff" || {
    head -n 20 "$work/diff" >&2
    die "the packages that the mirror serves differ from $(basename "$lock") (above; < is pinned): set WEIR_DEBIAN_MIRROR to one that has them, or pin what it serves with: kind/node-image/build lock"
  }
  mv "$work/debs.tgz" "$debs.part"
  mv "$debs.part" "$debs"
}

make_rootfs() {
  timed "Debian system" debootstrap --variant=minbase --include="$(packages)" --unpack-tarball="$debs" "$release" "$rootfs" "$(debian_mirror)"
  kind_files "$(module_dir kind sigs.k8s.io/kind)/images/base/files"
  clean_debian
  install_programs
}

# kind_files copies the node files out of kind's module, as its images/base/Dockerfile does.
kind_files() {
  local from=$1 file
  (cd "$from" && find . -type f ! -name '*fuse-overlayfs*' ! -name README.txt) | while read -r file; do
    case "$file" in
      ./kind/bin/* | ./usr/local/bin/*) install -D -m 755 "$from/$file" "$rootfs/$file" ;;
      *) install -D -m 644 "$from/$file" "$rootfs/$file" ;;
    esac
  done
  mkdir -p "$rootfs"/kind/manifests "$rootfs"/etc/kubernetes/manifests "$rootfs"/etc/cni/net.d "$rootfs"/opt/cni/bin
  # Where the machine does not grant CAP_SYS_RESOURCE nobody may lower an OOM score; elsewhere this changes nothing of note.
  sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$rootfs/etc/containerd/config.toml"
  grep -q 'restrict_oom_score_adj = true' "$rootfs/etc/containerd/config.toml" || die "kind's containerd configuration has changed: look at lib/rootfs.sh"
  # The kubelet refuses cgroup v1 unless told otherwise.
  sed -i 's/^KUBELET_EXTRA_ARGS=.*/& --fail-cgroupv1=false/' "$rootfs/etc/default/kubelet"
}

# clean_debian does what kind's Dockerfile does after it installed the packages, and drops documentation.
clean_debian() {
  (
    cd "$rootfs"
    find lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
    rm -f lib/systemd/system/multi-user.target.wants/* etc/systemd/system/*.wants/* lib/systemd/system/local-fs.target.wants/* \
      lib/systemd/system/sockets.target.wants/*udev* lib/systemd/system/sockets.target.wants/*initctl* \
      lib/systemd/system/basic.target.wants/*
    echo ReadKMsg=no >>etc/systemd/journald.conf
    rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/* usr/share/info/* var/log/*
    rm -f etc/resolv.conf etc/hostname etc/machine-id
  )
  chroot "$rootfs" systemctl enable kubelet.service containerd.service undo-mount-hacks.service 2>&1 | grep -v Created || true
  chroot "$rootfs" systemctl mask systemd-binfmt.service 2>&1 | grep -v Created || true
}

install_programs() {
  local name
  install -m 755 "${bin[runc]}" "$rootfs/usr/local/sbin/runc"
  for name in containerd ctr containerd-shim-runc-v2; do install -m 755 "${bin[$name]}" "$rootfs/usr/local/bin/$name"; done
  for name in host-local loopback ptp portmap; do install -m 755 "${bin[$name]}" "$rootfs/opt/cni/bin/$name"; done
  install -m 755 "$here/crictl" "$rootfs/usr/local/bin/crictl"
  chroot "$rootfs" ctr oci spec |
    jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' >"$rootfs/etc/containerd/cri-base.json"
  install -m 755 "${bin[kubernetes]}" "$rootfs/usr/bin/kubelet"
  for name in kubeadm kubectl; do ln -s kubelet "$rootfs/usr/bin/$name"; done
  printf %s "$version" >"$rootfs/kind/version"
}
