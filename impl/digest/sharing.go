package digest

import (
	"cmp"
	"fmt"
	"time"
)

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
	Unnamed      = "unnamed"
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
	Unnamed:      "the name of its server is not known",
	Other:        "it answers, but not well: see the log of the hub",
}

// Sharing tells why a hub does not share with its pool, by what it told last; nil: it shares. ago is how long ago it
// told that.
func (d Digest) Sharing(ago time.Duration) error {
	switch {
	case ago > Lapsed:
		return fmt.Errorf("its hub has told nothing for %s", ago.Round(time.Minute))
	case d.Role == Pending:
		return fmt.Errorf("its hub does not reach its pool, and uses the cloud alone: %s",
			cmp.Or(likely[d.Cause], "it does not say why"))
	case freshness(d) != "fresh":
		return fmt.Errorf("what its hub holds is %s", map[bool]string{
			true: "not complete", false: d.Age.String() + " old",
		}[d.Age < 0])
	}
	return nil
}
