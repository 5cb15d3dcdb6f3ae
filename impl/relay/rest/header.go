package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// Headers that relays use among themselves. Other clients do not know them.
const (
	// HistoryHeader tells which relay.History of the cloud versions are of. An answer carries it unless it is the first. A
	// request of a relay that holds something carries it always: it is answered only by a relay in the same history.
	HistoryHeader = "Weir-History"
	// ProgressHeader on a watch request asks for relay.WatchOptions.Progress. Its value is 1, or the seconds of
	// relay.WatchOptions.Calm, maxCalm at most.
	ProgressHeader = "Weir-Progress"
	// PastHeader on a request for a streaming list asks for relay.WatchOptions.Past.
	PastHeader = "Weir-Past"
)

// maxCalm bounds for how long a relay may not be told that its source lives, in seconds.
const maxCalm = 60

// parseCalm reads the value of ProgressHeader.
func parseCalm(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 1 {
		return time.Duration(min(n, maxCalm)) * time.Second
	}
	return 0
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// ParseHistory reads what HistoryHeader says; given is false if it is not there.
func ParseHistory(header http.Header) (h relay.History, given bool, err error) {
	s := header.Get(HistoryHeader)
	if s == "" {
		return h, false, nil
	}
	if h, err = relay.ParseHistory(s); err != nil {
		return relay.History{}, false, fmt.Errorf("header %s: %w", HistoryHeader, err)
	}
	return h, true, nil
}

// TellHistory says in an answer which history it is of.
func TellHistory(header http.Header, h relay.History) {
	if h.Number != 0 {
		header.Set(HistoryHeader, h.String())
	}
}
