package pools

import (
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// imagesOf is what hubs are told of a Pool's images; "": nothing, as all are shared. Of two that name one registry in
// two ways the stricter counts: a person may have written the second one beside the first.
func imagesOf(own *poolv1.Images) string {
	others := sharing(own.Sharing)
	all := map[string]string{}
	for _, r := range own.Registries {
		host := directory.RegistryOf(r.Host)
		all[host] = stricter(all[host], sharing(r.Sharing))
	}
	if others != contract.ImagesEnabled {
		all[contract.AnyRegistry] = others
	}
	var text []string
	for host, s := range all {
		text = append(text, directory.ImageRule{Registry: host, Sharing: s}.String())
	}
	slices.Sort(text)
	return strings.Join(text, ",")
}

// sharing is the word for hubs.
func sharing(word string) string {
	switch word {
	case "", poolv1.SharingEnabled: // a Pool of a test, which no CRD has filled
		return contract.ImagesEnabled
	case poolv1.SharingJudged:
		return contract.ImagesJudged
	}
	return contract.ImagesDisabled
}

func stricter(a, b string) string {
	for _, s := range []string{contract.ImagesDisabled, contract.ImagesJudged} {
		if a == s || b == s {
			return s
		}
	}
	return contract.ImagesEnabled
}
