package hub

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// maxWritten bounds the answers that are looked into: kube-apiserver takes no larger object by default.
	maxWritten = 4 << 20
	// writtenAge is how long a write is waited for at all. If it did not show in a minute, the feed is broken, or the history
	// of the cloud is another one.
	writtenAge = time.Minute
)

// written remembers, per relayed resource, the newest version that a write through this hub produced, so that the
// writer reads its own writes here though its reads are served from a relay.
type written struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	newest []writtenVersion // by target.index
}

type writtenVersion struct {
	version uint64
	at      time.Time
}

// observe looks into the answer to a write before the writer sees it.
func (wr *written) observe(resp *http.Response) error {
	t, _ := resp.Request.Context().Value(targetKey{}).(*target)
	if t == nil || resp.StatusCode < 200 || resp.StatusCode > 299 || resp.ContentLength > maxWritten {
		return nil
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxWritten+1))
	if err != nil {
		return fmt.Errorf("read the answer to a write: %w", err)
	}
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	if v := versionOf(resp.Header, head); v > 0 {
		wr.remember(t.index, v)
	}
	return nil
}

func (wr *written) remember(index int, version uint64) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	now := wr.clock.Now()
	if w := &wr.newest[index]; version > w.version || now.Sub(w.at) > writtenAge {
		*w = writtenVersion{version, now}
	}
}

// version is what a read with unset resourceVersion should wait for, 0 if there is nothing.
func (wr *written) version(index int) uint64 {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	w := wr.newest[index]
	if wr.clock.Now().Sub(w.at) > writtenAge {
		return 0
	}
	return w.version
}

// versionOf reads the resourceVersion of an object, 0 if the body is none or has none (a deletion may answer a Status).
func versionOf(h http.Header, body []byte) uint64 {
	if h.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0
		}
		if body, err = io.ReadAll(io.LimitReader(z, 4*maxWritten)); err != nil {
			return 0
		}
	}
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case mediaProtobuf:
		kind, raw, err := wire.SplitEnvelope(body)
		if err != nil || kind.Kind == "Status" {
			return 0
		}
		o, err := wire.ParseObject(wire.Protobuf, raw)
		if err != nil {
			return 0
		}
		return o.Version
	case "application/json":
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(body, &o) != nil || o.Kind == "Status" {
			return 0
		}
		v, _ := strconv.ParseUint(o.ResourceVersion, 10, 64)
		return v
	}
	return 0
}
