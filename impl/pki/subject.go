package pki

import (
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Subject is whose certificate it is.
type Subject struct {
	Pool string
	Node string
	Name string // of a replica or of a person
	// Hosts are IP addresses and DNS names of a server. A certificate that is made has all of them; one that is checked
	// has some, and no others.
	Hosts []string
	Leads bool // the signer adds Identity.Leads; what is asked for, or checked, does not depend on it
}

const (
	maxPool  = 63 // the value of a label
	maxNode  = 253
	maxName  = 63
	maxHosts = 32
)

var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.@+]*[A-Za-z0-9])?$`)
)

// Read takes a common name apart. What it finds is what the name says, which nobody has checked.
func (i Identity) Read(commonName string) (Subject, bool) {
	form, parts := strings.Split(i.CommonName, ":"), strings.Split(commonName, ":")
	if len(form) != len(parts) {
		return Subject{}, false
	}
	var s Subject
	for n, part := range parts {
		switch form[n] {
		case "<pool>":
			s.Pool = part
		case "<node>":
			s.Node = part
		case "<name>":
			s.Name = part
		case part:
			continue
		default:
			return Subject{}, false
		}
		if part == "" {
			return Subject{}, false
		}
	}
	return s, true
}

// check tells what of a subject cannot be. It asks for nothing that the identity does not name.
func (i Identity) check(s Subject) error {
	pool, node, name := i.Needs()
	switch {
	case pool && (len(s.Pool) > maxPool || !subdomain.MatchString(s.Pool)):
		return mismatch("pool", s.Pool,
			"small letters, digits, - and ., 63 at most, beginning and ending with a letter or digit")
	case node && (len(s.Node) > maxNode || !subdomain.MatchString(s.Node)):
		return mismatch("node", s.Node, "the name of a Node: small letters, digits, - and ., 253 at most")
	case name && (len(s.Name) > maxName || !plainName.MatchString(s.Name)):
		return mismatch("name", s.Name,
			"letters, digits, - _ . @ and +, 63 at most, beginning and ending with a letter or digit")
	}
	return nil
}

// checkForm tells what cannot be the hosts of a server.
func checkForm(hosts []string) error {
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return mismatch("addresses", hosts, "1 to 32 IP addresses and DNS names")
	}
	for _, h := range hosts {
		if net.ParseIP(h) == nil && (len(h) > maxNode || !subdomain.MatchString(h)) {
			return mismatch("addresses", h, "an IP address, or a DNS name of small letters without *")
		}
	}
	return nil
}

func (s Subject) fill(form string) string {
	return strings.NewReplacer("<pool>", s.Pool, "<node>", s.Node, "<name>", s.Name).Replace(form)
}

// Template is what the certificate of a subject says, for a life that begins now. A program that makes certificates by
// another rule changes it.
func (i Identity) Template(s Subject, now time.Time, life time.Duration) (Template, error) {
	if err := i.check(s); err != nil {
		return Template{}, err
	}
	t := Template{CommonName: s.fill(i.CommonName), Client: i.Client, Server: i.Server}
	if i.Server {
		if err := checkForm(s.Hosts); err != nil {
			return Template{}, err
		}
		t.Hosts = slices.Clone(s.Hosts)
	}
	for _, o := range i.Organizations {
		t.Organizations = append(t.Organizations, s.fill(o))
	}
	if s.Leads && i.Leads != "" {
		t.Organizations = append(t.Organizations, i.Leads)
	}
	t.NotBefore, t.NotAfter = span(now, life)
	return t, nil
}

// span is from a little before now, since clocks of others may be behind: for a tenth of the life, an hour at most.
func span(now time.Time, life time.Duration) (begin, end time.Time) {
	return now.Add(-min(mostBackdate, life/10)), now.Add(life)
}

const mostBackdate = time.Hour
