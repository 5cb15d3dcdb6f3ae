package store

import (
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
)

// Replica is one of several replicas.
type Replica struct {
	Name string
	Peer *url.URL // where replicas meet
	API  *url.URL
}

// URLs reads name=https://host:port.
func URLs(flag string, list []string) (byName map[string]*url.URL, names []string, err error) {
	byName, owner := map[string]*url.URL{}, map[string]string{}
	for _, s := range list {
		name, text, _ := strings.Cut(s, "=")
		u, err := url.Parse(text)
		if err != nil || len(validation.IsDNS1123Label(name)) > 0 || !plainHTTPS(u) {
			return nil, nil, cli.Usage(flag, s, "name=https://host:port, with a name of lower-case letters, digits and '-'")
		}
		if byName[name] != nil {
			return nil, nil, cli.Usage(flag, s, "each name once")
		}
		if other := owner[u.Host]; other != "" {
			return nil, nil, cli.Usage(flag, s, "each address once: it is that of "+other)
		}
		u.Path = ""
		byName[name], names, owner[u.Host] = u, append(names, name), name
	}
	return byName, names, nil
}

// plainHTTPS reports whether a URL is https://host:port and nothing more.
func plainHTTPS(u *url.URL) bool {
	return u.Scheme == "https" && u.Hostname() != "" && ValidPort(u.Port()) && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// ValidPort reports whether a text is a TCP port.
func ValidPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
