# shellcheck shell=bash disable=SC2154 # build, which reads this file, sets the variables
# The programs of a node, built from the Go modules in the folders beside this one. go.mod and go.sum pin them. Each program
# is kept under the hash of what decides its content.

# program FOLDER NAME PACKAGE [LDFLAGS [TAGS]] sets bin[NAME] to the static program and builds it when it is not in the cache.
program() {
  local folder=$1 name=$2 package=$3 ldflags=${4:-} tags=${5:-} key path
  key=$(
    cd "$here/$folder"
    { sha256sum -- *.go go.mod go.sum 2>/dev/null; go env GOVERSION GOARCH GOFLAGS; echo "$package $ldflags $tags $cgo"; } | sha256sum | cut -c 1-16
  )
  path=$cache/bin/$name-$key
  bin["$name"]=$path
  [ -x "$path" ] && return 0
  mkdir -p "$cache/bin"
  timed "$name" go_build "$here/$folder" "$work/$name" "$package" "-s -w $ldflags" "$tags"
  mv "$work/$name" "$path.part"
  mv "$path.part" "$path"
}

go_build() {
  cd "$1"
  CGO_ENABLED=$cgo GOWORK=off go build -v -tags "$5" -ldflags "$4" -o "$2" "$3"
}

# build_programs builds everything, the quick ones first so that a missing tool shows early.
build_programs() {
  local plugin v minor
  cgo=1 # runc's first stage is C; static, so that the C library of this machine does not matter
  program runc runc github.com/opencontainers/runc "-linkmode external -extldflags -static" "seccomp netgo osusergo urfave_cli_no_docs"
  cgo=0
  for plugin in ipam/host-local main/loopback main/ptp meta/portmap; do
    program cni-plugins "${plugin#*/}" "github.com/containernetworking/plugins/plugins/$plugin"
  done
  program etcd etcd go.etcd.io/etcd/server/v3
  program kind kind sigs.k8s.io/kind
  v=$(version_of containerd github.com/containerd/containerd/v2)
  for name in containerd-shim-runc-v2 ctr containerd; do
    program containerd "$name" "github.com/containerd/containerd/v2/cmd/$name" \
      "-X github.com/containerd/containerd/v2/version.Version=$v" "no_aufs no_zfs no_btrfs no_devmapper"
  done
  program coredns coredns .
  program cni-agent cni-agent .
  program local-path-provisioner local-path-provisioner github.com/rancher/local-path-provisioner
  v=k8s.io/component-base/version
  minor=${version#v1.}
  # The flags of sim/cloud/version.go: the two builds share one compile cache.
  program kubernetes kubernetes . "-X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}"
  build_pause
}

# build_pause compiles the pause program, which is C, out of the module of Kubernetes.
build_pause() {
  local source
  source=$(module_dir kubernetes k8s.io/kubernetes)/build/pause/linux/pause.c
  bin[pause]=$work/pause
  gcc -Os -Wall -static -DVERSION="$pause_version" -o "$work/pause" "$source" || die "pause does not compile: install gcc and libc6-dev"
  strip "$work/pause"
}

module_dir() { (cd "$here/$1" && go mod download "$2" && go list -m -f '{{.Dir}}' "$2"); }
version_of() { (cd "$here/$1" && go list -m -f '{{.Version}}' "$2"); }
