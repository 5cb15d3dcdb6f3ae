package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// MirrorStatus says whether containerd asks the hub for images first.
type MirrorStatus struct {
	On      bool     `json:"on"`
	Refused bool     `json:"refused,omitempty"` // by --images=false
	Hosts   string   `json:"hosts,omitempty"`   // the file by which containerd is told
	Why     string   `json:"why,omitempty"`     // it is off
	Others  []string `json:"others,omitempty"`  // registries for which containerd asks somebody else
	// Discards: containerd keeps no layers; see Pulls.
	Discards string `json:"discards,omitempty"`
}

// String is a line for a person.
func (s *MirrorStatus) String() string {
	if !s.On {
		return "containerd asks registries: " + s.Why
	}
	line := "containerd asks the hub first"
	if len(s.Others) > 0 {
		line += ", but for images of " + strings.Join(s.Others, ", ")
	}
	if s.Discards != "" {
		line += "; " + discarded + s.Discards
	}
	return line
}

// discarded stands before what to change where containerd keeps no layers.
const discarded = "it keeps no layers, so other nodes read an image here only while it is pulled: "

// Notes are what a mirror does not do that a hosts.toml leads to; "": it does all.
func (p Pulls) Notes(hosts string) string {
	var all []string
	if len(p.Own) > 0 {
		all = append(all, fmt.Sprintf("containerd asks others for %s: they have a directory of their own beside %s",
			strings.Join(p.Own, ", "), filepath.Dir(hosts)))
	}
	if p.Discards != "" {
		all = append(all, "containerd: "+discarded+p.Discards)
	}
	return strings.Join(all, "; ")
}

// Again is what sets a mirror up.
const Again = "weir node join once more sets it up"

// MirrorStatusOf is whether the runtime asks a mirror: how it pulls, which hosts.toml a join has written and whether
// that is there, the address to which it leads, and that of the mirror, "" if there is none.
func MirrorStatusOf(p Pulls, hosts string, there bool, led, mirror string) *MirrorStatus {
	s := &MirrorStatus{Hosts: cmp.Or(hosts, p.Theirs), Others: p.Own, Discards: p.Discards}
	switch {
	case p.Why != "":
		s.Why = p.Why
	case p.Hosts != hosts || hosts != "" && !there:
		s.Why = fmt.Sprintf("%s does not lead to the hub: %s", cmp.Or(p.Hosts, hosts), Again)
	case mirror == "":
		s.Why = "the hub is no mirror: see what it lacks, and images-port in its configuration"
	case mirror != led:
		s.Why = fmt.Sprintf("the mirror is at %s, and containerd is led to %s: %s", mirror, led, Again)
	default:
		s.On = true
	}
	return s
}

// Listens is the address of a mirror by its flag: a port, or one with an address; "": it is off.
func Listens(flag any) (string, error) {
	said := fmt.Sprint(flag)
	if !strings.Contains(said, ":") {
		said = "127.0.0.1:" + said
	}
	address, err := netip.ParseAddrPort(said)
	if err != nil || address.Port() == 0 {
		return "", err
	}
	return address.String(), nil
}
