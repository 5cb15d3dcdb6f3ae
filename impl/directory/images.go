package directory

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// MaxImages bounds the rules of an Entry: 32 registries, and all others.
const MaxImages = 33

// maxRegistry bounds the name of a registry: the Pool has 253 bytes.
const maxRegistry = 253

// hosts are registries as the names of images have them: distribution/reference, domain.
var hosts = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

// ImageRule says how the images of a registry are shared inside the pool.
type ImageRule struct {
	Registry string `json:"registry"` // as RegistryOf has it; contract.AnyRegistry: all that are not named
	Sharing  string `json:"sharing"`  // contract.ImagesEnabled, ImagesJudged or ImagesDisabled
}

// String is the form in contract.LeaderHubImages.
func (r ImageRule) String() string { return r.Registry + "=" + r.Sharing }

// ImageRules are those of a pool, sorted by registry.
type ImageRules []ImageRule

// RegistryOf is the one name of a registry that has several: in small letters, without the port of https, and
// docker.io for the hosts of Docker Hub. Without it an image could be named past the rule for its registry.
func RegistryOf(host string) string {
	name, port := strings.ToLower(host), ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, ']') {
		name, port = name[:i], strings.TrimLeft(name[i+1:], "0")
	}
	name = strings.TrimRight(name, ".")
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		if name = ip.Unmap().String(); ip.Unmap().Is6() {
			name = "[" + name + "]"
		}
	}
	switch {
	case port != "" && port != "443":
		return net.JoinHostPort(strings.Trim(name, "[]"), port)
	case name == "index.docker.io", name == "registry-1.docker.io":
		return "docker.io"
	}
	return name
}

// Sharing is how images of a registry are shared: contract.ImagesEnabled, ImagesJudged or ImagesDisabled. A request
// that names no registry may be about any: the strictest counts.
func (all ImageRules) Sharing(registry string) string {
	if registry == "" {
		return all.strictest()
	}
	return all.sharing(RegistryOf(registry))
}

// sharing is that of a registry by its one name.
func (all ImageRules) sharing(registry string) string {
	for _, name := range []string{registry, contract.AnyRegistry} {
		if i := slices.IndexFunc(all, func(r ImageRule) bool { return r.Registry == name }); i >= 0 {
			return all[i].Sharing
		}
	}
	return contract.ImagesEnabled
}

func (all ImageRules) strictest() string {
	for _, s := range []string{contract.ImagesDisabled, contract.ImagesJudged} {
		if slices.ContainsFunc(all, func(r ImageRule) bool { return r.Sharing == s }) {
			return s
		}
	}
	return contract.ImagesEnabled
}

// Shares reports whether images of any registry are shared.
func (all ImageRules) Shares() bool {
	return all.sharing(contract.AnyRegistry) != contract.ImagesDisabled ||
		slices.ContainsFunc(all, func(r ImageRule) bool { return r.Sharing != contract.ImagesDisabled })
}

func (all ImageRules) check() error {
	if n := len(all); n > MaxImages {
		return fmt.Errorf("%s has %d registries, want %d at most", contract.LeaderHubImages, n, MaxImages)
	}
	for i, r := range all {
		fail := func(want string) error {
			return fmt.Errorf("%s has %.300q, want %s", contract.LeaderHubImages, r, want)
		}
		switch {
		case r.Registry != contract.AnyRegistry && (len(r.Registry) > maxRegistry || !hosts.MatchString(r.Registry)):
			return fail("<host>[:<port>]=<sharing>, or * for all other registries")
		case r.Registry != contract.AnyRegistry && r.Registry != RegistryOf(r.Registry):
			return fail("the registry as " + RegistryOf(r.Registry))
		case r.Sharing != contract.ImagesEnabled && r.Sharing != contract.ImagesJudged &&
			r.Sharing != contract.ImagesDisabled:
			return fail(contract.ImagesEnabled + ", " + contract.ImagesJudged + " or " + contract.ImagesDisabled)
		case i > 0 && r.Registry == all[i-1].Registry:
			return fail("each registry once")
		case i > 0 && r.Registry < all[i-1].Registry:
			return fail("registries in order")
		}
	}
	return nil
}
