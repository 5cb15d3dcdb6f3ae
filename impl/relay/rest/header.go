package rest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// Headers that relays use among themselves. Other clients do not know them.
const (
	// HistoryHeader tells which relay.History of the cloud versions are of. An answer carries it unless it is the first. A
	// request of a relay that holds something carries it always: it is answered only by a relay in the same history.
	HistoryHeader = "Weir-History"
	// ProgressHeader on a watch request asks for relay.WatchOptions.Progress.
	ProgressHeader = "Weir-Progress"
	// PastHeader on a request for a streaming list asks for relay.WatchOptions.Past.
	PastHeader = "Weir-Past"
)

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
