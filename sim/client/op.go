package client

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// What happened in a stream.
const (
	OpList       = "list"        // a complete list, of all its pages; Items is set
	OpOpen       = "open"        // a watch was opened; Initial tells a streaming list
	OpEvent      = "event"       // Type, Item
	OpBookmark   = "bookmark"    // Version
	OpInitialEnd = "initial-end" // the bookmark that ends the initial events of a streaming list
	// a list or watch failed, or the stream said ERROR; Code is the status code, 0 if there was none.
	OpError = "error"
	OpClose = "close" // a watch ended without an error; Err is ByClient or empty
)

// ByClient is the Err of an OpClose by the client itself.
const ByClient = "by the client"

// Item is one object as a client saw it.
type Item struct {
	Key, UID string // Key is namespace/name
	Version  uint64
	Hash     uint64            // of its content: all but the resourceVersion
	Labels   map[string]string // kept by a recorder of the truth only
	Size     int               // of its protobuf; likewise
}

// Op is one thing that happened in a stream.
type Op struct {
	At        time.Time
	What      string
	Type      watch.EventType
	Version   uint64 // of the list, bookmark or event; of OpOpen: from where
	Initial   bool
	Item      Item
	Items     []Item
	Options   string // of OpOpen and OpList: the query of the request
	Code      int
	Err       string
	Malformed bool // of OpError: what came cannot be what it should be, whoever asked for it
}

// String is one line about op.
func (o Op) String() string {
	switch o.What {
	case OpList:
		return fmt.Sprintf("list of %d at %d", len(o.Items), o.Version)
	case OpOpen:
		if o.Initial {
			return fmt.Sprintf("streaming list from %d", o.Version)
		}
		return fmt.Sprintf("watch from %d", o.Version)
	case OpEvent:
		return fmt.Sprintf("%s %s at %d", o.Type, o.Item.Key, o.Version)
	case OpError:
		kind := "error"
		if o.Malformed {
			kind = "malformed"
		}
		return fmt.Sprintf("%s %d: %s", kind, o.Code, o.Err)
	case OpClose:
		if o.Err != "" {
			return "closed " + o.Err
		}
		return "closed"
	}
	return fmt.Sprintf("%s at %d", o.What, o.Version)
}
