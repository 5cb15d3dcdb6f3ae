package digest

import (
	"fmt"
	"time"
)

// Sharing tells why a hub does not share with its pool, by what it told last; nil: it shares. ago is how long ago it
// told that.
func (d Digest) Sharing(ago time.Duration) error {
	switch {
	case ago > Lapsed:
		return fmt.Errorf("its hub has told nothing for %s", ago.Round(time.Minute))
	case d.Role == Pending:
		return fmt.Errorf("its hub does not reach its pool, and uses the cloud alone: %s",
			Likely(d.Cause))
	case freshness(d) != "fresh":
		return fmt.Errorf("what its hub holds is %s", map[bool]string{
			true: "not complete", false: d.Age.String() + " old",
		}[d.Age < 0])
	}
	return nil
}
