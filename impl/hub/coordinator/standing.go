package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
)

// standing is how well a replica stands.
type standing int32

const (
	down    standing = iota
	serving          // Leases can be read and written
	ready            // and what it copies is fresh
)

// finding is what a probe of a replica found.
type finding struct {
	*Replica
	standing
	err error // of down
}

// probe asks a replica how it stands.
func (r *Replica) probe(ctx context.Context) finding {
	if r.Node != "" {
		var s member.PoolStatus
		if _, err := r.Do(ctx, http.MethodGet, contract.StatusPath, nil, &s); err != nil {
			return finding{r, down, err}
		} else if s.Ready {
			return finding{r, ready, nil}
		}
		return finding{r, serving, nil}
	}
	code, err := r.Do(ctx, http.MethodGet, "/readyz", nil, nil)
	if err == nil {
		return finding{r, ready, nil}
	}
	if code != 0 {
		_, err = r.Do(ctx, http.MethodGet, "/healthz", nil, nil)
	}
	if err != nil {
		return finding{r, down, err}
	}
	return finding{r, serving, nil}
}

// maxStanding bounds one line of a standing.
const maxStanding = 4 << 10

// followStanding has what a leader hub says of itself, at each change, until the connection is over.
func (r *Replica) followStanding(ctx context.Context, take func(contract.Standing)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.at(contract.StandingPath), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("follow how a leader hub stands: %s", resp.Status)
	}
	bounded := &io.LimitedReader{R: resp.Body}
	lines := json.NewDecoder(bounded)
	for {
		bounded.N = maxStanding
		var s contract.Standing
		if err := lines.Decode(&s); err != nil {
			return fmt.Errorf("follow how a leader hub stands: %w", err)
		}
		take(s)
	}
}
