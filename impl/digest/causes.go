package digest

import "cmp"

// Causes for which a hub is Pending. Each is a word on the wire; a later version may say another one. Those of a probe
// are what the hub saw when it called the coordinator, or a leader hub, of its pool.
const (
	Unconfigured = "unconfigured" // it was told of neither
	Starting     = "starting"     // it has not called yet
	Refused      = "refused"
	Unreachable  = "unreachable"
	Timeout      = "timeout"
	Broken       = "broken"
	Certificate  = "certificate"
	Clock        = "clock"
	Stranger     = "stranger"
	Mute         = "mute"
	Stalls       = "stalls"
	Unnamed      = "unnamed"
	CutOff       = "cutoff" // no hub tells it: weir-manager sees it
	Unheard      = "unheard"
	Other        = "other" // an answer, mostly, that says so itself
)

// likely says for people what a cause looks like from the hub, and what it comes from mostly.
var likely = map[string]string{
	Unconfigured: "it was told of no coordinator and of no leader hub",
	Starting:     "it has just begun",
	Refused:      "the connection is refused: nothing listens there, or a firewall rejects it",
	Unreachable:  "there is no route: the address is wrong, or of another network",
	Timeout:      "nothing comes back: a firewall drops it, the address is wrong, or large packets are lost (MTU)",
	Broken:       "connections break off: a proxy or NAT is between them",
	Certificate:  "the certificate is not accepted: it ended, another authority signed it, or a clock is wrong",
	Clock:        "the certificate is not valid yet: a clock is wrong",
	Stranger:     "somebody else answers: NAT, or the address is another machine's",
	Mute:         "it takes the connection and says nothing: another program listens there, or a proxy without its server",
	Stalls:       "small packets come through and large ones do not: the path has a smaller MTU than the nodes believe",
	CutOff:       "it is heard through its pool alone: look at its link, and at firewalls on the way to kube-apiserver",
	Unheard:      "nothing is heard of it: it is off, or its link is cut",
	Unnamed:      "the name of its server is not known",
	Other:        "it answers, but not well: see the log of the hub",
}

// OfWay reports whether a cause is one of the way to somebody, and not of what is at either end of it.
func OfWay(cause string) bool {
	return likely[cause] != "" && cause != Unconfigured && cause != Starting && cause != Other
}

// Likely says for people what a cause mostly comes from.
func Likely(cause string) string { return cmp.Or(likely[cause], "it does not say why") }
