package relay

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// waitAhead is how long a read that is ahead of the cache waits, as in kube-apiserver (blockTimeout in storage/cacher).
const waitAhead = 3 * time.Second

// At is where a reader stands.
type At struct {
	// Version is what the reader has seen. Nothing older is shown to it. 0: it has seen nothing.
	Version uint64
	// History is what Version is of, if the reader is a relay that holds something. nil: it knows of none.
	History *History
}

// agree reports whether a relay that asks is in the same history, nil if it is.
func agree(mine History, at At) error {
	switch {
	case at.History == nil || at.History.Number == mine.Number:
		return nil
	case at.History.Number < mine.Number:
		return apierrors.NewResourceExpired(fmt.Sprintf("the history of the cloud is another one: %d, asked was for %d",
			mine.Number, at.History.Number))
	}
	return unavailable("this relay is still in history %d of the cloud, asked was for %d", mine.Number, at.History.Number)
}

// keyOf is wire.Object.Key of an object.
func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
