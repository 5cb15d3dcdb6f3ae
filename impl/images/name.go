package images

import (
	"fmt"
	"strings"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/exchange"
)

// dockerHub is the registry of names without a host.
const dockerHub = "docker.io"

// Name is an image as a Pod names it, with all that a short form leaves out.
type Name struct {
	Registry, Repository string
	Tag                  string // "": Digest says which one
	Digest               string
}

// ParseName reads the name of an image: [HOST[:PORT]/]NAME[:TAG][@DIGEST]. Short forms are what they are to a kubelet:
// busybox is docker.io/library/busybox:latest.
func ParseName(text string) (n Name, err error) {
	rest, hash, hashed := strings.Cut(text, "@")
	if hashed {
		d, err := exchange.ParseDigest(hash)
		if err != nil {
			return Name{}, err
		}
		n.Digest = d.String()
	}
	host, path, ok := strings.Cut(rest, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, path = dockerHub, rest
	}
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		n.Tag, path = path[i+1:], path[:i]
		if !tags.MatchString(n.Tag) {
			return Name{}, fmt.Errorf("tag %.200q: want letters, digits and . _ -, 128 bytes at most", n.Tag)
		}
	}
	if n.Registry = directory.RegistryOf(host); len(host) > maxName || !registries.MatchString(host) {
		return Name{}, fmt.Errorf("registry %.200q: want a host, and maybe a port", host)
	}
	if n.Registry == dockerHub && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	if n.Repository = path; len(path) > maxName || !repositories.MatchString(path) {
		return Name{}, fmt.Errorf("name %.200q: want small letters, digits and . _ - between them, %d bytes at most", path,
			maxName)
	}
	if n.Digest != "" {
		n.Tag = "" // containerd does not look at it either
	} else if n.Tag == "" {
		n.Tag = "latest"
	}
	return n, nil
}

// String is the name in full.
func (n Name) String() string {
	text := n.Registry + "/" + n.Repository
	if n.Digest != "" {
		return text + "@" + n.Digest
	}
	return text + ":" + n.Tag
}
